//! The char filter for Persian: replaces zero-width non-joiners by spaces.

use super::filter::{CharFilter, Filtered, OffsetMap, last_len};

#[derive(Debug)]
pub(super) struct Persian;

impl CharFilter for Persian {
    fn filter(&self, text: &str, _: &dyn Fn() -> bool) -> Filtered {
        let mut out = String::with_capacity(text.len());
        let mut offsets = OffsetMap::default();
        let mut rest = 0;
        for (at, joiner) in text.match_indices('\u{200C}') {
            out.push_str(&text[rest..at]);
            rest = at + joiner.len();
            offsets.replaced(out.len(), 1, at..rest, last_len(text, &(at..rest)));
            out.push(' ');
        }
        out.push_str(&text[rest..]);
        Filtered { text: out, offsets }
    }

    fn normalizes(&self) -> bool {
        true
    }
}
