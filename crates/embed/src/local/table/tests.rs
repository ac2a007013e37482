use serde_json::Value;

use super::*;

/// The tensor with this name, according to the header of the file: its type, shape and bytes.
fn tensor(name: &str) -> (String, Vec<u64>, &'static [u8]) {
    let (length, rest) = FILE.split_at(8);
    let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&rest[..length]).unwrap();
    let numbers = |key| serde_json::from_value::<Vec<u64>>(header[name][key].clone()).unwrap();
    let offsets = numbers("data_offsets");
    let bytes = &rest[length..][offsets[0] as usize..offsets[1] as usize];
    (header[name]["dtype"].as_str().unwrap().to_owned(), numbers("shape"), bytes)
}

#[test]
fn the_tensors_are_where_the_header_says() {
    let tokens = TOKENS as u64;
    assert_eq!(tensor("weights"), ("F32".to_owned(), vec![tokens], SCALES.as_flattened()));
    assert_eq!(
        tensor("embeddings"),
        ("I8".to_owned(), vec![tokens, DIMENSIONS as u64], VECTORS.as_flattened())
    );
    let (kind, shape, numbers) = tensor("mapping");
    assert_eq!((kind.as_str(), shape), ("I32", vec![tokens]));
    let numbers = numbers.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
    assert!(numbers.eq(0..TOKENS as i32), "vectors are not in the order of their tokens");
}

#[test]
fn adding_in_blocks_is_adding_one_by_one() {
    for count in [0, 1, 7, 8, 9, 16, 100, 1_000] {
        let tokens: Vec<u16> = (0..count).map(|index| (index * 7_919 % TOKENS) as u16).collect();
        let mut expected = [0.0_f32; DIMENSIONS];
        for token in &tokens {
            let (vector, scale) = row(*token);
            for (sum, x) in expected.iter_mut().zip(vector) {
                *sum += f32::from(x.cast_signed()) * scale;
            }
        }
        assert_eq!(sum_of(&tokens), expected, "{count}");
    }
}

#[test]
fn a_token_without_a_row_adds_nothing() {
    assert_eq!(sum_of(&[u16::MAX]), [0.0; DIMENSIONS]);
}
