//! The forms in which values come over the wire: JSON with the place of each token, JSON whose keys come once, patterns with `*`.
//! Knows nothing of indices or searches.

mod exception;
pub mod glob;
pub mod json;
pub mod strict_json;

pub use exception::Exception;
