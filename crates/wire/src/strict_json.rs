//! Parses JSON values and rejects duplicate keys.
//!
//! `serde_json` keeps the last of several members with the same name. Elasticsearch rejects them, because it
//! is unclear which was meant. Detecting them costs nothing, as inserting into the map says whether a name
//! was there.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limit;

/// Parses a value.
///
/// # Errors
/// When the JSON is malformed, when a name comes twice in an object, and when the request of the thread is over a limit.
pub fn from_slice(bytes: &[u8]) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict(Any).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Deepest nesting of objects and arrays that the parser reads, in levels. Deeper values could be created and
/// written, but not read again.
pub const MOST_LEVELS: usize = 127;

/// Nesting depth of objects and arrays in a value; 0 for a scalar. Stops counting at [`MOST_LEVELS`] + 1.
pub fn levels(value: &Value) -> usize {
    fn count(value: &Value, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        match value {
            Value::Array(items) => 1 + items.iter().map(|item| count(item, left - 1)).max().unwrap_or(0),
            Value::Object(members) => {
                1 + members.values().map(|item| count(item, left - 1)).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
    count(value, MOST_LEVELS + 1)
}

/// Strategy for reading the members of an object. [`Strict`] reads all other values.
pub trait Members {
    /// Reads the members of one object.
    ///
    /// # Errors
    /// When the JSON is malformed, or when a name comes twice in the object, as [`insert`] finds out.
    fn read<'de, A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error>;
}

/// Strategy that accepts all members and reads their values strictly.
pub struct Any;

impl Members for Any {
    fn read<'de, A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        go_on(0)?;
        while let Some(name) = members.next_key::<String>()? {
            go_on(object.len())?;
            let value = members.next_value_seed(Strict(Any))?;
            insert(&mut object, name, value)?;
        }
        Ok(Value::Object(object))
    }
}

/// Called before the first and for each further value of an object or array, with the number of those before it.
///
/// # Errors
/// When the request of the thread is over a limit.
fn go_on<E: Error>(values: usize) -> Result<(), E> {
    match limit::stops_at(values) {
        true => Err(E::custom(limit::REASON)),
        false => Ok(()),
    }
}

/// Adds a member to an object, rejecting a duplicate name.
///
/// # Errors
/// When the object already has a member of that name.
pub fn insert<E: Error>(object: &mut Map<String, Value>, name: String, value: Value) -> Result<(), E> {
    let place = object.entry(name);
    if let serde_json::map::Entry::Occupied(occupied) = &place {
        return Err(E::custom(format_args!("Duplicate field '{}'", occupied.key())));
    }
    place.or_insert(value);
    Ok(())
}

/// Deserialisation seed that reads a value as [`from_slice`] does; if the value is an object, its members are
/// read by the strategy.
pub struct Strict<M>(pub M);

impl<'de, M: Members> DeserializeSeed<'de> for Strict<M> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Members> Visitor<'de> for Strict<M> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        go_on(0)?;
        while let Some(item) = items.next_element_seed(Strict(Any))? {
            go_on(list.len())?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error> {
        self.0.read(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::{MOST_LEVELS, from_slice, levels};

    #[test]
    fn as_many_levels_are_counted_as_can_be_read() {
        let nested =
            |levels| (1..levels).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner]));
        for (depth, readable) in [(1, true), (MOST_LEVELS, true), (MOST_LEVELS + 1, false), (400, false)] {
            let value = nested(depth);
            assert_eq!(levels(&value), depth.min(MOST_LEVELS + 1));
            let text = value.to_string();
            assert_eq!(from_slice(text.as_bytes()).is_ok(), readable, "{depth}");
            assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), readable, "{depth}");
        }
        assert_eq!(levels(&Value::from(1)), 0);
    }

    #[test]
    fn refuses_a_key_that_comes_twice_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"o":[{"b":{},"b":null}]}"#, r#"{"a":1,"\u0061":2}"#] {
            let error = from_slice(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("Duplicate field '"), "{error}");
        }
        assert!(from_slice(br#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#).is_ok());
    }

    #[test]
    fn refuses_what_is_malformed_or_too_deep() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{} {}", "[1,]", "nul", "1e999", deep.as_str(), "\"\\ud800\""] {
            assert!(from_slice(text.as_bytes()).is_err(), "{text:.20}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_reads(value in any_json()) {
            let text = value.to_string();
            prop_assert_eq!(from_slice(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(from_slice(&bytes).ok().is_some(), {
                let twice = from_slice(&bytes).err().is_some_and(|error| error.to_string().starts_with("Duplicate"));
                !twice && serde_json::from_slice::<Value>(&bytes).is_ok()
            });
        }
    }
}
