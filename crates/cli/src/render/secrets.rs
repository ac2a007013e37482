//! Secrets in stored sessions.

use std::{cmp::Reverse, io};

use amplifier_session_storage::{
    content::Certainty,
    storage::{SecretIn, SessionSecrets, StoredSecret},
};

use super::{
    ids::{ShortIds, address, short},
    text::{counted, fitted, grouped, one_line},
};
use crate::out::Out;

/// A secret and its session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSecret<'a> {
    pub(crate) session: &'a SessionSecrets,
    pub(crate) secret: &'a StoredSecret,
}

/// The addresses of secrets, for `show`.
pub(crate) struct Addresses(pub(crate) ShortIds);

impl Addresses {
    /// The address of the message or event. That of a metadata file and of a superseded line is the session's.
    pub(crate) fn of(&self, found: FoundSecret<'_>) -> String {
        let session = short(&self.0, &found.session.session_id);
        match (found.secret.kind, found.secret.sequence) {
            _ if found.secret.superseded_at.is_some() => session.to_owned(),
            (SecretIn::Message, Some(sequence)) => address(session, sequence),
            (SecretIn::Event, Some(sequence)) => format!("{session}_evt_{sequence}"),
            _ => session.to_owned(),
        }
    }
}

/// Writes the secrets of sessions: on a terminal below the id of each, otherwise as lines of tab-separated fields, the
/// most certain first. Titles are not shown, because there may be a secret in them.
pub(crate) fn list(out: &mut Out, sessions: &[SessionSecrets], addresses: &Addresses) -> io::Result<()> {
    if out.is_terminal() {
        return sessions.iter().try_for_each(|session| below_session(out, session, addresses));
    }
    let mut all: Vec<FoundSecret<'_>> = Vec::new();
    for session in sessions {
        all.extend(session.secrets.iter().map(|secret| FoundSecret { session, secret }));
    }
    all.sort_by_key(|found| Reverse(found.secret.certainty));
    all.into_iter().try_for_each(|found| out.line(&tabbed(found, addresses)))
}

fn below_session(out: &mut Out, session: &SessionSecrets, addresses: &Addresses) -> io::Result<()> {
    let id = short(&addresses.0, &session.session_id);
    let project = one_line(session.project_slug.as_str());
    let heading = format!("{id}  {}  {project}", counted(session.count, "secret"));
    out.line(&fitted(&heading, out.width))?;
    let place = |secret| {
        let address = addresses.of(FoundSecret { session, secret });
        match (secret.superseded_at, secret.kind) {
            (Some(_), _) => format!("{address} --superseded"),
            (None, SecretIn::Metadata) => format!("{address} {}:{}", secret.file, secret.line),
            _ => address,
        }
    };
    let places = session.secrets.iter().map(|secret| place(secret).len()).max().unwrap_or_default();
    let rules = session.secrets.iter().map(|secret| secret.rule.len()).max().unwrap_or_default();
    for secret in &session.secrets {
        let StoredSecret { certainty, rule, shown, .. } = secret;
        let (place, context) = (place(secret), one_line(&secret.context));
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

fn tabbed(found: FoundSecret<'_>, addresses: &Addresses) -> String {
    let FoundSecret { session, secret } = found;
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
        addresses.of(found),
        secret.superseded_at.map(|at| at.to_string()).unwrap_or_default(),
        one_line(&secret.context),
    ];
    fields.join("\t")
}
