//! The forms in which values come over the wire: JSON with the place of each token, JSON whose keys come once, patterns with `*`.
//! Knows nothing of indices or searches.

mod body_error;
pub mod deprecation;
mod exception;
pub mod glob;
pub mod java_float;
pub mod json;
pub mod strict_json;
pub mod suggest;

pub use body_error::BodyError;
pub use exception::Exception;
