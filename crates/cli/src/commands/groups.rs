//! Shows results grouped by session.

use amplifier_session_storage::{
    model::Session,
    search::{SearchResult, SearchResults},
};

use crate::{
    app::{App, StoreReader},
    args::SearchArgs,
    budget::{self, Items, Portion},
    cut,
    failure::Failure,
    groups::{HITS, by_session},
    messages::Estimated,
    render::{
        groups::{self as render, Group, GroupOptions, GroupView},
        result::ResultNames,
        search::FoundView,
    },
};

/// The results of one session that are shown, with their ranks, and the number of others.
struct Chosen {
    hits: Vec<(usize, SearchResult)>,
    more: usize,
}

pub(super) async fn show_groups(
    app: &mut App,
    reader: &StoreReader,
    found: &SearchResults,
    names: &ResultNames,
    args: &SearchArgs,
) -> Result<(), Failure> {
    let limits = args.limits;
    let mut ranks = by_session(&found.results);
    ranks.truncate(args.limit);
    let best = |ranks: &Vec<usize>| found.results.get(*ranks.first()?);
    let sessions: Vec<Session> =
        ranks.iter().filter_map(|ranks| names.session(best(ranks)?).cloned()).collect();
    let estimated = Estimated::of(&reader.storage, &sessions).await?;
    let items = Items { count: ranks.len(), one: "session", can_be_cut: true };
    let portion = budget::write(app, limits.budget, items, |app, portion| {
        let chosen = choose(&ranks, &found.results, portion);
        let most = limits.max_chars(&app.out);
        let groups: Vec<Group<'_>> = chosen
            .iter()
            .enumerate()
            .map(|(rank, chosen)| Group {
                hits: chosen.hits.iter().map(|(_, hit)| hit).collect(),
                more: chosen.more,
                max_chars: portion.chars_of(rank, most),
            })
            .collect();
        if app.out.is_json() {
            let mut flat: Vec<(usize, SearchResult, Option<usize>)> = chosen
                .iter()
                .zip(&groups)
                .flat_map(|(chosen, group)| {
                    chosen.hits.iter().map(|(rank, hit)| (*rank, hit.clone(), group.max_chars))
                })
                .collect();
            // `results` is in order of rank, as without groups.
            flat.sort_by_key(|(rank, ..)| *rank);
            let max_chars: Vec<Option<usize>> = flat.iter().map(|(.., max_chars)| *max_chars).collect();
            let flat: Vec<SearchResult> = flat.into_iter().map(|(_, hit, _)| hit).collect();
            let max_chars = |rank: usize| max_chars.get(rank).copied().flatten();
            let views = groups.iter().filter_map(|group| GroupView::new(group, names, &estimated)).collect();
            let left_out = limits.budget.map(|_| ranks.len() - groups.len());
            let view = FoundView::new(found, &flat, names, max_chars);
            return Ok(app.out.json(&view.with_groups(views).with_left_out(left_out))?);
        }
        let options = GroupOptions { names, owners: reader.names_owners(), estimated: &estimated };
        if app.out.is_terminal() {
            render::blocks(&mut app.out, &groups, options, &app.now)?;
        } else {
            render::lines(&mut app.out, &groups, options, &app.now)?;
        }
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(limits.budget, items, portion);
    Ok(())
}

/// The results to show of each session in `portion`. If the last session must be cut, only its best result remains.
fn choose(ranks: &[Vec<usize>], results: &[SearchResult], portion: Portion) -> Vec<Chosen> {
    let choose = |(place, ranks): (usize, &Vec<usize>)| {
        let cut = portion.last_chars.filter(|_| place + 1 == portion.items);
        let most = if cut.is_some() { 1 } else { HITS };
        let hits = ranks.iter().take(most).filter_map(|rank| Some((*rank, results.get(*rank)?.clone())));
        let mut hits: Vec<(usize, SearchResult)> = hits.collect();
        if let Some((chars, (_, hit))) = cut.zip(hits.first_mut()) {
            cut::snippet(hit, chars);
        }
        Chosen { more: ranks.len() - hits.len(), hits }
    };
    ranks.iter().take(portion.items).enumerate().map(choose).collect()
}
