//! The cells of a page, and their content.

use super::{
    number_at,
    pages::{PageFile, RowPlace},
    record::RowRecord,
    varint,
};

/// A page of a B-tree.
#[derive(Debug)]
pub(super) struct Node<'a> {
    /// Whether it belongs to a table with row ids. Otherwise, it belongs to an index, or a table without row ids.
    pub(super) has_row_ids: bool,
    /// Whether pages are below it.
    pub(super) is_inner: bool,
    /// The last page below it.
    pub(super) last_child: Option<u32>,
    /// The cells that can be read, with their number.
    pub(super) cells: Vec<(u16, TreeCell<'a>)>,
    /// Whether cells can't be read.
    pub(super) is_damaged: bool,
}

/// A cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeCell<'a> {
    /// The page below it.
    pub(super) child: Option<u32>,
    /// The row id, or 0 for a row without one.
    pub(super) row_id: i64,
    /// The length of its content.
    length: usize,
    /// The beginning of its content.
    pub(super) local: &'a [u8],
    /// The page on which the content continues.
    overflow: Option<u32>,
}

impl PageFile {
    /// The row at a position; `None` if it can't be read.
    #[must_use]
    pub fn row(&self, place: RowPlace) -> Option<RowRecord> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(number, _)| *number != place.page) {
            *last = Some((place.page, self.page(place.page)?));
        }
        let (_, page) = last.as_ref()?;
        let node = Node::of(place.page, page, self)?;
        let cell = node.cells.iter().find(|(index, _)| *index == place.cell)?.1;
        RowRecord::parse(cell.content(self), cell.length())
    }
}

impl<'a> Node<'a> {
    /// The page with this number as a page of a B-tree. `None` if it is not one.
    pub(super) fn of(number: u32, page: &'a [u8], pages: &PageFile) -> Option<Self> {
        let page = page.get(..pages.usable())?;
        // The first page begins with the header of the file.
        let start = if number == 1 { 100 } else { 0 };
        let (has_row_ids, is_inner) = match page.get(start)? {
            2 => (false, true),
            5 => (true, true),
            10 => (false, false),
            13 => (true, false),
            _ => return None,
        };
        let count = number_at(page, start + 3, 2)? as usize;
        let pointers = start + if is_inner { 12 } else { 8 };
        let end = pointers + 2 * count;
        if end > page.len() {
            return None;
        }
        let mut node = Self {
            has_row_ids,
            is_inner,
            last_child: number_at(page, start + 8, 4).filter(|_| is_inner),
            cells: Vec::with_capacity(count),
            is_damaged: false,
        };
        for index in 0..count {
            let at = number_at(page, pointers + 2 * index, 2).map_or(0, |at| at as usize);
            // A cell lies after the pointers.
            match (at >= end).then(|| node.cell(page, at)).flatten() {
                Some(cell) => node.cells.push((index as u16, cell)),
                None => node.is_damaged = true,
            }
        }
        Some(node)
    }

    fn cell(&self, page: &'a [u8], mut at: usize) -> Option<TreeCell<'a>> {
        let mut child = None;
        if self.is_inner {
            child = Some(number_at(page, at, 4)?);
            at += 4;
        }
        if self.is_inner && self.has_row_ids {
            let (row_id, _) = varint(page, at)?;
            return Some(TreeCell { child, row_id, length: 0, local: &[], overflow: None });
        }
        let (length, next) = varint(page, at)?;
        let length = usize::try_from(length).ok()?;
        at = next;
        let mut row_id = 0;
        if self.has_row_ids {
            (row_id, at) = varint(page, at)?;
        }
        let local = local_length(length, page.len(), self.has_row_ids);
        let content = page.get(at..at.checked_add(local)?)?;
        let overflow = if local < length { Some(number_at(page, at + local, 4)?) } else { None };
        Some(TreeCell { child, row_id, length, local: content, overflow })
    }

    /// The pages below, in order.
    pub(super) fn children(&self) -> impl Iterator<Item = u32> {
        self.cells.iter().filter_map(|(_, cell)| cell.child).chain(self.last_child)
    }
}

impl TreeCell<'_> {
    /// The length of its content, including parts on other pages.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The whole content. If a page of it can't be read, the content before it.
    pub(super) fn content(&self, pages: &PageFile) -> Vec<u8> {
        let mut content = self.local.to_vec();
        let mut next = self.overflow;
        if self.length as u64 > u64::from(pages.count()) * pages.usable() as u64 {
            return content;
        }
        while let Some(number) = next.filter(|number| *number > 1 && content.len() < self.length) {
            let Some(page) = pages.page(number) else { break };
            let rest = (self.length - content.len()).min(pages.usable() - 4);
            let Some(part) = page.get(4..4 + rest) else { break };
            content.extend_from_slice(part);
            next = number_at(&page, 0, 4);
        }
        content
    }
}

/// The part of a content of `length` bytes that is stored in its cell, on a page with `usable` bytes.
fn local_length(length: usize, usable: usize, has_row_ids: bool) -> usize {
    let most = if has_row_ids {
        usable.saturating_sub(35)
    } else {
        (usable.saturating_sub(12) * 64 / 255).saturating_sub(23)
    };
    if length <= most {
        return length;
    }
    let least = (usable.saturating_sub(12) * 32 / 255).saturating_sub(23);
    let fitting = least + (length - least) % usable.saturating_sub(4).max(1);
    if fitting <= most { fitting } else { least }
}
