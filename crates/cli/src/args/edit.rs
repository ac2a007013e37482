//! `edit` and `tag`: what a person says about a session.

use amplifier_session_storage::model::SessionField;
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

/// `edit`.
#[derive(Debug, Args)]
#[command(about = "Set the name or the description of a session")]
#[command(long_about = "\
Sets the name or the description of a session. What you set stays: no sync changes it again, whatever the session's \
files say. --clear says that there is to be none; --reset takes back what you set, so that the field follows the \
session's files again. Without a name a session goes by its first user message. Tags are set with `tag`.")]
#[command(after_long_help = "\
Prints what is set then. In a pipe that is one line for each field: its name, its value, and whether it was set by hand, \
separated by tabs.

Examples:
  amplifier-sessions edit 3a7c1e90 --name 'Payment retries'
  amplifier-sessions edit 3a7c1e90 --description 'Why cards were charged twice' --clear tags
  amplifier-sessions edit 3a7c1e90 --reset name --reset description")]
pub(crate) struct EditArgs {
    /// The session, by its address
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// Give it this name
    #[arg(long, value_name = "TEXT", value_parser = given, allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// Give it this description
    #[arg(long, value_name = "TEXT", value_parser = given, allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Leave the field empty; may be repeated
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) clear: Vec<FieldArg>,
    /// Take back what was set: the field is what the session's files say; may be repeated
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) reset: Vec<FieldArg>,
}

/// A field that a person sets.
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
With a session and tags, adds them; with --remove, takes some away; with neither, lists the tags of the session. Without \
a session, lists all tags in use, with the number of sessions that carry each.

What you set stays: once you change the tags of a session, no sync changes them again. `edit SESSION --reset tags` takes \
that back. `sessions --tag` lists the sessions that carry a tag.")]
#[command(after_long_help = "\
In a pipe each tag is one line; in the list of all tags, the number of sessions follows behind a tab.

Exit code 3 says that there are no tags.

Examples:
  amplifier-sessions tag
  amplifier-sessions tag 3a7c1e90 incident payments
  amplifier-sessions tag 3a7c1e90 --remove incident")]
pub(crate) struct TagArgs {
    /// The session, by its address; without one, all tags are listed
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Tags to add
    #[arg(value_name = "TAG", value_parser = something)]
    pub(crate) tags: Vec<String>,
    /// Tags to take away
    #[arg(long, value_name = "TAG", value_parser = something, num_args = 1.., requires = "session")]
    pub(crate) remove: Vec<String>,
}

/// [`something`], for a field that can be cleared in another way.
fn given(text: &str) -> Result<String, String> {
    something(text).map_err(|problem| format!("{problem}; --clear leaves a field empty"))
}

/// Text that is more than white space, without the white space around it.
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
