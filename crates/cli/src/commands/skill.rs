//! `skill`: a skill file for agents.

use crate::{
    app::App,
    failure::{Failure, Outcome},
};

/// The skill file.
const SKILL: &str = include_str!("skill.md");

pub(super) fn run(app: &mut App) -> Result<Outcome, Failure> {
    app.out.text(SKILL)?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_file_is_short_and_has_a_name_and_a_description() {
        let (front, text) = SKILL.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
        let (name, description) = front.split_once('\n').unwrap();
        assert_eq!(name, "name: amplifier-sessions");
        let description = description.strip_prefix("description: ").unwrap();
        // The limit of the format: https://agentskills.io/specification.
        assert!(description.len() <= 1024 && !description.contains(": "), "{description}");
        assert!(SKILL.lines().count() < 60 && text.ends_with('\n'));
    }

    #[test]
    fn every_command_in_it_can_be_run() {
        let is_command = |line: &&str| line.starts_with("amplifier-sessions ");
        let commands: Vec<&str> = SKILL.lines().filter(is_command).collect();
        assert!(commands.len() >= 5, "{commands:?}");
        for command in commands {
            let words =
                command.split("  ").next().unwrap_or_default().split(' ').filter(|word| !word.is_empty());
            match crate::args::command().try_get_matches_from(words) {
                Err(error) if error.kind() != ErrorKind::DisplayHelp => panic!("{command}\n{error}"),
                _ => {}
            }
        }
    }
}
