//! Rules for the names of repositories and snapshots, and the expansion of name expressions.
//!
//! A name never becomes a part of a path: files of a repository are named by uuids that this server made and by hashes.

use std::collections::HashMap;

use super::errors;
use sparrow_request::error::EngineError;
use sparrow_request::name_steps::{NamePattern, NameSteps, is_pattern};

const FORBIDDEN: &[char] = &['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ','];
const MAX_BYTES: usize = 255;

fn forbidden() -> String {
    let list: Vec<String> = FORBIDDEN.iter().map(|c| format!("'{c}'")).collect();
    format!("must not contain the following characters [{}]", list.join(","))
}

/// Why a name breaks a rule beyond Elasticsearch's own: no control characters, at most [`MAX_BYTES`] bytes;
/// `None` if it does not.
fn general(name: &str) -> Option<String> {
    if name.chars().any(char::is_control) {
        Some("must not contain control characters".to_owned())
    } else if name.len() > MAX_BYTES {
        Some(format!("must not be longer than {MAX_BYTES} bytes, it has {}", name.len()))
    } else {
        None
    }
}

/// Checks the name of a repository to be registered.
///
/// # Errors
/// `repository_exception` with the rule that the name breaks.
pub(super) fn check_repository(name: &str) -> Result<(), EngineError> {
    let problem = if name.is_empty() {
        "cannot be empty".to_owned()
    } else if name.contains('#') {
        "must not contain '#'".to_owned()
    } else if name.contains(FORBIDDEN) {
        forbidden()
    } else if name.starts_with('_') {
        // A request could not name it: what begins so in a path is an operation.
        "must not start with '_'".to_owned()
    } else {
        match general(name) {
            Some(problem) => problem,
            None => return Ok(()),
        }
    };
    Err(errors::repository(name, &problem))
}

/// Checks the name of a snapshot to be made.
///
/// # Errors
/// `invalid_snapshot_name_exception` with Elasticsearch's sentence.
pub(super) fn check_snapshot(repository: &str, name: &str) -> Result<(), EngineError> {
    let problem = if name.is_empty() {
        "cannot be empty".to_owned()
    } else if name.contains(' ') {
        "must not contain whitespace".to_owned()
    } else if name.contains(',') {
        "must not contain ','".to_owned()
    } else if name.contains('#') {
        "must not contain '#'".to_owned()
    } else if name.starts_with('_') {
        "must not start with '_'".to_owned()
    } else if name.to_lowercase() != name {
        "must be lowercase".to_owned()
    } else if name.contains(FORBIDDEN) {
        forbidden()
    } else {
        match general(name) {
            Some(problem) => problem,
            None => return Ok(()),
        }
    };
    Err(errors::invalid_name(repository, name, &problem))
}

/// Names that an expression matches, in the order of `known`. An expression consists of names, patterns with
/// `*`, `_all`, and exclusions with `-` after a pattern, separated by commas; an empty one is `_all`.
///
/// # Errors
/// The result of `missing` for a plain name that does not exist; an error when the list is too long, or the
/// request was cancelled.
pub(super) fn select<'a>(
    expression: &str,
    names: &[&'a str],
    missing: impl Fn(&str) -> EngineError,
) -> Result<Vec<&'a str>, EngineError> {
    let mut steps = NameSteps::default();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        places.entry(*name).or_default().push(at);
    }
    let mut chosen = vec![false; names.len()];
    let mut pattern_seen = false;
    let parts: Vec<&str> = expression.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let parts = if parts.is_empty() { vec!["_all"] } else { parts };
    for part in parts {
        let (wanted, name) = match part.strip_prefix('-') {
            Some(rest) if pattern_seen => (false, rest),
            _ => (true, part),
        };
        steps.add(1)?;
        if is_pattern(name) {
            pattern_seen = true;
            let pattern = NamePattern::new(name);
            for (name, chosen) in names.iter().zip(&mut chosen) {
                if pattern.matches(name, &mut steps)? {
                    *chosen = wanted;
                }
            }
        } else if let Some(places) = places.get(name) {
            places.iter().for_each(|at| chosen[*at] = wanted);
        } else if wanted {
            return Err(missing(name));
        }
    }
    Ok(names.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(name, _)| *name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        for bad in [
            "",
            "a/b",
            "..\\x",
            "a b",
            "a*",
            "a?",
            "a,b",
            "a#b",
            "a\0b",
            "a\nb",
            "_x",
            "\"",
            "<a>",
            &"x".repeat(256),
        ] {
            assert!(check_snapshot("r", bad).is_err(), "{bad:?}");
            assert!(check_repository(bad).is_err(), "{bad:?}");
        }
        assert!(check_snapshot("r", "Upper").is_err());
        for good in ["a", "snap-2026.11.22", "..", "-a", "日本"] {
            assert!(check_snapshot("r", good).is_ok(), "{good}");
            assert!(check_repository(good).is_ok(), "{good}");
        }
        assert_eq!(
            check_snapshot("backups", "Upper Case").unwrap_err().reason(),
            "[backups:Upper Case] Invalid snapshot name [Upper Case], must not contain whitespace"
        );
    }

    #[test]
    fn expressions_stand_for_names_in_their_order() {
        let known = ["b", "a1", "a2"];
        let select = |expression: &str, known| select(expression, known, errors::not_in_snapshot);
        assert_eq!(select("", &known).unwrap(), ["b", "a1", "a2"]);
        assert_eq!(select("a*,b", &known).unwrap(), ["b", "a1", "a2"]);
        assert_eq!(select("*,-a1", &known).unwrap(), ["b", "a2"]);
        assert_eq!(select("x*", &known).unwrap(), Vec::<&str>::new());
        assert_eq!(select("a1,none", &known).unwrap_err().reason(), "no such index [none]");
    }
}
