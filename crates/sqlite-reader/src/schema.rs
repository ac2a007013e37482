//! The columns in the statement that created a table.

/// The names of the stored columns in a statement that creates a table.
#[must_use]
pub fn column_names(create: &str) -> Vec<String> {
    let inner =
        create.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map_or("", |(inner, _)| inner);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for character in inner.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if character != ',' || depth > 0 => part.push(character),
            _ => parts.push(String::new()),
        }
    }
    let name = |part: &String| {
        let first = part.split_whitespace().next()?.trim_matches('"');
        let is_column = !["UNIQUE", "CHECK", "PRIMARY", "FOREIGN", "CONSTRAINT"]
            .iter()
            .any(|word| first.split('(').next().is_some_and(|first| first.eq_ignore_ascii_case(word)));
        (is_column && !part.contains(" AS (")).then(|| first.to_owned())
    };
    parts.iter().filter_map(name).collect()
}
