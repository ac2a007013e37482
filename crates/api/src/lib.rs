//! The operations on stored sessions, for every face: the command line, and whatever else shows sessions to people and
//! programs.
//!
//! An operation is a method of [`Api`], in a file of [`operations`] with its request and its response. Both can be
//! written and read as JSON; a response is the object that the command line prints with `--json`. An [`ApiAnswer`] has
//! the response and [`Notice`]s: remarks as data, which a face puts into words. A request that can't be answered is an
//! [`ApiError`].
//!
//! A request is answered for a [`ApiCaller`], who alone decides which sessions it reaches: see [`ApiCaller::scope`].
//!
//! ```
//! use amplifier_session_api::{Api, ApiCaller, CallerPlace, operations::search::SearchRequest};
//! # use amplifier_session_api::ApiError;
//! # use amplifier_session_core::{SessionStorage, model::UserId};
//! # async fn example(storage: SessionStorage) -> Result<(), ApiError> {
//! let caller = ApiCaller::new(UserId::new("ana@example.com")?);
//! let now = jiff::Zoned::now();
//! let api = Api { storage: &storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
//! let answer = api.search(&SearchRequest::new("connection pool since:yesterday")).await?;
//! println!("{} results", answer.response.results.len());
//! # Ok(())
//! # }
//! ```

mod access;
mod addresses;
pub mod budget;
pub mod choices;
pub mod cut;
mod damage;
pub mod dates;
mod error;
mod fields;
pub mod filter;
mod folders;
pub mod groups;
pub mod ids;
pub mod incomplete;
pub mod lines;
pub mod names;
mod notice;
pub mod opening;
pub mod operations;
mod own_calls;
mod pages;
pub mod pictures;
pub mod projects;
pub mod query;
pub mod refresh;
pub mod releases;
pub mod remote;
mod repositories;
mod superseded;
pub mod text;
pub mod tool_calls;
pub mod views;
mod work_trees;
pub mod zone;

use std::path::Path;

use amplifier_session_core::SessionStorage;
/// Compiles the body of an async function in this crate. Without it, each crate that awaits the function compiles its body, and
/// those of the functions that it awaits, once more.
pub(crate) use async_recursion::async_recursion as compiled_here;
use jiff::Zoned;

pub use access::{AccessRight, ApiCaller, Reach};
pub use error::{ApiError, InvalidRequest, PlaceFields, with_causes};
pub use fields::{FieldProblem, SearchCondition};
pub use notice::{FoundKind, NearestMessage, Notice};

/// The operations on a store, for one caller at one time.
#[derive(Debug, Clone, Copy)]
pub struct Api<'a> {
    /// The store.
    pub storage: &'a SessionStorage,
    /// The caller.
    pub caller: &'a ApiCaller,
    /// The time: dates in requests are relative to it. Its time zone is that of requests that name none. A face for people
    /// on other machines passes UTC, because it does not know their time zones.
    pub now: &'a Zoned,
    /// The place of the caller: folders in requests are folders there.
    pub place: CallerPlace<'a>,
}

/// The place of a caller.
#[derive(Debug, Clone, Copy)]
pub enum CallerPlace<'a> {
    /// On this machine: folders are looked up in its file system, and may be relative to the current one.
    Here {
        /// The caller's home folder.
        home: Option<&'a Path>,
    },
    /// On another machine: folders are absolute, and only compared with those of sessions.
    Elsewhere,
}

impl CallerPlace<'_> {
    /// A text that may contain paths, for callers who can use them.
    pub(crate) fn reason(self, text: String) -> Option<String> {
        Some(text).filter(|_| matches!(self, Self::Here { .. }))
    }

    /// The path of a file of the store, or its name for callers elsewhere.
    pub(crate) fn file(self, path: &Path) -> String {
        match (self, path.file_name()) {
            (Self::Elsewhere, Some(name)) => name.to_string_lossy().into_owned(),
            _ => path.to_string_lossy().into_owned(),
        }
    }
}

/// A response, with remarks.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiAnswer<T> {
    /// The response.
    pub response: T,
    /// Remarks about the request and the response, in reading order.
    pub notices: Vec<Notice>,
}

impl<T> From<T> for ApiAnswer<T> {
    /// A response without remarks.
    fn from(response: T) -> Self {
        Self { response, notices: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_only_for_callers_on_it() {
        let path = Path::new("/srv/store/sessions.db");
        let here = CallerPlace::Here { home: None };
        assert_eq!(
            [here.file(path), CallerPlace::Elsewhere.file(path)],
            ["/srv/store/sessions.db", "sessions.db"]
        );
        let reason = "/srv/store can't be written".to_owned();
        assert_eq!(here.reason(reason.clone()), Some(reason.clone()));
        assert_eq!(CallerPlace::Elsewhere.reason(reason), None);
    }
}
