//! Reads a document from its JSON, knowing the mapping, without a tree of values in between.
//!
//! Texts go from the JSON into the document, and token weights into their packed form. A member that needs more becomes
//! a JSON value, which the reader of values takes. On any error in a document, and on token weights in an unusual form,
//! this reader gives up: the reader of values then says what is wrong. So it does on a number that a text or keyword
//! field holds as it was written.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use sparrow_wire::json::WrittenNumbers;
use sparrow_wire::strict_json::{Any, Strict};

use super::super::source::SourceFilter;
use super::super::types::{FieldType, Limits, ParsedDocument};
use super::super::{LeafNode, Mapping, Node, join};
use super::leaf::takes_texts;
use super::metadata::METADATA;
use super::tokens::{Text, Tokens};
use super::values::FEW;
use super::{Reader, Scope};

/// Reads a document as [`super::parse_document`] does. `None` for an invalid one, and where the token weights of a field
/// are in another form than one object as its value.
pub(crate) fn read(
    mapping: &Mapping,
    id: &str,
    source: &[u8],
    limits: &Limits,
) -> Option<(ParsedDocument, Option<Mapping>)> {
    let config = mapping.source_filter();
    let filter = (config.enabled && !config.filter.is_empty()).then_some(&config.filter);
    if filter.is_some() && WrittenNumbers::of(source).is_some() {
        // Values that pass the filter are printed again here.
        return None;
    }
    let kept = match filter {
        None => Kept::Nothing,
        Some(filter) if filter.includes.is_empty() => Kept::All,
        Some(_) => Kept::Parts,
    };
    let stored = Vec::with_capacity(filter.map_or(0, |_| source.len()));
    let mut document = Document { reader: Reader::new(mapping, id, limits, None), filter, stored };
    let scope = document.reader.root();
    let mut deserializer = serde_json::Deserializer::from_slice(source);
    deserializer.deserialize_map(MappedObject { document: &mut document, scope, kept }).ok()?;
    deserializer.end().ok()?;
    let Document { reader, stored, .. } = document;
    if reader.lacks_number_text {
        return None;
    }
    let (mut parsed, wider) = reader.finish().ok()?;
    parsed.stored_source = (filter.is_some() || !config.enabled).then_some(stored);
    Some((parsed, wider))
}

/// How much of a value is stored, if the mapping filters the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The value is excluded, or the source is stored as it came.
    Nothing,
    /// What the filter includes by its path.
    Parts,
    All,
}

/// A document that is being read.
struct Document<'a> {
    reader: Reader<'a>,
    filter: Option<&'a SourceFilter>,
    /// The JSON of what passes the filter.
    stored: Vec<u8>,
}

impl<'a> Document<'a> {
    /// How much is stored of the member at `path`, of an object of which `around` is stored.
    fn kept(&self, around: Kept, path: &str) -> Kept {
        match self.filter {
            Some(filter) if around != Kept::Nothing && !filter.excludes(path) => {
                if around == Kept::All || filter.includes(path) { Kept::All } else { Kept::Parts }
            }
            _ => Kept::Nothing,
        }
    }

    /// Reads the value of the member called `name`, which comes next in `members`; returns whether something of it was
    /// stored.
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        path: &str,
        kept: Kept,
        members: &mut A,
    ) -> Result<bool, A::Error> {
        match scope.node.and_then(|node| node.properties.get(name)) {
            Some(Node::Object(node)) if node.enabled => {
                let scope = Scope {
                    node: Some(node),
                    path,
                    dynamic: node.dynamic.unwrap_or(scope.dynamic),
                    depth: scope.depth + 1,
                };
                members.next_value_seed(MappedObject { document: self, scope, kept })
            }
            // Token weights that are stored are needed as a value too.
            Some(Node::Leaf(leaf)) if leaf.field_type.has_tokens() && kept == Kept::Nothing => {
                if self.reader.values.out.sparse.iter().any(|(other, _)| other == path) {
                    return Err(A::Error::custom("a field twice"));
                }
                let is_dotted = matches!(leaf.field_type, FieldType::SparseVector);
                let tokens = members.next_value_seed(Tokens { is_dotted })?;
                self.reader.values.seen(path);
                self.reader.values.out.sparse.push((path.to_owned(), tokens));
                Ok(false)
            }
            Some(Node::Leaf(leaf)) if takes_texts(leaf) => match members.next_value_seed(TextOrValue)? {
                TextOrOther::Text(text) => self.text(leaf, path, &text, kept),
                TextOrOther::Other(value) => self.value(scope, name, path, &value, kept),
            },
            _ => {
                let value = members.next_value_seed(Strict(Any))?;
                self.value(scope, name, path, &value, kept)
            }
        }
    }

    #[expect(clippy::ptr_arg, reason = "a borrowed text had no escapes, an owned one had some")]
    fn text<E: Error>(
        &mut self,
        leaf: &LeafNode,
        path: &str,
        text: &Cow<'_, str>,
        kept: Kept,
    ) -> Result<bool, E> {
        self.reader.texts(leaf, path, text).map_err(|_| E::custom("no value of the field"))?;
        if kept != Kept::All {
            return Ok(false);
        }
        self.store_text(text)?;
        Ok(true)
    }

    fn value<E: Error>(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        path: &str,
        value: &Value,
        kept: Kept,
    ) -> Result<bool, E> {
        let read = match name.contains('.') {
            true => self.reader.dotted(scope, name, value),
            false => self.reader.entry(scope, name, value),
        };
        read.map_err(|_| E::custom("no value of the field"))?;
        let passes = match (self.filter, kept) {
            (None, _) | (_, Kept::Nothing) => None,
            (Some(filter), kept) => filter.value(value, path, kept == Kept::All),
        };
        let Some(passes) = passes else { return Ok(false) };
        serde_json::to_writer(&mut self.stored, &passes).map_err(E::custom)?;
        Ok(true)
    }

    /// Adds a text to the JSON that is stored.
    #[expect(clippy::ptr_arg, reason = "a borrowed text had no escapes, an owned one had some")]
    fn store_text<E: Error>(&mut self, text: &Cow<'_, str>) -> Result<(), E> {
        match text {
            // It came without escapes, and goes without.
            Cow::Borrowed(text) => {
                self.stored.push(b'"');
                self.stored.extend_from_slice(text.as_bytes());
                self.stored.push(b'"');
                Ok(())
            }
            Cow::Owned(text) => serde_json::to_writer(&mut self.stored, text).map_err(E::custom),
        }
    }
}

/// Deserializer of the value of an object in the mapping: an object, null, or a list of them. Returns whether something
/// of it was stored.
struct MappedObject<'d, 'p, 'a> {
    document: &'d mut Document<'a>,
    scope: Scope<'p, 'a>,
    kept: Kept,
}

impl<'de> DeserializeSeed<'de> for MappedObject<'_, '_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MappedObject<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let Self { document, scope, kept } = self;
        if scope.depth > document.reader.limits.depth {
            return Err(A::Error::custom("too deep"));
        }
        let nested = document.reader.nested_at(&scope);
        if nested.is_some() && document.reader.begin(scope.path).is_err() {
            return Err(A::Error::custom("too many objects"));
        }
        if kept != Kept::Nothing {
            document.stored.push(b'{');
        }
        let (mut names, mut is_stored) = (Names::default(), false);
        while let Some(name) = members.next_key_seed(Text)? {
            if names.contains(&name) || scope.path.is_empty() && METADATA.contains(&&*name) {
                return Err(A::Error::custom("a name twice, or one that no document may have"));
            }
            let path = join(scope.path, &name);
            let inner = document.kept(kept, &path);
            let before = document.stored.len();
            if inner != Kept::Nothing {
                if is_stored {
                    document.stored.push(b',');
                }
                document.store_text(&name)?;
                document.stored.push(b':');
            }
            if document.member(&scope, &name, &path, inner, &mut members)? {
                is_stored = true;
            } else {
                document.stored.truncate(before);
            }
            names.add(name);
        }
        if kept != Kept::Nothing {
            document.stored.push(b'}');
        }
        if let Some(nested) = nested
            && document.reader.end(nested).is_err()
        {
            return Err(A::Error::custom("values that the document around cannot have"));
        }
        Ok(kept == Kept::All || is_stored)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let Self { document, scope, kept } = self;
        if kept != Kept::Nothing {
            document.stored.push(b'[');
        }
        let mut is_stored = false;
        loop {
            let before = document.stored.len();
            if kept != Kept::Nothing && is_stored {
                document.stored.push(b',');
            }
            match items.next_element_seed(MappedObject { document, scope, kept })? {
                Some(true) => is_stored = true,
                Some(false) => document.stored.truncate(before),
                None => {
                    document.stored.truncate(before);
                    break;
                }
            }
        }
        if kept != Kept::Nothing {
            document.stored.push(b']');
        }
        Ok(kept == Kept::All || is_stored)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        if self.kept == Kept::All {
            self.document.stored.extend_from_slice(b"null");
        }
        Ok(self.kept == Kept::All)
    }
}

/// The names of an object's members so far.
#[derive(Default)]
struct Names<'de> {
    list: Vec<Cow<'de, str>>,
    /// All names of the members so far, in place of the list, once there are more than [`FEW`]. Hashed with a random seed, as a client
    /// chooses the names.
    set: HashSet<Cow<'de, str>>,
}

impl<'de> Names<'de> {
    fn contains(&self, name: &str) -> bool {
        if self.set.is_empty() {
            self.list.iter().any(|other| other == name)
        } else {
            self.set.contains(name)
        }
    }

    fn add(&mut self, name: Cow<'de, str>) {
        if self.set.is_empty() && self.list.len() < FEW {
            self.list.push(name);
        } else {
            self.set.extend(self.list.drain(..));
            self.set.insert(name);
        }
    }
}

enum TextOrOther<'de> {
    Text(Cow<'de, str>),
    Other(Value),
}

/// Deserializer of any value, which builds no JSON value of a text.
struct TextOrValue;

impl<'de> DeserializeSeed<'de> for TextOrValue {
    type Value = TextOrOther<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextOrValue {
    type Value = TextOrOther<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextOrOther::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOrOther::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Strict(Any).visit_bool(value).map(TextOrOther::Other)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Strict(Any).visit_i64(value).map(TextOrOther::Other)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Strict(Any).visit_u64(value).map(TextOrOther::Other)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Strict(Any).visit_f64(value).map(TextOrOther::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(TextOrOther::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Strict(Any).visit_seq(items).map(TextOrOther::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        Strict(Any).visit_map(members).map(TextOrOther::Other)
    }
}

#[cfg(test)]
mod tests;
