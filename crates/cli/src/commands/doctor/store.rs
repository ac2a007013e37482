//! Checks of the store, its index and its vectors.

use amplifier_session_index::SearchIndex;
use amplifier_session_storage::{
    Scope, SessionStorage,
    backend::{
        SessionQuery, StoreInfo, StorePlace,
        meta::{SCHEMA_VERSION, STORE_ID, VERSION},
    },
    config::Entry,
    sync::{SyncOptions, pending},
};

use super::{Check, limits, machine};
use crate::{app::App, commands::store_folder, failure::Failure, render::text::counted, roots::roots};

/// Checks the store, and everything that requires an open store.
pub(super) async fn check(app: &App, checks: &mut Vec<Check>) {
    let url = match app.store_url() {
        Ok(url) => url,
        Err(failure) => return checks.push(Check::of("store", app, &failure)),
    };
    let storage = match app.existing_storage(false).await {
        Ok(storage) => storage,
        Err(failure) => {
            checks.push(Check::of("store", app, &failure));
            // The other checks may show why the store can't be opened.
            model(app, None, checks).await;
            credentials(app, checks);
            machine::check_files(app, &[], checks);
            return;
        }
    };
    let info = storage.backend().info();
    checks.push(match &info.read_only {
        None => {
            let hint = store_folder::warning(app).map(|(warning, setting)| format!("{warning}; {setting}"));
            Check { hint, ..Check::ok("store", url.to_string()) }
        }
        Some(reason) => {
            let hint = "make the file and its folder writable, or pass another --store";
            Check::warning("store", format!("{url} is read-only: {reason}"), hint)
        }
    });
    checks.extend(entries(app, &storage, &info).await);
    model(app, Some(&storage), checks).await;
    credentials(app, checks);
    machine::check_files(app, &info.places, checks);
    checks.extend(limits::log(&info.places));
    checks.push(machine::clock(app, &info.places));
    let newest = SessionQuery::new(Scope::Everyone).with_limit(1);
    if let Ok(sessions) = storage.sessions().search_sessions(&newest).await {
        checks.extend(machine::times(app, sessions.first()));
    }
    #[cfg(feature = "watch")]
    super::machine::watch(app, &storage, checks).await;
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

/// The schema and the index.
async fn entries(app: &App, storage: &SessionStorage, info: &StoreInfo) -> Vec<Check> {
    let entries = match storage.backend().meta().await {
        Ok(entries) => entries,
        Err(error) => return vec![Check::of("schema", app, &Failure::from(error))],
    };
    let version = entries.get(VERSION).map(String::as_str).unwrap_or_default();
    let schema = if version == SCHEMA_VERSION.to_string() {
        Check::ok("schema", format!("version {version}"))
    } else {
        Check::failed(
            "schema",
            format!("version {version:?}; this program knows {SCHEMA_VERSION}"),
            "use the program that wrote the store, or another --store",
        )
    };
    let place = info.places.iter().find(|place| place.what == "index");
    let index = place.and_then(|place| index(app, place, entries.get(STORE_ID).map(String::as_str)));
    std::iter::once(schema).chain(index).collect()
}

/// The search index beside the store.
fn index(app: &App, place: &StorePlace, store: Option<&str>) -> Option<Check> {
    let folder = place.files.first()?;
    let status = SearchIndex::open(folder).status();
    let store = store.and_then(|id| u128::from_str_radix(id, 16).ok()).map(u128::to_be_bytes);
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

/// Whether the model is available, and made the vectors of the store.
async fn model(app: &App, storage: Option<&SessionStorage>, checks: &mut Vec<Check>) {
    const NAME: &str = "model";
    let provider = match app.embedding() {
        Ok(Some(provider)) => provider,
        Ok(None) => return checks.push(Check::ok(NAME, "none: searches are by words only")),
        Err(failure) => {
            let mut check = Check::of(NAME, app, &failure);
            check.hint.get_or_insert_with(|| "--embedding local needs no configuration".to_owned());
            return checks.push(check);
        }
    };
    let space = provider.space().clone();
    let stored = match storage {
        Some(storage) => storage.vectors().embedding_space().await,
        None => Ok(None),
    };
    checks.push(match stored {
        Err(error) => Check::of(NAME, app, &Failure::from(error)),
        Ok(Some(stored)) if stored != space => Check::failed(
            NAME,
            format!("{space}, but the vectors of the store are of {stored}"),
            format!(
                "pass the --embedding of the store's model, or create all vectors again with `{} rebuild`",
                app.program()
            ),
        ),
        Ok(_) => Check::ok(NAME, space.to_string()),
    });
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
