//! Pages of the messages or the events of a session.

use amplifier_session_core::model::{LineKind, SessionId};
use serde::{Deserialize, Serialize};

use crate::{InvalidRequest, Notice, PlaceFields, Reach};

/// Maximum number of messages or events by default.
const LIMIT: usize = 100;

/// A page of messages or events, or one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The address of the session, or of one of its messages or events.
    pub session: String,
    /// The number of the first message or event, from 0, unless the address names one. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Maximum number of messages or events. Default: 100, or 1 if the address names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Whether the response has the range of its lines, for a face that says it in words.
    #[serde(default)]
    pub range: bool,
}

/// The messages or events of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineRange {
    /// The number of the first one, as it was requested.
    pub from: u32,
    /// The number of the one after the last.
    pub next: u32,
    /// Whether the address names the only one that was requested.
    pub is_one: bool,
}

impl LineRange {
    /// The number of messages or events.
    #[must_use]
    pub fn count(self) -> u32 {
        self.next.saturating_sub(self.from)
    }
}

impl LinesRequest {
    /// The request for the lines after those of an answer, which may have fewer than were requested; `None` if nothing is
    /// left. `session` is the whole id.
    pub(crate) fn after(&self, answered: LineRange, session: &SessionId) -> Option<Self> {
        let count = answered.count() as usize;
        let left = self.limit.unwrap_or(LIMIT).saturating_sub(count);
        (!answered.is_one && count > 0 && left > 0).then(|| Self {
            session: session.to_string(),
            from: Some(answered.next),
            limit: Some(left),
            ..self.clone()
        })
    }

    /// The lines that are requested. `named` is the line that the address names.
    pub(crate) fn lines(&self, named: Option<u32>) -> Result<RequestedLines, InvalidRequest> {
        if self.limit == Some(0) {
            return Err(InvalidRequest::NothingToList);
        }
        if named.is_some() && self.from.is_some() {
            let (address, fields) = (self.session.clone(), PlaceFields::First);
            return Err(InvalidRequest::PlaceNamedTwice { address, fields });
        }
        Ok(RequestedLines {
            from: named.or(self.from).unwrap_or_default(),
            limit: self.limit.unwrap_or(if named.is_some() { 1 } else { LIMIT }),
            is_one: named.is_some() && self.limit.is_none(),
        })
    }
}

/// The lines that a request is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedLines {
    from: u32,
    pub(crate) limit: usize,
    pub(crate) is_one: bool,
}

/// Lines of a session that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePage {
    pub(crate) range: LineRange,
    pub(crate) has_more_before: bool,
    pub(crate) has_more_after: bool,
}

impl RequestedLines {
    /// The number of the line before the first one, if there is one.
    pub(crate) fn after(self) -> Option<u32> {
        self.from.checked_sub(1)
    }

    /// The page, if `read` lines were read, with those that are damaged, of `count` in the session.
    pub(crate) fn page(self, read: usize, count: u32) -> LinePage {
        let Self { from, is_one, .. } = self;
        let next = from.saturating_add(u32::try_from(read).unwrap_or(u32::MAX));
        LinePage {
            range: LineRange { from, next, is_one },
            has_more_before: from > 0 && count > 0,
            has_more_after: next < count,
        }
    }
}

impl LinePage {
    /// A notice if the page is empty, of a session with `count` lines of this kind.
    pub(crate) fn no_line(self, kind: LineKind, count: u32) -> Option<Notice> {
        (self.range.count() == 0).then_some(Notice::NoLine { kind, sequence: self.range.from, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(from: Option<u32>, limit: Option<usize>) -> LinesRequest {
        LinesRequest { scope: Reach::Own, session: "a#3".to_owned(), from, limit, range: true }
    }

    #[test]
    fn an_address_names_one_line_unless_there_is_a_limit() {
        let lines = |named, from, limit| {
            let RequestedLines { from, limit, is_one } = request(from, limit).lines(named).ok()?;
            Some((from, limit, is_one))
        };
        assert_eq!(lines(None, None, None), Some((0, LIMIT, false)));
        assert_eq!(lines(None, Some(7), Some(2)), Some((7, 2, false)));
        assert_eq!(lines(Some(3), None, None), Some((3, 1, true)));
        assert_eq!(lines(Some(3), None, Some(5)), Some((3, 5, false)));
        assert!(lines(Some(3), Some(3), None).is_none() && lines(None, None, Some(0)).is_none());
    }

    #[test]
    fn a_page_says_whether_there_is_more() {
        let page = |from, read, count| {
            let page = request(Some(from), None).lines(None).unwrap().page(read, count);
            let no_line = page.no_line(LineKind::Event, count).is_some();
            (page.range.next, page.has_more_before, page.has_more_after, no_line)
        };
        assert_eq!(page(0, 10, 10), (10, false, false, false));
        assert_eq!(page(4, 5, 10), (9, true, true, false));
        assert_eq!(page(10, 0, 10), (10, true, false, true));
        assert_eq!(page(5, 0, 0), (5, false, false, true));
        assert_eq!(page(u32::MAX, 0, 10), (u32::MAX, true, false, true));
    }
}
