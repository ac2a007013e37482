//! `skill`.

use clap::Args;

/// Print a skill file that tells agents when and how to search
#[derive(Debug, Args)]
#[command(after_help = "\
The file is in the format of Agent Skills: Markdown, with a name and a description. Clients load the description, and read the \
rest when it applies. It suits agents that use MCP, and those that run this program in a shell.

The folder must exist (`mkdir -p`).

Examples:
  amplifier-sessions skill > ~/.claude/skills/amplifier-sessions/SKILL.md
  amplifier-sessions skill > ~/.agents/skills/amplifier-sessions/SKILL.md
  amplifier-sessions skill > ~/.amplifier/skills/amplifier-sessions/SKILL.md")]
pub(crate) struct SkillArgs {}
