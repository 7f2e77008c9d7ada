//! Compact token weights of one document, as they pass from its JSON to the postings.

use std::collections::HashMap;

/// Token-weight pairs in one buffer, in the order of their addition: per pair the length of the token in
/// bytes (u16), its UTF-8, and the weight (f32), all little-endian.
///
/// A document has hundreds of pairs: allocating a string for each would cost more than all other work on
/// them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedTokens {
    bytes: Vec<u8>,
    len: usize,
}

impl PackedTokens {
    /// An empty list with room for about `tokens` pairs.
    pub fn with_capacity(tokens: usize) -> Self {
        // Word pieces have five letters on average.
        Self { bytes: Vec::with_capacity(tokens * 12), len: 0 }
    }

    /// Adds a pair, without checking whether the token is already in the list. A token of more than 65,535
    /// bytes is ignored.
    pub fn push(&mut self, token: &str, weight: f32) {
        let Ok(length) = u16::try_from(token.len()) else { return };
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(token.as_bytes());
        self.bytes.extend_from_slice(&weight.to_le_bytes());
        self.len += 1;
    }

    /// Byte offset of each token's weight, for [`PackedTokens::raise`]; the last one of a token that occurs
    /// twice.
    pub fn places(&self) -> HashMap<Box<[u8]>, usize> {
        let mut end = 0;
        let place = |(token, _): (&[u8], f32)| {
            end += token.len() + 6;
            (token.into(), end - 4)
        };
        self.iter().map(place).collect()
    }

    /// Raises the weight at a byte offset to at least `weight`.
    pub fn raise(&mut self, place: usize, weight: f32) {
        if let Some(bytes) = self.bytes.get_mut(place..).and_then(|bytes| bytes.first_chunk_mut::<4>()) {
            *bytes = f32::from_le_bytes(*bytes).max(weight).to_le_bytes();
        }
    }

    /// Iterates over the pairs in the order of their addition. Tokens are UTF-8.
    pub fn iter(&self) -> TokenIter<'_> {
        TokenIter(&self.bytes)
    }

    /// All pairs as bytes, for [`TokenIter`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'a> FromIterator<(&'a str, f32)> for PackedTokens {
    fn from_iter<I: IntoIterator<Item = (&'a str, f32)>>(pairs: I) -> Self {
        let mut tokens = Self::default();
        for (token, weight) in pairs {
            tokens.push(token, weight);
        }
        tokens
    }
}

/// Iterator over the pairs in the bytes of a [`PackedTokens`]. Ends at the first malformed byte; does not
/// check that tokens are UTF-8.
pub struct TokenIter<'a>(pub &'a [u8]);

impl<'a> Iterator for TokenIter<'a> {
    type Item = (&'a [u8], f32);

    fn next(&mut self) -> Option<Self::Item> {
        let (len, rest) = self.0.split_first_chunk::<2>()?;
        let (token, rest) = rest.split_at_checked(u16::from_le_bytes(*len) as usize)?;
        let (weight, rest) = rest.split_first_chunk::<4>()?;
        self.0 = rest;
        Some((token, f32::from_le_bytes(*weight)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_in_order() {
        let pairs = [("a", 1.5), ("über", 0.25), ("", 2.0)];
        let tokens: PackedTokens = pairs.into_iter().collect();
        assert_eq!(tokens.len(), 3);
        let back: Vec<_> = tokens.iter().collect();
        assert_eq!(back, pairs.map(|(token, weight)| (token.as_bytes(), weight)));
        assert_eq!(TokenIter(&tokens.as_bytes()[..tokens.as_bytes().len() - 1]).count(), 2);
        assert!(PackedTokens::default().is_empty());
    }

    #[test]
    fn weights_are_raised_and_never_lowered() {
        let mut tokens: PackedTokens = [("a", 1.0), ("ab", 2.0), ("b", 3.0)].into_iter().collect();
        let places = tokens.places();
        assert!(!places.contains_key(&b"c"[..]));
        tokens.raise(places[&b"ab"[..]], 5.0);
        tokens.raise(places[&b"b"[..]], 1.0);
        tokens.raise(1000, 1.0);
        let weights: Vec<f32> = tokens.iter().map(|(_, weight)| weight).collect();
        assert_eq!(weights, [1.0, 5.0, 3.0]);
    }
}
