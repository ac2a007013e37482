//! The files that the tool calls of a session read and changed.
//!
//! Only tools that are made for reading or changing files count, by their names. A command in a shell, a search or a list
//! of a folder name paths too, but not what happens to the files.
//!
//! | tool | files |
//! | --- | --- |
//! | a name in [`READING`] | each path in the arguments is read |
//! | a name in [`CHANGING`] or [`PATCHING`] | each path in the arguments is changed: written, moved or deleted |
//! | a name in [`PATCHING`] | so is each path in the patch |
//! | a name in [`EDITORS`] | the path is read if the argument `command` is `view`, or else changed |
//!
//! A path is listed relative to the folder of the session, if it is in it. A call whose result is an error used no file;
//! it is counted apart. A call without a result counts, because a session may have ended before it was recorded.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MessageLine, ToolCall};

/// Tools that read files, as [`ToolCall::plain_name`] writes them.
const READING: [&str; 8] = [
    "read",
    "readfile",
    "readtextfile",
    "readmanyfiles",
    "readmultiplefiles",
    "view",
    "viewimage",
    "notebookread",
];

/// Tools that change files.
const CHANGING: [&str; 16] = [
    "write",
    "writefile",
    "createfile",
    "edit",
    "editfile",
    "multiedit",
    "editnotebook",
    "notebookedit",
    "replace",
    "replacestringinfile",
    "inserteditintofile",
    "searchreplace",
    "strreplace",
    "deletefile",
    "movefile",
    "renamefile",
];

/// Tools that change the files in a patch.
const PATCHING: [&str; 2] = ["applypatch", "patch"];

/// Tools that do either, depending on their argument `command`.
const EDITORS: [&str; 2] = ["strreplaceeditor", "strreplacebasededittool"];

/// Arguments with a path, or with a list of paths.
pub(super) const PATHS: [&str; 13] = [
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "target_file",
    "target_notebook",
    "filename",
    "file",
    "source",
    "destination",
    "paths",
    "file_paths",
];

/// Beginnings of the lines of a patch that name a file (the format of `apply_patch`).
const IN_PATCH: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The use of a file by a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileUse {
    /// It was written, edited, moved or deleted.
    Changed,
    /// It was read.
    Read,
}

impl FileUse {
    /// The name in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Read => "read",
        }
    }
}

/// A file that a session read, or one that it changed. A file of which it did both is listed twice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedFile {
    /// The path: relative to the folder of the session if it is in it, or else as the calls state it.
    pub path: String,
    /// Whether it was read or changed.
    pub used: FileUse,
    /// The number of calls that did so.
    pub times: u32,
    /// The number of calls that failed.
    pub failed: u32,
    /// The first message with such a call; with one that failed, if all did.
    pub first: u32,
    /// The last such message.
    pub last: u32,
}

impl ToolCall<'_> {
    /// The files that the call reads or changes, each once, if it is a call of a tool for that.
    #[must_use]
    pub fn files(&self) -> Option<(FileUse, Vec<&str>)> {
        let name = self.plain_name();
        let name = name.as_str();
        let (is_patch, is_editor) = (PATCHING.contains(&name), EDITORS.contains(&name));
        let is_view = || self.arguments.get("command").and_then(Value::as_str) == Some("view");
        let used = if READING.contains(&name) || is_editor && is_view() {
            FileUse::Read
        } else if CHANGING.contains(&name) || is_patch || is_editor {
            FileUse::Changed
        } else {
            return None;
        };
        let named = PATHS.iter().filter_map(|name| self.arguments.get(*name)).flat_map(paths_in);
        let patched =
            self.texts().into_iter().filter(|_| is_patch).flat_map(str::lines).filter_map(path_in_patch);
        let mut files: Vec<&str> = Vec::new();
        for path in named.chain(patched).map(str::trim) {
            if !path.is_empty() && !files.contains(&path) {
                files.push(path);
            }
        }
        Some((used, files))
    }
}

fn paths_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(path) => vec![path],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn path_in_patch(line: &str) -> Option<&str> {
    IN_PATCH.iter().find_map(|beginning| line.strip_prefix(beginning))
}

/// A call that uses a file.
#[derive(Debug)]
struct FileCall {
    path: String,
    used: FileUse,
    sequence: u32,
    has_failed: bool,
}

/// Collects the files of a session from its messages, in order.
#[derive(Debug)]
pub(crate) struct FileUses {
    /// The folder of the session.
    folder: Option<String>,
    calls: Vec<FileCall>,
    /// The places in `calls` of those without a result so far, by the id of the tool call.
    waiting: HashMap<String, Vec<usize>>,
}

impl FileUses {
    /// For a session that works in `folder`.
    pub(crate) fn new(folder: Option<String>) -> Self {
        Self { folder, calls: Vec::new(), waiting: HashMap::new() }
    }

    /// Adds the message with this number.
    pub(crate) fn add(&mut self, sequence: u32, line: &MessageLine) {
        for call in line.called_tools() {
            let Some((used, paths)) = call.files() else { continue };
            let places = self.calls.len()..self.calls.len() + paths.len();
            for path in paths {
                let path = listed(path, self.folder.as_deref());
                self.calls.push(FileCall { path, used, sequence, has_failed: false });
            }
            // Some programs use the same ids again: a result belongs to the last call.
            self.waiting.extend(call.id.map(|id| (id.to_owned(), places.collect())));
        }
        for (id, has_failed) in line.tool_results() {
            for place in self.waiting.remove(id).unwrap_or_default() {
                if let Some(call) = self.calls.get_mut(place) {
                    call.has_failed = has_failed;
                }
            }
        }
    }

    /// The files: those that were changed, then those that were read, each in order of the first message.
    pub(crate) fn finish(self) -> Vec<UsedFile> {
        let mut files: BTreeMap<(FileUse, String), UsedFile> = BTreeMap::new();
        for FileCall { path, used, sequence, has_failed } in self.calls {
            let (first, last) = (sequence, sequence);
            let new = UsedFile { path: path.clone(), used, times: 0, failed: 0, first, last };
            let file = files.entry((used, path)).or_insert(new);
            if has_failed {
                file.failed += 1;
                if file.times == 0 {
                    file.last = sequence;
                }
            } else {
                if file.times == 0 {
                    file.first = sequence;
                }
                file.times += 1;
                file.last = sequence;
            }
        }
        let mut files: Vec<UsedFile> = files.into_values().collect();
        files.sort_by_key(|file| (file.used, file.first));
        files
    }
}

/// A path as it is listed: without `.` and `..`, and relative to `folder` if it is in it.
fn listed(path: &str, folder: Option<&str>) -> String {
    let is_windows = has_drive(path) || folder.is_some_and(has_drive);
    let path = without_dots(path, is_windows);
    let Some(folder) = folder.map(|folder| without_dots(folder, is_windows)) else { return path };
    let is_outside = path == ".." || path.starts_with("../");
    let whole = if is_outside { without_dots(&format!("{folder}/{path}"), is_windows) } else { path };
    match whole.strip_prefix(&folder).and_then(|inside| inside.strip_prefix('/')) {
        Some(inside) => inside.to_owned(),
        None => whole,
    }
}

/// Whether a path begins with a drive of Windows.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

fn without_dots(path: &str, is_windows: bool) -> String {
    let slashes = if is_windows { path.replace('\\', "/") } else { path.to_owned() };
    let root = if slashes.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in slashes.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if !root.is_empty() => {}
            part => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests;
