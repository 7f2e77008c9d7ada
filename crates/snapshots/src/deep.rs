//! Reads stored JSON values that are nested inside other values.
//!
//! A value in a store may be nested as deeply as the JSON parser allows. In the file of a snapshot there are
//! more levels around it, so it is parsed separately, which counts levels from the value on.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::value::RawValue;

/// Deserialises a value that may be nested as deeply as a top-level one.
///
/// # Errors
/// When the value is malformed or nested more deeply.
pub(super) fn read<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    serde_json::from_str(text.get()).map_err(D::Error::custom)
}
