//! Keys of buckets, comparable between segments and indices.

use std::cmp::Ordering;
use std::sync::Arc;

/// Key of a bucket: the value, range or tuple that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// The key of documents without a value.
    Missing,
    /// A signed integer, boolean (0 or 1) or date (milliseconds since the epoch).
    Long(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A floating-point number, as the bits of an `f64`.
    Double(u64),
    /// A text, or the keyword that encodes an IP address.
    Text(Arc<str>),
    /// The index in a list of ranges or filters.
    Slot(usize),
    /// A composite key: one key per source.
    Tuple(Box<[Key]>),
}

impl Key {
    /// The key of a floating-point number; both zeros have the same key.
    pub fn double(value: f64) -> Self {
        Key::Double(if value == 0.0 { 0.0_f64 } else { value }.to_bits())
    }

    /// The key as a number; NaN for texts, tuples and missing values.
    pub fn number(&self) -> f64 {
        match self {
            Key::Long(value) => *value as f64,
            Key::Unsigned(value) => *value as f64,
            Key::Double(bits) => f64::from_bits(*bits),
            Key::Slot(slot) => *slot as f64,
            Key::Missing | Key::Text(_) | Key::Tuple(_) => f64::NAN,
        }
    }

    /// Converts integer keys to floating-point keys; other keys are unchanged.
    pub fn widened(self) -> Self {
        match self {
            Key::Long(_) | Key::Unsigned(_) => Key::double(self.number()),
            other => other,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Long(a), Key::Long(b)) => a.cmp(b),
            (Key::Unsigned(a), Key::Unsigned(b)) => a.cmp(b),
            (Key::Text(a), Key::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Key::Slot(a), Key::Slot(b)) => a.cmp(b),
            (Key::Tuple(a), Key::Tuple(b)) => a.cmp(b),
            (Key::Missing, Key::Missing) => Ordering::Equal,
            (Key::Missing, _) => Ordering::Less,
            (_, Key::Missing) => Ordering::Greater,
            (Key::Text(_), _) => Ordering::Greater,
            (_, Key::Text(_)) => Ordering::Less,
            (a, b) => a.number().total_cmp(&b.number()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
