//! The configuration file of a client.

use std::{env::consts::EXE_SUFFIX, fs, io, path::PathBuf};

use super::{AgentClient, ConfigProblem, SERVER, ServerCommand, ServerEntry};
use crate::{app::App, failure::Failure, file, program};

/// The mark with which some editors begin a file in UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The configuration of a client, as it was read.
#[derive(Debug)]
pub(crate) struct ClientConfig {
    pub(crate) client: &'static AgentClient,
    pub(crate) file: PathBuf,
    /// `None` if there is no file.
    text: Option<String>,
    /// The entry of the server.
    pub(crate) entry: Option<ServerEntry>,
}

impl ClientConfig {
    /// Reads the user's configuration of `client`. A file that does not exist is empty.
    ///
    /// # Errors
    ///
    /// If the file can't be read or has another format. It is not known then whether the client has the server.
    pub(crate) fn read(app: &App, client: &'static AgentClient) -> Result<Self, Failure> {
        let Some(file) = client.file(&app.environment) else {
            let message = format!("the configuration file of {} is unknown on this machine", client.title);
            let hint =
                format!("`{} mcp install {} --print` shows the entry to add", program::name(), client.name);
            return Err(Failure::failed(message, hint));
        };
        let unreadable = |reason: String| {
            Failure::failed(
                format!("can't read {}: {reason}", file.display()),
                by_hand("correct the file", client),
            )
        };
        let text = match fs::read(&file) {
            Ok(bytes) => {
                Some(String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let entry = client
            .format
            .entry(without_mark(text.as_deref()))
            .map_err(|problem: ConfigProblem| unreadable(problem.to_string()))?;
        Ok(Self { client, file, text, entry })
    }

    /// The text with the entry. `replace` also replaces the entry of another server.
    pub(crate) fn with_entry(&self, command: &ServerCommand, replace: bool) -> Result<String, Failure> {
        let text = self.client.format.with_entry(without_mark(self.text.as_deref()), command, replace);
        self.checked(text, Some(ServerEntry::Command(command.clone())))
    }

    /// The text without the entry.
    pub(crate) fn without_entry(&self) -> Result<String, Failure> {
        self.checked(self.client.format.without_entry(without_mark(self.text.as_deref())), None)
    }

    /// The part of a configuration with this entry, without anything else.
    pub(crate) fn only_entry(client: &AgentClient, command: &ServerCommand) -> Result<String, Failure> {
        client
            .format
            .with_entry("", command, false)
            .map_err(|problem| Failure::without_hint(problem.to_string()))
    }

    /// The edited text, if it has the expected entry.
    fn checked(
        &self,
        text: Result<String, ConfigProblem>,
        expected: Option<ServerEntry>,
    ) -> Result<String, Failure> {
        let cannot_edit = |problem: ConfigProblem| {
            let message = format!("can't edit {}: {problem}", self.file.display());
            Failure::failed(message, by_hand(&format!("change `{SERVER}` yourself"), self.client))
        };
        let text = text.map_err(cannot_edit)?;
        match self.client.format.entry(&text) {
            Ok(entry) if entry == expected => Ok(text),
            Ok(_) => Err(cannot_edit(ConfigProblem::new("the result would be wrong"))),
            Err(problem) => Err(cannot_edit(problem)),
        }
    }

    /// Replaces the file, or creates it.
    ///
    /// # Errors
    ///
    /// If it can't be written, or has changed since it was read. It is unchanged then.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        if fs::read(&self.file).ok().as_deref() != self.text.as_deref().map(str::as_bytes) {
            let message = format!("{} was changed by another program meanwhile", self.file.display());
            return Err(Failure::failed(message, format!("close {}, and try again", self.client.title)));
        }
        let mark =
            self.text.as_deref().filter(|text| text.starts_with(BYTE_ORDER_MARK)).map(|_| BYTE_ORDER_MARK);
        let text = [mark.unwrap_or_default(), text].concat();
        let hint = by_hand("make it writable", self.client);
        file::rewrite(&self.file, &text, &hint)
    }
}

fn without_mark(text: Option<&str>) -> &str {
    let text = text.unwrap_or_default();
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// A hint: what to do, or to edit the file oneself.
fn by_hand(first: &str, client: &AgentClient) -> String {
    let program = program::name();
    format!("{first}; `{program} mcp install {} --print` shows what the entry should be", client.name)
}

/// The path of a program in the folders of `PATH`.
pub(crate) fn program_on_path(app: &App, name: &str) -> Option<PathBuf> {
    let folders = app.environment.os_variable("PATH")?;
    let ending = if name.ends_with(EXE_SUFFIX) { "" } else { EXE_SUFFIX };
    std::env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(format!("{name}{ending}")))
        .find(|path| path.is_file())
}
