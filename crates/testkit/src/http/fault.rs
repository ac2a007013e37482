//! Faults of a mock service.

use std::collections::VecDeque;

use crate::random::Random;

/// The fault of a call to a mock service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No fault: the call is answered. For scripts in which a later call fails.
    None,
    /// The call is rejected.
    Refuse {
        /// The status.
        status: u16,
        /// Headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// The connection is closed before the response.
    CutBefore,
    /// The connection is closed in the middle of the response.
    CutInside,
    /// The last vector is missing.
    TooFew,
    /// There is one vector too many.
    TooMany,
    /// The vectors are one dimension short.
    WrongDimensions,
    /// Two vectors have the same index.
    DuplicateIndex,
    /// The vectors are in reverse order, with the right indices.
    Reversed,
    /// The vectors contain NaN.
    NotFinite,
    /// The response is not in the expected format.
    Garbage,
}

impl Fault {
    /// A rejection with this status and a body in the format of OpenAI.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let body = serde_json::json!({"error": {
            "message": "The mock service fails as scripted.",
            "type": "server_error",
            "param": null,
            "code": null,
        }});
        Self::Refuse { status, headers: Vec::new(), body: body.to_string() }
    }

    /// A rejection because of too many calls, with a header that says how long to wait.
    #[must_use]
    pub fn throttled(header: &str, value: &str) -> Self {
        Self::status(429).with_header(header, value)
    }

    /// A rejection with this body.
    #[must_use]
    pub fn saying(status: u16, body: &str) -> Self {
        Self::Refuse { status, headers: Vec::new(), body: body.to_owned() }
    }

    /// Adds a header to a rejection.
    #[must_use]
    pub fn with_header(mut self, header: &str, value: &str) -> Self {
        if let Self::Refuse { headers, .. } = &mut self {
            headers.push((header.to_owned(), value.to_owned()));
        }
        self
    }
}

/// The faults of future calls.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) next: VecDeque<Fault>,
    pub(super) always: Option<Fault>,
    pub(super) refused_text: Option<String>,
    share: f64,
    random: Random,
}

impl Script {
    pub(super) fn fail_share(&mut self, share: f64, seed: u64) {
        self.share = share;
        self.random = Random(seed);
    }

    /// The fault of a call with these texts.
    pub(super) fn fault(&mut self, texts: &[String]) -> Fault {
        let refused = |part: &String| texts.iter().any(|text| text.contains(part));
        if self.refused_text.as_ref().is_some_and(refused) {
            return refused_text();
        }
        if let Some(fault) = self.next.pop_front().or_else(|| self.always.clone()) {
            return fault;
        }
        let drawn = self.random.bits();
        // The upper half decides whether the call fails, and the lower half decides how.
        if ((drawn >> 32) as f64) >= self.share * f64::from(u32::MAX) {
            return Fault::None;
        }
        match drawn % 5 {
            0 => Fault::status(500),
            1 => Fault::status(503),
            2 => Fault::throttled("retry-after-ms", "20"),
            3 => Fault::CutBefore,
            _ => Fault::CutInside,
        }
    }
}

fn refused_text() -> Fault {
    let body = serde_json::json!({"error": {
        "message": "Invalid 'input': the text was refused.",
        "type": "invalid_request_error",
        "param": "input",
        "code": null,
    }});
    Fault::Refuse { status: 400, headers: Vec::new(), body: body.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_share_of_calls_fails_reproducibly() {
        let run = |share, seed| {
            let mut script = Script::default();
            script.fail_share(share, seed);
            (0..1_000).map(|_| script.fault(&[])).collect::<Vec<_>>()
        };
        let failed = |faults: &[Fault]| faults.iter().filter(|fault| **fault != Fault::None).count();
        assert!((250..350).contains(&failed(&run(0.3, 7))));
        assert_eq!(run(0.3, 7), run(0.3, 7));
        assert_ne!(run(0.3, 7), run(0.3, 8));
        assert_eq!(failed(&run(0.0, 7)), 0);
        assert_eq!(failed(&run(1.0, 7)), 1_000);
    }

    #[test]
    fn a_script_precedes_permanent_faults() {
        let mut script = Script { always: Some(Fault::Garbage), ..Script::default() };
        script.next.extend([Fault::None, Fault::TooFew]);
        script.refused_text = Some("bad".to_owned());
        let texts = ["a bad text".to_owned()];
        assert!(matches!(script.fault(&texts), Fault::Refuse { status: 400, .. }));
        assert_eq!(
            [(); 4].map(|()| script.fault(&[])),
            [Fault::None, Fault::TooFew, Fault::Garbage, Fault::Garbage]
        );
    }
}
