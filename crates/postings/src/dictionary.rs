//! Token dictionary of a segment: tokens sorted bytewise and found by binary search; a token's index is its term id.

use sparrow_runtime::TermId;

use crate::bytes::{partition_point, slice, u32_at};
use crate::error::PostingsError;

/// View of the `tokens` section (see `frame`).
#[derive(Clone, Copy)]
pub(crate) struct Dictionary<'a> {
    offsets: &'a [u8],
    text: &'a [u8],
    len: u32,
}

impl<'a> Dictionary<'a> {
    pub(crate) fn new(offsets: &'a [u8], text: &'a [u8], len: u32) -> Self {
        Self { offsets, text, len }
    }

    /// Checks that offsets ascend inside the text and cut it at character boundaries.
    pub(crate) fn check(&self) -> Result<(), PostingsError> {
        let invalid = PostingsError::Invalid { section: "token dictionary" };
        let text = std::str::from_utf8(self.text).map_err(|_| invalid)?;
        let mut previous = 0;
        for term in 0..=self.len {
            let offset = u32_at(self.offsets, term as usize * 4) as usize;
            if offset < previous || !text.is_char_boundary(offset) {
                return Err(invalid);
            }
            previous = offset;
        }
        if u32_at(self.offsets, 0) != 0 || previous != text.len() {
            return Err(invalid);
        }
        Ok(())
    }

    fn token_bytes(&self, term: TermId) -> &'a [u8] {
        let at = term as usize * 4;
        let (start, end) = (u32_at(self.offsets, at) as usize, u32_at(self.offsets, at + 4) as usize);
        slice(self.text, start, end.saturating_sub(start))
    }

    pub(crate) fn token(&self, term: TermId) -> &'a str {
        if term >= self.len {
            return "";
        }
        std::str::from_utf8(self.token_bytes(term)).unwrap_or("")
    }

    pub(crate) fn term(&self, token: &str) -> Option<TermId> {
        let wanted = token.as_bytes();
        let at =
            partition_point(self.len as usize, |term| self.token_bytes(term as TermId) < wanted) as TermId;
        (at < self.len && self.token_bytes(at) == wanted).then_some(at)
    }
}
