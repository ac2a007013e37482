use std::{collections::BTreeMap, fs, path::Path};

use rusqlite::Connection;

use super::*;

/// A file with 2,000 rows on pages of 4,096 bytes. Returns the root of their table.
fn file(path: &Path) -> u32 {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA page_size = 4096; CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT)")
        .unwrap();
    let insert = "WITH RECURSIVE n(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n WHERE id < 2000) \
                  INSERT INTO line SELECT id, 'line ' || id FROM n";
    connection.execute_batch(insert).unwrap();
    // The content of this row continues on other pages.
    connection.execute("UPDATE line SET text = ?1 WHERE id = 2000", [&"long".repeat(5_000)]).unwrap();
    connection.query_row("SELECT rootpage FROM sqlite_schema", [], |row| row.get(0)).unwrap()
}

/// The rows of the table, with the number of unreadable pages of its tree.
fn rows(path: &Path, root: u32) -> (BTreeMap<i64, String>, usize) {
    let pages = PageFile::open(path, 512).unwrap();
    let mut scan = PageScan::new(&pages);
    let mut found = BTreeMap::new();
    let unreadable = scan.tree(root, true, |row| {
        let text = row.whole()?.text(1)?.to_owned();
        assert_eq!(pages.row(row.place)?.text(1), Some(&*text));
        found.insert(row.row_id, text);
        Some(())
    });
    // The first page contains the schema.
    assert!(scan.tree(1, true, |_| Some(())).is_empty());
    scan.skip_free_pages();
    scan.unlinked(|row| {
        found.extend(row.record.text(1).map(|text| (row.row_id, text.to_owned())));
    });
    (found, unreadable.len())
}

#[test]
fn rows_are_read_around_a_damaged_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.sqlite");
    let root = file(&path);
    let (whole, unreadable) = rows(&path, root);
    assert_eq!((whole.len(), unreadable), (2_000, 0));
    assert!(whole[&7] == "line 7" && whole[&2_000].len() == 20_000);

    // Pages below a damaged inner page are found, too.
    let damage = |page: usize| {
        let mut bytes = fs::read(&path).unwrap();
        bytes[(page - 1) * 4_096..page * 4_096].fill(0xa5);
        fs::write(&path, bytes).unwrap();
    };
    damage(root as usize);
    let (found, unreadable) = rows(&path, root);
    assert_eq!((found.len(), unreadable), (1_999, 1));
    assert!(found.iter().all(|(id, text)| whole[id] == *text));

    damage(root as usize + 1);
    let (fewer, _) = rows(&path, root);
    assert!((1_000..1_999).contains(&fewer.len()), "{}", fewer.len());
}

#[test]
fn the_columns_of_a_table_are_those_that_are_stored() {
    let create = "CREATE TABLE t (\"key\" INTEGER PRIMARY KEY, kind TEXT CHECK (kind IN ('a', 'b')), \
                  twice INTEGER GENERATED ALWAYS AS (key * 2), UNIQUE (kind, key))";
    assert_eq!(column_names(create), ["key", "kind"]);
    assert_eq!(column_names("no statement"), [""; 0]);
}
