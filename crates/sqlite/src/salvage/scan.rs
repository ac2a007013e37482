//! Finds all rows of our tables.

use std::collections::HashMap;

use amplifier_session_core::model::{SessionId, SessionKey, Timestamp, UserId};
use amplifier_session_sqlite_reader::{PageFile, PageScan, ScannedRow, column_names};

use super::{
    catalog::{Catalog, put},
    tables::SalvagedTable,
};

/// The index with the names of all sessions.
const IDS: &str = "sqlite_autoindex_sessions_1";
/// The index with their projects and times of creation.
const PROJECTS: &str = "sessions_by_project";

/// Finds the rows in a file.
pub(super) fn scan(pages: &PageFile) -> Catalog {
    let mut scan = Scan { pages: PageScan::new(pages), catalog: Catalog::default() };
    scan.run();
    scan.catalog.take_indexed();
    scan.catalog
}

struct Scan<'a> {
    pages: PageScan<'a>,
    catalog: Catalog,
}

/// The content of a B-tree's pages.
#[derive(Debug, Clone, Copy)]
enum Tree {
    Schema,
    Rows(SalvagedTable),
    Ids,
    Projects,
}

impl Tree {
    fn table(self) -> Option<SalvagedTable> {
        match self {
            Self::Rows(table) => Some(table),
            _ => None,
        }
    }

    fn has_row_ids(self) -> bool {
        match self {
            Self::Schema => true,
            Self::Rows(table) => table.has_row_ids(),
            Self::Ids | Self::Projects => false,
        }
    }

    /// Whether an unreadable page of it loses rows.
    fn has_rows(self) -> bool {
        matches!(self, Self::Rows(_) | Self::Schema)
    }
}

impl Scan<'_> {
    fn run(&mut self) {
        let mut roots = HashMap::new();
        self.walk(1, Tree::Schema, &mut roots);
        for (name, tree) in SalvagedTable::ALL.map(|table| (table.name(), Tree::Rows(table))) {
            match roots.get(name) {
                Some(root) => self.walk(*root, tree, &mut HashMap::new()),
                // Every store has these tables.
                None if matches!(
                    tree,
                    Tree::Rows(SalvagedTable::Sessions | SalvagedTable::Messages | SalvagedTable::Events)
                ) =>
                {
                    self.lost(1, Tree::Schema);
                }
                None => {}
            }
        }
        let has_lost = !self.catalog.unreadable.is_empty();
        for (name, tree) in [(IDS, Tree::Ids), (PROJECTS, Tree::Projects)].into_iter().filter(|_| has_lost) {
            if let Some(root) = roots.get(name) {
                self.walk(*root, tree, &mut HashMap::new());
            }
        }
        if has_lost {
            self.pages.skip_free_pages();
            let catalog = &mut self.catalog;
            self.pages.unlinked(|row| {
                if let Some(table) = SalvagedTable::of_row(row.has_row_id, &row.record) {
                    // Unreadable content is not a row.
                    let _ = catalog.add_to(table, row);
                }
            });
        }
    }

    /// Reads the pages of a B-tree.
    fn walk(&mut self, root: u32, tree: Tree, roots: &mut HashMap<String, u32>) {
        let catalog = &mut self.catalog;
        let unreadable = self.pages.tree(root, tree.has_row_ids(), |row| catalog.add(tree, row, roots));
        for number in unreadable {
            self.lost(number, tree);
        }
    }

    fn lost(&mut self, number: u32, tree: Tree) {
        let lost = (number, tree.table());
        if tree.has_rows() && !self.catalog.unreadable.contains(&lost) {
            self.catalog.unreadable.push(lost);
        }
    }
}

impl Catalog {
    /// Adds a row of a B-tree. `None` if it can't be read.
    fn add(&mut self, tree: Tree, found: &ScannedRow<'_>, roots: &mut HashMap<String, u32>) -> Option<()> {
        let row = &found.record;
        match tree {
            Tree::Rows(table) => self.add_to(table, found),
            Tree::Schema => {
                let (name, root) = (row.text(1)?, row.number(3).unwrap_or(0));
                roots.insert(name.to_owned(), root);
                if let Some(table) = SalvagedTable::ALL.into_iter().find(|table| table.name() == name) {
                    let whole = found.whole()?;
                    self.columns.insert(table, column_names(whole.text(4)?));
                }
                Some(())
            }
            Tree::Ids => {
                let key =
                    SessionKey::new(UserId::new(row.text(0)?).ok()?, SessionId::new(row.text(1)?).ok()?);
                self.indexed.entry(row.integer(2)?).or_default().key = Some(key);
                Some(())
            }
            Tree::Projects => {
                let indexed = self.indexed.entry(row.integer(3)?).or_default();
                indexed.project = row.text(1).map(str::to_owned);
                indexed.created = row.text(2).and_then(|time| Timestamp::parse(time).ok());
                Some(())
            }
        }
    }

    /// Adds a row of a table. `None` if it can't be read.
    fn add_to(&mut self, table: SalvagedTable, scanned: &ScannedRow<'_>) -> Option<()> {
        let (row, place) = (&scanned.record, scanned.place);
        // The first column of these tables is their key.
        let first = match table {
            SalvagedTable::Sessions
            | SalvagedTable::Messages
            | SalvagedTable::Vectors
            | SalvagedTable::TurnVectors => 1,
            _ => 0,
        };
        if table == SalvagedTable::Meta {
            let whole = scanned.whole()?;
            let (key, value) = (whole.text(0)?.to_owned(), whole.text(1)?.to_owned());
            self.meta.entry(key).or_insert(value);
            return Some(());
        }
        let (user, session) = (row.text(first)?, row.text(first + 1)?);
        if table == SalvagedTable::Deleted {
            let key = SessionKey::new(UserId::new(user).ok()?, SessionId::new(session).ok()?);
            self.deleted.push(key);
            return Some(());
        }
        let number = |at| row.number(first + 2 + at);
        let found = self.session(user, session)?;
        match table {
            SalvagedTable::Sessions => {
                // A row that no page refers to may be an earlier version.
                if found.record.is_none_or(|record| place.is_linked && !record.is_linked) {
                    found.record = Some(place);
                }
            }
            SalvagedTable::MetadataFiles => put(&mut found.metadata, row.integer(2)?, place),
            SalvagedTable::Messages => put(&mut found.messages, number(0)?, place),
            SalvagedTable::Events => put(&mut found.events, number(0)?, place),
            SalvagedTable::Chunks => put(&mut found.chunks, (number(0)?, number(1)?), place),
            SalvagedTable::Superseded => put(&mut found.superseded, row.text(2)?.to_owned(), place),
            SalvagedTable::Vectors => put(&mut found.vectors, (number(0)?, scanned.row_id), place),
            SalvagedTable::Summaries => put(&mut found.summaries, number(0)?, place),
            SalvagedTable::TurnVectors => put(&mut found.turn_vectors, (number(0)?, scanned.row_id), place),
            SalvagedTable::Meta | SalvagedTable::Deleted => {}
        }
        Some(())
    }
}
