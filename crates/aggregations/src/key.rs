//! Keys of buckets, comparable between segments and indices.

use std::cmp::Ordering;
use std::sync::Arc;

/// What a bucket stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// No value.
    Missing,
    /// A whole number, boolean or date.
    Long(i64),
    /// A whole number that is not negative.
    Unsigned(u64),
    /// The bits of a number.
    Double(u64),
    /// A text.
    Text(Arc<str>),
    /// A place in a list of ranges or filters.
    Slot(usize),
    /// A composite key.
    Tuple(Box<[Key]>),
}

impl Key {
    /// The key of a number; both zeros are one.
    pub fn double(value: f64) -> Self {
        Key::Double(if value == 0.0 { 0.0_f64 } else { value }.to_bits())
    }

    /// The key as a number; texts have none.
    pub fn number(&self) -> f64 {
        match self {
            Key::Long(value) => *value as f64,
            Key::Unsigned(value) => *value as f64,
            Key::Double(bits) => f64::from_bits(*bits),
            Key::Slot(slot) => *slot as f64,
            Key::Missing | Key::Text(_) | Key::Tuple(_) => f64::NAN,
        }
    }

    /// Numbers of another kind as doubles, texts as they are.
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
