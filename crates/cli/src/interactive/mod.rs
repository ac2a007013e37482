//! The interactive search: results as you type, on a terminal.
//!
//! [`state`] defines the effects of keys and answers, [`draw`] the appearance, and [`keys`] the meaning of each key.
//! Searches and reading run as tasks ([`work`]), so the input never waits for them.

mod conversation;
mod draw;
mod filters;
mod input;
mod keys;
mod latest;
mod preview;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod work;

use std::{io, time::Duration};

use amplifier_session_api::operations::search::SearchRequest;
use amplifier_session_storage::search::SearchOptions;
use ratatui::crossterm::event::Event;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    app::{App, OpenedStore},
    failure::{Failure, Outcome},
    paint::Paint,
};
use keys::Action;
use state::{Effect, SearchState, WorkAnswer};
use terminal::Screen;
use text::Look;
use work::WorkContext;

/// How long to wait for further typing before a search.
const DEBOUNCE: Duration = Duration::from_millis(120);
/// As [`DEBOUNCE`], if each search requests a vector from a service.
const DEBOUNCE_FOR_SERVICE: Duration = Duration::from_millis(500);

/// Whether there is a terminal, and the results are for a person.
pub(crate) fn is_possible(app: &App) -> bool {
    !app.out.is_json() && terminal::is_available(&app.environment)
}

/// Runs until the user quits. `request` is that of the command line, without a query; `options` are what it means in the
/// store.
pub(crate) async fn run(
    app: &mut App,
    reader: OpenedStore,
    request: SearchRequest,
    options: &SearchOptions,
) -> Result<Outcome, Failure> {
    let is_coloured = app.out.paint == Paint::new(true);
    let worker = WorkContext::new(app, reader);
    let mut state = SearchState::new(request, options, Look::new(is_coloured, app.now.clone()));
    let is_local = app.global.embedding == "none" || app.global.embedding.starts_with("local");
    let debounce = if is_local { DEBOUNCE } else { DEBOUNCE_FOR_SERVICE };
    app.out.finish()?;
    let mut screen = Screen::open()?;
    let mut events = terminal::events();
    let mut work: JoinSet<WorkAnswer> = JoinSet::new();
    let mut debounced_at: Option<Instant> = None;
    let mut told_to_end = std::pin::pin!(told_to_end());
    loop {
        screen.draw(|frame| draw::draw(frame, &mut state))?;
        while let Some(next) = state.next_work() {
            work.spawn(worker.clone().run(next));
        }
        let at = debounced_at.unwrap_or_else(Instant::now);
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { return Ok(Outcome::Done) };
                let mut next = Some(event);
                while let Some(event) = next {
                    match effect(event?, &mut state) {
                        Effect::None => {}
                        Effect::Debounce => debounced_at = Some(Instant::now() + debounce),
                        Effect::Copy(address) => {
                            screen.copy(&address)?;
                            state.status = Some(format!("copied {address}"));
                        }
                        Effect::Quit => return Ok(Outcome::Done),
                    }
                    // Draw once for all keys that were typed meanwhile.
                    next = events.try_recv().ok();
                }
            }
            Some(answer) = work.join_next(), if !work.is_empty() => state.answer(answered(answer)?),
            () = sleep_until(at), if debounced_at.is_some() => {
                debounced_at = None;
                state.debounced();
            }
            () = &mut told_to_end => return Ok(Outcome::Done),
        }
    }
}

fn effect(event: Event, state: &mut SearchState) -> Effect {
    let action = match event {
        Event::Key(key) => keys::action(key, state.keys_go_to()),
        Event::Paste(text) => Some(Action::Paste(text)),
        _ => None,
    };
    action.map_or(Effect::None, |action| state.act(action))
}

/// The answer of a task. If the task panicked, the program panics too, after restoring the terminal.
fn answered(answer: Result<WorkAnswer, JoinError>) -> Result<WorkAnswer, Failure> {
    answer.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => io::Error::other(error).into(),
    })
}

/// Completes when the process is told to end, or when its terminal is closed.
#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    std::future::pending().await
}
