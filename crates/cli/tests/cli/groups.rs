//! Results by session.

use amplifier_session_storage::content::tokens::count;

use crate::{
    output::{terminal, text},
    support::SYNCED,
    terminal::Terminal,
};

const SEARCH: [&str; 4] = ["search", "order retry test", "--limit", "3"];

#[test]
fn a_terminal_gets_sessions_and_a_pipe_gets_messages() {
    let question = ["search", "why were customers charged twice", "--limit", "2"];
    terminal("search_messages_terminal", 80, &[&question[..], &["--group", "none"]].concat());
    terminal("search_groups_full_terminal", 80, &[&question[..], &["--full", "--max-chars", "300"]].concat());
    terminal("search_groups_wide_terminal", 120, &[&question[..], &["--color", "never"]].concat());
    text("search_groups", &[&question[..], &["--group", "session"]].concat());
    let lines = SYNCED.ok(&[&SEARCH[..], &["--group", "none"]].concat());
    assert_eq!(SYNCED.ok(&SEARCH), lines);
}

#[test]
fn groups_have_the_results_of_one_session_each() {
    let found = SYNCED.json(&[&SEARCH[..], &["--group", "session"]].concat());
    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let mut hits = Vec::new();
    for group in groups {
        let results = group["results"].as_array().unwrap();
        assert!((1..=3).contains(&results.len()) && group["more"].is_u64(), "{group}");
        assert!(group["updated"].is_string() && group["title"].is_string(), "{group}");
        for result in results {
            assert_eq!(result["session_id"], group["session_id"]);
            let address = format!("{}#{}", group["session"].as_str().unwrap(), result["sequence"]);
            assert_eq!(result["address"], address.as_str());
            hits.push(result.clone());
        }
    }
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), hits.len());
    assert!(hits.iter().all(|hit| results.contains(hit)));
    assert_eq!(results[0], groups[0]["results"][0]);
    let scores: Vec<f64> = results.iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(SYNCED.json(&SEARCH).get("groups").is_none());
}

#[test]
fn the_limit_counts_sessions() {
    for limit in ["1", "4", "1000"] {
        let search = ["search", "the order", "--limit", limit, "--group", "session"];
        let groups = SYNCED.json(&search)["groups"].as_array().unwrap().len();
        assert!(groups.to_string() == limit || (limit == "1000" && groups > 4), "{limit}: {groups}");
    }
    let ran = SYNCED.run_json(&["search", "xyzzyplugh", "--mode", "full-text", "--group", "session"]);
    assert_eq!((ran.code, &ran.json()["groups"]), (3, &serde_json::json!([])));
}

#[test]
fn sessions_are_fitted_into_a_budget() {
    let whole = SYNCED.json(&[&SEARCH[..], &["--group", "session"]].concat()).to_string();
    for budget in [400, 900, 3_000, count(&whole) + 1_000] {
        let budget_text = budget.to_string();
        let fitted = [&SEARCH[..], &["--group", "session", "--budget", &budget_text]].concat();
        for arguments in [fitted.clone(), [&fitted[..], &["--json"]].concat()] {
            let ran = SYNCED.run(&arguments);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            assert!(count(&ran.stdout) <= budget, "{arguments:?}: {}", count(&ran.stdout));
        }
        let found = SYNCED.json(&fitted);
        let groups = found["groups"].as_array().unwrap().len() as u64;
        assert_eq!(groups + found["left_out"].as_u64().unwrap(), 3);
    }
}

#[test]
fn without_a_terminal_a_query_is_required() {
    for arguments in [&["search"][..], &["search", "--json"], &["search", "--superseded"]] {
        for ran in [SYNCED.run(arguments), Terminal::new(&SYNCED).run(arguments)] {
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
            assert!(ran.stderr.contains("<QUERY>") && ran.stderr.contains("hint: "), "{}", ran.stderr);
        }
    }
    text("error_search_nothing", &["search"]);
    let both = SYNCED.run(&["search", "x", "--superseded", "--group", "session"]);
    assert_eq!(both.code, 2);
}
