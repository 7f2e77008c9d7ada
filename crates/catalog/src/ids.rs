//! Checking and generating ids of documents.

use sparrow_request::error::EngineError;

/// Longest `_id`, in bytes.
const MAX_ID_BYTES: usize = 512;

/// Refuses an id that is empty or too long.
pub(super) fn check_id(id: &str) -> Result<(), EngineError> {
    if id.is_empty() {
        return Err(EngineError::illegal_argument("if _id is specified it must not be empty"));
    }
    if id.len() > MAX_ID_BYTES {
        return Err(EngineError::invalid(format!(
            "id is too long, must be no longer than {MAX_ID_BYTES} bytes but was: {}",
            id.len()
        )));
    }
    Ok(())
}

/// A new document id: 20 URL-safe characters, as Elasticsearch generates them.
pub fn generate_id() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&uuid::Uuid::new_v4().as_bytes()[..15])
}
