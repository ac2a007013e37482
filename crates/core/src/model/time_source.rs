//! Where the time of a message comes from.

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorField, Result};

/// Where the time of a message comes from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeSource {
    /// Its line states it.
    Stated,
    /// An event that belongs to it states it.
    Event,
    /// It is interpolated between the messages before and after it, whose times are known.
    Interpolated,
    /// It is the time when the session began or ended, according to its metadata.
    Session,
    /// It is the modification time of the transcript when the line was first seen.
    File,
}

names! {
    TimeSource {
        Stated: "stated", Event: "event", Interpolated: "interpolated", Session: "session", File: "file",
    }
}

impl TimeSource {
    /// Whether the time is an estimate: neither the line nor an event states it.
    #[must_use]
    pub const fn is_estimated(self) -> bool {
        matches!(self, Self::Interpolated | Self::Session | Self::File)
    }

    /// The source of a time if only `is_estimated` is known, as in archives of earlier versions.
    #[must_use]
    pub const fn of_estimated(is_estimated: bool) -> Self {
        if is_estimated { Self::File } else { Self::Stated }
    }
}

/// A [`TimeSource`] as serde writes it into documents and archives, with `flatten`: `ts_estimated` and `ts_source`.
/// Earlier versions do not write the second one.
pub mod time_fields {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::TimeSource;

    #[derive(Serialize, Deserialize)]
    struct Fields {
        ts_estimated: bool,
        #[serde(default)]
        ts_source: Option<TimeSource>,
    }

    /// Writes both fields.
    ///
    /// # Errors
    ///
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(source: &TimeSource, serializer: S) -> Result<S::Ok, S::Error> {
        Fields { ts_estimated: source.is_estimated(), ts_source: Some(*source) }.serialize(serializer)
    }

    /// Reads one field or both.
    ///
    /// # Errors
    ///
    /// Errors of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeSource, D::Error> {
        let Fields { ts_estimated, ts_source } = Fields::deserialize(deserializer)?;
        Ok(ts_source.unwrap_or(TimeSource::of_estimated(ts_estimated)))
    }
}

impl std::str::FromStr for TimeSource {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text).ok_or_else(|| {
            Error::validation(ErrorField::TsSource, "must be stated, event, interpolated, session or file")
        })
    }
}
