//! Rules for the names of indices and aliases.

use sparrow_request::error::{EngineError, Exception};

const FORBIDDEN: &[char] = &['\\', '/', '*', '?', '"', '<', '>', '|', ' ', ','];
const MAX_BYTES: usize = 255;

/// The path at which the server has tools for agents: it takes `GET` and `DELETE` there too, so nobody could see or delete an index.
const TAKEN: &str = "mcp";

/// Checks the name of an index to be created.
///
/// # Errors
/// [`EngineError::InvalidIndexName`] with Elasticsearch's sentence, or one of our own for the name of a path of the server.
pub fn check(name: &str) -> Result<(), EngineError> {
    match problem_of_index(name).or_else(|| taken(name)) {
        None => Ok(()),
        Some(problem) => Err(EngineError::InvalidIndexName { name: name.to_owned(), problem }),
    }
}

/// Whether an index may have the name: earlier versions have created some that this one does not create.
pub(crate) fn is_possible(name: &str) -> bool {
    problem_of_index(name).is_none()
}

/// Checks the name of an alias: as that of an index, but it may have capitals.
///
/// # Errors
/// `invalid_alias_name_exception`.
pub fn check_alias(name: &str) -> Result<(), EngineError> {
    if name.is_empty() {
        return Err(EngineError::illegal_argument("alias name is required"));
    }
    problem(name).or_else(|| taken(name)).map_or(Ok(()), |problem| Err(invalid_alias(name, &problem)))
}

/// An `invalid_alias_name_exception` for this name.
pub fn invalid_alias(name: &str, problem: &str) -> EngineError {
    let reason = format!("Invalid alias name [{name}]: {problem}");
    EngineError::api(
        400,
        Exception::new("invalid_alias_name_exception", reason).with("index_uuid", "_na_").with("index", name),
    )
}

fn taken(name: &str) -> Option<String> {
    (name == TAKEN)
        .then(|| "must not be the path of the tools for agents [POST /mcp]: choose another name".to_owned())
}

fn problem_of_index(name: &str) -> Option<String> {
    problem(name).or_else(|| name.chars().any(char::is_uppercase).then(|| "must be lowercase".to_owned()))
}

fn problem(name: &str) -> Option<String> {
    Some(if name.is_empty() {
        "must not be empty".to_owned()
    } else if name.contains(FORBIDDEN) {
        let list: Vec<String> = FORBIDDEN.iter().map(|c| format!("'{c}'")).collect();
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
    } else if name.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::{check, check_alias, is_possible};

    #[test]
    fn names_are_checked_as_elasticsearch_does() {
        for good in ["books", ".hidden", "a-b_c.1", "日本"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "Books", "_x", "-x", "+x", "..", "a b", "a/b", "a*", "a#b", "a:b", &"x".repeat(256)] {
            assert!(check(bad).is_err(), "{bad}");
        }
        for check in [check, check_alias] {
            let reason = check("mcp").unwrap_err().reason();
            assert!(
                reason.ends_with(
                    "must not be the path of the tools for agents [POST /mcp]: choose another name"
                )
            );
            assert!(check("mcp-1").is_ok() && check("metrics").is_ok());
        }
        assert!(is_possible("mcp"), "earlier versions have created it");
        assert_eq!(
            check("Books_UPPER").unwrap_err().reason(),
            "Invalid index name [Books_UPPER], must be lowercase"
        );
    }
}
