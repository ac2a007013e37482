//! How long taking in sessions takes, against the yardsticks.

use std::{path::Path, time::Instant};

use super::{filled, yardstick};

/// How often each is measured; the best counts, since everything else on the machine only makes it slower.
const RUNS: usize = 3;

pub(crate) async fn measure(root: &Path) {
    let [mut insert, mut index, mut without, mut with, mut again] = [f64::INFINITY; 5];
    for _ in 0..RUNS {
        let folder = tempfile::tempdir().unwrap();
        insert = insert.min(yardstick::parse_and_insert(root, folder.path()).as_secs_f64());
        let texts = tempfile::tempdir().unwrap();
        index = index.min(yardstick::index_texts(root, texts.path()).as_secs_f64());
        let start = Instant::now();
        drop(filled(folder.path(), root, "none").await);
        without = without.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        drop(filled(folder.path(), root, "local").await);
        with = with.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        drop(filled(folder.path(), root, "local").await);
        again = again.min(start.elapsed().as_secs_f64());
    }
    println!("| what | seconds | ratio |\n| --- | --- | --- |");
    println!("| yardstick: parse the lines, insert them as they are | {insert:.2} | |");
    println!("| yardstick: tantivy alone, the same texts | {index:.2} | |");
    let floor = insert + index;
    println!("| sync without embeddings | {without:.2} | {:.2} of both yardsticks |", without / floor);
    println!("| sync with the local model | {with:.2} | {:.2} of that without |", with / without);
    println!("| the same again, nothing changed | {again:.3} | |\n");
}
