//! The query syntax of `search` and `timeline`: the meaning of fields, together with the options beside them.

use amplifier_session_storage::{
    model::{Repository, Role, SessionId, SessionKey},
    search::{Field, FieldName, SearchFilter, SearchOptions, TextConditions, TypedQuery},
    text::composed,
};

use crate::{
    app::{App, StoreReader},
    args::QueryArgs,
    dates::{self, PeriodEnd},
    failure::{Failure, say},
};

/// The session of the agent that runs this program.
const CURRENT_SESSION: &str = "AMPLIFIER_SESSION_ID";

/// A query as it was typed.
pub(super) struct Typed {
    query: TypedQuery,
    exact: Option<String>,
    files: Vec<String>,
    role: Option<Role>,
    since: Option<amplifier_session_storage::model::Timestamp>,
    until: Option<amplifier_session_storage::model::Timestamp>,
}

impl Typed {
    /// Reads the query, and the fields that need no store.
    pub(super) fn read(app: &App, args: &QueryArgs) -> Result<Self, Failure> {
        let text = args.text();
        let exact = args.exact.then(|| text.clone());
        let query = if args.exact || args.plain { TypedQuery::plain(text) } else { TypedQuery::parse(&text) };
        let mut typed =
            Self { query, exact, files: args.files.clone(), role: None, since: None, until: None };
        for field in typed.query.fields.clone() {
            let name = field.name.as_str();
            if field.is_excluded && field.name != FieldName::Session {
                let message = format!("-{name}: is not supported; only sessions can be excluded");
                return Err(Failure::wrong_use(message, plain_hint(app)));
            }
            let read = |failure: Failure| unresolved(app, &field, &failure);
            match field.name {
                FieldName::Role => {
                    let role: Role = field
                        .value
                        .parse()
                        .map_err(|error| unresolved(app, &field, &Failure::from(error)))?;
                    let other = typed.role.or(args.role).filter(|other| *other != role);
                    if let Some(other) = other {
                        return Err(contradiction(app, &field, args.role.is_some(), other.as_str()));
                    }
                    typed.role = Some(role);
                }
                FieldName::After => {
                    typed.since = Some(dates::parse(&field.value, PeriodEnd::Since, &app.now).map_err(read)?)
                }
                // Unlike `--until`, `before:` does not include the day itself.
                FieldName::Before => {
                    typed.until = Some(dates::parse(&field.value, PeriodEnd::Since, &app.now).map_err(read)?)
                }
                FieldName::File => typed.files.push(field.value.clone()),
                _ => {}
            }
        }
        Ok(typed)
    }

    /// The options with the query and the fields that need no store.
    pub(super) fn applied(&self, mut options: SearchOptions) -> SearchOptions {
        let tools = self.values(FieldName::Tool);
        options.query.clone_from(&self.query.text);
        options.conditions =
            TextConditions::from(&self.query).with_exact(self.exact.clone()).with_tools(tools);
        let has_words = !self.query.text.trim().is_empty();
        if !has_words {
            options.conditions.files.clone_from(&self.files);
        }
        options.newest_without_words =
            !has_words && (!self.files.is_empty() || !self.query.fields.is_empty());
        let filter = &mut options.filter;
        filter.role = filter.role.or(self.role);
        filter.since = filter.since.max(self.since);
        filter.until = filter.until.into_iter().chain(self.until).min();
        let tags = self.values(FieldName::Tag).map(|tag| composed(tag.trim()).into_owned());
        filter.sessions.tags.extend(tags);
        options
    }

    /// The options with the options and fields that are looked up in the store.
    pub(super) async fn resolved(
        &self,
        app: &App,
        reader: &StoreReader,
        options: SearchOptions,
        args: &QueryArgs,
    ) -> Result<SearchOptions, Failure> {
        let mut filter = narrowed(app, reader, &options, args).await?;
        for field in &self.query.fields {
            let failed = |failure: Failure| unresolved(app, field, &failure);
            match (field.name, field.is_excluded) {
                (FieldName::Project, _) => {
                    let project = app.project(reader, Some(&field.value)).await.map_err(failed)?;
                    if let Some(other) = &filter.sessions.project
                        && Some(other) != project.project.as_ref()
                    {
                        let is_option = args.filter.project.is_some();
                        return Err(contradiction(app, field, is_option, other.as_str()));
                    }
                    filter.sessions = filter.sessions.within(&project);
                }
                (FieldName::Repo, _) => {
                    let found = app.repositories(reader, &field.value).await.map_err(failed)?;
                    let other = filter.sessions.repositories.replace(found.clone());
                    if let Some(other) = other.filter(|other| *other != found) {
                        let is_option = args.filter.repo.repo.is_some();
                        return Err(contradiction(app, field, is_option, Repository::most_telling(&other)));
                    }
                }
                (FieldName::Session, is_excluded) => {
                    let found = reader.find_session(&field.value).await;
                    let session = found.map_err(|error| failed(Failure::from(error)))?;
                    if is_excluded {
                        filter.sessions.without.insert(session.key());
                    } else {
                        match &filter.sessions.session {
                            Some(other) if *other != session.session_id => {
                                let is_option = args.session.is_some();
                                return Err(contradiction(app, field, is_option, other.as_str()));
                            }
                            _ => filter = filter.with_session(session.session_id),
                        }
                    }
                }
                _ => {}
            }
        }
        for address in &args.not_sessions {
            filter.sessions.without.insert(reader.find_session(address).await?.key());
        }
        if filter.sessions.session.is_none()
            && let Some(current) = current_session(app)
        {
            filter.sessions.without.insert(current);
        }
        for file in &self.files {
            // Only within the sessions of the files before, so that a session must have all of them.
            let found =
                reader.storage.search().sessions_that_touched(&reader.scope, &filter.sessions, file).await?;
            if found.sessions.is_empty() {
                say("note", &format!("no session has a tool call on {file}"));
            }
            if let Some(notice) = &found.notice {
                say("note", &format!("sessions with {file}: {notice}"));
            }
            filter.sessions.only = Some(found.sessions);
        }
        Ok(options.with_filter(filter))
    }

    fn values(&self, name: FieldName) -> impl Iterator<Item = String> + '_ {
        let fields = self.query.fields.iter().filter(move |field| field.name == name);
        fields.map(|field| field.value.clone())
    }
}

/// The filter with the requested project and session.
async fn narrowed(
    app: &App,
    reader: &StoreReader,
    options: &SearchOptions,
    args: &QueryArgs,
) -> Result<SearchFilter, Failure> {
    let mut filter = options.filter.clone();
    filter.sessions = filter.sessions.within(&args.filter.project(app, reader).await?);
    Ok(match &args.session {
        Some(session) => {
            let session = reader.find_session(session).await?;
            filter.with_session(session.session_id)
        }
        None => filter,
    })
}

/// The session of the agent that runs this program.
fn current_session(app: &App) -> Option<SessionKey> {
    let id = app.environment.variable(CURRENT_SESSION).filter(|id| !id.is_empty())?;
    let user = app.who().ok()?.0.user_id;
    Some(SessionKey::new(user, SessionId::new(id).ok()?))
}

/// The failure for two values of something that a message has only once. `other` comes from the option of the same name
/// if that is given, or else from an earlier field.
fn contradiction(app: &App, field: &Field, is_option: bool, other: &str) -> Failure {
    let Field { name, value, .. } = field;
    let name = name.as_str();
    let other = if is_option { format!("--{name} {other}") } else { format!("{name}:{other}") };
    Failure::wrong_use(format!("{name}:{value} conflicts with {other}"), plain_hint(app))
}

fn unresolved(app: &App, field: &Field, failure: &Failure) -> Failure {
    let Field { name, value, .. } = field;
    let why = failure.message();
    Failure::wrong_use(format!("{}:{value}: {why}", name.as_str()), plain_hint(app))
}

fn plain_hint(app: &App) -> String {
    format!("to search for this as text, add --plain; `{} search --help` explains the syntax", app.program())
}
