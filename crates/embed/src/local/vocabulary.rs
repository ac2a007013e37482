//! The vocabulary of the compiled-in model: a trie over the bytes of its tokens.
//!
//! `build.rs` makes it and describes its layout. It is read in place from the program, without loading.

/// The slots of the double array, 8 bytes each.
static SLOTS: &[[u8; 8]] = include_bytes!(concat!(env!("OUT_DIR"), "/vocabulary.trie")).as_chunks().0;

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

/// A node of the trie.
struct TrieNode {
    /// The child by a byte is in slot `base` plus byte.
    base: u32,
    /// The token that ends here.
    token: Option<u16>,
}

/// The longest token that `text` begins with, and its length in bytes.
pub(super) fn longest_token(root: Root, text: &[u8]) -> Option<(u16, usize)> {
    let (mut node, _) = node(root as usize)?;
    let mut longest = None;
    for (before, byte) in text.iter().enumerate() {
        let Some(child) = child(&node, *byte) else { break };
        node = child;
        if let Some(token) = node.token {
            longest = Some((token, before + 1));
        }
    }
    longest
}

/// The child of a node that `byte` leads to.
fn child(parent: &TrieNode, byte: u8) -> Option<TrieNode> {
    let (child, label) = node(parent.base as usize + usize::from(byte))?;
    (label == [byte, 1]).then_some(child)
}

/// The node in a slot; with the byte that leads to it, and 1 if one does.
fn node(slot: usize) -> Option<(TrieNode, [u8; 2])> {
    let [a, b, c, d, label, has_label, low, high] = *SLOTS.get(slot)?;
    let token = u16::from_le_bytes([low, high]);
    let node =
        TrieNode { base: u32::from_le_bytes([a, b, c, d]), token: (token != NO_TOKEN).then_some(token) };
    Some((node, [label, has_label]))
}
