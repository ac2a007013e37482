//! Asks before secrets are masked in a store for the first time.

use amplifier_session_storage::{
    Scope, SessionStorage,
    backend::SessionQuery,
    model::{Session, SessionKey},
    storage::{SessionSecrets, StoredSecret},
};

use super::confirm::ChangeQuestion;
use crate::{
    app::App,
    failure::Failure,
    progress::Bar,
    render::{
        secrets::certainties,
        text::{counted, fitted, grouped, one_line},
    },
};

/// At most this many secrets are shown.
const SHOWN: usize = 20;

/// Whether the secrets in stored lines may be masked, if that would happen for the first time. There is nothing to ask
/// about if no stored line has secrets.
pub(super) async fn is_confirmed(app: &App, storage: &SessionStorage, yes: bool) -> Result<bool, Failure> {
    if yes || !storage.secrets().is_first_masking().await? {
        return Ok(true);
    }
    let found = found(storage).await?;
    let secrets = || found.iter().flat_map(|session| &session.secrets);
    let count = secrets().count();
    if count == 0 {
        return Ok(true);
    }
    let what = format!(
        "{} in {} of the store ({})",
        counted(count as u64, "secret"),
        counted(found.len() as u64, "session"),
        certainties(secrets())
    );
    let program = app.program();
    let line = |secret: &StoredSecret| {
        let StoredSecret { certainty, rule, context, .. } = secret;
        fitted(&format!("  {certainty:<8}  {rule}  {}", one_line(context)), app.out.width)
    };
    let mut preview: Vec<String> = secrets().take(SHOWN).map(line).collect();
    if count > SHOWN {
        let more = grouped((count - SHOWN) as u64);
        preview.push(format!("  … and {more} more; `{program} secrets` lists all"));
    }
    let question = ChangeQuestion {
        change: format!("{what} would be masked for good"),
        preview,
        question: format!("Mask {what}? This can't be undone."),
        hint: &format!(
            "`{program} secrets` lists them; `{program} sync --redact mask --yes` masks them without asking"
        ),
    };
    question.is_confirmed(app)
}

/// The sessions with secrets that would be masked.
async fn found(storage: &SessionStorage) -> Result<Vec<SessionSecrets>, Failure> {
    let sessions = storage.sessions().all_sessions(SessionQuery::new(Scope::Everyone)).await?;
    let keys: Vec<SessionKey> = sessions.iter().map(Session::key).collect();
    let bar = Bar::new(keys.len() as u64, "searching for secrets {wide_bar} {pos}/{len} sessions");
    let mut found = storage.secrets().secrets_of_sessions(&keys, &mut || bar.add(1)).await?;
    for session in &mut found {
        session.secrets.retain(|secret| secret.certainty.is_masked());
    }
    found.retain(|session| !session.secrets.is_empty());
    Ok(found)
}
