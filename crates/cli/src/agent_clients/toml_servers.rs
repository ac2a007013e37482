//! Servers in TOML. Everything else in the text stays as it is: comments, order, spaces and line ends.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{ConfigProblem, SERVER, ServerCommand, ServerEntry};

/// The table with the servers.
const KEY: &str = "mcp_servers";

/// See [`super::ConfigFormat::entry`].
pub(super) fn entry(text: &str) -> Result<Option<ServerEntry>, ConfigProblem> {
    let document = parse(text)?;
    let Some(servers) = document.get(KEY) else { return Ok(None) };
    let servers = servers.as_table_like().ok_or_else(no_table)?;
    Ok(servers.get(SERVER).map(|entry| command(entry).map_or(ServerEntry::Other, ServerEntry::Command)))
}

/// See [`super::ConfigFormat::with_entry`].
pub(super) fn with_entry(
    text: &str,
    command: &ServerCommand,
    replace: bool,
) -> Result<String, ConfigProblem> {
    let mut document = parse(text)?;
    let servers = document.entry(KEY).or_insert_with(implicit_table);
    let is_inline = servers.is_inline_table();
    let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
    let (program, args) = (Value::from(&command.program), command.args.iter().collect::<Array>());
    match servers.get_mut(SERVER).filter(|_| !replace).and_then(Item::as_table_like_mut) {
        Some(entry) => {
            set(entry, "command", program);
            set(entry, "args", args.into());
        }
        None if is_inline => {
            let entry = InlineTable::from_iter([("command", program), ("args", args.into())]);
            servers.insert(SERVER, Item::Value(entry.into()));
        }
        None => {
            let entry = Table::from_iter([("command", program), ("args", args.into())]);
            servers.insert(SERVER, Item::Table(entry));
        }
    }
    Ok(with_changes(text, &document.to_string()))
}

/// See [`super::ConfigFormat::without_entry`].
pub(super) fn without_entry(text: &str) -> Result<String, ConfigProblem> {
    let mut document = parse(text)?;
    if let Some(servers) = document.get_mut(KEY) {
        let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
        if servers.remove(SERVER).is_none() {
            return Ok(text.to_owned());
        }
        if servers.is_empty() {
            document.remove(KEY);
        }
    }
    Ok(with_changes(text, &document.to_string()))
}

fn parse(text: &str) -> Result<DocumentMut, ConfigProblem> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        match error.span().and_then(|span| text.get(..span.start)) {
            Some(before) => ConfigProblem::at(before.matches('\n').count() + 1, message),
            None => ConfigProblem::new(message),
        }
    })
}

fn no_table() -> ConfigProblem {
    ConfigProblem::new(format!("`{KEY}` is not a table"))
}

/// A table that has no header of its own.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Sets a value, and keeps the comment after the one that was there.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => {
            *value.decor_mut() = there.decor().clone();
            *there = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

/// The command of an entry.
fn command(entry: &Item) -> Option<ServerCommand> {
    let entry = entry.as_table_like()?;
    let program = entry.get("command")?.as_str()?.to_owned();
    let args = match entry.get("args") {
        Some(args) => {
            args.as_array()?.iter().map(|arg| Some(arg.as_str()?.to_owned())).collect::<Option<_>>()?
        }
        None => Vec::new(),
    };
    Some(ServerCommand { program, args })
}

/// `text` with the changes of `edited`, the text of the edited document: that one has other line ends.
/// Comments above removed lines stay, because they may belong to the lines before them.
fn with_changes(text: &str, edited: &str) -> String {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let new: Vec<&str> = edited.split_inclusive('\n').collect();
    let is_same =
        |(a, b): &(&&str, &&str)| a.trim_end_matches(['\r', '\n']) == b.trim_end_matches(['\r', '\n']);
    let before = old.iter().zip(&new).take_while(is_same).count();
    let (old_rest, new_rest) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(is_same).count();
    let (removed, rest) = old_rest.split_at(old_rest.len() - after);
    let added = new_rest.get(..new_rest.len() - after).unwrap_or_default();
    let is_comment = |line: &&str| line.trim_start().starts_with('#');
    let above = removed.iter().take_while(|line| is_comment(line) || line.trim().is_empty()).count();
    let above = removed.get(..above).unwrap_or_default();
    let kept = above.iter().rposition(is_comment).and_then(|last| above.get(..=last)).unwrap_or_default();

    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut result: String = old.iter().take(before).chain(kept).copied().collect();
    let goes_on = !added.is_empty() || !rest.is_empty();
    if goes_on && !result.is_empty() && !result.ends_with('\n') {
        result.push_str(end);
    }
    for line in added {
        result.push_str(line.trim_end_matches(['\r', '\n']));
        result.push_str(end);
    }
    result.extend(rest.iter().copied());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> ServerCommand {
        ServerCommand { program: r"C:\a\amplifier-sessions".to_owned(), args: vec!["mcp".to_owned()] }
    }

    fn installed(text: &str) -> String {
        let edited = with_entry(text, &ours(), false).unwrap();
        assert_eq!(entry(&edited).unwrap(), Some(ServerEntry::Command(ours())), "{edited}");
        edited
    }

    const ENTRY: &str = "[mcp_servers.sessions]\ncommand = 'C:\\a\\amplifier-sessions'\nargs = [\"mcp\"]\n";

    #[test]
    fn an_empty_file_gets_the_entry() {
        assert_eq!(installed(""), ENTRY);
        assert_eq!(without_entry(ENTRY).unwrap(), "");
    }

    #[test]
    fn comments_spaces_and_line_ends_stay() {
        for text in [
            "# top\r\na   = 1 # x\r\n\r\n[mcp_servers.x]\r\ncommand = 'y'\r\n\r\n# about z\r\n[z]\r\nb = '''\r\n#x\r\n'''\r\n# end\r\n",
            "a = 1\r\nb = 2\n[[c]]\r\nd = 1\n",
            "mcp_servers.x.command = \"y\"\nb=1\n",
            "[mcp_servers]\nx = { command = \"y\" }\n\n[t]\n",
            "a = 1\n",
        ] {
            let edited = installed(text);
            let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
            let kept = lines(&edited);
            assert!(lines(text).iter().all(|line| kept.contains(line)), "{edited:?}");
            assert_eq!(without_entry(&edited).unwrap(), text, "{edited}");
        }
    }

    #[test]
    fn a_last_line_without_an_end_gets_one() {
        assert_eq!(installed("a = 1"), format!("a = 1\n\n{ENTRY}"));
    }

    #[test]
    fn an_inline_table_gets_an_inline_entry() {
        let edited = installed("mcp_servers = { x = { command = \"y\" } } # mine\n");
        assert!(edited.contains("{ command = \"y\" } , sessions = { command = "), "{edited}");
        assert!(edited.ends_with(" # mine\n"), "{edited}");
    }

    #[test]
    fn comments_above_the_entry_stay() {
        let text = "[mcp_servers.x]\ncommand = 'y'\n# args = 1\n\n[mcp_servers.sessions]\ncommand = 'z'\n\
                    [mcp_servers.sessions.env]\nA = '1'\n\n[t]\nb = 1\n";
        let expected = "[mcp_servers.x]\ncommand = 'y'\n# args = 1\n\n[t]\nb = 1\n";
        assert_eq!(without_entry(text).unwrap(), expected);
        let replaced = with_entry(text, &ours(), true).unwrap();
        assert!(replaced.contains("# args = 1\n\n[mcp_servers.sessions]\ncommand = 'C:"), "{replaced}");
    }

    #[test]
    fn dotted_keys_and_inline_entries_are_updated_and_removed() {
        for text in [
            "mcp_servers.sessions = { command = \"x\", args = [\"y\"] }\nq = 1\n",
            "mcp_servers.sessions.command = \"x\"\nq = 1\nmcp_servers.sessions.args = [\n  \"y\",\n]\n",
            "q = 1\n[mcp_servers]\nsessions.command = \"x\"\nsessions.args = []\n",
        ] {
            let edited = installed(text);
            assert!(!edited.contains("\"x\"") && edited.contains("q = 1\n"), "{edited}");
            assert_eq!(without_entry(&edited).unwrap(), "q = 1\n", "{edited}");
        }
    }

    #[test]
    fn an_updated_entry_keeps_what_else_it_has() {
        let text = "[mcp_servers.sessions]\ncommand = \"old\" # ours\nstartup_timeout_sec = 20\n";
        let edited = installed(text);
        assert!(edited.contains("amplifier-sessions' # ours\nstartup_timeout_sec = 20\n"), "{edited}");
        assert_eq!(with_entry(text, &ours(), true).unwrap(), ENTRY);
    }

    #[test]
    fn other_entries_are_no_commands() {
        for value in ["{ url = \"https://x\" }", "{ command = 1 }", "1"] {
            assert_eq!(
                entry(&format!("mcp_servers.sessions = {value}")),
                Ok(Some(ServerEntry::Other)),
                "{value}"
            );
        }
    }

    #[test]
    fn wrong_texts_are_problems() {
        let problem = |text: &str| entry(text).unwrap_err().to_string();
        assert!(problem("a = 1\nb =\n").starts_with("line 2: "), "{}", problem("a = 1\nb =\n"));
        assert_eq!(problem("mcp_servers = 1\n"), "`mcp_servers` is not a table");
        assert_eq!(problem("[[mcp_servers]]\n"), "`mcp_servers` is not a table");
    }
}
