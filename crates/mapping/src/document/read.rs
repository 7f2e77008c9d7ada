//! A fast reader of a document's JSON that knows the mapping: it puts token weights directly into their packed form.
//!
//! A vector of 200 tokens as a JSON value is an ordered map of 200 strings, which takes longer to build than
//! everything else done with it. This reader handles the usual form of such fields and gives up on any other, and on
//! any error in a document: the general reader then reports what is wrong.

use std::borrow::Cow;
use std::fmt;

use rustc_hash::FxHashSet;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use sparrow_types::PackedTokens;
use sparrow_wire::strict_json::{Any, Members, Strict, insert};

use super::super::source::SourceFilter;
use super::super::types::FieldType;
use super::super::values::is_weight;
use super::super::{Mapping, Node, ObjectNode, SourceConfig, join};
use super::METADATA;
use super::leaf::MAX_TERM;

/// A document read by the fast reader: its token weights apart from everything else.
#[derive(Debug)]
pub struct ReadDocument {
    /// The document as a JSON value, without the fields that are in `tokens`.
    pub rest: Value,
    /// Token weights by the path of their field.
    pub(crate) tokens: Vec<(String, PackedTokens)>,
}

impl ReadDocument {
    /// A document read without the fast path, entirely as a JSON value.
    pub fn whole(value: Value) -> Self {
        Self { rest: value, tokens: Vec::new() }
    }

    /// The document as a JSON value; `None` if token weights were read separately.
    pub fn into_value(self) -> Option<Value> {
        self.tokens.is_empty().then_some(self.rest)
    }
}

/// Reads a document whose token weights, if it has any, are in the usual form: one object as the field's value,
/// within objects that are in the mapping. `None` for any other document, and for an invalid one.
pub(crate) fn read(mapping: &Mapping, source: &[u8]) -> Option<ReadDocument> {
    let mut tokens = Vec::new();
    let object = Object {
        node: &mapping.root,
        path: "",
        filter: stored_filter(mapping.source_filter()),
        out: &mut tokens,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(source);
    let rest = Strict(object).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    rest.is_object().then_some(ReadDocument { rest, tokens })
}

/// Whether the mapping has a field whose token weights can be read separately.
pub(crate) fn has_tokens(object: &ObjectNode, path: &str, source: &SourceConfig) -> bool {
    object.enabled
        && object.properties.iter().any(|(name, node)| {
            let path = join(path, name);
            match node {
                Node::Object(object) => has_tokens(object, &path, source),
                Node::Leaf(leaf) => leaf.field_type.has_tokens() && is_apart(&path, stored_filter(source)),
            }
        })
}

/// The filter that selects which parts of the source are stored; `None` if all or nothing of it is stored.
fn stored_filter(source: &SourceConfig) -> Option<&SourceFilter> {
    (source.enabled && !source.filter.is_empty()).then_some(&source.filter)
}

/// Whether a field's token weights can be read separately; they cannot if a source filter might store them, which
/// needs a JSON value.
fn is_apart(path: &str, filter: Option<&SourceFilter>) -> bool {
    filter.is_none_or(|filter| filter.excludes(path))
}

/// Deserializer of a JSON object whose mapping is known.
struct Object<'m, 'o> {
    node: &'m ObjectNode,
    path: &'o str,
    filter: Option<&'m SourceFilter>,
    out: &'o mut Vec<(String, PackedTokens)>,
}

impl Members for Object<'_, '_> {
    fn read<'de, A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { node, path, filter, out } = self;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if path.is_empty() && METADATA.contains(&name.as_str()) {
                return Err(A::Error::custom("a name that no document may have"));
            }
            let value = match node.properties.get(&name) {
                Some(Node::Leaf(leaf)) if leaf.field_type.has_tokens() => {
                    let path = join(path, &name);
                    if is_apart(&path, filter) {
                        if out.iter().any(|(other, _)| *other == path) {
                            return Err(A::Error::custom("a field twice"));
                        }
                        let is_dotted = matches!(leaf.field_type, FieldType::SparseVector);
                        let tokens = members.next_value_seed(Tokens { is_dotted })?;
                        out.push((path, tokens));
                        continue;
                    }
                    members.next_value_seed(Strict(Any))?
                }
                Some(Node::Object(node)) if node.enabled => {
                    members.next_value_seed(Strict(Object { node, path: &join(path, &name), filter, out }))?
                }
                _ => members.next_value_seed(Strict(Any))?,
            };
            insert(&mut object, name, value)?;
        }
        Ok(Value::Object(object))
    }
}

/// Deserializer of an object of weights by token.
struct Tokens {
    /// Whether a token may have dots.
    is_dotted: bool,
}

impl<'de> DeserializeSeed<'de> for Tokens {
    type Value = PackedTokens;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PackedTokens, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Tokens {
    type Value = PackedTokens;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of weights")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PackedTokens, A::Error> {
        let mut tokens = PackedTokens::with_capacity(128);
        while let Some(token) = members.next_key_seed(Token)? {
            let weight = members.next_value_seed(Weight)?;
            if token.len() > MAX_TERM || !self.is_dotted && token.contains('.') {
                return Err(A::Error::custom("a token that the field does not take"));
            }
            tokens.push(&token, weight);
        }
        if tokens.is_empty() {
            // The field has no value then, which the other reader knows.
            return Err(A::Error::custom("no tokens"));
        }
        let mut seen = FxHashSet::with_capacity_and_hasher(tokens.len(), Default::default());
        match tokens.iter().all(|(token, _)| seen.insert(token)) {
            true => Ok(tokens),
            false => Err(A::Error::custom("a token twice")),
        }
    }
}

/// Deserializer of a token, borrowed from the input if it has no escapes.
struct Token;

impl<'de> DeserializeSeed<'de> for Token {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Token {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a token")
    }

    fn visit_borrowed_str<E: Error>(self, token: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(token))
    }

    fn visit_str<E: Error>(self, token: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(token.to_owned()))
    }
}

/// Deserializer of a weight given as a JSON number.
struct Weight;

impl<'de> DeserializeSeed<'de> for Weight {
    type Value = f32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f32, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Weight {
    type Value = f32;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a weight")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f32, E> {
        let weight = value as f32;
        if is_weight(weight) { Ok(weight) } else { Err(E::custom("no weight")) }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f32, E> {
        self.visit_f64(value as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::{Limits, Mapping, ReadDocument};

    fn mapping(source: &str) -> Mapping {
        Mapping::parse(&json!({
            "_source": serde_json::from_str::<serde_json::Value>(source).unwrap(),
            "properties": {
                "v": {"type": "sparse_vector"},
                "r": {"type": "rank_features"},
                "ml": {"properties": {"tokens": {"type": "sparse_vector"}, "n": {"type": "long"}}},
                "off": {"type": "object", "enabled": false},
                "t": {"type": "text"},
            },
        }))
        .unwrap()
    }

    /// Asserts that both readers give the same result for a document; returns whether the fast one handled it.
    fn agree(mapping: &Mapping, source: &str) -> bool {
        let limits = Limits::default();
        let Some(read) = mapping.read_document(source.as_bytes()) else { return false };
        let value = sparrow_wire::strict_json::from_slice(source.as_bytes())
            .unwrap_or_else(|error| panic!("{source}: was read, though {error}"));
        let quick = mapping.parse_read_document("1", &read, &limits);
        let slow = mapping.parse_document("1", &value, &limits);
        match (quick, slow) {
            (Ok((mut quick, wider)), Ok((mut slow, widened))) => {
                quick.sparse.sort_by(|a, b| a.0.cmp(&b.0));
                slow.sparse.sort_by(|a, b| a.0.cmp(&b.0));
                quick.field_names.sort();
                slow.field_names.sort();
                assert_eq!(quick, slow, "{source}");
                assert_eq!(wider.map(|it| it.to_json()), widened.map(|it| it.to_json()), "{source}");
            }
            (Err(quick), Err(slow)) => assert_eq!(quick.reason(), slow.reason(), "{source}"),
            (quick, slow) => panic!("{source}: {quick:?}, but {slow:?}"),
        }
        true
    }

    #[test]
    fn the_usual_form_is_read_at_once_and_means_the_same() {
        let mapping = mapping("{}");
        for source in [
            r#"{"v": {"a": 1, "x.y": 2.5e-3}, "t": "text", "new": [1, {"b": null}]}"#,
            r#"{"ml": {"tokens": {"\u00fcber": 1.25, "\"": 2}, "n": 3, "other": true}, "v": {"b": 1}}"#,
            r#"{"r": {"a": 0.5}, "ml": [{"n": 1}], "off": {"v": {"a": 1, "b": "x"}}}"#,
            r#"{"v": {"a": 1}, "ml": "no object"}"#,
            r#"{"v": {"a": 1}, "v.b": 1}"#,
            r#"{"v": {"a": 1}, "t": {"b": 1}}"#,
            r#"{"ml": [{"tokens": {"a": 1}}]}"#,
            r#"{"ml.tokens": {"a": 1}}"#,
            r#"{"t": "no tokens", "new": {"a": [1, 2]}}"#,
            r#"{}"#,
        ] {
            assert!(agree(&mapping, source), "{source}");
        }
    }

    #[test]
    fn whatever_else_there_is_the_reader_of_values_has_to_read() {
        let mapping = mapping("{}");
        for source in [
            r#"{"v": {}}"#,
            r#"{"v": {}, "v": {"a": 1}}"#,
            r#"{"ml": {"tokens": {}, "tokens": {"a": 1}}}"#,
            r#"{"v": {"a": 1}, "r": {}}"#,
            r#"{"v": {"a": 1}, "_id": 1}"#,
            r#"{"t": 1, "t": 2}"#,
            r#"{"v": [{"a": 1}, {"a": 2}]}"#,
            r#"{"v": {"a": "1"}}"#,
            r#"{"v": {"a": -1}}"#,
            r#"{"v": {"a": 0}}"#,
            r#"{"v": {"a": 1e39}}"#,
            r#"{"v": {"a": null, "b": 1}}"#,
            r#"{"v": {"a": 1, "a": 2}}"#,
            r#"{"v": {"a": 1, "\u0061": 2}}"#,
            r#"{"v": {"a": 1}, "v": {"b": 2}}"#,
            r#"{"v": {"a": 1}, "t": "x", "t": "y"}"#,
            r#"{"r": {"a.b": 1}}"#,
            r#"{"v": {"a": 1}"#,
            r#"{"v": {"a": 1}} {}"#,
            r#"[{"v": {"a": 1}}]"#,
            r#"{"v": null}"#,
            "",
        ] {
            assert!(mapping.read_document(source.as_bytes()).is_none(), "{source}");
        }
        let long = format!(r#"{{"v": {{"{}": 1}}}}"#, "x".repeat(40_000));
        assert!(mapping.read_document(long.as_bytes()).is_none());
    }

    #[test]
    fn a_field_that_the_source_keeps_is_a_value() {
        let source = r#"{"v": {"a": 1}, "ml": {"tokens": {"b": 2}, "n": 1}, "t": "x"}"#;
        for (filter, taken) in [
            (r#"{"enabled": false}"#, 2),
            (r#"{"excludes": ["v"]}"#, 1),
            (r#"{"excludes": ["*.tokens", "v"]}"#, 2),
            (r#"{"excludes": ["ml"]}"#, 0),
            (r#"{"includes": ["t"]}"#, 0),
            (r#"{"excludes": ["t"]}"#, 0),
            (r#"{"includes": ["v", "ml"], "excludes": ["ml.tokens"]}"#, 1),
        ] {
            let mapping = mapping(filter);
            let read = mapping.read_document(source.as_bytes());
            assert_eq!(read.as_ref().map_or(0, |read| read.tokens.len()), taken, "{filter}");
            assert_eq!(agree(&mapping, source), taken > 0);
        }
        let whole = ReadDocument::whole(json!({"t": "x"}));
        assert!(mapping("{}").parse_read_document("1", &whole, &Limits::default()).is_ok());
    }

    proptest! {
        #[test]
        fn both_readers_say_the_same(members in proptest::collection::vec(
            ("[vrt]|ml|off|v\\.x", prop_oneof![
                Just(r#"{"a": 1, "b": 0.25}"#), Just(r#"{"a.b": 3}"#), Just(r#"{"tokens": {"x": 1}, "n": 2}"#),
                Just(r#"{"tokens": {"x": 0}}"#), Just("[1, 2]"), Just("7"), Just(r#""text""#), Just("null"), Just("{}"),
                Just(r#"{"n": "no number"}"#), Just(r#"{"tokens": [{"x": 1}]}"#),
            ]), 0..5,
        )) {
            let members: Vec<String> =
                members.into_iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
            agree(&mapping("{}"), &format!("{{{}}}", members.join(", ")));
        }
    }
}
