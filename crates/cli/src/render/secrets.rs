//! Secrets in stored sessions.

use std::{cmp::Reverse, io};

use amplifier_session_api::operations::secrets::{FoundSecret, SecretsResponse, SessionWithSecrets};
use amplifier_session_storage::{
    content::Certainty,
    storage::{SecretIn, StoredSecret},
};

use super::{
    ids::{ShortIds, short},
    text::{counted, fitted, grouped, one_line},
};
use crate::out::Out;

/// Writes the secrets of sessions: on a terminal below the id of each, otherwise as lines of tab-separated fields, the
/// most certain first. Titles are not shown, because there may be a secret in them.
pub(crate) fn list(out: &mut Out, response: &SecretsResponse) -> io::Result<()> {
    let SecretsResponse { sessions, short_ids, .. } = response;
    if out.is_terminal() {
        return sessions.iter().try_for_each(|session| below_session(out, session, short_ids));
    }
    let mut all: Vec<(&SessionWithSecrets, &FoundSecret)> = Vec::new();
    for session in sessions {
        all.extend(session.secrets.iter().map(|found| (session, found)));
    }
    all.sort_by_key(|(_, found)| Reverse(found.secret.certainty));
    all.into_iter().try_for_each(|(session, found)| out.line(&tabbed(session, found)))
}

fn below_session(out: &mut Out, session: &SessionWithSecrets, short_ids: &ShortIds) -> io::Result<()> {
    let id = short(short_ids, &session.session_id);
    let project = one_line(session.project_slug.as_str());
    let heading = format!("{id}  {}  {project}", counted(session.count, "secret"));
    out.line(&fitted(&heading, out.width))?;
    let place = |FoundSecret { address, secret }: &FoundSecret| match (secret.superseded_at, secret.kind) {
        (Some(_), _) => format!("{address} --superseded"),
        (None, SecretIn::Metadata) => format!("{address} {}:{}", secret.file, secret.line),
        _ => address.clone(),
    };
    let places = session.secrets.iter().map(|found| place(found).len()).max().unwrap_or_default();
    let rules = session.secrets.iter().map(|found| found.secret.rule.len()).max().unwrap_or_default();
    for found in &session.secrets {
        let StoredSecret { certainty, rule, shown, context, .. } = &found.secret;
        let (place, context) = (place(found), one_line(context));
        let line = format!("  {certainty:<8}  {place:<places$}  {rule:<rules$}  {shown:<5}  {context}");
        out.line(&fitted(&line, out.width))?;
    }
    Ok(())
}

/// How many secrets there are of each certainty: `2 certain, 1 likely`.
pub(crate) fn certainties<'a>(secrets: impl Iterator<Item = &'a StoredSecret> + Clone) -> String {
    let of = |certainty: Certainty| {
        let count = secrets.clone().filter(|secret| secret.certainty == certainty).count() as u64;
        (count > 0).then(|| format!("{} {certainty}", grouped(count)))
    };
    Certainty::ALL.into_iter().rev().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn tabbed(session: &SessionWithSecrets, found: &FoundSecret) -> String {
    let FoundSecret { address, secret } = found;
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
        secret.certainty.to_string(),
        address.clone(),
        secret.superseded_at.map(|at| at.to_string()).unwrap_or_default(),
        one_line(&secret.context),
    ];
    fields.join("\t")
}
