//! The vectors that a mock service answers with.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Fault, MockEmbeddings, request::Order};

/// The body of an answer to `texts`, wrong where `fault` says so.
pub(super) fn body(order: &Order, texts: &[String], length: f32, fault: &Fault) -> String {
    let mut dimensions = order.dimensions;
    if *fault == Fault::WrongDimensions {
        dimensions = dimensions.saturating_sub(1);
    }
    let mut items: Vec<(usize, Vec<f32>)> =
        texts.iter().map(|text| MockEmbeddings::vector(text, dimensions)).enumerate().collect();
    if (length - 1.0).abs() > f32::EPSILON {
        items.iter_mut().flat_map(|(_, vector)| vector).for_each(|x| *x *= length);
    }
    match fault {
        Fault::TooFew => drop(items.pop()),
        Fault::TooMany => items.push((items.len(), MockEmbeddings::vector("one too many", dimensions))),
        Fault::DuplicateIndex => items.iter_mut().for_each(|(index, _)| *index = 0),
        Fault::Reversed => items.reverse(),
        Fault::NotFinite => items.iter_mut().flat_map(|(_, vector)| vector).for_each(|x| *x = f32::NAN),
        _ => {}
    }
    // Numbers in JSON are finite; those that are not can only be sent as base64.
    let base64 = order.base64 || *fault == Fault::NotFinite;
    let items: Vec<String> = items.iter().map(|(index, vector)| item(*index, vector, base64)).collect();
    let tokens = texts.iter().map(|text| text.len().div_ceil(4)).sum::<usize>();
    format!(
        r#"{{"object":"list","data":[{}],"model":{:?},"usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}}}"#,
        items.join(","),
        order.model,
    )
}

fn item(index: usize, vector: &[f32], base64: bool) -> String {
    let mut item = format!(r#"{{"object":"embedding","index":{index},"embedding":"#);
    if base64 {
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        item.push('"');
        STANDARD.encode_string(bytes, &mut item);
        item.push('"');
    } else {
        item.push('[');
        for (place, x) in vector.iter().enumerate() {
            // Writing to a string can't fail.
            let _ = write!(item, "{}{x}", if place == 0 { "" } else { "," });
        }
        item.push(']');
    }
    item.push('}');
    item
}
