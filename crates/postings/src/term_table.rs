//! Numbers the tokens of a segment that is being written.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

/// Maps each token to a number.
///
/// Most tokens are short. Those of up to 15 bytes are stored in the hash table itself, so that a look-up
/// reads nothing else; longer ones are separate allocations.
#[derive(Default)]
pub(crate) struct TermTable {
    short: FxHashMap<Short, u32>,
    long: FxHashMap<Box<str>, u32>,
}

impl TermTable {
    /// Memory per token in bytes, excluding the text of a long one: the slot with key, number and control
    /// byte, at the usual load.
    pub(crate) const MEMORY: usize = 48;

    /// Number of a token. A token that is not in the table is added as number `new`; `None` for a new one
    /// that is not valid UTF-8.
    pub(crate) fn number(&mut self, token: &[u8], new: u32) -> Option<u32> {
        if let Some(key) = key_of(token) {
            return match self.short.get(&key) {
                Some(number) => Some(*number),
                None => {
                    std::str::from_utf8(token).ok()?;
                    self.short.insert(key, new);
                    Some(new)
                }
            };
        }
        let token = std::str::from_utf8(token).ok()?;
        if let Some(number) = self.long.get(token) {
            return Some(*number);
        }
        self.long.insert(token.into(), new);
        Some(new)
    }

    /// All tokens in the order of their bytes, with their numbers.
    pub(crate) fn sorted(self) -> Vec<(Box<str>, u32)> {
        let short = self.short.into_iter().map(|(key, number)| (text_of(key), number));
        let mut terms: Vec<(Box<str>, u32)> = short.chain(self.long).collect();
        terms.sort_unstable();
        terms
    }
}

/// A token of up to 15 bytes, zero-padded; the last byte is its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Short([u8; 16]);

impl Hash for Short {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As bytes, which are mixed well; as a number, tokens that share a hash would be easy to make.
        state.write(&self.0);
    }
}

/// A token as a table key; `None` for one of more than 15 bytes.
fn key_of(token: &[u8]) -> Option<Short> {
    if token.len() > 15 {
        return None;
    }
    let mut key = [0; 16];
    key[..token.len()].copy_from_slice(token);
    key[15] = token.len() as u8;
    Some(Short(key))
}

fn text_of(Short(key): Short) -> Box<str> {
    // Only text becomes a key.
    String::from_utf8_lossy(&key[..usize::from(key[15])]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_any_length_have_numbers_and_come_in_order() {
        let long = "x".repeat(300);
        let tokens = ["", "\0", "a", "a\0", "##ing", "fifteen_letters", "sixteen__letters", "über", &long];
        let mut table = TermTable::default();
        for (number, token) in tokens.iter().enumerate() {
            assert_eq!(table.number(token.as_bytes(), number as u32), Some(number as u32), "{token:?}");
        }
        for (number, token) in tokens.iter().enumerate() {
            assert_eq!(table.number(token.as_bytes(), 99), Some(number as u32), "{token:?}");
        }
        let mut expected: Vec<(Box<str>, u32)> =
            tokens.iter().enumerate().map(|(number, token)| ((*token).into(), number as u32)).collect();
        expected.sort();
        assert_eq!(table.sorted(), expected);
    }

    #[test]
    fn what_is_no_text_has_no_number() {
        let mut table = TermTable::default();
        assert_eq!(table.number(b"\xff", 0), None);
        assert_eq!(table.number(&[0xff; 40], 0), None);
        assert!(table.sorted().is_empty());
    }
}
