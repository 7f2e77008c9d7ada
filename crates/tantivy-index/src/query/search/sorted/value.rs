//! Sort values and their order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Missing, SortKey, SortSource};

/// The value that a hit is sorted by.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SortValue {
    /// No value, for keywords only; a number that is missing has a value in its place.
    #[default]
    Null,
    Long(i64),
    Unsigned(u64),
    Double(f64),
    Text(Arc<str>),
}

impl SortValue {
    /// Order of two values of the same key, ascending; nulls are equal and lowest.
    fn ascending(&self, other: &Self) -> Ordering {
        use SortValue::{Double, Long, Null, Text, Unsigned};
        match (self, other) {
            (Null, Null) => Ordering::Equal,
            (Null, _) => Ordering::Less,
            (_, Null) => Ordering::Greater,
            (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Text(_), _) => Ordering::Greater,
            (_, Text(_)) => Ordering::Less,
            (Double(a), Double(b)) => a.total_cmp(b),
            (Double(a), b) => a.total_cmp(&b.as_f64()),
            (a, Double(b)) => a.as_f64().total_cmp(b),
            (Long(_) | Unsigned(_), Long(_) | Unsigned(_)) => self.as_whole().cmp(&other.as_whole()),
        }
    }

    fn as_whole(&self) -> i128 {
        match self {
            SortValue::Long(value) => i128::from(*value),
            SortValue::Unsigned(value) => i128::from(*value),
            _ => 0,
        }
    }

    fn as_f64(&self) -> f64 {
        match self {
            SortValue::Long(value) => *value as f64,
            SortValue::Unsigned(value) => *value as f64,
            SortValue::Double(value) => *value,
            SortValue::Null | SortValue::Text(_) => f64::NAN,
        }
    }
}

/// Order of two hits by their values under `keys`; equal if all values are equal.
pub fn compare(keys: &[SortKey], a: &[SortValue], b: &[SortValue]) -> Ordering {
    for (key, (a, b)) in keys.iter().zip(a.iter().zip(b)) {
        let nulls_first =
            matches!(&key.source, SortSource::Column(column) if column.missing == Missing::First);
        let order = match (a, b) {
            (SortValue::Null, SortValue::Null) => Ordering::Equal,
            (SortValue::Null, _) if nulls_first => Ordering::Less,
            (SortValue::Null, _) => Ordering::Greater,
            (_, SortValue::Null) if nulls_first => Ordering::Greater,
            (_, SortValue::Null) => Ordering::Less,
            _ if key.descending => b.ascending(a),
            _ => a.ascending(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

const SIGN: u64 = 1 << 63;

/// Maps a signed whole number to a `u64` in the same order.
pub(super) fn encode_long(value: i64) -> u64 {
    value as u64 ^ SIGN
}

pub(super) fn decode_long(key: u64) -> i64 {
    (key ^ SIGN) as i64
}

/// Maps a floating-point number to a `u64` in the same order; both zeros are equal.
pub(super) fn encode_double(value: f64) -> u64 {
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

pub(super) fn decode_double(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode_double, decode_long, encode_double, encode_long};

    proptest! {
        #[test]
        fn codes_keep_order_and_value(a: i64, b: i64, x in -1e300..1e300f64, y in -1e3..1e3f64) {
            prop_assert_eq!(encode_long(a).cmp(&encode_long(b)), a.cmp(&b));
            prop_assert_eq!(decode_long(encode_long(a)), a);
            prop_assert_eq!(encode_double(x).cmp(&encode_double(y)), x.total_cmp(&y));
            prop_assert_eq!(decode_double(encode_double(x)), x);
        }
    }

    #[test]
    fn ends_and_zeros() {
        assert!(encode_double(f64::NEG_INFINITY) < encode_double(f64::MIN));
        assert!(encode_double(f64::INFINITY) > encode_double(f64::MAX));
        assert_eq!(encode_double(-0.0), encode_double(0.0));
        assert_eq!((encode_long(i64::MIN), encode_long(i64::MAX)), (0, u64::MAX));
    }
}
