//! Compares the lines of a file with stored rows by their digests.

use amplifier_session_core::model::Digest;

/// How far to look for the next equal line after a difference.
const WINDOW: usize = 256;

/// A difference between some lines and rows, both given by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The first line and the number of lines.
    pub(super) lines: (usize, usize),
    /// The first row and the number of rows.
    pub(super) rows: (usize, usize),
}

/// The differences between lines and rows, in order. A missing row differs from every line.
pub(super) fn differences(lines: &[Digest], rows: &[Option<Digest>]) -> Vec<Hunk> {
    let equal = |line: usize, row: usize| match (lines.get(line), rows.get(row)) {
        (Some(line), Some(Some(row))) => line == row,
        _ => false,
    };
    let mut hunks = Vec::new();
    let (mut line, mut row) = (0, 0);
    while line < lines.len() || row < rows.len() {
        if equal(line, row) {
            (line, row) = (line + 1, row + 1);
            continue;
        }
        let (skipped_lines, skipped_rows) = resynchronised(line, row, lines.len(), rows.len(), equal);
        hunks.push(Hunk { lines: (line, skipped_lines), rows: (row, skipped_rows) });
        (line, row) = (line + skipped_lines, row + skipped_rows);
    }
    hunks
}

/// How many lines and rows to skip until they are equal again: as few as possible, and equally many of both if
/// possible.
fn resynchronised(
    line: usize,
    row: usize,
    lines: usize,
    rows: usize,
    equal: impl Fn(usize, usize) -> bool,
) -> (usize, usize) {
    let left = (lines - line, rows - row);
    // Both ends may be equal, however long the difference is.
    let longest = WINDOW.min(left.0 + left.1);
    for skipped in 1..=longest {
        let mut candidates: Vec<usize> = (0..=skipped).collect();
        candidates.sort_by_key(|skipped_lines| (2 * skipped_lines).abs_diff(skipped));
        for skipped_lines in candidates {
            let skipped_rows = skipped - skipped_lines;
            let (at_line, at_row) = (line + skipped_lines, row + skipped_rows);
            let at_end = at_line == lines && at_row == rows;
            if at_line <= lines && at_row <= rows && (at_end || equal(at_line, at_row)) {
                return (skipped_lines, skipped_rows);
            }
        }
    }
    let tail = (0..left.0.min(left.1)).take_while(|back| equal(lines - 1 - back, rows - 1 - back)).count();
    (left.0 - tail, left.1 - tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(lines: &str, rows: &str) -> Vec<((usize, usize), (usize, usize))> {
        let lines: Vec<Digest> = lines.bytes().map(|byte| Digest::of(&[byte])).collect();
        let rows: Vec<_> = rows.bytes().map(|byte| (byte != b'_').then(|| Digest::of(&[byte]))).collect();
        differences(&lines, &rows).iter().map(|hunk| (hunk.lines, hunk.rows)).collect()
    }

    #[test]
    fn differences_are_as_small_as_possible() {
        assert_eq!(hunks("abc", "abc"), []);
        assert_eq!(hunks("abc", "axc"), [((1, 1), (1, 1))]);
        assert_eq!(hunks("abc", "ac"), [((1, 1), (1, 0))]);
        assert_eq!(hunks("ac", "abc"), [((1, 0), (1, 1))]);
        assert_eq!(hunks("abcd", "ab"), [((2, 2), (2, 0))]);
        assert_eq!(hunks("", "ab"), [((0, 0), (0, 2))]);
        assert_eq!(hunks("abc", "a_c"), [((1, 1), (1, 1))]);
        assert_eq!(hunks("abcde", "xbcye"), [((0, 1), (0, 1)), ((3, 1), (3, 1))]);
    }

    #[test]
    fn long_differences_end_where_the_rest_is_equal() {
        let (lines, rows) = (format!("a{}z", "b".repeat(600)), format!("a{}z", "c".repeat(700)));
        assert_eq!(hunks(&lines, &rows), [((1, 600), (1, 700))]);
    }
}
