//! The calls of this program that agents make, which searches would find again: the query is in the call, and what was
//! found is in its result.

use std::collections::HashSet;

use super::{MessageLine, ToolCall};

/// The tools of this program in the Model Context Protocol. Clients put the name of the server before them, and often
/// `mcp`.
const TOOLS: [&str; 5] = ["search", "read", "list", "events", "statistics"];
/// The commands of the program that print what sessions contain.
const COMMANDS: [&str; 7] = ["search", "timeline", "sessions", "show", "files", "events", "stats"];
/// The program.
const PROGRAM: &str = "amplifier-sessions";

/// For each of the lines, which follow one another in a session, whether it calls this program, or is the result of such
/// a call in one of the lines.
#[must_use]
pub fn own_calls(lines: &[MessageLine]) -> Vec<bool> {
    let mut ids = HashSet::new();
    let mut own = Vec::with_capacity(lines.len());
    for line in lines {
        let mut is_own = line.tool_results().iter().any(|(id, _)| ids.contains(*id));
        for call in line.called_tools().iter().filter(|call| is_own_call(call)) {
            is_own = true;
            ids.extend(call.id.map(str::to_owned));
        }
        own.push(is_own);
    }
    own
}

fn is_own_call(call: &ToolCall<'_>) -> bool {
    is_own_tool(call.name) || call.commands().iter().any(|command| is_own_command(command))
}

/// `mcp__sessions__search`, `mcp_sessions_search`, `sessions.search`, `mcp__amplifier-sessions__search`.
fn is_own_tool(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).rev();
    words.next().is_some_and(|tool| TOOLS.contains(&tool))
        && words.next() == Some("sessions")
        && words.all(|word| matches!(word, "mcp" | "amplifier"))
}

/// Whether a command of a shell runs the program and reads sessions.
fn is_own_command(command: &str) -> bool {
    let words = || {
        command.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '"' | '\''))
    };
    let is_program = |word: &str| {
        let file = word.rsplit(['/', '\\']).next().unwrap_or_default();
        file.strip_suffix(".exe").unwrap_or(file) == PROGRAM
    };
    words().skip_while(|word| !is_program(word)).skip(1).any(|word| COMMANDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RawJson, Role, SessionSource};

    #[test]
    fn tools_of_this_program_have_many_names() {
        for name in [
            "mcp__sessions__search",
            "mcp_sessions_read",
            "sessions.list",
            "sessions__events",
            "mcp__amplifier-sessions__statistics",
        ] {
            assert!(is_own_tool(name), "{name}");
        }
        for name in ["search", "web_search", "mcp__browser__read", "mcp__my_sessions__search", "sessions", ""]
        {
            assert!(!is_own_tool(name), "{name}");
        }
    }

    #[test]
    fn commands_that_read_sessions_are_own() {
        for command in [
            "amplifier-sessions search 'pool timeout'",
            "cd /x && ~/.cargo/bin/amplifier-sessions --json show 3a7c1e90#4 | head",
            "$(amplifier-sessions events --level error)",
        ] {
            assert!(is_own_command(command), "{command}");
        }
        for command in
            ["amplifier-sessions sync", "grep amplifier-sessions search.rs", "search amplifier-sessions", ""]
        {
            assert!(!is_own_command(command), "{command}");
        }
    }

    #[test]
    fn results_belong_to_their_calls() {
        let line = |role, json: serde_json::Value| {
            MessageLine::stored(&RawJson::new(json.to_string()), role, SessionSource::default())
        };
        let call = |id: &str, name: &str| {
            let call = serde_json::json!({"id": id, "name": name, "input": {"query": "pool"}});
            line(Role::Assistant, serde_json::json!({"content": "", "tool_calls": [call]}))
        };
        let result = |id: &str| {
            line(Role::Tool, serde_json::json!({"role": "tool", "tool_call_id": id, "content": "found"}))
        };
        let lines = [
            line(Role::User, serde_json::json!({"content": "what was it?"})),
            call("a", "mcp__sessions__search"),
            call("b", "bash"),
            result("a"),
            result("b"),
        ];
        assert_eq!(own_calls(&lines), [false, true, false, true, false]);
    }
}
