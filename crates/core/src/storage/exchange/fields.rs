//! The fields that a person set: the newest value wins.
//!
//! A store does not know when a field was set, so the value wins that was set after the last transfer. If both stores
//! have set a field since then, the one wins that is sent last.

use std::collections::BTreeMap;

use crate::{
    Result,
    model::{Digest, MetadataFile, Session, SessionField},
    storage::{SessionEdit, ingest::digest_of_field, line_masker::LineMasker},
};

/// The digests of the fields that a person set.
pub(super) fn edited_fields(session: &Session) -> BTreeMap<SessionField, Digest> {
    session.edited.iter().map(|field| (*field, digest_of_field(session, *field))).collect()
}

/// The session with the fields that a person set in the sending store since `before`, its last transfer.
pub(in crate::storage) fn with_sent_fields(
    session: &Session,
    files: &[MetadataFile],
    sent: &Session,
    before: &BTreeMap<SessionField, Digest>,
    masker: &LineMasker,
) -> Result<Session> {
    let mut edit = SessionEdit::default();
    for (field, digest) in edited_fields(sent) {
        if before.get(&field) == Some(&digest) {
            continue;
        }
        edit = match field {
            SessionField::Name => edit.set_name(masker.mask_text(sent.name.clone())?.as_deref()),
            SessionField::Description => {
                edit.set_description(masker.mask_text(sent.description.clone())?.as_deref())
            }
            SessionField::Tags => edit.set_tags(sent.tags.iter().cloned()),
        };
    }
    // The person has discarded the value.
    for field in before.keys().filter(|field| !sent.edited.contains(field)) {
        edit = edit.reset(*field);
    }
    if edit.is_empty() { Ok(session.clone()) } else { edit.apply_to(session, files) }
}
