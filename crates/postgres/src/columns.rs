//! Reading columns of PostgreSQL's rows.

use std::error::Error as StdError;

use amplifier_session_core::{Result, model::Timestamp};
use amplifier_session_sql::{Columns, damaged};
use tokio_postgres::{
    Row,
    types::{FromSql, Type},
};

use crate::{error, text};

/// 2000-01-01 in microseconds since 1970: PostgreSQL counts from there.
pub(crate) const EPOCH: i64 = 946_684_800_000_000;

/// A row of a result.
pub(crate) struct PgRow<'a>(pub(crate) &'a Row);

impl PgRow<'_> {
    fn get<'a, T: FromSql<'a>>(&'a self, index: usize) -> Result<T> {
        self.0.try_get(index).map_err(error::column)
    }
}

impl Columns for PgRow<'_> {
    /// Only for texts without control characters, such as ids.
    fn text_ref(&self, index: usize) -> Result<&str> {
        self.get(index)
    }

    fn text(&self, index: usize) -> Result<String> {
        self.maybe_text(index)?.ok_or_else(|| damaged("text"))
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>> {
        Ok(self.get::<Option<&str>>(index)?.map(|stored| text::read(stored).into_owned()))
    }

    fn maybe_integer(&self, index: usize) -> Result<Option<i64>> {
        Ok(self.get::<Option<Integer>>(index)?.map(|Integer(number)| number))
    }

    fn flag(&self, index: usize) -> Result<bool> {
        self.get(index)
    }

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>> {
        Ok(self.get::<Option<Micros>>(index)?.map(|Micros(micros)| Timestamp::from_micros(micros)))
    }

    fn bytes_ref(&self, index: usize) -> Result<&[u8]> {
        self.get(index)
    }

    fn texts(&self, index: usize) -> Result<Vec<String>> {
        let stored: Vec<&str> = self.get(index)?;
        Ok(stored.into_iter().map(|stored| text::read(stored).into_owned()).collect())
    }

    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()> {
        let Floats(floats) = self.get(index)?;
        *into = floats;
        Ok(())
    }
}

/// A number of any width.
struct Integer(i64);

impl<'a> FromSql<'a> for Integer {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT2 => i16::from_sql(kind, raw)?.into(),
            Type::INT4 => i32::from_sql(kind, raw)?.into(),
            _ => i64::from_sql(kind, raw)?,
        }))
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT2, Type::INT4, Type::INT8].contains(kind)
    }
}

/// A vector: an array, or the bytes of pgvector's `vector_send`.
struct Floats(Vec<f32>);

impl<'a> FromSql<'a> for Floats {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        if *kind == Type::FLOAT4_ARRAY {
            return Ok(Self(Vec::from_sql(kind, raw)?));
        }
        // The number of dimensions and a zero, 16 bits each, then big-endian floats.
        let floats = raw.get(4..).ok_or("the vector is too short")?.as_chunks().0;
        Ok(Self(floats.iter().map(|bytes| f32::from_be_bytes(*bytes)).collect()))
    }

    fn accepts(kind: &Type) -> bool {
        [Type::FLOAT4_ARRAY, Type::BYTEA].contains(kind)
    }
}

/// A time in microseconds since 1970.
struct Micros(i64);

impl<'a> FromSql<'a> for Micros {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(micros.checked_add(EPOCH).ok_or("the time is infinite")?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}
