//! Contexts of `completion` fields: categories and places that an input belongs to. The index keeps an input once for each of its
//! contexts, which stands before the key of its term.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sparrow_wire::shape::{self, Shape, count, object, text};

use super::error::MappingError;
use super::geo::{self, GeoPoint};
use super::java::java_string;
use super::parameters::{Params, bad};

/// Stands behind a context in a term. No input and no context has it.
pub(crate) const CONTEXT_END: char = '\u{1d}';
/// Most contexts that a field may have.
const MOST_DEFINED: usize = 10;
/// Most contexts that a request may ask for, each cell of a place being one.
const MOST_ASKED: usize = 10_000;
/// Longest category in bytes: it is part of a term, and terms have a bound.
const LONGEST_CATEGORY: usize = 1_000;
/// Digits of the geohash of a place whose mapping does not say how many.
const DEFAULT_PRECISION: usize = 6;

/// A context that the inputs of a field have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The name that documents and requests give it.
    pub name: String,
    pub kind: ContextKind,
    /// Path of the field whose values it has, besides those that stand with an input.
    pub path: Option<String>,
}

/// What the values of a context are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// Texts.
    Category,
    /// Places, as the cells of geohashes of so many digits.
    Geo { precision: usize },
}

/// A context that a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedContext {
    /// What the terms begin with.
    pub start: String,
    /// Whether it is a whole context, which ends there.
    pub is_whole: bool,
    /// What the weights of inputs in it are multiplied with.
    pub boost: u32,
}

/// Reads the `contexts` of a field.
pub(crate) fn shape() -> Shape {
    let precision = count().about("of a `geo` context: digits of a geohash, or a distance");
    object([
        ("name", text()),
        ("type", shape::one(&["category", "geo", "CATEGORY", "GEO"])),
        ("path", text()),
        ("precision", precision),
    ])
    .needs(&["name", "type"])
}

pub(crate) fn parse(params: &mut Params<'_>) -> Result<Vec<Context>, MappingError> {
    let field = params.field;
    let Some(given) = params.take("contexts").cloned() else { return Ok(Vec::new()) };
    let definitions = match given {
        Value::Array(definitions) => definitions,
        single => vec![single],
    };
    if definitions.len() > MOST_DEFINED {
        return Err(bad(format!(
            "Limit of completion field contexts [{MOST_DEFINED}] has been exceeded, found [{}]",
            definitions.len()
        )));
    }
    let mut contexts: Vec<Context> = Vec::new();
    for definition in &definitions {
        let context = context(field, definition)?;
        if contexts.iter().any(|known| known.name == context.name) {
            return Err(bad(format!("Context [{}] of field [{field}] is there twice", context.name)));
        }
        contexts.push(context);
    }
    if !contexts.is_empty() {
        params.kept.insert("contexts".to_owned(), contexts.iter().map(shown).collect());
    }
    Ok(contexts)
}

fn context(field: &str, definition: &Value) -> Result<Context, MappingError> {
    let Value::Object(members) = definition else {
        return Err(bad(format!("[contexts] of field [{field}] takes objects")));
    };
    let text = |name: &str| members.get(name).filter(|value| !value.is_null()).map(java_string);
    let name = text("name").ok_or_else(|| bad("name is missing in context".to_owned()))?;
    let kind = text("type").ok_or_else(|| bad("type is missing in context".to_owned()))?;
    let is_geo = match kind.to_ascii_lowercase().as_str() {
        "category" => false,
        "geo" => true,
        _ => return Err(bad(format!("No context type for [{kind}]"))),
    };
    let known = |name: &&String| {
        matches!(name.as_str(), "name" | "type" | "path") || is_geo && name.as_str() == "precision"
    };
    if let Some(unknown) = members.keys().find(|name| !known(name)) {
        return Err(bad(format!("unknown parameter [{unknown}] of the context [{name}] of field [{field}]")));
    }
    let kind = match is_geo {
        false => ContextKind::Category,
        true => ContextKind::Geo {
            precision: members.get("precision").map_or(Ok(DEFAULT_PRECISION), precision).map_err(bad)?,
        },
    };
    Ok(Context { name, kind, path: text("path") })
}

/// A context as mappings show it.
fn shown(context: &Context) -> Value {
    let mut shown = json!({"name": context.name, "type": "CATEGORY"});
    if let ContextKind::Geo { precision } = context.kind {
        shown["type"] = "GEO".into();
        shown["precision"] = precision.into();
    }
    if let Some(path) = &context.path {
        shown["path"] = path.as_str().into();
    }
    shown
}

/// Digits of a geohash, given as their number or as the size of its cell.
fn precision(value: &Value) -> Result<usize, String> {
    let text = java_string(value);
    let digits = match text.parse::<i64>() {
        Ok(digits) => usize::try_from(digits).unwrap_or(0),
        Err(_) => geo::geohash_digits(geo::meters(&text, "m")?),
    };
    match digits {
        1..=geo::GEOHASH_DIGITS => Ok(digits),
        _ => Err(format!("precision must be between 1 and {}, but was [{text}]", geo::GEOHASH_DIGITS)),
    }
}

/// What the terms of an input begin with that has this value of the context of this number.
fn start(number: usize, value: &str) -> String {
    format!("{number}{value}{CONTEXT_END}")
}

impl Context {
    /// The values that a document gives with an input, as they are in terms.
    fn values(&self, given: &Value, out: &mut BTreeSet<String>) -> Result<(), String> {
        match (self.kind, given) {
            (ContextKind::Geo { precision }, point) if is_point(point) => {
                let point = GeoPoint::on_earth(point, &self.name)?;
                out.insert(point.geohash(precision));
            }
            (_, Value::Array(values)) => {
                values.iter().try_for_each(|value| self.values(value, out))?;
            }
            (ContextKind::Category, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
                out.insert(category(&java_string(given))?);
            }
            _ => {
                return Err(format!(
                    "context [{}] must be a string, number or boolean, a place, or a list of these",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

fn is_point(value: &Value) -> bool {
    match value {
        Value::Array(values) => GeoPoint::is_position(values),
        Value::Object(_) | Value::String(_) => true,
        _ => false,
    }
}

fn category(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_CATEGORY || text.contains([CONTEXT_END, '\0']) {
        return Err(format!("a category has at most {LONGEST_CATEGORY} bytes, and no reserved characters"));
    }
    Ok(text.to_owned())
}

/// What the terms of an input begin with, for the contexts that stand with it in a document.
///
/// # Errors
/// A message, if the field has no context of a given name, or a context cannot have a given value.
pub(crate) fn starts_of(
    contexts: &[Context],
    given: &Map<String, Value>,
) -> Result<BTreeSet<String>, String> {
    let mut starts = BTreeSet::new();
    for (name, value) in given {
        let number = number_of(contexts, name)?;
        let mut values = BTreeSet::new();
        contexts[number].values(value, &mut values)?;
        starts.extend(values.iter().map(|value| start(number, value)));
    }
    Ok(starts)
}

/// What the terms of an input begin with, for a value of the field at the path of the context of this number.
pub(crate) fn start_of_field(contexts: &[Context], number: usize, value: &FieldValue<'_>) -> Option<String> {
    match (contexts[number].kind, value) {
        (ContextKind::Category, FieldValue::Text(text)) => Some(start(number, &category(text).ok()?)),
        (ContextKind::Geo { precision }, FieldValue::Point(point)) => {
            Some(start(number, &point.geohash(precision)))
        }
        _ => None,
    }
}

/// A value of a field that a context reads.
pub(crate) enum FieldValue<'v> {
    Text(&'v str),
    Point(GeoPoint),
}

fn number_of(contexts: &[Context], name: &str) -> Result<usize, String> {
    contexts.iter().position(|context| context.name == name).ok_or_else(|| {
        let known: Vec<&str> = contexts.iter().map(|context| context.name.as_str()).collect();
        format!("Unknown context name [{name}], must be one of [{}]", known.join(", "))
    })
}

/// What a request asks for, of each context by its name. What it asks for several times is there once, with the largest boost.
///
/// # Errors
/// The message about a context that the field does not have, no context at all, or too many of them.
pub fn asked(contexts: &[Context], given: &Map<String, Value>) -> Result<Vec<AskedContext>, String> {
    let mut asked = Asked::new();
    for (name, value) in given {
        let number = number_of(contexts, name)?;
        let values = match value {
            Value::Array(values) if !GeoPoint::is_position(values) => &values[..],
            single => std::slice::from_ref(single),
        };
        for value in values {
            one(&contexts[number], number, value, &mut asked)?;
            if asked.len() > MOST_ASKED {
                return Err(format!(
                    "a completion asks for at most {MOST_ASKED} contexts and cells of places"
                ));
            }
        }
    }
    match asked.is_empty() {
        true => Err("Missing mandatory contexts in context query".to_owned()),
        false => {
            let context = |(start, (is_whole, boost))| AskedContext { start, is_whole, boost };
            Ok(asked.into_iter().map(context).collect())
        }
    }
}

/// By what terms begin with: whether that is a whole context, and the boost.
type Asked = BTreeMap<String, (bool, u32)>;

fn one(context: &Context, number: usize, given: &Value, asked: &mut Asked) -> Result<(), String> {
    let empty = Map::new();
    // A place may stand for itself, also as an object.
    let (value, options) = match given {
        Value::Object(members) if members.contains_key("context") => (&members["context"], members),
        plain => (plain, &empty),
    };
    let is_geo = context.kind != ContextKind::Category;
    let known = |name: &&String| match name.as_str() {
        "context" | "boost" => true,
        "prefix" => !is_geo,
        "precision" | "neighbours" => is_geo,
        _ => false,
    };
    if let Some(unknown) = options.keys().find(|name| !known(name)) {
        return Err(format!("unknown option [{unknown}] of context [{}]", context.name));
    }
    let boost = match options.get("boost") {
        None => 1,
        Some(boost) => java_string(boost)
            .parse::<i32>()
            .ok()
            .and_then(|boost| u32::try_from(boost).ok().filter(|boost| *boost > 0))
            .ok_or_else(|| format!("boost must be greater than 0, but was [{}]", java_string(boost)))?,
    };
    match context.kind {
        ContextKind::Category => {
            let (Value::String(_) | Value::Number(_) | Value::Bool(_)) = value else {
                return Err(format!("category context [{}] must be a text", context.name));
            };
            let is_prefix = match options.get("prefix") {
                None => false,
                Some(Value::Bool(flag)) => *flag,
                Some(Value::String(text)) if text == "true" || text == "false" => text == "true",
                Some(other) => {
                    return Err(format!("[prefix] must be a boolean, but was [{}]", java_string(other)));
                }
            };
            let category = category(&java_string(value))?;
            ask(asked, number, &category, !is_prefix, boost);
        }
        ContextKind::Geo { precision: digits } => {
            let point = GeoPoint::on_earth(value, &context.name)?;
            let given = options.get("precision").map_or(Ok(digits), precision)?;
            let hash = point.geohash(given.min(digits));
            let neighbours: BTreeSet<usize> = match options.get("neighbours") {
                None if hash.len() == digits => BTreeSet::from([digits]),
                None => BTreeSet::new(),
                Some(Value::Array(list)) => list.iter().map(precision).collect::<Result<_, _>>()?,
                Some(single) => BTreeSet::from([precision(single)?]),
            };
            let mut cells = BTreeSet::from([hash.clone()]);
            for digits in neighbours.into_iter().filter(|digits| *digits <= hash.len()) {
                cells.insert(hash[..digits].to_owned());
                cells.extend(geo::neighbours(&hash[..digits]));
            }
            for hash in &cells {
                ask(asked, number, hash, hash.len() == digits, boost);
            }
        }
    }
    Ok(())
}

fn ask(asked: &mut Asked, number: usize, value: &str, is_whole: bool, boost: u32) {
    let start = if is_whole { start(number, value) } else { format!("{number}{value}") };
    let known = asked.entry(start).or_insert((is_whole, boost));
    known.1 = known.1.max(boost);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use serde_json::{Value, json};
    use sparrow_runtime::work::{self, Memory, Work};

    use super::{Context, ContextKind, MOST_ASKED, asked};
    use crate::{DocumentError, DocumentErrorKind, Limits, Mapping, MappingError};

    /// A mapping with a completion whose context of this type has the values of the field at `path`.
    fn mapping(kind: &str, path: &str) -> Value {
        let contexts = json!({"name": "c", "type": kind, "path": path});
        json!({"properties": {
            "s": {"properties": {"s": {"type": "completion", "contexts": contexts}}},
            "word": {"type": "keyword", "fields": {"text": {"type": "text"}}},
            "number": {"type": "long"},
            "same": {"type": "constant_keyword", "value": "x"},
            "place": {"type": "geo_point"},
            "other_word": {"type": "alias", "path": "word"},
            "other_place": {"type": "alias", "path": "place"},
            "inside": {"type": "nested", "properties": {"word": {"type": "keyword"}}},
        }})
    }

    /// The values of the completion in a document with the fields that contexts have the values of.
    fn read(mapping: &Mapping, inputs: Value) -> Result<Vec<String>, DocumentError> {
        let source = json!({"s": {"s": inputs}, "word": ["a", "b"], "place": [4.53, 52.22], "number": 7});
        let (parsed, _) = mapping.parse_document("1", &source, &Limits::default())?;
        let of_field = parsed.keywords.into_iter().filter(|(path, _)| path == "s.s");
        Ok(of_field.map(|(_, value)| value.replace('\u{1d}', "|")).collect())
    }

    #[test]
    fn every_input_has_the_contexts_that_fields_give() {
        for (kind, path, expected) in [
            ("category", "word", &["1 0a|x", "1 0b|x", "1 0a|y", "1 0b|y"][..]),
            ("category", "other_word", &["1 0a|x", "1 0b|x", "1 0a|y", "1 0b|y"]),
            ("category", "word.text", &["1 0a|x", "1 0b|x", "1 0a|y", "1 0b|y"]),
            ("category", "same", &["1 0x|x", "1 0x|y"]),
            ("geo", "place", &["1 0u171p4|x", "1 0u171p4|y"]),
            ("geo", "other_place", &["1 0u171p4|x", "1 0u171p4|y"]),
        ] {
            let mapping = Mapping::parse(&mapping(kind, path)).unwrap();
            assert_eq!(read(&mapping, json!(["x", "y"])).unwrap(), expected, "{kind} {path}");
        }
    }

    #[test]
    fn an_input_without_a_context_is_named_by_its_field() {
        let mapping = Mapping::parse(&mapping("category", "later")).unwrap();
        assert_eq!(read(&mapping, json!(["x", "y"])).unwrap_err().path(), "s.s");
        let many: Vec<String> = (0..=10_000).map(|number| number.to_string()).collect();
        let source = json!({"s": {"s": many}, "later": "x"});
        let error = mapping.parse_document("1", &source, &Limits::default()).unwrap_err();
        assert_eq!(error.path(), "s.s");
        assert!(error.causes()[0].1.contains("more than 10000 contexts in one document"), "{error}");
    }

    #[test]
    fn inputs_are_read_until_the_request_has_to_stop() {
        let mapping = Mapping::parse(&mapping("category", "word")).unwrap();
        let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
        let stopped = work::enter(Some(Work::new(Arc::new(AtomicBool::new(true)), memory, "<test>")));
        let error = read(&mapping, json!("x")).unwrap_err();
        drop(stopped);
        assert!(matches!(error.kind(), DocumentErrorKind::Stopped(_)), "{error}");
    }

    #[test]
    fn fields_that_cannot_give_contexts_are_refused_with_the_mapping() {
        for (kind, path, needed) in [
            ("category", "number", "is a [keyword] or a [text]"),
            ("category", "place", "is a [keyword] or a [text]"),
            ("category", "s", "is a [keyword] or a [text]"),
            ("category", "inside.word", "is not inside a [nested] one"),
            ("geo", "word", "is there and is a [geo_point]"),
            ("geo", "later", "is there and is a [geo_point]"),
        ] {
            let definition = mapping(kind, path);
            let refused = MappingError::BadValue {
                reason: format!(
                    "Invalid [path] value [{path}] of the context [c] of field [s.s]: it takes a field that {needed}"
                ),
            };
            assert_eq!(Mapping::parse(&definition).unwrap_err(), refused);
            assert_eq!(Mapping::empty().merge_update(&definition).unwrap_err(), refused);
            assert!(Mapping::stored(&definition).is_ok());
        }
    }

    fn ask(given: Value) -> Result<Vec<(String, u32)>, String> {
        let context = |name: &str, kind| Context { name: name.to_owned(), kind, path: None };
        let contexts = [context("c", ContextKind::Category), context("g", ContextKind::Geo { precision: 2 })];
        let Value::Object(given) = given else { panic!("an object") };
        let shown = |asked: super::AskedContext| (asked.start.replace('\u{1d}', "|"), asked.boost);
        Ok(asked(&contexts, &given)?.into_iter().map(shown).collect())
    }

    #[test]
    fn what_is_asked_for_twice_is_there_once_with_the_largest_boost() {
        let boosted = |boost: u32| json!({"context": "a", "boost": boost});
        let prefix = json!({"context": "a", "prefix": true});
        assert_eq!(
            ask(json!({"c": ["a", boosted(3), boosted(2), prefix, "a"]})).unwrap(),
            [("0a".to_owned(), 1), ("0a|".to_owned(), 3)]
        );
        let at = json!({"lat": 52.22, "lon": 4.53});
        let around =
            ask(json!({"g": [at, {"context": at, "boost": 2, "neighbours": vec![2; 100]}]})).unwrap();
        assert_eq!(around.len(), 9);
        assert!(around.iter().all(|(_, boost)| *boost == 2), "{around:?}");
    }

    #[test]
    fn only_so_many_contexts_are_asked_for() {
        let most: Vec<String> = (0..MOST_ASKED).map(|number| number.to_string()).collect();
        assert_eq!(ask(json!({"c": most})).map(|asked| asked.len()), Ok(MOST_ASKED));
        let refused = "a completion asks for at most 10000 contexts and cells of places";
        assert_eq!(ask(json!({"c": most, "g": "u1"})).unwrap_err(), refused);
    }
}
