//! The vocabulary of the compiled-in model: a trie over the bytes of its tokens.
//!
//! `build.rs` makes it and describes its layout. It is read in place from the program, without loading.

/// The nodes, 8 bytes each.
static NODES: &[[u8; 8]] = include_bytes!(concat!(env!("OUT_DIR"), "/vocabulary.trie")).as_chunks().0;

/// The token of nodes where no token ends.
const NO_TOKEN: u16 = u16::MAX;

/// The root at which a search for a token begins.
#[derive(Clone, Copy)]
pub(super) enum Root {
    /// Tokens that begin a word.
    Beginning,
    /// Tokens that continue a word, without their prefix `##`.
    Continuation,
}

/// The longest token that `text` begins with, and its length in bytes.
pub(super) fn longest_token(root: Root, text: &[u8]) -> Option<(u16, usize)> {
    let mut node = root as usize;
    let mut longest = None;
    for (before, byte) in text.iter().enumerate() {
        let Some((child, token)) = child(node, *byte) else { break };
        node = child;
        if token != NO_TOKEN {
            longest = Some((token, before + 1));
        }
    }
    longest
}

/// The child of a node that `byte` leads to, and the token that ends there.
fn child(node: usize, byte: u8) -> Option<(usize, u16)> {
    let first = first_child(node)?;
    let children = NODES.get(first..first_child(node + 1)?)?;
    let index = children.binary_search_by_key(&byte, |[_, _, _, _, label, ..]| *label).ok()?;
    let [.., low, high] = children.get(index)?;
    Some((first + index, u16::from_le_bytes([*low, *high])))
}

fn first_child(node: usize) -> Option<usize> {
    let [a, b, c, d, ..] = NODES.get(node)?;
    Some(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
}
