//! Numbers as literals in statements.

/// The condition that `column` is one of these numbers, in any order. They are literals because DuckDB uses an index
/// for them only if they are known during planning.
#[must_use]
pub fn is_one_of(column: &str, numbers: impl IntoIterator<Item = i64>) -> String {
    let mut numbers: Vec<i64> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.as_slice() {
        [] => "FALSE".to_owned(),
        [first, .., last] if *last - *first == numbers.len() as i64 - 1 => {
            format!("{column} BETWEEN {first} AND {last}")
        }
        numbers => {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            format!("{column} IN ({})", numbers.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_are_a_range() {
        assert_eq!(is_one_of("k", []), "FALSE");
        assert_eq!(is_one_of("k", [7]), "k IN (7)");
        assert_eq!(is_one_of("k", [3, 1, 2, 2]), "k BETWEEN 1 AND 3");
        assert_eq!(is_one_of("k", [5, 1]), "k IN (1, 5)");
    }
}
