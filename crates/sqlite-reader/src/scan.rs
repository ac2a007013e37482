//! Finds rows: through the trees, and on pages that no readable page refers to.

use super::{
    btree::{Node, TreeCell},
    number_at,
    pages::{PageFile, RowPlace},
    record::RowRecord,
};

/// A search for the rows of a file, which examines each page once.
#[derive(Debug)]
pub struct PageScan<'a> {
    pages: &'a PageFile,
    /// The pages that were examined.
    seen: Vec<bool>,
}

/// A row, or an entry of an index, that was found.
#[derive(Debug)]
pub struct ScannedRow<'a> {
    /// Its position.
    pub place: RowPlace,
    /// Whether it is a row of a table with row ids.
    pub has_row_id: bool,
    /// The row id, or 0 for a row without one.
    pub row_id: i64,
    /// Its values. The last ones of a long row are on other pages and can't be read here: see [`whole`](Self::whole).
    pub record: RowRecord,
    cell: TreeCell<'a>,
    pages: &'a PageFile,
}

impl ScannedRow<'_> {
    /// Its values, including those on other pages.
    #[must_use]
    pub fn whole(&self) -> Option<RowRecord> {
        RowRecord::parse(self.cell.content(self.pages), self.cell.length())
    }
}

impl<'a> PageScan<'a> {
    /// A search in this file.
    #[must_use]
    pub fn new(pages: &'a PageFile) -> Self {
        Self { pages, seen: vec![false; pages.count() as usize + 1] }
    }

    /// Finds the rows of the tree whose root is this page, with row ids or without. `read` returns `None` if it can't
    /// read a row. Returns the numbers of the pages of which at least a part can't be read.
    pub fn tree(
        &mut self,
        root: u32,
        has_row_ids: bool,
        mut read: impl FnMut(&ScannedRow<'_>) -> Option<()>,
    ) -> Vec<u32> {
        let (mut next, mut unreadable) = (vec![root], Vec::new());
        while let Some(number) = next.pop() {
            match self.seen.get_mut(number as usize) {
                Some(seen) if !*seen => *seen = true,
                // Two pages refer to it, so one of them is damaged.
                Some(_) => continue,
                None => {
                    unreadable.push(number);
                    continue;
                }
            }
            let page = self.pages.page(number).unwrap_or_default();
            let node = Node::of(number, &page, self.pages);
            let Some(node) = node.filter(|node| node.has_row_ids == has_row_ids) else {
                unreadable.push(number);
                continue;
            };
            next.extend(node.children());
            let mut is_unreadable = node.is_damaged;
            // The inner pages of a table with row ids contain no rows.
            for (index, cell) in node.cells.iter().filter(|_| !(node.is_inner && has_row_ids)) {
                let row = self.row(number, *index, cell, &node, true);
                is_unreadable |= row.and_then(|row| read(&row)).is_none();
            }
            if is_unreadable {
                unreadable.push(number);
            }
        }
        unreadable
    }

    /// Leaves out the free pages, which may contain earlier versions of rows.
    pub fn skip_free_pages(&mut self) {
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

    /// Finds the rows of all trees on the pages that were not examined yet.
    pub fn unlinked(&self, mut found: impl FnMut(&ScannedRow<'_>)) {
        for number in 1..=self.pages.count() {
            if self.seen.get(number as usize).is_none_or(|seen| *seen) {
                continue;
            }
            let page = self.pages.page(number).unwrap_or_default();
            let Some(node) = Node::of(number, &page, self.pages) else { continue };
            for (index, cell) in &node.cells {
                if let Some(row) = self.row(number, *index, cell, &node, false) {
                    found(&row);
                }
            }
        }
    }

    fn row<'b>(
        &self,
        page: u32,
        index: u16,
        cell: &TreeCell<'b>,
        node: &Node<'_>,
        is_linked: bool,
    ) -> Option<ScannedRow<'b>>
    where
        'a: 'b,
    {
        Some(ScannedRow {
            place: RowPlace { page, cell: index, is_linked },
            has_row_id: node.has_row_ids,
            row_id: cell.row_id,
            record: RowRecord::parse(cell.local.to_vec(), cell.length())?,
            cell: *cell,
            pages: self.pages,
        })
    }
}
