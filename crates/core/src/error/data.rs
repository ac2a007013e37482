//! Errors as data, for a program on another machine that shows them.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Error, ErrorField, ErrorKind};

/// An error without its cause, which is about the machine where it occurred, and without the time to wait.
#[derive(Serialize, Deserialize)]
struct ErrorData<'a> {
    kind: Cow<'a, str>,
    message: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    context: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
}

/// Without the cause.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let context = self.0.context.iter().map(|(key, value)| (Cow::from(&**key), Cow::from(value)));
        let data = ErrorData {
            kind: self.kind().as_str().into(),
            message: self.message().into(),
            operation: self.operation().map(Cow::from),
            field: self.field().map(|field| field.as_str().into()),
            context: context.collect(),
            hint: self.hint().map(Cow::from),
            retryable: self.is_retryable(),
        };
        data.serialize(serializer)
    }
}

/// A kind that is not known becomes [`ErrorKind::StorageIo`], and a field that is not known none.
impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = ErrorData::deserialize(deserializer)?;
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == data.kind);
        let mut error = Self::new(kind.unwrap_or(ErrorKind::StorageIo), data.message);
        error.0.operation = data.operation.map(|operation| operation.into_owned().into());
        error.0.field = data.field.and_then(|name| ErrorField::named(&name));
        for (key, value) in data.context {
            error = error.with(key.into_owned(), value);
        }
        error.0.hint = data.hint.map(Cow::into_owned);
        Ok(if data.retryable { error.retryable() } else { error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorOption;

    fn read_again(error: &Error) -> Error {
        serde_json::from_str(&serde_json::to_string(error).unwrap()).unwrap()
    }

    #[test]
    fn an_error_can_be_written_and_read_without_its_cause() {
        let error = Error::validation(ErrorField::Limit, "must be at least 1")
            .with_operation("search")
            .with("value", 0)
            .with_option(ErrorOption::KeepEvents)
            .with_hint("pass --limit 1")
            .retryable();
        let read = read_again(&error);
        assert_eq!(format!("{read:?}"), format!("{error:?}"));
        assert_eq!(read.option(), Some(ErrorOption::KeepEvents));
        let caused = error.with_source(std::io::Error::other("/srv/store"));
        assert!(!serde_json::to_string(&caused).unwrap().contains("/srv/store"));
    }

    #[test]
    fn every_kind_can_be_read() {
        for kind in ErrorKind::ALL {
            assert_eq!(read_again(&Error::new(kind, "x")).kind(), kind);
        }
        let newer = r#"{"kind":"of_tomorrow","message":"x","field":"of_tomorrow"}"#;
        let read: Error = serde_json::from_str(newer).unwrap();
        assert_eq!((read.kind(), read.field()), (ErrorKind::StorageIo, None));
    }
}
