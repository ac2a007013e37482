//! The vectors in a response.

use amplifier_session_core::{Error, ErrorKind, Result, embedding::NO_VECTOR, text::counted};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vector,
}

#[derive(Deserialize)]
#[serde(try_from = "Form")]
struct Vector(Vec<f32>);

/// The form in which a vector is sent. Some servers support only one of the two, whatever the request specifies.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    /// Base64 of little-endian `f32`.
    Base64(String),
    /// Parsed as `f64`, so that a number too large for `f32` fails only its own vector and not the whole response.
    Numbers(Vec<Option<f64>>),
}

impl TryFrom<Form> for Vector {
    type Error = &'static str;

    fn try_from(form: Form) -> Result<Self, &'static str> {
        let vector = match form {
            Form::Base64(text) => {
                let bytes = STANDARD.decode(text).map_err(|_| "a vector is not base64")?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err("a vector of base64 ends in the middle of a number");
                }
                numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            Form::Numbers(numbers) => {
                numbers.into_iter().map(|number| number.map_or(NO_VECTOR, |number| number as f32)).collect()
            }
        };
        Ok(Self(vector))
    }
}

/// Decodes the response to a request with `texts` texts: their vectors, in the order of the texts and of unit length.
/// A vector of zeros, or with a number that is not finite, becomes [`NO_VECTOR`]: only its own text fails.
///
/// # Errors
///
/// `Embedding` unless there is exactly one vector of `dimensions` numbers for each text. A response without vectors may
/// come from a proxy and is worth another attempt; one with the wrong vectors is not.
pub(super) fn vectors(body: &[u8], texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>> {
    // The JSON error is left out, because it quotes the response, which may contain anything.
    let answer: Answer = serde_json::from_slice(body)
        .or_else(|_| serde_json::from_slice(&without_odd_numbers(body)))
        .map_err(|_| wrong("the service's response contains no vectors".to_owned()).retryable())?;
    if answer.data.len() != texts {
        let (vectors, texts) = (counted(answer.data.len() as u64, "vector"), counted(texts as u64, "text"));
        return Err(wrong(format!("the service returned {vectors} for {texts}")));
    }
    let mut placed: Vec<Option<Vec<f32>>> = vec![None; texts];
    for Item { index, embedding: Vector(vector) } in answer.data {
        let place = placed.get_mut(index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| {
            wrong(format!("the service returned vectors with a wrong or repeated index: {index}"))
        })?;
        *place = Some(unit(checked(vector, dimensions)?));
    }
    // There are as many vectors as places, and no place got two, so every place has one.
    Ok(placed.into_iter().flatten().collect())
}

fn checked(vector: Vec<f32>, dimensions: usize) -> Result<Vec<f32>> {
    if vector.len() != dimensions {
        return Err(wrong(format!(
            "the service returned vectors with {} dimensions, but {dimensions} are configured",
            vector.len()
        )));
    }
    if !vector.iter().all(|x| x.is_finite()) || vector.iter().all(|x| *x == 0.0) {
        return Ok(vec![NO_VECTOR; dimensions]);
    }
    Ok(vector)
}

/// Replaces numbers that JSON does not allow but some servers send, such as `NaN`, `Infinity` and `1e999`, by `null`.
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

/// The length of the JSON string at the beginning of `text`, including its quotes.
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

/// Scales `vector` to unit length, unless it has that length or is zero. OpenAI's vectors have it, but those of other
/// models may not.
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

#[cfg(test)]
mod tests {
    use amplifier_session_core::embedding::is_no_vector;

    use super::*;

    fn base64(vector: &[f32]) -> String {
        STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
    }

    /// A response with these items, each an index and its vector as JSON.
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
    fn vectors_are_sorted_by_index_in_either_form() {
        let body = answer(&[(1, "[0, 1]".to_owned()), (0, format!("{:?}", base64(&[1.0, 0.0])))]);
        assert_eq!(vectors(&body, 2, 2).unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    }

    #[test]
    fn an_unusable_vector_does_not_affect_the_others() {
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
    fn vectors_are_scaled_to_unit_length() {
        let of = |vector: &str| vectors(&answer(&[(0, vector.to_owned())]), 1, 2).unwrap().remove(0);
        assert_eq!(of("[3, 4]"), [0.6, 0.8]);
        assert_eq!(of("[3e38, 4e-38]"), [1.0, 0.0]);
        // Vectors of unit length are preserved bit by bit.
        assert_eq!(of("[0.6, 0.8]"), [0.6, 0.8]);
    }

    #[test]
    fn a_response_with_the_wrong_vectors_is_an_error() {
        let one = || "[1, 0]".to_owned();
        for (items, says) in [
            (vec![(0, one())], "1 vector for 2 texts"),
            (vec![(0, one()), (1, one()), (2, one())], "3 vectors for 2 texts"),
            (vec![(0, one()), (0, one())], "index: 0"),
            (vec![(0, one()), (2, one())], "index: 2"),
            (vec![(0, one()), (1, "[1]".to_owned())], "1 dimensions, but 2"),
            (vec![(0, one()), (1, "[1, 0, 0]".to_owned())], "3 dimensions, but 2"),
        ] {
            let error = vectors(&answer(&items), 2, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Embedding);
            assert!(!error.is_retryable(), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn garbage_is_retryable() {
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
