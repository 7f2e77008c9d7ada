//! Who asks, as far as a search has to know: what a restricted key may read.
//!
//! The HTTP layer checks keys against the path. Where indices are named elsewhere, in the header lines of a
//! multi search or by what is open between searches, it hands over what the key may do, and this checks it.
//! A request of an unrestricted key carries none of this.

use crate::error::{EngineError, Exception};
use crate::request::Request;

/// A restricted key, or none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// Its id: scrolls and points in time belong to it.
    pub owner: Option<&'a str>,
    /// Index patterns it may read, separated by commas.
    allowed: Option<&'a str>,
    /// The sentence of a refusal, `{}` standing for the names refused.
    sentence: &'a str,
    /// The path's indices are all the key may read, since it named none.
    pub narrowed: bool,
}

impl<'a> Caller<'a> {
    /// Reads what the HTTP layer added to the path.
    pub fn of(request: &'a Request) -> Self {
        let part = |name: &str| request.path.get(name).map(String::as_str);
        Self {
            owner: part("key"),
            allowed: part("key_indices"),
            sentence: part("key_denied").unwrap_or("{}"),
            narrowed: part("key_narrowed").is_some(),
        }
    }

    /// What a restricted key may write to, as it is kept with a job.
    pub fn writing(allowed: Option<&'a str>, sentence: Option<&'a str>) -> Self {
        Self { allowed, sentence: sentence.unwrap_or("{}"), ..Self::default() }
    }

    /// Checks the index that a pipeline has sent a document to, which no path or body names.
    ///
    /// # Errors
    /// 403 when the key may not write there, 400 for a name that cannot be read.
    pub fn may_write(&self, index: &str) -> Result<(), EngineError> {
        if self.allowed.is_none() {
            return Ok(());
        }
        self.narrow(&crate::indices::concrete_name(index)?).map(|_| ())
    }

    /// The indices to search when `expression` is asked for: of all, those that the key may read. The second
    /// part says whether the expression was replaced.
    ///
    /// # Errors
    /// 403 naming the parts that the key may not read.
    pub fn narrow(&self, expression: &str) -> Result<(String, bool), EngineError> {
        let Some(allowed) = self.allowed else { return Ok((expression.to_owned(), false)) };
        let parts: Vec<&str> = expression.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() || parts.iter().any(|part| matches!(*part, "_all" | "*")) {
            if allowed.is_empty() {
                return Err(self.denied("*"));
            }
            return Ok((allowed.to_owned(), true));
        }
        let denied: Vec<&str> = parts
            .into_iter()
            // Date math comes to names that cannot be told here.
            .filter(|part| !part.starts_with('-'))
            .filter(|part| part.starts_with('<') || !allowed.split(',').any(|pattern| covers(pattern, part)))
            .collect();
        match denied.is_empty() {
            true => Ok((expression.to_owned(), false)),
            false => Err(self.denied(&denied.join(","))),
        }
    }

    fn denied(&self, names: &str) -> EngineError {
        EngineError::api(403, Exception::new("security_exception", self.sentence.replace("{}", names)))
    }
}

/// Whether a pattern of a role covers all that an expression can match: its `*` stands for any characters, a
/// literal `*` too, its `?` for one that is no `*`.
fn covers(pattern: &str, expression: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), expression.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some('?') if text[t] != '*' => {
                p += 1;
                t += 1;
            }
            Some(letter) if *letter == text[t] && *letter != '?' => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::{Caller, covers};

    #[test]
    fn patterns_cover_names_and_narrower_patterns() {
        for (pattern, expression, covered) in [
            ("logs-*", "logs-1", true),
            ("logs-*", "logs-2*", true),
            ("logs-*", "*", false),
            ("logs-*", "log*", false),
            ("logs-?", "logs-1", true),
            ("logs-?", "logs-*", false),
            ("a", "ab", false),
            ("*", "x", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1b2", false),
        ] {
            assert_eq!(covers(pattern, expression), covered, "{pattern} {expression}");
        }
    }

    #[test]
    fn a_restricted_key_reads_what_it_may() {
        let caller =
            Caller { owner: Some("id"), allowed: Some("a*,b"), sentence: "no, not on [{}]", narrowed: false };
        let narrowed = |expression: &str| caller.narrow(expression).map_err(|error| error.reason());
        assert_eq!(narrowed("a1,b").expect("allowed"), ("a1,b".to_owned(), false));
        for all in ["", "_all", "*", "a1,*"] {
            assert_eq!(narrowed(all).expect("narrowed"), ("a*,b".to_owned(), true));
        }
        assert_eq!(narrowed("a1,c,d*").expect_err("denied"), "no, not on [c,d*]");
        assert_eq!(Caller::default().narrow("c").expect("unrestricted"), ("c".to_owned(), false));
        let none = Caller { allowed: Some(""), ..caller };
        assert!(none.narrow("").is_err());
        let writer = Caller::writing(Some("logs-*"), Some("no, not on [{}]"));
        assert!(writer.may_write("logs-1").is_ok());
        assert!(writer.may_write("<logs-{now/d}>").is_ok());
        assert_eq!(writer.may_write("other").expect_err("denied").reason(), "no, not on [other]");
        assert!(Caller::writing(None, None).may_write("other").is_ok());
    }
}
