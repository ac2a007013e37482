//! Rows in the binary form of `COPY`.

use amplifier_session_core::model::Timestamp;
use amplifier_session_sql::{Cell, Table};
use tokio_postgres::types::Type;

use crate::{columns::EPOCH, text};

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &(-1_i16).to_be_bytes();

/// Rows to copy to a table.
#[derive(Debug)]
pub(crate) struct CopyRows {
    table: &'static str,
    columns: String,
    bytes: Vec<u8>,
    /// The positions of keys that are assigned later.
    keys: Vec<usize>,
}

/// Who assigns the key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// The row already has all columns.
    Given,
    /// The column `key` is left out: the database assigns it.
    LeftOut,
    /// The column `key` is set by [`CopyRows::assign_keys`].
    Later,
}

impl CopyRows {
    /// No rows yet, for the table with these columns.
    pub(crate) fn new(table: &'static str, columns: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let columns: Vec<String> = columns.into_iter().map(|column| column.as_ref().to_owned()).collect();
        Self { table, columns: columns.join(", "), bytes: HEADER.to_vec(), keys: Vec::new() }
    }

    /// The rows of `table`, with keys according to `key`.
    pub(crate) fn of(table: &Table, key: Key) -> Self {
        Self::new(table.name, columns(table).filter(|column| key != Key::LeftOut || *column != "key"))
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The name of the table.
    pub(crate) fn table(&self) -> &'static str {
        self.table
    }

    /// The columns of the rows, as a list.
    pub(crate) fn columns(&self) -> &str {
        &self.columns
    }

    /// The statement that copies the rows to `table`, and its data.
    pub(crate) fn into_copy(mut self, table: &str) -> (String, Vec<u8>) {
        self.bytes.extend_from_slice(TRAILER);
        (format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", self.columns), self.bytes)
    }

    /// Adds a row of [`Self::of`].
    pub(crate) fn add(&mut self, table: &Table, key: Key, cells: &[Cell<'_>]) {
        let is_left_out = |column: &str| key == Key::LeftOut && column == "key";
        let with_names = columns(table).zip(cells).filter(|(column, _)| !is_left_out(column));
        self.begin(with_names.clone().count());
        for (column, cell) in with_names {
            match cell {
                Cell::Null if key == Key::Later && column == "key" => {
                    self.keys.push(self.bytes.len() + size_of::<i32>());
                    self.integer(0);
                }
                cell => self.cell(cell),
            }
        }
    }

    /// Sets the keys that were left for later, in order.
    pub(crate) fn assign_keys(&mut self, keys: &[i64]) {
        for (place, key) in self.keys.drain(..).zip(keys) {
            if let Some(bytes) = self.bytes.get_mut(place..place + size_of::<i64>()) {
                bytes.copy_from_slice(&key.to_be_bytes());
            }
        }
    }

    /// The number of keys that must still be assigned.
    pub(crate) fn missing_keys(&self) -> usize {
        self.keys.len()
    }

    /// Begins a row of `values` values, which must follow.
    pub(crate) fn begin(&mut self, values: usize) {
        self.bytes.extend_from_slice(&(values as i16).to_be_bytes());
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        match cell {
            Cell::Null => self.bytes.extend_from_slice(&(-1_i32).to_be_bytes()),
            Cell::Text(text) => self.text(text),
            Cell::Integer(number) => self.integer(*number),
            Cell::Flag(flag) => self.bytes(&[u8::from(*flag)]),
            Cell::Time(time) => self.time(*time),
            Cell::Bytes(bytes) | Cell::Line(bytes) => self.bytes(bytes),
            Cell::Vector(vector) => self.vector(vector),
            Cell::Texts(texts) => self.list(Type::TEXT, texts, |rows, text| rows.text(text)),
        }
    }

    /// Adds bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text::stored(text).as_bytes());
    }

    /// Adds a number.
    pub(crate) fn integer(&mut self, number: i64) {
        self.bytes(&number.to_be_bytes());
    }

    /// Adds a time.
    pub(crate) fn time(&mut self, time: Timestamp) {
        self.integer(time.as_micros().saturating_sub(EPOCH));
    }

    /// Adds a vector.
    pub(crate) fn vector(&mut self, vector: &[f32]) {
        self.list(Type::FLOAT4, vector, |rows, number| rows.bytes(&number.to_be_bytes()));
    }

    fn list<T>(&mut self, kind: Type, items: &[T], add: impl Fn(&mut Self, &T)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        // Dimensions, whether there are `NULL`s, type; of the dimension, length and first index.
        let dimensions = i32::from(!items.is_empty());
        for number in [dimensions, 0, kind.oid().cast_signed()] {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        }
        if !items.is_empty() {
            for number in [items.len() as i32, 1] {
                self.bytes.extend_from_slice(&number.to_be_bytes());
            }
        }
        items.iter().for_each(|item| add(self, item));
        let length = (self.bytes.len() - start - 4) as i32;
        if let Some(place) = self.bytes.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// The columns of a table. An entry of the list may name several.
fn columns(table: &Table) -> impl Iterator<Item = &'static str> + Clone {
    table.columns.iter().flat_map(|columns| columns.split(',')).map(str::trim)
}
