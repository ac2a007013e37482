//! Tokens: their text, the file with their hashes, and looking them up.

mod book;
mod file;
mod record;
mod text;

pub(crate) use book::TokenBook;
pub use file::TokenFile;
pub use record::{NewToken, TokenRecord};
pub use text::AccessToken;
