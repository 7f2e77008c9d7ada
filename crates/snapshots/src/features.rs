//! Feature states, Elasticsearch's name for what a snapshot may contain besides indices and the global state.
//! There is one: `security`, the API keys.
//!
//! API keys are checked before requests reach the engine, which knows only the file that holds them. A
//! snapshot stores the text of that file unchanged; before a restore, `snapshot_keys` returns it to the part
//! of the server that manages keys.

use serde_json::Value;
use sparrow_write_ahead_log::{DataDir, StorageError};

use super::list_of;
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;

/// Name of the feature whose state is the API keys.
pub(super) const SECURITY: &str = "security";

/// Path of the file with the API keys, relative to the data directory.
const KEYS: &str = "security/api_keys.json";

/// Whether `feature_states` names the API keys.
///
/// # Errors
/// For any other feature.
pub(super) fn parse(value: &Value) -> Result<bool, EngineError> {
    let list = list_of("feature_states", value)?;
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] | ["none"] => Ok(false),
        names if names.iter().all(|name| *name == SECURITY) => Ok(true),
        _ => Err(EngineError::illegal_argument(format!(
            "[feature_states] must be empty, [none] or [{SECURITY}], as there are no other features with a state here, but \
             was [{list}]"
        ))),
    }
}

/// Checks that the caller may copy or restore API keys; a caller who can do that can grant himself any right.
///
/// # Errors
/// 403 for a caller without all rights.
pub(super) fn check(request: &Request, action: &str) -> Result<(), EngineError> {
    request.caller.check_unlimited(&format!("{action}/{SECURITY}"))
}

/// Text of the file with the API keys; `None` if there is no such file.
///
/// # Errors
/// When the file exists but cannot be read.
pub(super) fn keys(data: &DataDir) -> Result<Option<String>, EngineError> {
    let path = data.path().join(KEYS);
    match sparrow_file_system::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io("read", &path)(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_security_and_none_are_features() {
        assert!(parse(&json!(["security"])).unwrap());
        assert!(parse(&json!("security")).unwrap());
        assert!(!parse(&json!([])).unwrap());
        assert!(!parse(&json!(["none"])).unwrap());
        for other in [json!(["none", "security"]), json!(["kibana"]), json!(["security", "kibana"])] {
            assert!(parse(&other).unwrap_err().reason().contains("no other features"), "{other}");
        }
    }
}
