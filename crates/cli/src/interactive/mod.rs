//! The interactive search: results as you type, on a terminal.
//!
//! [`keys`] defines the meaning of each key, [`act`] and [`pick`] the effects of keys on the [`state`], and [`draw`] the
//! appearance. Searches and reading run as tasks ([`work`]), so the input never waits for them.

mod act;
mod conversation;
mod copy;
mod draw;
mod draw_lists;
mod fields;
mod filters;
mod help;
mod input;
mod keys;
mod latest;
mod pick;
mod picker;
mod preview;
mod results;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod values;
mod work;

use std::{io, time::Duration};

use amplifier_session_api::{operations::search::SearchRequest, remote::AnyApi};
use ratatui::crossterm::event::Event;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    app::App,
    args::When,
    failure::{Failure, Outcome},
    opened::OpenedStore,
    out::allows_colors,
    terminal_programs::{EditorText, show_in_editor},
    words,
};
use keys::Action;
use state::{Effect, SearchState, WorkAnswer};
use terminal::{Screen, TypedEvents};
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

/// Runs until the user quits, and prints the address of the chosen message. `request` is that of the command line,
/// without a query.
pub(crate) async fn run(
    app: &mut App,
    reader: OpenedStore,
    request: SearchRequest,
) -> Result<Outcome, Failure> {
    let is_coloured = match app.global.color {
        When::Always => true,
        When::Never => false,
        When::Auto => allows_colors(&app.environment),
    };
    let others = match reader.api(app) {
        AnyApi::Here(api) => api.only_others(&reader.scope).await?,
        AnyApi::There(_) => None,
    };
    let mut state = SearchState::new(request, Look::new(is_coloured, app.now.clone()));
    state.filters.set_user(app.global.typed_user());
    state.others = others.map(|notice| words::text(&app.typed_program(), &notice));
    let worker = WorkContext::new(app, reader);
    let is_local = app.global.embedding == "none" || app.global.embedding.starts_with("local");
    let mut view = RunningView {
        state,
        debounce: if is_local { DEBOUNCE } else { DEBOUNCE_FOR_SERVICE },
        debounced_at: None,
        worker,
    };
    app.out.finish()?;
    let Some(address) = view.run(app).await? else { return Ok(Outcome::Done) };
    app.out.line(&address)?;
    app.out.finish()?;
    Ok(Outcome::Done)
}

/// The state with the tasks that it needs.
struct RunningView {
    state: SearchState,
    debounce: Duration,
    debounced_at: Option<Instant>,
    worker: WorkContext,
}

/// The next step of the event loop.
enum Next {
    Continue,
    Edit(String, String),
    Quit(Option<String>),
}

impl RunningView {
    /// Runs until the user quits. Returns the address of the chosen message, if there is one.
    async fn run(&mut self, app: &App) -> Result<Option<String>, Failure> {
        let mut screen = Screen::open(&app.environment)?;
        let mut events = TypedEvents::start();
        let mut work: JoinSet<WorkAnswer> = JoinSet::new();
        let mut told_to_end = Box::pin(told_to_end());
        loop {
            screen.draw(|frame| draw::draw(frame, &mut self.state))?;
            while let Some(next) = self.state.next_work() {
                work.spawn(self.worker.clone().run(next));
            }
            let at = self.debounced_at.unwrap_or_else(Instant::now);
            let next = tokio::select! {
                event = events.next() => {
                    let Some(event) = event else { return Ok(None) };
                    self.handle(event?, &mut events, &mut screen)?
                }
                Some(answer) = work.join_next(), if !work.is_empty() => {
                    self.state.answer(answered(answer)?);
                    Next::Continue
                }
                () = sleep_until(at), if self.debounced_at.is_some() => {
                    self.debounced_at = None;
                    self.state.debounced();
                    Next::Continue
                }
                () = &mut told_to_end => Next::Quit(None),
            };
            match next {
                Next::Continue => {}
                Next::Quit(address) => return Ok(address),
                Next::Edit(address, text) => {
                    // The editor reads from the terminal, and Ctrl-C is meant for it.
                    events.stop();
                    drop(screen);
                    let edited = edit(app, &address, &text);
                    screen = Screen::open(&app.environment)?;
                    events = TypedEvents::start();
                    told_to_end = Box::pin(self::told_to_end());
                    self.state.status = edited.err().map(|failure| failure.message().to_owned());
                }
            }
        }
    }

    /// Handles an event, and those that were typed meanwhile, so that the screen is drawn once for all of them.
    fn handle(
        &mut self,
        first: Event,
        events: &mut TypedEvents,
        screen: &mut Screen,
    ) -> Result<Next, Failure> {
        let mut event = Some(Ok(first));
        while let Some(next) = event {
            match effect(next?, &mut self.state) {
                Effect::None => {}
                Effect::Redraw => screen.clear()?,
                Effect::Debounce => self.debounced_at = Some(Instant::now() + self.debounce),
                Effect::Copy(text, what) => {
                    screen.copy(&text)?;
                    self.state.status = Some(format!("copied {what}"));
                }
                Effect::Edit { address, text } => return Ok(Next::Edit(address, text)),
                Effect::Quit(address) => return Ok(Next::Quit(address)),
            }
            event = events.typed_meanwhile();
        }
        Ok(Next::Continue)
    }
}

/// Opens the text of a message in the user's editor, and waits until it is closed.
fn edit(app: &App, address: &str, text: &str) -> Result<(), Failure> {
    let name = format!("{address}.md");
    show_in_editor(&app.environment, &EditorText { name: &name, text: text.as_bytes() })
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

/// Completes when the process is told to end, or when its terminal is closed. Ctrl-C is a key here, but another process
/// may send the signal.
#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let [Ok(mut terminate), Ok(mut hangup), Ok(mut interrupt)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    std::future::pending().await
}
