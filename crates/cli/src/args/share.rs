//! `share`.

use amplifier_session_api::operations::share::SharedWith;
use clap::{
    ArgMatches, Args, Command, FromArgMatches,
    builder::NonEmptyStringValueParser,
    error::{Error, ErrorKind},
    parser::ValueSource,
};

/// `share`.
#[derive(Debug, Args)]
#[command(about = "Set who else can see a session")]
#[command(long_about = "\
Sets who else can see one of your sessions. This replaces earlier settings. Others find the session with `--scope visible`. \
Sharing does not give access to the store itself: people who can read the store see what is shared with them. The time when \
a session was first shared is kept, even if it becomes private again.")]
#[command(after_long_help = "\
Prints who can see it. In a pipe, each field is one line: its name and its value, separated by a tab.

Examples:
  amplifier-sessions share 3a7c1e90 --team payments checkout
  amplifier-sessions share 3a7c1e90 --org example.com
  amplifier-sessions share 3a7c1e90 --private")]
pub(crate) struct ShareArgs {
    /// The session, by its address
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) with: WithArgs,
}

/// With whom to share: exactly one of the [`Ways`].
#[derive(Debug)]
pub(crate) struct WithArgs(pub(crate) SharedWith);

/// The ways to share.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Ways {
    /// With the members of these teams
    #[arg(long, value_name = "TEAM", num_args = 1.., value_parser = NonEmptyStringValueParser::new())]
    team: Vec<String>,
    /// With the members of an organisation
    #[arg(long, value_name = "ORG", value_parser = NonEmptyStringValueParser::new())]
    org: Option<String>,
    /// With everyone who can read the store
    #[arg(long)]
    public: bool,
    /// With nobody
    #[arg(long)]
    private: bool,
}

impl Args for WithArgs {
    fn augment_args(command: Command) -> Command {
        Ways::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Ways::augment_args_for_update(command)
    }
}

impl FromArgMatches for WithArgs {
    /// Only typed options count. The global options `--team` and `--org` have the same names, name the groups of the
    /// reader, and may be set by the environment. Sharing with those groups would be a surprise.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let typed: Vec<&str> = ["team", "org", "public", "private"].into_iter().filter(is_typed).collect();
        let Ways { team, org, .. } = Ways::from_arg_matches(matches)?;
        match (typed.as_slice(), org) {
            (["team"], _) => Ok(Self(SharedWith::Team { team_ids: team })),
            (["org"], Some(org_id)) => Ok(Self(SharedWith::Org { org_id })),
            (["public"], _) => Ok(Self(SharedWith::Public)),
            (["private"], _) => Ok(Self(SharedWith::Private)),
            _ => {
                let message =
                    "exactly one of --team, --org, --public and --private is required after `share`\n";
                Err(Error::raw(ErrorKind::ArgumentConflict, message))
            }
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args;

    #[test]
    fn exactly_one_way_to_share() {
        let share = |typed: &[&str]| match args::Cli::try_parse_from([&["x", "share", "s"], typed].concat()) {
            Ok(args::Cli { command: args::Command::Share(args), .. }) => Some(args.with.0),
            _ => None,
        };
        let teams = SharedWith::Team { team_ids: vec!["a".to_owned(), "b".to_owned()] };
        assert_eq!(share(&["--team", "a", "b"]), Some(teams.clone()));
        assert_eq!(share(&["--team", "a", "--team", "b"]), Some(teams));
        assert_eq!(share(&["--org", "o"]), Some(SharedWith::Org { org_id: "o".to_owned() }));
        assert_eq!(share(&["--public"]), Some(SharedWith::Public));
        assert_eq!(share(&["--private"]), Some(SharedWith::Private));
        assert_eq!(share(&[]), None);
        assert_eq!(share(&["--public", "--private"]), None);
        assert_eq!(share(&["--team", "a", "--org", "o"]), None);
    }
}
