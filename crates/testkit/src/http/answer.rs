//! The response bodies of a mock service.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Fault, MockEmbeddings, MockOptions, request::Order};

/// The body of the response to `texts`, with the error that `fault` requires.
pub(super) fn body(order: &Order, texts: &[String], options: &MockOptions, fault: &Fault) -> String {
    let mut dimensions = order.dimensions;
    if *fault == Fault::WrongDimensions {
        dimensions = dimensions.saturating_sub(1);
    }
    if options.one_vector {
        return one_vector(order, texts.len());
    }
    let mut items: Vec<(usize, Vec<f32>)> =
        texts.iter().map(|text| MockEmbeddings::vector(text, dimensions)).enumerate().collect();
    if (options.length - 1.0).abs() > f32::EPSILON {
        items.iter_mut().flat_map(|(_, vector)| vector).for_each(|x| *x *= options.length);
    }
    match fault {
        Fault::TooFew => drop(items.pop()),
        Fault::TooMany => items.push((items.len(), MockEmbeddings::vector("one too many", dimensions))),
        Fault::DuplicateIndex => items.iter_mut().for_each(|(index, _)| *index = 0),
        Fault::Reversed => items.reverse(),
        Fault::NotFinite => items.iter_mut().flat_map(|(_, vector)| vector).for_each(|x| *x = f32::NAN),
        _ => {}
    }
    // JSON numbers are finite, so others can only be sent as base64.
    let base64 = order.base64 || *fault == Fault::NotFinite;
    let items = items.iter().map(|(index, vector)| (*index, encode(vector, base64)));
    list(order, items, texts.iter().map(|text| text.len().div_ceil(4)).sum())
}

/// The body of a response with the same vector for all texts.
fn one_vector(order: &Order, texts: usize) -> String {
    let vector = encode(&MockEmbeddings::vector("one", order.dimensions), order.base64);
    list(order, (0..texts).map(|index| (index, &vector)), texts)
}

/// The body of a response with these vectors and their indices.
fn list<V: AsRef<str>>(order: &Order, items: impl Iterator<Item = (usize, V)>, tokens: usize) -> String {
    let mut body = r#"{"object":"list","data":["#.to_owned();
    for (place, (index, vector)) in items.enumerate() {
        let (comma, vector) = (if place == 0 { "" } else { "," }, vector.as_ref());
        body.reserve(vector.len() + 100);
        // Writing to a string cannot fail.
        let _ = write!(body, r#"{comma}{{"object":"embedding","index":{index},"embedding":"#);
        body.push_str(vector);
        body.push('}');
    }
    let usage = format!(r#"{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}"#);
    let _ = write!(body, r#"],"model":{:?},"usage":{usage}}}"#, order.model);
    body
}

/// A vector as a JSON value.
fn encode(vector: &[f32], base64: bool) -> String {
    if base64 {
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        return format!("\"{}\"", STANDARD.encode(bytes));
    }
    let mut list = "[".to_owned();
    for (place, x) in vector.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(list, "{}{x}", if place == 0 { "" } else { "," });
    }
    list.push(']');
    list
}
