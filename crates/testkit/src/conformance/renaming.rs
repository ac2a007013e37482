//! Renaming users.

use crate::prelude::*;

fn user(name: &str) -> UserId {
    crate::user(name)
}

/// Everything of a renamed user is found under the new name in every mode, and nothing under the old name.
pub async fn everything_moves_to_the_new_name(store: Store) {
    let (own, other) = (target("s"), target_of("ben", "p", "s"));
    store.storage.users().pin_user(&own.key.user_id).await.unwrap();
    for one in [&own, &other] {
        store.sync(one, vec![lines::user("where is the quokka"), lines::assistant("in the garden")]).await;
        store.sync_events(one, vec![lines::logger_event("tool:pre")]).await;
    }
    store.storage.update_index().await.unwrap();
    store
        .storage
        .sessions()
        .update_session(&own.key, &SessionEdit::default().set_name("Quokka"))
        .await
        .unwrap();

    let new = user("ana.new");
    assert_eq!(store.storage.users().rename_user(&own.key.user_id, &new).await.unwrap(), 1);
    assert_eq!(store.storage.users().pinned_user().await.unwrap(), Some(new.clone()));
    for mode in [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid] {
        let options = SearchOptions::new("quokka").with_mode(mode).with_min_similarity(0.3);
        let found = async |scope: Scope| {
            let results = store.storage.search().search_transcripts(&scope, &options).await.unwrap().results;
            let mut owners: Vec<String> = results.iter().map(|result| result.user_id.to_string()).collect();
            owners.dedup();
            owners
        };
        assert_eq!(found(Scope::from(new.clone())).await, ["ana.new"], "{mode}");
        assert!(found(Scope::from(own.key.user_id.clone())).await.is_empty(), "{mode}");
        assert_eq!(found(Scope::from(user("ben"))).await, ["ben"], "{mode}");
    }
    let scope = Scope::from(new.clone());
    let session = store.storage.sessions().get_session(&scope, &own.key.session_id).await.unwrap().unwrap();
    assert_eq!((session.name.as_deref(), session.user_id.as_str()), (Some("Quokka"), "ana.new"));
    let lines =
        store.storage.reading().get_transcript_lines(&scope, &own.key.session_id, None, 9).await.unwrap();
    assert_eq!(lines.len(), 2);
    let events = store.storage.reading().search_events(&scope, &EventSearchOptions::default()).await.unwrap();
    assert_eq!(events.iter().map(|event| event.user_id.as_str()).collect::<Vec<_>>(), ["ana.new"]);
    let of_new = store.storage.vectors().vector_content_types(&scope, &own.key.session_id).await.unwrap();
    assert_eq!(of_new.len(), 2);
}

/// Renaming a user to one that has a session with the same id is a conflict and changes nothing.
pub async fn users_with_the_same_session_id_are_not_merged(store: Store) {
    for one in [target("s"), target("only-ana"), target_of("ben", "p", "s")] {
        store.sync(&one, vec![lines::user("hello")]).await;
    }
    let error = store.storage.users().rename_user(&target("s").key.user_id, &user("ben")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    for one in [target("s"), target("only-ana"), target_of("ben", "p", "s")] {
        assert_eq!(store.stored(&one).await.session.message_count, 1);
    }
}

/// Renaming a user without sessions, or to the same name, changes nothing.
pub async fn renames_without_effect_change_nothing(store: Store) {
    store.sync(&target("s"), vec![lines::user("hello")]).await;
    assert_eq!(store.storage.users().rename_user(&user("nobody"), &user("somebody")).await.unwrap(), 0);
    let same = target("s").key.user_id;
    store.storage.users().rename_user(&same, &same).await.unwrap();
    assert_eq!(store.stored(&target("s")).await.session.message_count, 1);
}
