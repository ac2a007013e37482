//! The list of keys.

/// The keys of each view, with their effects.
const KEYS: [(&str, &[(&str, &str)]); 3] = [
    (
        "Search",
        &[
            ("any character", "goes to the query"),
            ("↑ ↓ Ctrl-P Ctrl-N", "choose a result (also Ctrl-K, Ctrl-J)"),
            ("PgUp PgDn", "choose by pages"),
            ("Ctrl-Home Ctrl-End", "first result, last result"),
            ("Enter", "opens the session at the message; shows more"),
            ("Tab", "completes a field: role: project: tool: file: …"),
            ("Ctrl-F", "filters"),
            ("Ctrl-R", "changes the mode: hybrid, semantic, full-text"),
            ("Shift-↑ Shift-↓", "scroll the preview (also Alt-↑, Alt-↓)"),
            ("Ctrl-Y", "copies the text, the command or the address"),
            ("Ctrl-O", "opens the message in $EDITOR"),
            ("← → Ctrl-A Ctrl-E", "move in the query; with Ctrl or Alt by words"),
            ("Ctrl-W Ctrl-U", "delete a word, the query"),
            ("Ctrl-L", "draws the screen again"),
            ("F1, ? without a query", "this list"),
            ("Esc", "quits and prints the address of the result"),
            ("Ctrl-C", "quits"),
        ],
    ),
    (
        "List of filters or values",
        &[
            ("any character", "narrows the list"),
            ("↑ ↓ PgUp PgDn", "choose"),
            ("Enter", "takes it"),
            ("Tab", "takes it and stays, for further ones; or removes it"),
            ("Delete, Ctrl-X", "removes the filter"),
            ("Esc", "back"),
        ],
    ),
    (
        "Session",
        &[
            ("↑ ↓ k j", "scroll by a line"),
            ("PgUp PgDn b Space", "scroll by a page (also Ctrl-U, Ctrl-D)"),
            ("n p", "next hit, previous hit (also N, Ctrl-N, Ctrl-P)"),
            ("→ ← l h", "next message, previous message"),
            ("g G Home End", "first message, last message"),
            ("f", "tool output in full, or shortened"),
            ("y", "copies the text, the command or the address"),
            ("e", "opens the message in $EDITOR"),
            ("/ q Esc", "back to the search"),
            ("F1, ?", "this list"),
        ],
    ),
];

/// A line of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HelpLine {
    Title(&'static str),
    Key(&'static str, &'static str),
    Empty,
}

/// The list. The keys of the view with number `first` come first.
pub(super) fn lines(first: usize) -> Vec<HelpLine> {
    let mut lines = Vec::new();
    let (before, after) = KEYS.split_at(first.min(KEYS.len()));
    for (title, keys) in after.iter().chain(before) {
        if !lines.is_empty() {
            lines.push(HelpLine::Empty);
        }
        lines.push(HelpLine::Title(title));
        lines.extend(keys.iter().map(|(key, effect)| HelpLine::Key(key, effect)));
    }
    lines
}
