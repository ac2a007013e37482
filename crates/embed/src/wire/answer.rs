//! The vectors in an answer.

use std::fmt;

use amplifier_session_core::{Error, ErrorKind, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vector,
}

/// A vector as base64 of little-endian `f32`, or as a list of numbers: some servers know only one of them, whatever
/// they are asked for.
struct Vector(Vec<f32>);

/// The vectors of `texts` texts out of an answer, in the order of the texts and of unit length.
///
/// # Errors
///
/// `Embedding` for anything but exactly one vector of `dimensions` finite numbers for each text. An answer that is no
/// answer at all may come from something in between, and is worth another attempt; one that does not fit is not.
pub(super) fn vectors(body: &[u8], texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    // What serde found wrong is left out: it repeats the answer, which may be anything.
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|_| wrong("the service's answer holds no vectors".to_owned()).retryable())?;
    if answer.data.len() != texts {
        return Err(wrong(format!("the service made {} vectors of {texts} texts", answer.data.len())));
    }
    let mut placed: Vec<Option<Vec<f32>>> = vec![None; texts];
    for Item { index, embedding: Vector(vector) } in answer.data {
        let place = placed.get_mut(index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| {
            wrong(format!("the service's vectors can't be told apart: number {index} is one too many"))
        })?;
        *place = Some(unit(checked(vector, dimensions)?));
    }
    // As many as there are places, and none twice: each has one.
    Ok(placed.into_iter().flatten().collect())
}

fn checked(vector: Vec<f32>, dimensions: usize) -> Result<Vec<f32>> {
    if vector.len() != dimensions {
        return Err(wrong(format!(
            "the service's vectors have {} dimensions, and {dimensions} are configured",
            vector.len()
        )));
    }
    if !vector.iter().all(|x| x.is_finite()) {
        return Err(wrong("a vector of the service holds what is no number".to_owned()));
    }
    Ok(vector)
}

/// `vector` made one long, unless it is, or is all zeros. The models of OpenAI make them so, those of others need not.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 && (length - 1.0).abs() > 1e-6 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    vector
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Embedding, message)
}

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm).map(Self)
    }
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = Vec<f32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector as base64 or as numbers")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<f32>, E> {
        let bytes = STANDARD.decode(text).map_err(|_| E::custom("a vector is no base64"))?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("a vector of base64 ends in the middle of a number"));
        }
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<f32>, A::Error> {
        let mut vector = Vec::with_capacity(numbers.size_hint().unwrap_or(0));
        while let Some(number) = numbers.next_element()? {
            vector.push(number);
        }
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(vector: &[f32]) -> String {
        STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    /// An answer with these items, each an index and its vector as JSON.
    fn answer(items: &[(usize, String)]) -> Vec<u8> {
        let items: Vec<_> = items
            .iter()
            .map(|(index, vector)| {
                format!(r#"{{"object":"embedding","index":{index},"embedding":{vector}}}"#)
            })
            .collect();
        format!(r#"{{"object":"list","data":[{}],"usage":{{"total_tokens":1}}}}"#, items.join(","))
            .into_bytes()
    }

    #[test]
    fn vectors_are_put_back_by_their_index_in_either_form() {
        let body = answer(&[(1, "[0, 1]".to_owned()), (0, format!("{:?}", base64(&[1.0, 0.0])))]);
        assert_eq!(vectors(&body, 2, 2).unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    }

    #[test]
    fn vectors_are_made_one_long_and_nothing_stays_nothing() {
        let of = |vector: &str| vectors(&answer(&[(0, vector.to_owned())]), 1, 2).unwrap().remove(0);
        assert_eq!(of("[3, 4]"), [0.6, 0.8]);
        assert_eq!(of("[3e38, 4e-38]"), [1.0, 0.0]);
        assert_eq!(of("[0, 0]"), [0.0, 0.0]);
        // Those that are one long are kept to the bit.
        assert_eq!(of("[0.6, 0.8]"), [0.6, 0.8]);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_an_error() {
        let one = || "[1, 0]".to_owned();
        for (items, says) in [
            (vec![(0, one())], "1 vectors of 2 texts"),
            (vec![(0, one()), (1, one()), (2, one())], "3 vectors of 2 texts"),
            (vec![(0, one()), (0, one())], "number 0"),
            (vec![(0, one()), (2, one())], "number 2"),
            (vec![(0, one()), (1, "[1]".to_owned())], "1 dimensions, and 2"),
            (vec![(0, one()), (1, "[1, 0, 0]".to_owned())], "3 dimensions, and 2"),
            (vec![(0, one()), (1, format!("{:?}", base64(&[1.0, f32::NAN])))], "no number"),
        ] {
            let error = vectors(&answer(&items), 2, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Embedding);
            assert!(!error.is_retryable(), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn garbage_is_worth_another_attempt() {
        let cut = format!("{:?}", &base64(&[1.0, 0.0])[..6]);
        let bodies = [
            b"".to_vec(),
            b"<html>Bad gateway</html>".to_vec(),
            b"{\"data\":[{\"index\":0,\"embedding\":[1,".to_vec(),
            b"\xff\xfe".to_vec(),
            answer(&[(0, cut)]),
            answer(&[(0, "\"no base64!\"".to_owned())]),
            answer(&[(0, "[1e999, 0]".to_owned())]),
            answer(&[(0, "null".to_owned())]),
        ];
        for body in bodies {
            let error = vectors(&body, 1, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Embedding);
            assert!(error.is_retryable(), "{error}");
        }
    }
}
