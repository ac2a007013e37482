//! Finds all rows: through the tables, and on pages that no readable page refers to.

use std::collections::HashMap;

use amplifier_session_core::model::{SessionId, SessionKey, Timestamp, UserId};

use super::{
    btree::{Cell, Node},
    catalog::{Catalog, Place, put},
    number_at,
    pages::Pages,
    record::Record,
    tables::{Table, column_names},
};

/// The index with the names of all sessions.
const IDS: &str = "sqlite_autoindex_sessions_1";
/// The index with their projects and times of creation.
const PROJECTS: &str = "sessions_by_project";

/// Finds the rows in a file.
pub(super) fn scan(pages: &Pages) -> Catalog {
    let mut scan = Scan { pages, seen: vec![false; pages.count() as usize + 1], catalog: Catalog::default() };
    scan.run();
    scan.catalog.take_indexed();
    scan.catalog
}

struct Scan<'a> {
    pages: &'a Pages,
    /// The pages that were examined.
    seen: Vec<bool>,
    catalog: Catalog,
}

/// The content of a B-tree's pages.
#[derive(Debug, Clone, Copy)]
enum Tree {
    Schema,
    Rows(Table),
    Ids,
    Projects,
}

impl Tree {
    fn table(self) -> Option<Table> {
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
        for (name, tree) in Table::ALL.map(|table| (table.name(), Tree::Rows(table))) {
            match roots.get(name) {
                Some(root) => self.walk(*root, tree, &mut HashMap::new()),
                // Every store has these tables.
                None if matches!(tree, Tree::Rows(Table::Sessions | Table::Messages | Table::Events)) => {
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
            self.skip_free_pages();
            self.unlinked_pages();
        }
    }

    /// Reads the pages of a B-tree.
    fn walk(&mut self, root: u32, tree: Tree, roots: &mut HashMap<String, u32>) {
        let mut next = vec![root];
        while let Some(number) = next.pop() {
            match self.seen.get_mut(number as usize) {
                Some(seen) if !*seen => *seen = true,
                // Two pages refer to it, so one of them is damaged.
                Some(_) => continue,
                None => {
                    self.lost(number, tree);
                    continue;
                }
            }
            let page = self.pages.page(number).unwrap_or_default();
            let node = Node::of(number, &page, self.pages);
            let Some(node) = node.filter(|node| node.has_row_ids == tree.has_row_ids()) else {
                self.lost(number, tree);
                continue;
            };
            if node.is_damaged {
                self.lost(number, tree);
            }
            next.extend(node.children());
            for (index, cell) in &node.cells {
                if node.is_inner && node.has_row_ids {
                    continue;
                }
                let place = Place { page: number, cell: *index, is_linked: true };
                let known = match Record::parse(cell.local.to_vec(), cell.length()) {
                    Some(row) => self.row(tree, &row, cell, place, roots),
                    None => None,
                };
                if known.is_none() {
                    self.lost(number, tree);
                }
            }
        }
    }

    fn lost(&mut self, number: u32, tree: Tree) {
        let lost = (number, tree.table());
        if tree.has_rows() && !self.catalog.unreadable.contains(&lost) {
            self.catalog.unreadable.push(lost);
        }
    }

    /// Adds a row of a B-tree. `None` if it can't be read.
    fn row(
        &mut self,
        tree: Tree,
        row: &Record,
        cell: &Cell<'_>,
        place: Place,
        roots: &mut HashMap<String, u32>,
    ) -> Option<()> {
        match tree {
            Tree::Rows(table) => self.row_of(table, row, cell, place),
            Tree::Schema => {
                let (name, root) = (row.text(1)?, row.number(3).unwrap_or(0));
                roots.insert(name.to_owned(), root);
                if let Some(table) = Table::ALL.into_iter().find(|table| table.name() == name) {
                    let whole = Record::parse(cell.content(self.pages), cell.length())?;
                    self.catalog.columns.insert(table, column_names(whole.text(4)?));
                }
                Some(())
            }
            Tree::Ids => {
                let key =
                    SessionKey::new(UserId::new(row.text(0)?).ok()?, SessionId::new(row.text(1)?).ok()?);
                self.catalog.indexed.entry(row.integer(2)?).or_default().key = Some(key);
                Some(())
            }
            Tree::Projects => {
                let indexed = self.catalog.indexed.entry(row.integer(3)?).or_default();
                indexed.project = row.text(1).map(str::to_owned);
                indexed.created = row.text(2).and_then(|time| Timestamp::parse(time).ok());
                Some(())
            }
        }
    }

    /// Adds a row of a table. `None` if it can't be read.
    fn row_of(&mut self, table: Table, row: &Record, cell: &Cell<'_>, place: Place) -> Option<()> {
        let first = match table {
            Table::Sessions | Table::Messages | Table::Vectors | Table::TurnVectors => 1,
            _ => 0,
        };
        if table == Table::Meta {
            let whole = Record::parse(cell.content(self.pages), cell.length())?;
            let (key, value) = (whole.text(0)?.to_owned(), whole.text(1)?.to_owned());
            self.catalog.meta.entry(key).or_insert(value);
            return Some(());
        }
        let (user, session) = (row.text(first)?, row.text(first + 1)?);
        if table == Table::Deleted {
            let key = SessionKey::new(UserId::new(user).ok()?, SessionId::new(session).ok()?);
            self.catalog.deleted.push(key);
            return Some(());
        }
        let number = |at| row.number(first + 2 + at);
        let found = self.catalog.session(user, session)?;
        match table {
            Table::Sessions => {
                if found.record.is_none_or(|record| place.is_linked && !record.is_linked) {
                    found.record = Some(place);
                }
            }
            Table::MetadataFiles => put(&mut found.metadata, row.integer(2)?, place),
            Table::Messages => put(&mut found.messages, number(0)?, place),
            Table::Events => put(&mut found.events, number(0)?, place),
            Table::Chunks => put(&mut found.chunks, (number(0)?, number(1)?), place),
            Table::Superseded => put(&mut found.superseded, row.text(2)?.to_owned(), place),
            Table::Vectors => put(&mut found.vectors, (number(0)?, cell.row_id), place),
            Table::Summaries => put(&mut found.summaries, number(0)?, place),
            Table::TurnVectors => put(&mut found.turn_vectors, (number(0)?, cell.row_id), place),
            Table::Meta | Table::Deleted => {}
        }
        Some(())
    }

    /// Free pages may contain earlier versions of rows.
    fn skip_free_pages(&mut self) {
        let mut next = self.pages.free();
        while let Some(number) = next {
            match self.seen.get_mut(number as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return,
            }
            let Some(page) = self.pages.page(number) else { return };
            let count = number_at(&page, 4, 4).unwrap_or(0) as usize;
            let listed = page.get(8..).unwrap_or_default().chunks_exact(4).take(count);
            for number in listed.filter_map(|number| number_at(number, 0, 4)) {
                if let Some(seen) = self.seen.get_mut(number as usize) {
                    *seen = true;
                }
            }
            next = number_at(&page, 0, 4).filter(|next| *next > 0);
        }
    }

    /// Adds the rows on pages that no readable page refers to.
    fn unlinked_pages(&mut self) {
        for number in 1..=self.pages.count() {
            if self.seen.get(number as usize).is_none_or(|seen| *seen) {
                continue;
            }
            let page = self.pages.page(number).unwrap_or_default();
            let Some(node) = Node::of(number, &page, self.pages) else { continue };
            for (index, cell) in &node.cells {
                let Some(row) = Record::parse(cell.local.to_vec(), cell.length()) else { continue };
                let Some(table) = Table::of_row(node.has_row_ids, &row) else { continue };
                let place = Place { page: number, cell: *index, is_linked: false };
                // Unreadable content is not a row.
                let _ = self.row_of(table, &row, cell, place);
            }
        }
    }
}
