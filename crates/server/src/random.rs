//! Random text.

/// The characters of random text.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// `length` random letters and digits, from the random numbers of the system. 43 of them have 256 bits.
///
/// # Errors
///
/// If the system has no random numbers.
pub(crate) fn random_text(length: usize) -> Result<String, getrandom::Error> {
    let mut text = String::with_capacity(length);
    let mut bytes = [0; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes)?;
        // Bytes from 248 on are dropped, so that all characters are equally likely.
        let chosen = bytes.iter().filter_map(|byte| {
            let place = usize::from(*byte) % ALPHABET.len();
            if *byte < 248 { ALPHABET.get(place) } else { None }
        });
        text.extend(chosen.take(length - text.len()).map(|byte| char::from(*byte)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_has_letters_and_digits_and_differs() {
        let (one, other) = (random_text(43).unwrap(), random_text(43).unwrap());
        assert_eq!((one.len(), other.len()), (43, 43));
        assert_ne!(one, other);
        assert!(one.bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_eq!(random_text(200).unwrap().len(), 200);
    }
}
