//! Secrets in stored sessions.

use std::io;

use amplifier_session_storage::storage::{SessionSecrets, StoredSecret};

use super::{
    ids::{ShortIds, short},
    text::{counted, fitted, one_line},
};
use crate::out::Out;

/// Writes the secrets of a session: on a terminal below its id, otherwise as lines of tab-separated fields. Its title is not
/// shown, because there may be a secret in it.
pub(crate) fn session(out: &mut Out, session: &SessionSecrets, short_ids: &ShortIds) -> io::Result<()> {
    if !out.is_terminal() {
        return session.secrets.iter().try_for_each(|secret| out.line(&tabbed(session, secret)));
    }
    let id = short(short_ids, &session.session_id);
    let project = one_line(session.project_slug.as_str());
    let heading = format!("{id}  {}  {project}", counted(session.count, "secret"));
    out.line(&fitted(&heading, out.width))?;
    let place = |secret: &StoredSecret| match secret.sequence {
        Some(sequence) => format!("{}#{sequence}", secret.file),
        None => format!("{}:{}", secret.file, secret.line),
    };
    let places = session.secrets.iter().map(|secret| place(secret).len()).max().unwrap_or_default();
    let rules = session.secrets.iter().map(|secret| secret.rule.len()).max().unwrap_or_default();
    for secret in &session.secrets {
        let (place, rule, (start, end)) = (place(secret), &secret.rule, secret.span);
        let line = format!("  {place:<places$}  {rule:<rules$}  {:<5}  {start}..{end}", secret.shown);
        out.line(&fitted(&line, out.width))?;
    }
    Ok(())
}

fn tabbed(session: &SessionSecrets, secret: &StoredSecret) -> String {
    let (start, end) = secret.span;
    let fields = [
        session.session_id.to_string(),
        one_line(session.project_slug.as_str()),
        one_line(&secret.file),
        secret.sequence.map(|sequence| sequence.to_string()).unwrap_or_default(),
        secret.line.to_string(),
        secret.rule.clone(),
        start.to_string(),
        end.to_string(),
        secret.shown.clone(),
    ];
    fields.join("\t")
}
