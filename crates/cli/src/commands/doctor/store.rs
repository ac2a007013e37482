//! Checks of the store, its index and its vectors.

use std::sync::Arc;

use amplifier_session_api::{
    Reach,
    operations::check_store::{CheckStoreRequest, FindingLevel, StoreFinding},
};
use amplifier_session_index::SearchIndex;
use amplifier_session_storage::{
    SessionStorage, StoreUrl,
    backend::{StorePlace, meta::STORE_ID},
    config::Entry,
    embedding::EmbeddingProvider,
    sync::{SyncOptions, pending},
};

use super::{Check, limits, machine};
use crate::{
    app::App, args::quoted, commands::store_folder, dates, failure::Failure, render::text::counted,
    roots::roots, server_store, words::because,
};

/// Checks the store, and everything that requires an open store.
pub(super) async fn check(app: &App, checks: &mut Vec<Check>) {
    match server(app).await {
        Ok(None) => {}
        Ok(Some(check)) => return checks.push(check),
        Err(failure) => return checks.push(Check::of("store", app, &failure)),
    }
    let url = match app.store_url() {
        Ok(url) => url,
        Err(failure) => return checks.push(Check::of("store", app, &failure)),
    };
    credentials(app, checks);
    let provider = provider(app, checks);
    let storage = match app.existing_storage(false).await {
        Ok(storage) => storage.with_embedding(provider),
        Err(failure) => {
            checks.push(Check::of("store", app, &failure));
            // The other checks may show why the store can't be opened.
            let model = provider.map(|provider| provider.space().clone());
            checks
                .extend(model.map(|space| in_words(app, &url, StoreFinding::Model { space, stored: None })));
            machine::check_files(app, &[], checks);
            return;
        }
    };
    match findings(app, &storage).await {
        Ok(findings) => checks.extend(findings.into_iter().map(|finding| in_words(app, &url, finding))),
        Err(failure) => checks.push(Check::of("schema", app, &failure)),
    }
    let places = storage.backend().info().places;
    checks.extend(index(app, &storage, &places).await);
    machine::check_files(app, &places, checks);
    checks.extend(limits::log(&places));
    checks.push(machine::clock(app, &places));
    #[cfg(feature = "watch")]
    super::machine::watch(app, &storage, checks).await;
}

/// Whether the server that has the store knows the token, if one has it.
async fn server(app: &App) -> Result<Option<Check>, Failure> {
    let user = server_store::user(app).await?;
    Ok(user.map(|user| Check::ok("store", format!("{}, for {}", app.global.store, user.user_id))))
}

async fn findings(app: &App, storage: &SessionStorage) -> Result<Vec<StoreFinding>, Failure> {
    let caller = app.caller()?;
    let request = CheckStoreRequest { scope: Reach::All };
    Ok(app.api(storage, &caller).check_store(&request).await?.response.findings)
}

/// A finding as a check, with a hint.
fn in_words(app: &App, url: &StoreUrl, finding: StoreFinding) -> Check {
    let status = finding.level();
    let is_ok = status == FindingLevel::Ok;
    let (name, text, hint) = match finding {
        StoreFinding::Writable => {
            let hint = store_folder::warning(app).map(|(warning, setting)| format!("{warning}; {setting}"));
            ("store", url.to_string(), hint)
        }
        StoreFinding::ReadOnly { reason } => {
            let hint = "make the file and its folder writable, or pass another --store";
            ("store", format!("{url} is read-only{}", because(reason.as_deref())), Some(hint.to_owned()))
        }
        StoreFinding::Schema { version, .. } if is_ok => ("schema", format!("version {version}"), None),
        StoreFinding::Schema { version, known } => {
            let hint = "use the program that wrote the store, or another --store";
            ("schema", format!("version {version:?}; this program knows {known}"), Some(hint.to_owned()))
        }
        StoreFinding::Model { space, stored: Some(stored) } if !is_ok => {
            let hint = format!(
                "pass the --embedding of the store's model, or create all vectors again with `{} embeddings rebuild`",
                app.program()
            );
            ("model", format!("{space}, but the vectors of the store are of {stored}"), Some(hint))
        }
        StoreFinding::Model { space, .. } => ("model", space.to_string(), None),
        StoreFinding::FromFuture { session_id, updated } => {
            let show = format!("`{} show {}`", app.program(), quoted(session_id.as_str()));
            let updated = dates::second(updated, &app.now);
            let hint = format!(
                "its files state a wrong time, or the clock of the machine that wrote them was wrong: see {show}"
            );
            let text = format!("session {session_id} changed at {updated}, which is in the future");
            ("times", text, Some(hint))
        }
    };
    Check { name, status, text, hint }
}

/// Folders in the root that hold a session whose stored rows come from another folder.
pub(super) async fn copies(app: &App, checks: &mut Vec<Check>) {
    let (Ok(storage), Ok(roots), Ok((identity, host))) =
        (app.existing_storage(false).await, roots(app, &[]), app.who())
    else {
        return;
    };
    let options = SyncOptions::new("", identity.user_id, host)
        .with_roots(roots)
        .with_captures(app.config.captures())
        .with_exclude(app.config.list("exclude"));
    let Ok(found) = pending(&storage, &options).await else { return };
    let Some(first) = found.copies.first() else { return };
    let others = match found.copies.len() {
        1 => String::new(),
        more => format!(" and {}", counted(more as u64 - 1, "more folder")),
    };
    let text = format!("{}{others} changed nothing: another folder has the session", first.display());
    let hint = format!("`{} verify` lists them; remove or rename what is not needed", app.program());
    checks.push(Check::warning("copies", text, hint));
}

/// The search index beside the store.
async fn index(app: &App, storage: &SessionStorage, places: &[StorePlace]) -> Option<Check> {
    let folder = places.iter().find(|place| place.what == "index")?.files.first()?;
    let entries = storage.backend().meta().await.ok()?;
    let status = SearchIndex::open(folder).status();
    let store = entries.get(STORE_ID).and_then(|id| u128::from_str_radix(id, 16).ok()).map(u128::to_be_bytes);
    let hint = format!("`{} sync` rebuilds it; until then, searches are slower", app.program());
    let folder = folder.display();
    Some(match status.text {
        None => Check::warning("index", format!("{folder} is missing, or not from this version"), hint),
        Some(mark) if Some(mark.store) != store => {
            Check::warning("index", format!("{folder} belongs to another store"), hint)
        }
        Some(_) => Check::ok("index", folder.to_string()),
    })
}

/// The embedding provider. Without one, adds a check that says why.
fn provider(app: &App, checks: &mut Vec<Check>) -> Option<Arc<dyn EmbeddingProvider>> {
    const NAME: &str = "model";
    match app.embedding() {
        Ok(Some(provider)) => return Some(provider),
        Ok(None) => checks.push(Check::ok(NAME, "none: searches are by words only")),
        Err(failure) => {
            let mut check = Check::of(NAME, app, &failure);
            check.hint.get_or_insert_with(|| "--embedding local needs no configuration".to_owned());
            checks.push(check);
        }
    }
    None
}

/// Whether keys are set for the services in use.
fn credentials(app: &App, checks: &mut Vec<Check>) {
    let embedding = app.config.text("embedding").unwrap_or("local");
    let store = app.store_url().ok().map(|url| url.backend().scheme());
    let services = [
        ("openai", embedding == "openai", "openai."),
        ("azure-openai", embedding == "azure-openai", "azure_openai."),
        ("cosmos", store == Some("cosmos"), "cosmos."),
    ];
    for (service, _, prefix) in services.into_iter().filter(|(_, is_used, _)| *is_used) {
        let secrets = app
            .config
            .entries()
            .iter()
            .filter(|entry| entry.setting.is_secret() && entry.setting.key.starts_with(prefix));
        let (set, unset): (Vec<_>, Vec<_>) = secrets.partition(|entry| entry.shown().is_some());
        if set.is_empty() && unset.is_empty() {
            continue;
        }
        checks.push(if set.is_empty() {
            Check::warning(
                "credentials",
                format!("{service}: {} is not set", names(&unset)),
                "set it, unless the service needs no key or you sign in another way",
            )
        } else {
            Check::ok("credentials", format!("{service}: {} is set", names(&set)))
        });
    }
}

/// The variables of settings, for a sentence.
fn names(entries: &[&Entry]) -> String {
    entries.iter().map(|entry| entry.setting.variable).collect::<Vec<_>>().join(" and ")
}
