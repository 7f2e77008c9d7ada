//! Value formats of requests and responses: JSON with token locations, JSON with unique keys, patterns with
//! `*`, sizes with units, dates by Java patterns, time zones. Independent of indices and searches.

mod body_error;
pub mod date_format;
mod date_pattern;
pub mod decimal;
pub mod deprecation;
mod exception;
pub mod glob;
pub mod java_float;
pub mod json;
mod limit;
pub mod shape;
pub mod size;
pub mod strict_json;
pub mod suggest;
pub mod version;
mod zone;

pub use body_error::BodyError;
pub use date_pattern::{DatePattern, IsoDate};
pub use exception::{Exception, shortened};
pub use zone::{Moment, NamedZone, OffsetRange, Zone};

use serde_json::Value;

/// Most characters of a text of the request that the answer repeats, for each bucket, hit or token: of a name, key, separator or tag,
/// or of a value for those that have none.
pub const MOST_REPEATED: usize = 1_000;

/// An object of values that may be large: they are moved into it, while `json!` copies what it is given.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
