//! Where a value is in relation to its name.

/// The form in which a name and its value appear together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchContext {
    /// `NAME=value`, as in an env file or after `export`.
    Variable,
    /// `name=value`.
    Direct,
    /// `name: value`, `name = value`.
    Loose,
    /// `--name value`.
    Flag,
    /// `the name is value`.
    Sentence,
    /// Next to each other, as in a table, in arguments or in a comparison: the value must look like a secret.
    Beside,
}
