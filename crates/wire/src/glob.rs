//! Wildcard patterns with `*`, by which names of fields, indices, models and tasks are selected.

use rustc_hash::FxHashSet;

use crate::BodyError;

/// Most patterns of one list of fields in a request or in a new mapping: each is compared with each of the names.
pub const MOST_PATTERNS: usize = 1_024;

/// Checks the number of patterns of fields in a list; `section` is its name.
///
/// # Errors
/// When there are more than [`MOST_PATTERNS`].
pub fn check_patterns(section: &str, patterns: usize) -> Result<(), BodyError> {
    if patterns > MOST_PATTERNS {
        return Err(BodyError::illegal(format!(
            "[{section}] has [{patterns}] patterns, at most [{MOST_PATTERNS}] are possible on this server"
        )));
    }
    Ok(())
}

/// The patterns of a list, each once; `section` is the name of the list.
///
/// # Errors
/// As [`check_patterns`].
pub fn distinct(section: &str, mut patterns: Vec<String>) -> Result<Vec<String>, BodyError> {
    if patterns.len() > 1 {
        let mut seen = FxHashSet::default();
        let keep: Vec<bool> = patterns.iter().map(|pattern| seen.insert(pattern.as_str())).collect();
        let mut keep = keep.into_iter();
        patterns.retain(|_| keep.next().unwrap_or(true));
    }
    check_patterns(section, patterns.len())?;
    Ok(patterns)
}

/// A pattern in which `*` stands for any characters, split for matching against many names.
#[derive(Debug, Clone, Copy)]
pub struct Pattern<'p> {
    /// Text before the first `*`; the whole pattern if it has none.
    first: &'p str,
    /// Text between the first and the last `*`, and text after the last; `None` if the pattern has no `*`.
    behind: Option<(&'p str, &'p str)>,
}

impl<'p> Pattern<'p> {
    /// Splits a pattern at its first and last `*`.
    pub fn new(pattern: &'p str) -> Self {
        match pattern.split_once('*') {
            None => Self { first: pattern, behind: None },
            Some((first, behind)) => {
                Self { first, behind: Some(behind.rsplit_once('*').unwrap_or(("", behind))) }
            }
        }
    }

    /// Prefix that all matching names share.
    pub fn beginning(&self) -> &'p str {
        self.first
    }

    /// Whether the pattern has no `*`, and so matches exactly one name.
    pub fn is_name(&self) -> bool {
        self.behind.is_none()
    }

    /// Whether the pattern matches a name.
    #[inline]
    pub fn matches(&self, name: &str) -> bool {
        let Some((middle, last)) = self.behind else { return self.first == name };
        // Both ends come first: they turn most names away, whatever is between.
        let Some(rest) = name.strip_prefix(self.first).and_then(|rest| rest.strip_suffix(last)) else {
            return false;
        };
        middle.is_empty() || has_in_order(rest, middle)
    }
}

/// Whether a text contains the `*`-separated parts one after another.
fn has_in_order(mut text: &str, parts: &str) -> bool {
    for part in parts.split('*') {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Whether `name` matches a pattern in which `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).matches(name)
}

/// Whether `name` matches a pattern of an API key's role: `*` stands for any characters, `?` for one. A `*`
/// in `name` stands for any text, all of which the pattern must match, so only `*` does.
pub fn matches_role(pattern: &str, name: &str) -> bool {
    if !pattern.contains('?') {
        return matches(pattern, name);
    }
    let first = |text: &str, at: usize| text[at..].chars().next();
    // Both count bytes.
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stood, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = first(name, read) {
        match first(pattern, at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(one) if (one == '?' && letter != '*') || one == letter => {
                at += one.len_utf8();
                read += letter.len_utf8();
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                let Some(next) = first(name, taken).map(char::len_utf8) else { return false };
                star = Some((place, taken + next));
                at = place + 1;
                read = taken + next;
            }
        }
    }
    pattern[at..].bytes().all(|rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_role};

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "books", true),
            ("boo*", "books", true),
            ("*ks", "books", true),
            ("b*o*s", "books", true),
            ("b*z*s", "books", false),
            ("books", "books", true),
            ("book", "books", false),
            ("books*", "books", true),
            ("*o*o*o*", "books", false),
            ("**", "books", true),
            ("boo*oks", "books", false),
            ("b*oo*oks", "books", false),
            ("*bü*r*", "die bücher", true),
            ("", "", true),
            ("*", "", true),
            ("a*c*", "abcbc", true),
            ("a*d", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_of_roles() {
        for (pattern, name, expected) in [
            ("logs-?", "logs-1", true),
            ("logs-?", "logs-12", false),
            ("l*-?", "logs-a-b", true),
            ("l*-?x", "logs-a-b", false),
            ("*", "any", true),
            ("?*", "", false),
            ("logs-*", "logs-*", true),
            ("l*", "logs-*-a", true),
            ("logs-*-a", "logs-*", false),
            ("logs-?", "logs-*", false),
            ("?ogs-*", "*", false),
            ("*?", "logs-*", false),
            ("logs-a", "logs-*", false),
            ("b?ch*r", "bücher", true),
            ("*?ü*?", "bücher", true),
            ("?", "", false),
        ] {
            assert_eq!(matches_role(pattern, name), expected, "{pattern} {name}");
        }
    }
}
