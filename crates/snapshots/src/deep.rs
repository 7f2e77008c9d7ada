//! Values of the server's stores inside other values.
//!
//! A store holds as many levels of objects and arrays as a reader of JSON follows. In the file of a snapshot they have more around
//! them, so each is read by a reader of its own, which begins to count at the value.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::value::RawValue;

/// Reads a value that may be as deep as one that has nothing around it.
///
/// # Errors
/// What is malformed, or deeper than that.
pub(super) fn read<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    serde_json::from_str(text.get()).map_err(D::Error::custom)
}
