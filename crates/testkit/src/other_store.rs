//! Another store, in place of a server: sessions are pushed to it and pulled from it without the network.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    storage::{
        ExtentPage, ExtentQuery, ReceiveOptions, ReceivedSession, RowEncoder, RowIntake, RowOrigin, RowSink,
        RowTarget, RowUpload, SendRows,
    },
};
use async_trait::async_trait;

/// A store that takes and gives sessions, and counts the bytes. Its connection can break.
#[derive(Debug)]
pub struct OtherStore {
    storage: SessionStorage,
    options: ReceiveOptions,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
struct Traffic {
    bytes: AtomicU64,
    /// The number of bytes after which the connection breaks.
    limit: AtomicU64,
}

impl Traffic {
    fn add(&self, bytes: usize) -> Result<()> {
        let total = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if total <= self.limit.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::StorageConnection, "the connection broke").retryable())
    }
}

impl OtherStore {
    /// Sessions of all users are exchanged with `storage`.
    #[must_use]
    pub fn new(storage: SessionStorage) -> Self {
        let traffic = Traffic { bytes: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) };
        Self { storage, options: ReceiveOptions::default(), traffic: Arc::new(traffic) }
    }

    /// Sets which sessions are taken, and how.
    #[must_use]
    pub fn with_options(mut self, options: ReceiveOptions) -> Self {
        self.options = options;
        self
    }

    /// The number of bytes of rows since the last call.
    pub fn take_bytes(&self) -> u64 {
        self.traffic.bytes.swap(0, Ordering::Relaxed)
    }

    /// Breaks the connection after this many further bytes of rows. `u64::MAX` repairs it.
    pub fn break_after(&self, bytes: u64) {
        self.take_bytes();
        self.traffic.limit.store(bytes, Ordering::Relaxed);
    }

    /// Takes a stream of these bytes.
    ///
    /// # Errors
    ///
    /// As [`RowIntake::finish`].
    pub async fn take(&self, stream: impl Into<Vec<u8>>) -> Result<Vec<ReceivedSession>> {
        let mut upload = self.upload(false).await?;
        upload.put(stream.into()).await?;
        upload.finish().await
    }
}

struct CountedUpload {
    intake: RowIntake,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl RowSink for CountedUpload {
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.traffic.add(bytes.len())?;
        // The network cuts it anywhere.
        let (first, second) = bytes.split_at(bytes.len() / 3);
        self.intake.put(first.to_vec()).await?;
        self.intake.put(second.to_vec()).await
    }
}

#[async_trait]
impl RowUpload for CountedUpload {
    async fn finish(self: Box<Self>) -> Result<Vec<ReceivedSession>> {
        // The rows that came before stay, whether anybody hears of it or not.
        let results = self.intake.finish().await;
        self.traffic.add(0).and(results)
    }
}

#[async_trait]
impl RowTarget for OtherStore {
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage> {
        // Several pages.
        self.storage.exchange().extents(&query.clone().with_limit(3)).await
    }

    async fn upload(&self, include_deleted: bool) -> Result<Box<dyn RowUpload>> {
        let options = self.options.clone().with_include_deleted(include_deleted);
        let intake = self.storage.exchange().receive(options);
        Ok(Box::new(CountedUpload { intake, traffic: self.traffic.clone() }))
    }
}

#[async_trait]
impl RowOrigin for OtherStore {
    async fn extents(&self, query: &ExtentQuery) -> Result<ExtentPage> {
        RowTarget::extents(self, query).await
    }

    async fn read(&self, rows: &SendRows, sink: &mut dyn RowSink) -> Result<()> {
        let mut sink = CountedDownload { sink, traffic: self.traffic.clone() };
        let mut encoder = RowEncoder::new()?;
        self.storage.exchange().send(rows, &mut encoder, &mut sink).await?;
        encoder.end(&mut sink).await.map(drop)
    }
}

struct CountedDownload<'a> {
    sink: &'a mut dyn RowSink,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl RowSink for CountedDownload<'_> {
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.traffic.add(bytes.len())?;
        self.sink.put(bytes).await
    }
}

/// Keeps the bytes of a stream.
#[derive(Debug, Default)]
pub struct KeptBytes(pub Vec<u8>);

#[async_trait]
impl RowSink for KeptBytes {
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.0.extend(bytes);
        Ok(())
    }
}
