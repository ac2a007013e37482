//! The content of a transcript line: its texts by content type, its turn, and the chunks to embed.
//!
//! All of it is derived from the raw line, in the same way for every backend:
//!
//! - [`MessageLine`] reads a line and finds its texts, at most one per content type, without base64;
//! - [`TurnCounter`] numbers the turns if lines do not state them, [`TitleFinder`] finds a title for a session;
//! - [`chunk()`] cuts a long text into pieces that fit an embedding model, measured in [`tokens`];
//! - [`ToolCall::files`] finds the files that a tool call reads or changes, and [`ToolCall::commands`] the commands that it
//!   runs;
//! - a [`Redactor`] masks secrets before a text is cut, and in whole lines ([`mask_line`], [`secrets_in_line`]).

mod automatic;
mod blocks;
mod chunk;
mod encoding;
mod extract;
mod files;
mod line;
mod noise;
mod own_calls;
mod pieces;
mod prompt_subject;
mod redact;
mod secrets;
mod title;
pub mod tokens;
mod tool_arguments;
mod tool_call;
mod tool_result;
mod turns;
mod used_files;

pub(crate) use automatic::is_automatic;
pub use chunk::{Chunk, ChunkSettings, chunk};
pub(crate) use extract::renewed;
pub use extract::{EXTRACTION, ExtractedText, TOOL_OUTPUT_LIMIT, embeddable};
pub use files::without_base64;
pub use line::MessageLine;
pub(crate) use noise::without_noise;
pub use own_calls::own_calls;
pub use redact::{Certainty, Masked, Redaction, Redactor, SecretSpan, merge_secrets};
pub use secrets::{CleanTexts, IgnoredSecrets, MASKING, mask_line, secrets_in_line};
pub use title::{FIRST_PROMPT_CHARS, TITLES, TitleFinder};
pub(crate) use title::{is_continuation, line_digest, prompt_digest};
pub use tool_arguments::ToolArgument;
pub use tool_call::ToolCall;
pub use turns::TurnCounter;
pub(crate) use turns::{has_own_content, is_real, unreadable_turn};
pub(crate) use used_files::FileUses;
pub use used_files::{FileUse, UsedFile};
