//! The remotes in the configuration file of a Git repository.

/// Name and first address of each remote, in the order of the file. Included files, and the aliases of `insteadOf`, are not
/// read.
pub(super) fn remotes(config: &str) -> Vec<(String, String)> {
    let config = config.replace("\\\r\n", "").replace("\\\n", "");
    let (mut remotes, mut section) = (Vec::<(String, String)>::new(), None);
    for line in config.lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(header) {
            (section, line) = (remote(header), rest.trim());
        }
        if let (Some(remote), Some(address)) = (&section, address(line))
            && remotes.iter().all(|(other, _)| other != remote)
        {
            remotes.push((remote.clone(), address));
        }
    }
    remotes
}

/// The header of a section up to `]`, and what follows it.
fn header(text: &str) -> Option<(&str, &str)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.find(|c| {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        is_quoted ^= c == '"' && !was_escaped;
        c == ']' && !is_quoted
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// The name in the header `remote "NAME"`.
fn remote(header: &str) -> Option<String> {
    let (section, name) = header.split_once('"')?;
    let name = name.trim_end().strip_suffix('"')?;
    section.trim().eq_ignore_ascii_case("remote").then(|| name.replace('\\', ""))
}

/// The value in `url = VALUE`.
fn address(line: &str) -> Option<String> {
    let (name, value) = line.split_once('=')?;
    name.trim().eq_ignore_ascii_case("url").then(|| unquoted(value)).filter(|value| !value.is_empty())
}

/// A value without quotes and comments.
fn unquoted(value: &str) -> String {
    let (mut text, mut is_quoted, mut chars) = (String::new(), false, value.trim().chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => text.extend(chars.next()),
            '#' | ';' if !is_quoted => break,
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_found_in_a_configuration() {
        let config = r#"
            ; [remote "comment"]
            [core]
                url = https://other.org/no/remote
            [remote "a]b\"c"] URL = "https://a.org/x;y" # comment
                url = https://second.org/x/y
            [Remote   "origin"]
                fetch = +refs/heads/*:refs/remotes/origin/* \
            url = https://continued.org/x/y
                pushurl = https://push.org/x/y
                url=git@github.com:acme/app.git ; comment
            [remote]
                url = https://nameless.org/x/y
            [remote "empty"]
                url =
            [branch "main"]
                remote = origin
        "#;
        let found = remotes(config);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, address)| (name.as_str(), address.as_str())).collect();
        assert_eq!(
            found,
            [("a]b\"c", "https://a.org/x;y"), ("origin", "git@github.com:acme/app.git")],
            "{config}"
        );
        for damaged in ["", "[", "[remote \"x\"", "url = x", "[remote \"x\"]\nurl", "\0\u{fffd}=]["] {
            assert_eq!(remotes(damaged), [], "{damaged}");
        }
    }
}
