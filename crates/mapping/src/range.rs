//! Ranges of numbers, dates and addresses, as values of fields. The index holds each as a keyword: the places of its first and of its last
//! value among all values of their type, in hexadecimal digits. So the ranges that begin between two values are one stretch of the
//! dictionary.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ip::bits;
use super::types::{FieldType, NumberValue};

/// The bit that tells negative numbers apart.
const SIGN: u64 = 1 << 63;

/// The place of a number or date among all values of its type. That of the next value is one more.
pub fn rank(of: &FieldType, value: NumberValue) -> u128 {
    match (of, value) {
        (FieldType::Float, NumberValue::F64(value)) => {
            let bits = (value as f32).to_bits();
            // The place of -0.0 is that of 0.0, so that the number below is the next one.
            u128::from(if bits >> 31 == 1 { bits.wrapping_neg() } else { bits | 1 << 31 })
        }
        (_, NumberValue::F64(value)) => {
            let bits = value.to_bits();
            u128::from(if bits & SIGN != 0 { bits.wrapping_neg() } else { bits | SIGN })
        }
        (_, NumberValue::I64(value)) => u128::from(value as u64 ^ SIGN),
        (_, NumberValue::U64(value)) => u128::from(value | SIGN),
        (_, NumberValue::Bool(value)) => u128::from(value),
    }
}

/// The number or date at a place.
pub fn number_at(of: &FieldType, rank: u128) -> NumberValue {
    let bits = rank as u64;
    match of {
        FieldType::Float => {
            let bits = bits as u32;
            let bits = if bits >> 31 == 1 { bits ^ 1 << 31 } else { bits.wrapping_neg() };
            NumberValue::F64(f32::from_bits(bits).into())
        }
        FieldType::Double => {
            NumberValue::F64(f64::from_bits(if bits & SIGN != 0 { bits ^ SIGN } else { bits.wrapping_neg() }))
        }
        _ => NumberValue::I64((bits ^ SIGN) as i64),
    }
}

/// The place of an address.
pub fn rank_of_address(address: IpAddr) -> u128 {
    bits(address)
}

/// The places of the least and of the greatest value of a type.
pub fn bounds(of: &FieldType) -> RangeInclusive<u128> {
    let (least, most) = match of {
        FieldType::Ip => return 0..=u128::MAX,
        FieldType::Float | FieldType::Double => {
            (NumberValue::F64(f64::NEG_INFINITY), NumberValue::F64(f64::INFINITY))
        }
        FieldType::Integer => (NumberValue::I64(i32::MIN.into()), NumberValue::I64(i32::MAX.into())),
        _ => (NumberValue::I64(i64::MIN), NumberValue::I64(i64::MAX)),
    };
    rank(of, least)..=rank(of, most)
}

/// The digits of a place.
pub fn digits(of: &FieldType, rank: u128) -> String {
    match of {
        FieldType::Ip => format!("{rank:032x}"),
        _ => format!("{rank:016x}"),
    }
}

/// The places of the smallest and the largest value of a range, from the keyword by which it is indexed; `None` if the keyword is no range.
pub fn read(keyword: &str) -> Option<(u128, u128)> {
    let (first, last) = keyword.split_at_checked(keyword.len() / 2)?;
    Some((u128::from_str_radix(first, 16).ok()?, u128::from_str_radix(last, 16).ok()?))
}

/// A value of a field of ranges as it is shown, its ends by `typed`; `None` if that has nothing for one of them.
pub fn shown(value: &Value, typed: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    // A network stands for itself.
    let Value::Object(ends) = value else { return Some(value.clone()) };
    let end = |end: &Value| if end.is_null() { Some(Value::Null) } else { typed(end) };
    let ends = ends.iter().map(|(name, value)| Some((name.clone(), end(value)?)));
    ends.collect::<Option<Map<_, _>>>().map(Value::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_in_the_order_of_values(a: f64, b: f64, m: i64, n: i64) {
            let place = |value| rank(&FieldType::Double, NumberValue::F64(value));
            prop_assert_eq!(Some(place(a).cmp(&place(b))), a.partial_cmp(&b));
            prop_assert_eq!(number_at(&FieldType::Double, place(a)), NumberValue::F64(a));
            let place = |value| rank(&FieldType::Float, NumberValue::F64(f64::from(value)));
            let (x, y) = (a as f32, b as f32);
            prop_assert_eq!(Some(place(x).cmp(&place(y))), x.partial_cmp(&y));
            prop_assert_eq!(number_at(&FieldType::Float, place(x)), NumberValue::F64(x.into()));
            prop_assert_eq!(number_at(&FieldType::Float, place(1.0) + 1), NumberValue::F64(1f32.next_up().into()));
            let place = |value| rank(&FieldType::Long, NumberValue::I64(value));
            prop_assert_eq!(place(m).cmp(&place(n)), m.cmp(&n));
            prop_assert_eq!(number_at(&FieldType::Long, place(m)), NumberValue::I64(m));
            let keyword = digits(&FieldType::Long, place(m)) + &digits(&FieldType::Long, place(n));
            prop_assert_eq!(read(&keyword), Some((place(m), place(n))));
        }
    }

    #[test]
    fn zero_has_one_place_between_its_neighbours() {
        for of in [FieldType::Float, FieldType::Double] {
            assert_eq!(rank(&of, NumberValue::F64(-0.0)), rank(&of, NumberValue::F64(0.0)));
        }
        let beside = |of, step: i8| {
            let place = rank(&of, NumberValue::F64(0.0));
            number_at(&of, place.wrapping_add_signed(step.into()))
        };
        assert_eq!(beside(FieldType::Float, -1), NumberValue::F64(0f32.next_down().into()));
        assert_eq!(beside(FieldType::Float, 1), NumberValue::F64(0f32.next_up().into()));
        assert_eq!(beside(FieldType::Double, -1), NumberValue::F64(0f64.next_down()));
        assert_eq!(beside(FieldType::Double, 1), NumberValue::F64(0f64.next_up()));
    }
}
