//! The newest messages that match a query, however well, and the messages that use tools.

use std::collections::HashSet;

use amplifier_session_core::{
    Result,
    backend::{Candidates, DatedMessage, Messages as _, TextQuery},
    model::{ContentType, Message, MessageRef},
    text::{TermPlaces, bm25::DocumentTerms},
};
use serde::Deserialize;

use crate::{
    documents::{OfMessage, TextDocument, kind},
    query::Select,
    scope,
    search::{cut_notice, texts},
    store::{CosmosBackend, Store},
};

/// Number of messages that are read at a time.
const READ_AT_ONCE: usize = 500;

/// A text without its terms.
#[derive(Debug, Deserialize)]
struct TextPlace {
    #[serde(flatten)]
    of: OfMessage,
    content_type: ContentType,
}

/// The newest messages with a text that matches a query. Their documents are read, because those of their texts do not have
/// the tools and where the time comes from.
pub(crate) async fn newest(backend: &CosmosBackend, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
    let store = &backend.0;
    let (sessions, found) =
        tokio::join!(scope::sessions(store, &query.scope, &query.filter.sessions), matching(store, query));
    let (sessions, (mut texts, is_cut)) = (sessions?, found?);
    texts.retain(|text| {
        sessions.contains_key(&text.of.user_id_session_id)
            && query.filter.admits_message(text.of.role, text.of.ts)
            && query.content_types.contains(text.content_type)
    });
    let mut places: Vec<_> = texts.iter().map(|text| (text.of.ts, text.of.message_ref())).collect();
    places.sort_by(|a, b| b.cmp(a));
    // A message may match with several texts.
    places.dedup();
    let mut newest = Vec::new();
    for page in places.chunks(READ_AT_ONCE) {
        let page: Vec<MessageRef> = page.iter().map(|(_, message_ref)| message_ref.clone()).collect();
        let messages = backend.messages_at(&page).await?;
        let users = messages.iter().filter(|message| uses_tools(message, query));
        newest.extend(users.map(DatedMessage::from));
        if newest.len() >= query.limit {
            break;
        }
    }
    DatedMessage::keep_newest(&mut newest, query.limit);
    Ok(Candidates::new(newest).with_notice(cut_notice(store, is_cut)))
}

/// Those of the messages that use the tools of the query, until there are as many as its limit.
pub(crate) async fn users_of_tools(
    backend: &CosmosBackend,
    query: &TextQuery,
    messages: &[MessageRef],
) -> Result<HashSet<MessageRef>> {
    let mut users = HashSet::new();
    for page in messages.chunks(READ_AT_ONCE) {
        let read = backend.messages_at(page).await?;
        let using = read.iter().filter(|message| uses_tools(message, query));
        users.extend(using.map(Message::message_ref));
        if users.len() >= query.limit {
            break;
        }
    }
    Ok(users)
}

fn uses_tools(message: &Message, query: &TextQuery) -> bool {
    query.tools.is_empty() || query.has_tools(&message.line().used_tools())
}

/// The texts that match a query by their terms, and whether there may be others.
async fn matching(store: &Store, query: &TextQuery) -> Result<(Vec<TextPlace>, bool)> {
    if query.terms.is_empty() {
        let select = Select::of(kind::TEXT).of_user(&query.scope).matching(&query.filter);
        let types: Vec<ContentType> = query.content_types.iter().collect();
        let select = select.with("ARRAY_CONTAINS(@, c.content_type)", types);
        let fields =
            "c.user_id_session_id, c.user_id, c.session_id, c.sequence, c.role, c.ts, c.content_type";
        return Ok((store.messages.all(select.fields(fields)).await?, false));
    }
    let (documents, is_cut) = texts(store, query).await?;
    Ok((matching_of(documents, query), is_cut))
}

/// The texts of documents that match. A long text has several documents.
fn matching_of(documents: Vec<TextDocument>, query: &TextQuery) -> Vec<TextPlace> {
    struct Found {
        of: OfMessage,
        terms: DocumentTerms,
        places: TermPlaces,
        is_placed: bool,
    }
    let mut found: std::collections::HashMap<(MessageRef, ContentType), Found> = Default::default();
    for text in documents {
        let text = text.fields;
        let one = found.entry((text.of.message_ref(), text.content_type)).or_insert_with(|| Found {
            of: text.of.clone(),
            terms: DocumentTerms { length: text.length, frequencies: vec![0; query.terms.len()] },
            places: TermPlaces::new(query.terms.len()),
            is_placed: true,
        });
        text.count(&query.terms, &mut one.terms);
        if !query.phrases.is_empty() {
            one.is_placed &= text.find_places(&query.terms, &mut one.places);
        }
    }
    let matches =
        |one: &Found| query.is_matched_by(&one.terms) && (!one.is_placed || query.has_phrases(&one.places));
    let found = found.into_iter().filter(|(_, one)| matches(one));
    found.map(|((_, content_type), one)| TextPlace { of: one.of, content_type }).collect()
}
