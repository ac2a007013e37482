//! Rows in batches, for a database that holds complete results in memory.

use crate::Batch;

/// The rows in batches within both limits; a longer row is a separate batch.
pub(super) fn batches(rows: &[(i64, u64)], most: Batch) -> impl Iterator<Item = &[(i64, u64)]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |(at, (_, length)): (usize, &(i64, u64))| {
            bytes += length;
            at == 0 || (at < most.rows && bytes <= most.bytes)
        };
        let fitting = rest.iter().enumerate().map(fits).take_while(|fits| *fits).count();
        let (batch, others) = rest.split_at(fitting);
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_within_both_limits() {
        let rows = [(1, 5), (2, 5), (3, 90), (4, 1), (5, 1), (6, 1), (7, 1)];
        let keys = |most| -> Vec<Vec<i64>> {
            batches(&rows, most).map(|batch| batch.iter().map(|(key, _)| *key).collect()).collect()
        };
        assert_eq!(keys(Batch { rows: 3, bytes: 10 }), [vec![1, 2], vec![3], vec![4, 5, 6], vec![7]]);
        assert_eq!(keys(Batch { rows: 10, bytes: 1000 }), [vec![1, 2, 3, 4, 5, 6, 7]]);
    }
}
