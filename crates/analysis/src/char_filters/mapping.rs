//! The `mapping` char filter: replaces strings by others, preferring the longest match.

use rustc_hash::FxHashMap;

use super::filter::{CharFilter, Filtered, OffsetMap, last_len};
use crate::error::AnalysisError;
use crate::params::Params;
use crate::pattern::most_bytes;

#[derive(Debug)]
pub(super) struct Mapping {
    rules: FxHashMap<String, String>,
    /// Lengths in characters of the strings to replace, longest first.
    lengths: Vec<usize>,
}

impl Mapping {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        params.refuse(&["mappings_path"])?;
        let lines = params.lines("mappings")?.ok_or_else(|| {
            AnalysisError::illegal("mapping requires either `mappings` or `mappings_path` to be configured")
        })?;
        let mut rules = FxHashMap::default();
        for line in lines {
            let bad = || AnalysisError::illegal(format!("Invalid Mapping Rule : [{line}]"));
            // The last arrow counts.
            let (from, to) = line.rsplit_once("=>").ok_or_else(bad)?;
            let illegal =
                || AnalysisError::illegal(format!("Invalid Mapping Rule : [{line}]. Illegal mapping."));
            let from = unescape(from.trim()).ok_or_else(illegal)?;
            let to = unescape(to.trim()).ok_or_else(illegal)?;
            if from.is_empty() {
                return Err(AnalysisError::illegal("cannot match the empty string"));
            }
            if rules.insert(from.clone(), to).is_some() {
                return Err(AnalysisError::illegal(format!("match \"{from}\" was already added")));
            }
        }
        let mut lengths: Vec<usize> = rules.keys().map(|from| from.chars().count()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        Ok(Self { rules, lengths })
    }
}

/// Resolves escapes such as `\n` and `\u0041`; `None` if one is incomplete.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let unit = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?;
                match char::from_u32(unit) {
                    Some(c) => out.push(c),
                    // The first half of a pair: the second follows.
                    None => {
                        let rest: String = chars.by_ref().take(6).collect();
                        let low = u32::from_str_radix(rest.strip_prefix("\\u")?, 16).ok()?;
                        let pair = [unit as u16, low as u16];
                        out.push(char::decode_utf16(pair).next()?.ok()?);
                    }
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

impl CharFilter for Mapping {
    fn filter(&self, text: &str, _: &dyn Fn() -> bool) -> Filtered {
        let mut out = String::with_capacity(text.len());
        let mut offsets = OffsetMap::default();
        let mut at = 0;
        // What is beyond stays as it is.
        let most = most_bytes(text);
        'text: while let Some(c) = text[at..].chars().next() {
            for &length in &self.lengths {
                let Some(end) = nth_boundary(&text[at..], length) else { continue };
                if let Some(to) = self.rules.get(&text[at..at + end])
                    && out.len() + to.len() <= most
                {
                    let range = at..at + end;
                    let last = last_len(text, &range);
                    offsets.replaced(out.len(), to.len(), range, last);
                    out.push_str(to);
                    at += end;
                    continue 'text;
                }
            }
            out.push(c);
            at += c.len_utf8();
        }
        Filtered { text: out, offsets }
    }

    fn normalizes(&self) -> bool {
        true
    }
}

/// Bytes of the first `count` characters; `None` if there are fewer.
fn nth_boundary(text: &str, count: usize) -> Option<usize> {
    let mut chars = text.char_indices();
    chars.nth(count - 1).map(|(at, c)| at + c.len_utf8())
}
