//! The vectors in an answer.

use std::fmt;

use amplifier_session_core::{Error, ErrorKind, Result, embedding::NO_VECTOR};
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
/// `Embedding` for anything but exactly one vector of `dimensions` numbers for each text. An answer that is no
/// answer at all may come from something in between, and is worth another attempt; one that does not fit is not.
///
/// A vector of zeros, or with what is no number, is no error of the answer, but [`NO_VECTOR`] of its text.
pub(super) fn vectors(body: &[u8], texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    // What serde found wrong is left out: it repeats the answer, which may be anything.
    let answer: Answer = serde_json::from_slice(body)
        .or_else(|_| serde_json::from_slice(&without_odd_numbers(body)))
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
    if !vector.iter().all(|x| x.is_finite()) || vector.iter().all(|x| *x == 0.0) {
        return Ok(vec![NO_VECTOR; dimensions]);
    }
    Ok(vector)
}

/// `body` with `null` for each number that JSON does not know, but some servers write: `NaN`, `Infinity`, `1e999`.
fn without_odd_numbers(body: &[u8]) -> Vec<u8> {
    let is_of_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let mut kept = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(first) = rest.first() {
        let length = match first {
            b'"' => length_of_string(rest),
            byte if is_of_number(byte) => rest.iter().take_while(|byte| is_of_number(byte)).count(),
            _ => 1,
        };
        let (part, after) = rest.split_at(length);
        let number = str::from_utf8(part).ok().and_then(|text| text.parse::<f64>().ok());
        let is_odd = number.is_some_and(|number| !number.is_finite());
        kept.extend_from_slice(if is_odd { b"null" } else { part });
        rest = after;
    }
    kept
}

/// The length of the string of JSON at the beginning of `text`, with its quotes.
fn length_of_string(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `vector` made one long, unless it is, or is none. The models of OpenAI make them so, those of others need not.
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
        // In double precision, where a number that is too large for single precision is no error of the whole answer.
        while let Some(number) = numbers.next_element::<Option<f64>>()? {
            vector.push(number.map_or(NO_VECTOR, |number| number as f32));
        }
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::embedding::is_no_vector;

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
    fn a_vector_that_can_not_be_used_is_none_and_the_others_are_kept() {
        let odd =
            ["[0, 0]", "[-0.0, 0]", "[1, NaN]", "[1, null]", "[1e999, 0]", "[1, -Infinity]", "[1e39, 0]"];
        let odd = odd.map(str::to_owned).into_iter();
        for odd in
            odd.chain([format!("{:?}", base64(&[1.0, f32::NAN])), format!("{:?}", base64(&[0.0, 0.0]))])
        {
            let body = answer(&[(0, odd.clone()), (1, "[0, 1]".to_owned())]);
            let vectors = vectors(&body, 2, 2).unwrap();
            assert!(is_no_vector(&vectors[0]) && vectors[1] == [0.0, 1.0], "{odd}: {vectors:?}");
        }
        assert_eq!(
            without_odd_numbers(br#"{"NaN": "1e999 \" NaN", "a": [NaN, 1, -1.5e3]}"#),
            br#"{"NaN": "1e999 \" NaN", "a": [null, 1, -1.5e3]}"#
        );
    }

    #[test]
    fn vectors_are_made_one_long() {
        let of = |vector: &str| vectors(&answer(&[(0, vector.to_owned())]), 1, 2).unwrap().remove(0);
        assert_eq!(of("[3, 4]"), [0.6, 0.8]);
        assert_eq!(of("[3e38, 4e-38]"), [1.0, 0.0]);
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
            answer(&[(0, "null".to_owned())]),
        ];
        for body in bodies {
            let error = vectors(&body, 1, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Embedding);
            assert!(error.is_retryable(), "{error}");
        }
    }
}
