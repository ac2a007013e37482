//! `edit` and `tag`: name, description and tags that a person sets.

use amplifier_session_storage::model::SessionField;
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

/// `edit`.
#[derive(Debug, Args)]
#[command(about = "Set the name or the description of a session")]
#[command(long_about = "\
Sets the name or the description of a session. A sync does not change what you set. --clear makes a field empty; --reset \
discards what you set, so that the field follows the session's files again. The title of a session without a name is its \
first user message. Use `tag` to set tags.")]
#[command(after_long_help = "\
Prints the new values. In a pipe, each field is one line of tab-separated fields: its name, its value, and whether it was \
set by hand.

Examples:
  amplifier-sessions edit 3a7c1e90 --name 'Payment retries'
  amplifier-sessions edit 3a7c1e90 --description 'Why cards were charged twice' --clear tags
  amplifier-sessions edit 3a7c1e90 --reset name --reset description")]
pub(crate) struct EditArgs {
    /// The session, by its address
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The new name
    #[arg(long, value_name = "TEXT", value_parser = given, allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// The new description
    #[arg(long, value_name = "TEXT", value_parser = given, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Make the field empty; may be repeated
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) clear: Vec<FieldArg>,
    /// Discard what was set, so that the field follows the session's files; may be repeated
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) reset: Vec<FieldArg>,
}

/// A field that a person can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FieldArg {
    Name,
    Description,
    Tags,
}

impl From<FieldArg> for SessionField {
    fn from(arg: FieldArg) -> Self {
        match arg {
            FieldArg::Name => Self::Name,
            FieldArg::Description => Self::Description,
            FieldArg::Tags => Self::Tags,
        }
    }
}

/// `tag`.
#[derive(Debug, Args)]
#[command(about = "Tag a session, or list tags")]
#[command(long_about = "\
With a session and tags, adds the tags; with --remove, removes tags; with neither, lists the tags of the session. Without a \
session, lists all tags in use, with the number of sessions that have each.

Once you have changed the tags of a session, a sync does not change them. `edit SESSION --reset tags` discards your changes. \
`sessions --tag` lists the sessions with a tag.")]
#[command(after_long_help = "\
In a pipe, each tag is one line; in the list of all tags, a tab and the number of sessions follow.

Exits with 3 if there are no tags.

Examples:
  amplifier-sessions tag
  amplifier-sessions tag 3a7c1e90 incident payments
  amplifier-sessions tag 3a7c1e90 --remove incident")]
pub(crate) struct TagArgs {
    /// The session, by its address; without it, all tags are listed
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Tags to add
    #[arg(value_name = "TAG", value_parser = something)]
    pub(crate) tags: Vec<String>,
    /// Tags to remove
    #[arg(long, value_name = "TAG", value_parser = something, num_args = 1.., requires = "session")]
    pub(crate) remove: Vec<String>,
}

/// [`something`], for a field that `--clear` can make empty.
fn given(text: &str) -> Result<String, String> {
    something(text).map_err(|problem| format!("{problem}; --clear makes a field empty"))
}

/// Text without the white space around it; an error if nothing is left.
fn something(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn tags_to_add_and_to_remove() {
        let tag = |typed: &[&str]| match Cli::try_parse_from([&["x", "tag"], typed].concat()) {
            Ok(Cli { command: Command::Tag(args), .. }) => Some((args.session, args.tags, args.remove)),
            _ => None,
        };
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(tag(&[]), Some((None, owned(&[]), owned(&[]))));
        assert_eq!(tag(&["s", " a ", "b"]), Some((Some("s".to_owned()), owned(&["a", "b"]), owned(&[]))));
        let both = tag(&["s", "a", "--remove", "b", "c"]);
        assert_eq!(both, Some((Some("s".to_owned()), owned(&["a"]), owned(&["b", "c"]))));
        assert_eq!(tag(&["--remove", "b"]), None);
        assert_eq!(tag(&["s", " "]), None);
    }

    #[test]
    fn fields_come_as_a_list() {
        let typed = ["x", "edit", "s", "--name", "- x ", "--clear", "tags,description"];
        let Command::Edit(edit) = Cli::parse_from(typed).command else { panic!("not an edit") };
        assert_eq!(edit.name.as_deref(), Some("- x"));
        assert_eq!(edit.clear, [FieldArg::Tags, FieldArg::Description]);
        assert!(Cli::try_parse_from(["x", "edit", "s", "--name", " "]).is_err());
    }
}
