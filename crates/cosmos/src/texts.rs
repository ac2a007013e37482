//! Making the documents of texts anew, when the rules for what the text of a line is are others.

use std::collections::HashSet;

use amplifier_session_core::{
    Result,
    model::{Place, SessionKey},
    text::Analyzer,
};
use serde::Deserialize;

use crate::{
    client::{Operation, Within},
    documents::{TextDocument, kind, texts_of},
    ids, messages, queries,
    store::Store,
};

/// A document of a text that is there.
#[derive(Debug, Deserialize)]
struct StoredText {
    id: String,
}

/// Makes the documents of the texts of messages anew, and removes those of texts that there are no longer.
pub(crate) async fn renew(store: &Store, key: &SessionKey, sequences: &[u32]) -> Result<()> {
    /// So many messages are read at a time.
    const MESSAGES: usize = 100;
    let _turn = store.session_lock(key).await;
    let partition = ids::partition(key);
    let mut analyzer = Analyzer::new();
    for sequences in sequences.chunks(MESSAGES) {
        let places: Vec<Place> = sequences.iter().map(|of| Place::new(key.clone(), *of)).collect();
        let messages = messages::at(store, &places).await?;
        let query = queries::rows_at(kind::TEXT, "c.id", sequences);
        let there: Vec<StoredText> = store.messages.all(Within::Partition(&partition), query).await?;
        let texts: Vec<TextDocument> =
            messages.iter().flat_map(|message| texts_of(message, &partition, &mut analyzer)).collect();
        let ids: HashSet<&str> = texts.iter().map(|text| text.id.as_str()).collect();
        let mut operations: Vec<Operation> = texts.iter().map(Operation::upsert).collect::<Result<_>>()?;
        let gone = there.into_iter().filter(|text| !ids.contains(text.id.as_str()));
        operations.extend(gone.map(|text| Operation::Delete { id: text.id, etag: None }));
        store.messages.write_many(&partition, operations).await?;
    }
    Ok(())
}
