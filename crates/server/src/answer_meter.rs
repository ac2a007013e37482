//! The memory of an answer: what is read for it, until it is sent.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use amplifier_session_core::{Error, ErrorKind, Result, storage::ReadMeter};
use axum::http::StatusCode;

use crate::{
    problem::HttpProblem,
    settings::ServerLimits,
    slots::{Slots, TakenSlot},
};

/// The size up to which an answer takes no place, so that small answers are sent whatever others do.
const SMALL: usize = 1 << 20;

/// The memory for all answers.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    bytes: Slots<String>,
    most_of_token: usize,
    most: usize,
    page: usize,
    patience: Duration,
}

/// The memory of an answer. It is free again when this is dropped.
pub(crate) struct AnswerMeter {
    memory: Arc<AnswerMemory>,
    by: String,
    used: Mutex<UsedMemory>,
}

#[derive(Default)]
struct UsedMemory {
    bytes: usize,
    place: Option<TakenSlot<String>>,
    /// Why there is no answer.
    refusal: Option<HttpProblem>,
}

impl AnswerMemory {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            bytes: Slots::new(limits.answers.max(limits.answer)),
            most_of_token: limits.answers_of_token.max(limits.answer),
            most: limits.answer,
            page: limits.page,
            patience: limits.piece,
        }
    }

    /// The meter of an answer to a caller.
    pub(crate) fn meter(self: &Arc<Self>, by: &str) -> Arc<AnswerMeter> {
        Arc::new(AnswerMeter { memory: self.clone(), by: by.to_owned(), used: Mutex::default() })
    }
}

impl AnswerMeter {
    /// The time that a client has for each piece of the answer.
    pub(crate) fn patience(&self) -> Duration {
        self.memory.patience
    }

    /// Why there is no answer, if it became too large.
    pub(crate) fn take_refusal(&self) -> Option<HttpProblem> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).refusal.take()
    }

    /// Counts the text of an answer, which is as large as what was read for it, or larger.
    pub(crate) fn count_text(&self, bytes: usize) -> std::result::Result<(), HttpProblem> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let more = bytes.saturating_sub(used.bytes);
        self.counted(&mut used, more)
    }

    fn counted(&self, used: &mut UsedMemory, bytes: usize) -> std::result::Result<(), HttpProblem> {
        used.bytes = used.bytes.saturating_add(bytes);
        if used.bytes > self.memory.most {
            return Err(too_large(self.memory.most));
        }
        if used.bytes <= SMALL {
            return Ok(());
        }
        let most = self.memory.most_of_token;
        // The bytes of a small answer are free. Once the answer grows larger, they count as well.
        let is_there = match &mut used.place {
            Some(place) => place.grow(bytes, most),
            none => {
                *none = self.memory.bytes.take(self.by.clone(), used.bytes, most);
                none.is_some()
            }
        };
        if is_there {
            return Ok(());
        }
        Err(HttpProblem::too_many("too many large answers at the same time; ask for them one by one", 2))
    }
}

fn too_large(most: usize) -> HttpProblem {
    let detail = format!("the answer would have more than {most} bytes; ask for less at once");
    HttpProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "answer_too_large", detail).with("limit", most)
}

impl ReadMeter for AnswerMeter {
    fn count(&self, bytes: usize) -> Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(problem) = self.counted(&mut used, bytes) {
            used.refusal = Some(problem);
            // The refusal is reported in its place.
            return Err(Error::new(ErrorKind::Unsupported, "the answer is too large"));
        }
        Ok(())
    }

    fn page_bytes(&self) -> usize {
        self.memory.page
    }
}

impl fmt::Debug for AnswerMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerMeter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_share_the_memory_and_those_of_a_token_a_part() {
        let mb = 1 << 20;
        let limits =
            ServerLimits { answer: 6 * mb, answers: 10 * mb, answers_of_token: 7 * mb, ..Default::default() };
        let memory = Arc::new(AnswerMemory::new(&limits));
        let first = memory.meter("ana");
        (0..4).for_each(|_| first.count(mb).unwrap());
        let second = memory.meter("ana");
        second.count(mb).unwrap();
        second.count(2 * mb).unwrap();
        let status = |meter: &AnswerMeter| meter.take_refusal().unwrap().status().as_u16();
        assert!(second.count(mb).is_err() && status(&second) == 429);
        let other = memory.meter("ben");
        other.count(3 * mb).unwrap();
        assert!(other.count(mb).is_err() && status(&other) == 429);
        // A small answer needs no place.
        memory.meter("ana").count(mb).unwrap();
        drop((second, other));
        first.count(2 * mb).unwrap();
        assert!(first.count(1).is_err() && status(&first) == 413);
        assert_eq!(memory.meter("cleo").count_text(6 * mb + 1).unwrap_err().status().as_u16(), 413);
    }
}
