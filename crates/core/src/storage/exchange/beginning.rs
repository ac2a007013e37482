//! The beginning of a session that is taken from another store.

use super::{extent::SessionExtent, intake::ReceiveResult, row_digests};
use crate::{
    Error, Result,
    backend::StoredSession,
    model::{Digest, LineKind, MetadataFile, Repository, Session, SessionKey},
    storage::{
        archive::{RowChain, SessionRecord, TransferHead, invalid},
        ingest::{IngestTarget, ReceivedFrom, ReceivedKind, ReceivedRows, SessionIngest},
        store::StoreContext,
    },
};

/// The most skipped lines that are recorded of a session.
const MOST_SKIPPED: usize = 1_000;
/// The longest name of a store or a version, in bytes.
const LONGEST_NAME: usize = 128;

/// The rows of one kind.
#[derive(Debug, Default)]
pub(super) struct KindRows {
    /// The rows of the sending store so far.
    pub(super) chain: RowChain,
    /// The sequence of the next row, until the first one is stored.
    pub(super) row: u32,
    /// The number of stored rows.
    pub(super) stored: u32,
    /// The digests of the lines to come, if they are known.
    pub(super) following: Vec<Digest>,
    /// Whether a line was compared with the stored rows.
    pub(super) is_begun: bool,
    /// Whether stored rows are replaced.
    pub(super) is_replacing: bool,
    /// Whether the lines differ from the stored rows, and are not stored as rows.
    pub(super) is_diverged: bool,
    /// The number of lines after the stored rows.
    pub(super) new: u64,
}

impl KindRows {
    /// The digests of the lines from the last one on.
    pub(super) fn lines_from_last(&self, before: RowChain) -> Vec<Digest> {
        let last = self.chain.count.saturating_sub(before.count).saturating_sub(1);
        self.following.get(last as usize..).unwrap_or_default().to_vec()
    }
}

/// The place where the rows of a kind go on; `None` if the rows before them are not stored.
pub(super) async fn start_of_rows(
    store: &StoreContext,
    key: &SessionKey,
    stored: Option<&StoredSession>,
    sent: Option<&ReceivedFrom>,
    head: &TransferHead,
    kind: LineKind,
) -> Result<Option<KindRows>> {
    let has = stored.map_or(0, |stored| match kind {
        LineKind::Message => stored.session.message_count,
        LineKind::Event => stored.session.event_count,
    });
    let following = head.following.as_ref().map(|lines| lines.digests(kind)).transpose()?.unwrap_or_default();
    let before = head.before.of_kind(kind);
    let rows = KindRows { chain: before, stored: has, following, ..KindRows::default() };
    if before.count == 0 {
        let is_first = before == RowChain::default();
        return if is_first { Ok(Some(rows)) } else { Err(invalid("the rows before are not zero rows")) };
    }
    let sent = sent.map(|sent| sent.of_kind(kind)).filter(|sent| sent.chain == before);
    if let Some(sent) = sent.filter(|sent| sent.is_diverged || sent.row <= has) {
        return Ok(Some(KindRows { row: sent.row, is_diverged: sent.is_diverged, ..rows }));
    }
    if before.count > has {
        return Ok(None);
    }
    let is_stored = RowChain::of(&row_digests(store, key, kind, before.count).await?) == before;
    Ok(is_stored.then_some(KindRows { row: before.count, ..rows }))
}

pub(super) fn conflict(key: &SessionKey, stored: Option<&StoredSession>, store: &str) -> ReceiveResult {
    let extent = stored.map(|stored| SessionExtent::of(stored, store));
    let nothing = || SessionExtent {
        session_id: key.session_id.clone(),
        version: String::new(),
        messages: 0,
        events: 0,
        sent: None,
        is_as_sent: false,
    };
    ReceiveResult::Conflict { extent: extent.unwrap_or_else(nothing) }
}

/// The session to ingest: as sent, or as it is stored.
pub(super) fn ingest_target(sent: &Session, stored: Option<&StoredSession>) -> IngestTarget {
    let session = stored.map_or(sent, |stored| &stored.session);
    IngestTarget {
        key: sent.key(),
        host_id: session.host_id.clone(),
        project_slug: session.project_slug.clone(),
    }
}

/// Sets everything about the session that is not in its lines.
pub(super) fn describe(ingest: &mut SessionIngest, record: SessionRecord) -> Result<()> {
    let SessionRecord { session, metadata_files, mut skipped, .. } = record;
    let file = |file: crate::storage::archive::FileRecord| {
        Ok::<_, Error>(MetadataFile { name: file.name, raw: file.raw.whole()? })
    };
    let files = metadata_files.into_iter().map(file).collect::<Result<Vec<_>>>()?;
    if !files.is_empty() {
        ingest.set_metadata(files)?;
    }
    ingest.set_source(session.source);
    if session.updated.is_plausible() {
        ingest.set_seen(session.updated);
    }
    if let Some(folder) = session.working_dir {
        ingest.set_working_dir(folder);
    }
    if let Some(repository) = session.repository {
        // An address may contain a password.
        ingest.set_repository(Repository::of_address(repository.as_str()).unwrap_or(repository));
    }
    skipped.truncate(MOST_SKIPPED);
    ingest.set_skipped(skipped);
    Ok(())
}

/// The state to remember until the end of the session: the store whose rows a new session has.
pub(super) fn received_at_first(
    mut received: ReceivedRows,
    head: &TransferHead,
    is_new: bool,
) -> ReceivedRows {
    if is_new {
        received.rows_of = Some(head.store.clone());
        received.copy_of = Some(head.store.clone());
        received.put(ReceivedFrom {
            store: head.store.clone(),
            version: None,
            about: Digest::default(),
            messages: ReceivedKind::default(),
            events: ReceivedKind::default(),
            superseded: Default::default(),
            edited: Default::default(),
            left: Digest::default(),
        });
    }
    received
}

/// The head of a transfer, which is stored with the session.
pub(super) fn checked_head(record: &mut SessionRecord) -> Result<TransferHead> {
    let Some(head) = record.transfer.take() else {
        return Err(invalid("the record of the session does not say after which rows it goes on"));
    };
    let is_name =
        |name: &str| (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_name(&head.store) && is_name(&head.version) {
        return Ok(*head);
    }
    Err(invalid("the record of the session does not name the sending store and its version"))
}
