//! Which names an index may have.

use crate::error::EngineError;

const FORBIDDEN: &[char] = &['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ','];
const MAX_BYTES: usize = 255;

/// Checks the name of an index to be created.
///
/// # Errors
/// [`EngineError::InvalidIndexName`] with Elasticsearch's sentence.
pub(crate) fn check(name: &str) -> Result<(), EngineError> {
    let problem = if name.is_empty() {
        "must not be empty".to_owned()
    } else if let Some(bad) = name.chars().find(|c| FORBIDDEN.contains(c)) {
        let list: Vec<String> = FORBIDDEN.iter().map(|c| format!("'{c}'")).collect();
        let _ = bad;
        format!("must not contain the following characters [{}]", list.join(","))
    } else if name.contains('#') {
        "must not contain '#'".to_owned()
    } else if name.contains(':') {
        "must not contain ':'".to_owned()
    } else if name.starts_with(['_', '-', '+']) {
        "must not start with '_', '-', or '+'".to_owned()
    } else if name == "." || name == ".." {
        "must not be '.' or '..'".to_owned()
    } else if name.len() > MAX_BYTES {
        format!("index name is too long, ({} > {MAX_BYTES})", name.len())
    } else if name.chars().any(char::is_uppercase) {
        "must be lowercase".to_owned()
    } else if name.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(EngineError::InvalidIndexName { name: name.to_owned(), problem })
}

/// Whether `name` matches a pattern in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{check, matches};

    #[test]
    fn names_are_checked_as_elasticsearch_does() {
        for good in ["books", ".hidden", "a-b_c.1", "日本"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "Books", "_x", "-x", "+x", "..", "a b", "a/b", "a*", "a#b", "a:b", &"x".repeat(256)] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(
            check("Books_UPPER").unwrap_err().reason(),
            "Invalid index name [Books_UPPER], must be lowercase"
        );
    }

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
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
