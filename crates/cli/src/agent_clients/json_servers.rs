//! Servers in JSON. Everything else in the text stays as it is: comments, order, indentation and line ends.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode},
};

use super::{ConfigProblem, SERVER, ServerCommand, ServerEntry};

/// Comments and commas at the end are what editors and clients add to JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// See [`super::ConfigFormat::entry`].
pub(super) fn entry(text: &str, key: &str) -> Result<Option<ServerEntry>, ConfigProblem> {
    let (_, object) = parse(text)?;
    let Some(servers) = object.map(|object| servers(&object, key)).transpose()?.flatten() else {
        return Ok(None);
    };
    Ok(property(&servers, SERVER)?
        .map(|entry| command(&entry).map_or(ServerEntry::Other, ServerEntry::Command)))
}

/// See [`super::ConfigFormat::with_entry`].
pub(super) fn with_entry(
    text: &str,
    key: &str,
    command: &ServerCommand,
    has_type: bool,
    replace: bool,
) -> Result<String, ConfigProblem> {
    let (root, object) = parse(text)?;
    let object = object.unwrap_or_else(|| root.object_value_or_set());
    let servers = servers(&object, key)?.unwrap_or_else(|| object.object_value_or_set(key));
    let args = CstInputValue::from(command.args.clone());
    match property(&servers, SERVER)? {
        Some(entry) if !replace => {
            let entry = entry.object_value_or_set();
            set(&entry, "command", command.program.clone().into());
            set(&entry, "args", args);
        }
        entry => {
            let mut fields =
                vec![("command".to_owned(), command.program.clone().into()), ("args".to_owned(), args)];
            if has_type {
                fields.insert(0, ("type".to_owned(), "stdio".into()));
            }
            match entry {
                Some(entry) => entry.set_value(fields.into()),
                None => drop(servers.append(SERVER, fields.into())),
            }
        }
    }
    Ok(root.to_string())
}

/// See [`super::ConfigFormat::without_entry`].
pub(super) fn without_entry(text: &str, key: &str) -> Result<String, ConfigProblem> {
    let (root, object) = parse(text)?;
    if let Some(object) = object
        && let Some(servers) = servers(&object, key)?
        && let Some(entry) = property(&servers, SERVER)?
    {
        entry.remove();
        let is_empty = servers.properties().is_empty() && !servers.children().iter().any(CstNode::is_comment);
        if let Some(servers) = object.get(key).filter(|_| is_empty) {
            servers.remove();
        }
    }
    Ok(root.to_string())
}

/// The text, and the object that it contains. An empty text contains nothing.
fn parse(text: &str) -> Result<(CstRootNode, Option<CstObject>), ConfigProblem> {
    let root = CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| ConfigProblem::at(error.line_display(), in_a_sentence(&error.kind().to_string())))?;
    match root.value() {
        None => Ok((root, None)),
        Some(value) => match value.as_object() {
            Some(object) => Ok((root, Some(object))),
            None => Err(ConfigProblem::new("it does not contain a JSON object")),
        },
    }
}

/// The object with the servers.
fn servers(object: &CstObject, key: &str) -> Result<Option<CstObject>, ConfigProblem> {
    let Some(servers) = property(object, key)? else { return Ok(None) };
    match servers.object_value() {
        Some(servers) => Ok(Some(servers)),
        None => Err(ConfigProblem::new(format!("\"{key}\" is not an object"))),
    }
}

/// The property of this name. Clients do not agree which of two they use.
fn property(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, ConfigProblem> {
    let mut found =
        object.properties().into_iter().filter(|found| found.decoded_name().as_deref() == Some(name));
    let first = found.next();
    match found.next() {
        Some(_) => Err(ConfigProblem::new(format!("\"{name}\" occurs twice"))),
        None => Ok(first),
    }
}

fn set(object: &CstObject, name: &str, value: CstInputValue) {
    match object.get(name) {
        Some(property) => property.set_value(value),
        None => drop(object.append(name, value)),
    }
}

/// The command of an entry.
fn command(entry: &CstObjectProp) -> Option<ServerCommand> {
    let entry = entry.object_value()?;
    let text = |node: CstNode| node.as_string_lit()?.decoded_value().ok();
    let program = text(entry.get("command")?.value()?)?;
    let args = match entry.get("args") {
        Some(args) => args.array_value()?.elements().into_iter().map(text).collect::<Option<_>>()?,
        None => Vec::new(),
    };
    Some(ServerCommand { program, args })
}

fn in_a_sentence(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "mcpServers";

    fn ours() -> ServerCommand {
        ServerCommand { program: r"C:\a\amplifier-sessions".to_owned(), args: vec!["mcp".to_owned()] }
    }

    fn installed(text: &str) -> String {
        let edited = with_entry(text, KEY, &ours(), false, false).unwrap();
        assert_eq!(entry(&edited, KEY).unwrap(), Some(ServerEntry::Command(ours())), "{edited}");
        edited
    }

    #[track_caller]
    fn assert_problem(text: &str, problem: &str) {
        let found = [entry(text, KEY).unwrap_err(), with_entry(text, KEY, &ours(), false, true).unwrap_err()];
        let found = found.map(|found| found.to_string());
        assert_eq!(found, [problem, problem], "{text}");
    }

    #[test]
    fn an_empty_file_gets_the_entry() {
        let expected = "{\n  \"mcpServers\": {\n    \"sessions\": {\n      \"command\": \"C:\\\\a\\\\amplifier-sessions\",\n      \
                        \"args\": [\"mcp\"]\n    }\n  }\n}\n";
        for text in ["", "{}\n", "\n"] {
            assert_eq!(installed(text).trim_start(), expected, "{text:?}");
        }
    }

    #[test]
    fn indentation_line_ends_comments_and_numbers_stay() {
        let text = "{\r\n\t// mine\r\n\t\"a\": 1.0e2, /* b */\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {\"command\": \"y\"}, // x\r\n\t}\r\n}";
        let edited = installed(text);
        assert!(edited.contains("\r\n\t\t\"sessions\": {\r\n\t\t\t\"command\""), "{edited}");
        assert!(!edited.replace("\r\n", "").contains('\n'), "{edited:?}");
        assert_eq!(without_entry(&edited, KEY).unwrap(), text);
    }

    #[test]
    fn removal_restores_the_text() {
        for text in [
            "{\n  \"a\": {},\n  \"b\": [1, 2]\n}\n",
            "{\n    \"mcpServers\": {\n        \"x\": {}\n    },\n    \"b\": null\n}",
            "{\n  \"mcpServers\": {\n    // about x\n    \"x\": {}\n  }\n}\n",
        ] {
            let edited = installed(text);
            assert_eq!(without_entry(&edited, KEY).unwrap(), text, "{edited}");
        }
    }

    #[test]
    fn a_group_with_comments_stays() {
        let text = "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n";
        assert!(without_entry(&installed(text), KEY).unwrap().contains("// none yet"));
    }

    #[test]
    fn an_updated_entry_keeps_what_else_it_has() {
        let text = "{\"mcpServers\": {\"sessions\": {\"command\": \"old\", \"env\": {\"A\": \"1\"}, \"args\": [\"x\"]}}}";
        let edited = installed(text);
        assert!(edited.contains("\"env\": {\"A\": \"1\"}"), "{edited}");
        let replaced = with_entry(text, KEY, &ours(), true, true).unwrap();
        assert!(!replaced.contains("env") && replaced.contains("\"type\": \"stdio\""), "{replaced}");
    }

    #[test]
    fn other_entries_are_no_commands() {
        for value in
            ["{\"url\": \"https://x\"}", "{\"command\": 1}", "{\"command\": \"x\", \"args\": [1]}", "null"]
        {
            let text = format!("{{\"mcpServers\": {{\"sessions\": {value}}}}}");
            assert_eq!(entry(&text, KEY), Ok(Some(ServerEntry::Other)), "{value}");
        }
    }

    #[test]
    fn wrong_texts_are_problems() {
        assert_problem("{\n\"a\": 1\n\"b\": 2}", "line 2: expected comma");
        assert_problem("{\n  'a': 1}", "line 2: single-quoted strings are not allowed");
        assert_problem("[]", "it does not contain a JSON object");
        assert_problem("{\"mcpServers\": null}", "\"mcpServers\" is not an object");
        assert_problem("{\"mcpServers\": {}, \"mcpServers\": {}}", "\"mcpServers\" occurs twice");
        assert_problem("{\"mcpServers\": {\"sessions\": {}, \"sessions\": {}}}", "\"sessions\" occurs twice");
    }
}
