//! The forms in which values come over the wire: JSON with the place of each token, JSON whose keys come once, patterns with `*`,
//! sizes with their units, dates by Java's patterns, time zones.
//! Knows nothing of indices or searches.

mod body_error;
mod date_pattern;
pub mod deprecation;
mod exception;
pub mod glob;
pub mod java_float;
pub mod json;
pub mod size;
pub mod strict_json;
pub mod suggest;
mod zone;

pub use body_error::BodyError;
pub use date_pattern::{DatePattern, parse_iso8601};
pub use exception::Exception;
pub use zone::{Moment, NamedZone, OffsetRange, Zone};
