//! A JSON document to values of its fields, with dynamic mapping.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use serde_json::{Map, Value};
use sparrow_vectors::Similarity;

use super::error::{Cause, DocumentError, DocumentErrorKind, ILLEGAL_ARGUMENT};
use super::location::Step;
use super::types::{Analyzer, Dynamic, FieldType, Limits, ParsedDocument};
use super::values::{self, java_float, java_string, token_name};
use super::{LeafNode, LeafOptions, Mapping, Node, ObjectNode, date, join};

/// Longest term Lucene takes, in bytes.
const MAX_TERM: usize = 32_766;
/// A float array of this many numbers and more becomes a dense vector.
const MIN_DYNAMIC_DIMS: usize = 128;
const MAX_DYNAMIC_DIMS: usize = 4096;
/// `ignore_above` of the keyword that dynamic mapping adds to a text.
const DYNAMIC_IGNORE_ABOVE: u64 = 256;

pub(super) fn parse_document(
    mapping: &Mapping,
    id: &str,
    source: &Value,
    limits: &Limits,
) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
    let mut reader = Reader {
        mapping,
        id,
        limits,
        out: ParsedDocument::default(),
        seen: FxHashSet::default(),
        keywords_seen: FxHashSet::default(),
        added: BTreeMap::new(),
        added_count: 0,
        steps: Vec::new(),
    };
    let Value::Object(map) = source else {
        return Err(reader.illegal(format!(
            "Malformed content, must start with an object, found {}",
            token_name(source)
        )));
    };
    let scope = Scope { node: Some(&mapping.root), path: "", dynamic: mapping.dynamic(), depth: 1 };
    reader.object(&scope, map)?;
    let Reader { mut out, added, .. } = reader;
    out.stored_source = stored_source(mapping, source);
    let wider = (!added.is_empty()).then(|| {
        let mut wider = mapping.clone();
        for (path, node) in added {
            let parts: Vec<&str> = path.split('.').collect();
            insert(&mut wider.root, &parts, node);
        }
        wider.rebuilt()
    });
    Ok((out, wider))
}

/// What is stored when the mapping filters the source.
fn stored_source(mapping: &Mapping, source: &Value) -> Option<Vec<u8>> {
    let config = mapping.source_filter();
    if !config.enabled {
        return Some(Vec::new());
    }
    if config.filter.is_empty() {
        return None;
    }
    // A JSON value always serializes.
    serde_json::to_vec(&config.filter.apply(source)).ok()
}

/// Puts an added node into the tree; parents come first, in path order.
fn insert(object: &mut ObjectNode, parts: &[&str], node: Node) {
    match parts {
        [] => {}
        [name] => match (object.properties.get_mut(*name), node) {
            // The dimensions of a mapped dense vector became known.
            (Some(Node::Leaf(old)), Node::Leaf(new)) => *old = new,
            (Some(_), _) => {}
            (None, node) => {
                object.properties.insert((*name).to_owned(), node);
            }
        },
        [name, rest @ ..] => {
            let child = object
                .properties
                .entry((*name).to_owned())
                .or_insert_with(|| Node::Object(ObjectNode::default()));
            if let Node::Object(child) = child {
                insert(child, rest, node);
            }
        }
    }
}

/// An object of the mapping that is being read into.
struct Scope<'p, 'a> {
    /// `None` for an object this document adds.
    node: Option<&'a ObjectNode>,
    path: &'p str,
    dynamic: Dynamic,
    depth: usize,
}

struct Reader<'a> {
    mapping: &'a Mapping,
    id: &'a str,
    limits: &'a Limits,
    out: ParsedDocument,
    seen: FxHashSet<String>,
    keywords_seen: FxHashSet<(String, String)>,
    /// Fields and objects this document adds, by path.
    added: BTreeMap<String, Node>,
    /// How many of them the limit counts, multi-fields included.
    added_count: usize,
    steps: Vec<Step>,
}

impl<'a> Reader<'a> {
    fn fail(&self, kind: DocumentErrorKind) -> DocumentError {
        DocumentError::new(kind, self.steps.clone())
    }

    fn illegal(&self, reason: String) -> DocumentError {
        DocumentError::illegal(reason, self.steps.clone())
    }

    fn object(&mut self, scope: &Scope<'_, 'a>, map: &Map<String, Value>) -> Result<(), DocumentError> {
        if scope.depth > self.limits.depth {
            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
        }
        for (key, value) in map {
            self.steps.push(Step::Key(key.clone()));
            if key.contains('.') {
                self.dotted(scope, key, value)?;
            } else {
                self.entry(scope, key, value)?;
            }
            self.steps.pop();
        }
        Ok(())
    }

    /// `"a.b": 1` is read as `"a": {"b": 1}`.
    fn dotted(&mut self, scope: &Scope<'_, 'a>, key: &str, value: &Value) -> Result<(), DocumentError> {
        let Some((first, rest)) = key.split_once('.') else { return self.entry(scope, key, value) };
        if first.trim().is_empty() || rest.trim().is_empty() {
            return Err(self.illegal(format!(
                "field name [{key}] cannot contain only whitespace or start or end with a dot"
            )));
        }
        let path = join(scope.path, first);
        let (node, dynamic, enabled) = match self.find(scope, first, &path) {
            Found::Object(node) => (
                node,
                node.and_then(|node| node.dynamic).unwrap_or(scope.dynamic),
                node.is_none_or(|node| node.enabled),
            ),
            Found::Leaf(leaf) => {
                return Err(self.illegal(format!(
                    "Could not dynamically add mapping for field [{}]. Existing mapping for [{path}] must be \
                     of type object but found [{}].",
                    join(scope.path, key),
                    leaf.field_type.name()
                )));
            }
            Found::Nothing => match scope.dynamic {
                Dynamic::False => return Ok(()),
                Dynamic::Strict => return Err(self.strict(scope, first)),
                Dynamic::True => {
                    if !self.add(&path, Node::Object(ObjectNode::default()))? {
                        return Ok(());
                    }
                    (None, scope.dynamic, true)
                }
            },
        };
        if !enabled {
            return Ok(());
        }
        if scope.depth + 1 > self.limits.depth {
            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
        }
        // The scope borrows the path for this call only; the mapping's nodes live longer.
        let inner = Inner { node, path, dynamic, depth: scope.depth + 1 };
        inner.with(self, |reader, scope| reader.dotted(scope, rest, value))
    }

    fn strict(&self, scope: &Scope<'_, '_>, name: &str) -> DocumentError {
        let parent = if scope.path.is_empty() { "_doc" } else { scope.path };
        self.fail(DocumentErrorKind::Strict { name: name.to_owned(), parent: parent.to_owned() })
    }

    fn find(&self, scope: &Scope<'_, 'a>, name: &str, path: &str) -> Found<'a> {
        match scope.node.and_then(|node| node.properties.get(name)) {
            Some(Node::Object(object)) => return Found::Object(Some(object)),
            Some(Node::Leaf(leaf)) => {
                // Its dimensions may have become known in this document.
                if let Some(Node::Leaf(added)) = self.added.get(path) {
                    return Found::Leaf(added.clone());
                }
                return Found::Leaf(leaf.clone());
            }
            None => {}
        }
        match self.added.get(path) {
            Some(Node::Object(_)) => Found::Object(None),
            Some(Node::Leaf(leaf)) => Found::Leaf(leaf.clone()),
            None => Found::Nothing,
        }
    }

    fn entry(&mut self, scope: &Scope<'_, 'a>, name: &str, value: &Value) -> Result<(), DocumentError> {
        if name.trim().is_empty() {
            return Err(self.illegal(if name.is_empty() {
                "field name cannot be an empty string".to_owned()
            } else {
                format!("field name cannot contain only whitespace: ['{name}']")
            }));
        }
        let path = join(scope.path, name);
        match self.find(scope, name, &path) {
            Found::Object(node) => {
                let enabled = node.is_none_or(|node| node.enabled);
                if !enabled {
                    return Ok(());
                }
                let dynamic = node.and_then(|node| node.dynamic).unwrap_or(scope.dynamic);
                let inner = Inner { node, path, dynamic, depth: scope.depth + 1 };
                inner.with(self, |reader, inner| reader.into_object(inner, name, value))
            }
            Found::Leaf(leaf) => self.leaf(&leaf, &path, value),
            Found::Nothing => self.unmapped(scope, name, path, value),
        }
    }

    /// A value for a mapped object.
    fn into_object(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        value: &Value,
    ) -> Result<(), DocumentError> {
        match value {
            Value::Object(map) => self.object(scope, map),
            Value::Null => Ok(()),
            Value::Array(values) => self.each(values, |reader, value| reader.into_object(scope, name, value)),
            _ => Err(self.fail(DocumentErrorKind::ConcreteForObject {
                path: scope.path.to_owned(),
                name: name.to_owned(),
            })),
        }
    }

    fn each(
        &mut self,
        values: &[Value],
        mut read: impl FnMut(&mut Self, &Value) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        for (index, value) in values.iter().enumerate() {
            self.steps.push(Step::Index(index));
            read(self, value)?;
            self.steps.pop();
        }
        Ok(())
    }

    fn unmapped(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        path: String,
        value: &Value,
    ) -> Result<(), DocumentError> {
        // A null gives no type to a field.
        if value.is_null() {
            return Ok(());
        }
        match scope.dynamic {
            Dynamic::False => return Ok(()),
            Dynamic::Strict => return Err(self.strict(scope, name)),
            Dynamic::True => {}
        }
        match value {
            Value::Null => Ok(()),
            Value::Object(map) => {
                if !self.add(&path, Node::Object(ObjectNode::default()))? {
                    return Ok(());
                }
                let inner =
                    Inner { node: None, path, dynamic: scope.dynamic, depth: scope.depth + 1 };
                inner.with(self, |reader, inner| reader.object(inner, map))
            }
            Value::Array(values) => {
                if looks_dense(values) {
                    let leaf = dense_leaf(values.len());
                    return match self.add(&path, Node::Leaf(leaf.clone()))? {
                        true => self.leaf(&leaf, &path, value),
                        false => Ok(()),
                    };
                }
                // The first element that has a type maps the field, the others follow it.
                self.each(values, |reader, value| reader.entry(scope, name, value))
            }
            scalar => {
                let leaf = self.dynamic_leaf(scalar);
                match self.add(&path, Node::Leaf(leaf.clone()))? {
                    true => self.leaf(&leaf, &path, scalar),
                    false => Ok(()),
                }
            }
        }
    }

    /// Adds a field or object; `false` if the limit is reached and such fields are to be ignored.
    fn add(&mut self, path: &str, node: Node) -> Result<bool, DocumentError> {
        let size = 1 + match &node {
            Node::Leaf(leaf) => leaf.fields.len(),
            Node::Object(_) => 0,
        };
        if self.mapping.field_count() + self.added_count + size > self.limits.total_fields {
            if self.limits.ignore_dynamic_beyond_limit {
                return Ok(false);
            }
            return Err(self.illegal(format!(
                "Limit of total fields [{}] has been exceeded while adding new fields [{}]",
                self.limits.total_fields,
                self.added_count + size
            )));
        }
        self.added_count += size;
        self.added.insert(path.to_owned(), node);
        Ok(true)
    }

    fn dynamic_leaf(&self, value: &Value) -> LeafNode {
        let plain = |field_type| LeafNode {
            field_type,
            options: LeafOptions::default(),
            params: Map::new(),
            fields: BTreeMap::new(),
        };
        match value {
            Value::Bool(_) => plain(FieldType::Boolean),
            Value::Number(number) if number.is_f64() => plain(FieldType::Float),
            Value::Number(_) => plain(FieldType::Long),
            other => {
                let text = other.as_str().unwrap_or_default();
                let whole = text.parse::<i64>().is_ok();
                let number = whole || values::parse_double(text).is_some();
                if number && self.mapping.numeric_detection {
                    return plain(if whole { FieldType::Long } else { FieldType::Float });
                }
                // Pure numbers are too often mistaken for years.
                if !number && self.mapping.date_detection
                    && let Some(format) = date::detect(text)
                {
                    let name = format.unwrap_or(date::DEFAULT_FORMAT);
                    let mut leaf = plain(FieldType::Date {
                        formats: date::parse_formats(name).unwrap_or_default(),
                    });
                    if let Some(format) = format {
                        leaf.params.insert("format".to_owned(), format.into());
                    }
                    return leaf;
                }
                let mut keyword =
                    plain(FieldType::Keyword { ignore_above: Some(DYNAMIC_IGNORE_ABOVE as usize) });
                keyword.params.insert("ignore_above".to_owned(), DYNAMIC_IGNORE_ABOVE.into());
                let mut leaf = plain(FieldType::Text { analyzer: Analyzer::Standard });
                leaf.fields.insert("keyword".to_owned(), keyword);
                leaf
            }
        }
    }

    /// A value for a mapped field and its multi-fields.
    fn leaf(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        match &leaf.field_type {
            FieldType::SparseVector | FieldType::RankFeatures => return self.sparse(leaf, path, value),
            FieldType::DenseVector { .. } => return self.dense(leaf, path, value),
            _ => {}
        }
        if let Value::Array(values) = value {
            return self.each(values, |reader, value| reader.leaf(leaf, path, value));
        }
        let shown = value;
        let value = match (value, &leaf.options.null_value) {
            (Value::Null, Some(null_value)) => null_value,
            (value, _) => value,
        };
        if let Err(causes) = self.scalar(leaf, path, value) {
            if leaf.options.ignore_malformed {
                return Ok(());
            }
            if shown.is_object() {
                self.steps.push(Step::End);
            }
            return Err(self.fail(DocumentErrorKind::Field {
                path: path.to_owned(),
                type_name: leaf.field_type.name(),
                id: self.id.to_owned(),
                preview: java_string(shown),
                causes,
            }));
        }
        for (name, sub) in &leaf.fields {
            self.leaf(sub, &join(path, name), value)?;
        }
        Ok(())
    }

    fn scalar(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), Vec<Cause>> {
        match &leaf.field_type {
            FieldType::Text { .. } => {
                if let Some(text) = text_of(value)?
                    && leaf.options.indexed
                {
                    self.seen(path);
                    self.out.texts.push((path.to_owned(), text));
                }
            }
            FieldType::Keyword { ignore_above } => {
                let Some(text) = text_of(value)? else { return Ok(()) };
                if ignore_above.is_some_and(|limit| text.chars().count() > limit) || !leaf.options.indexed {
                    return Ok(());
                }
                if text.len() > MAX_TERM {
                    let preview: Vec<String> =
                        text.as_bytes()[..30].iter().map(|&byte| (byte as i8).to_string()).collect();
                    return Err(vec![(
                        ILLEGAL_ARGUMENT,
                        format!(
                            "Document contains at least one immense term in field=\"{path}\" (whose UTF8 encoding is \
                             longer than the max length {MAX_TERM}), all of which were skipped. Please correct the \
                             analyzer to not produce such terms. The prefix of the first immense term is: '[{}]...'",
                            preview.join(", ")
                        ),
                    )]);
                }
                self.seen(path);
                // Lucene counts a repeated keyword of one document once.
                if self.keywords_seen.insert((path.to_owned(), text.clone())) {
                    self.out.keywords.push((path.to_owned(), text));
                }
            }
            field_type => {
                let number = values::number(field_type, leaf.options.coerce, value)?;
                if let Some(number) = number
                    && leaf.options.indexed
                {
                    self.seen(path);
                    self.out.numbers.push((path.to_owned(), number));
                }
            }
        }
        Ok(())
    }

    fn seen(&mut self, path: &str) {
        if !self.seen.contains(path) {
            self.seen.insert(path.to_owned());
            self.out.field_names.push(path.to_owned());
        }
    }

    /// Token weights: an object, or several whose weights are joined.
    fn sparse(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        let type_name = leaf.field_type.name();
        match value {
            Value::Null => Ok(()),
            Value::Array(values) => self.each(values, |reader, value| reader.sparse(leaf, path, value)),
            Value::Object(map) => {
                let at = match self.out.sparse.iter().position(|(known, _)| known == path) {
                    Some(at) => at,
                    None => {
                        self.out.sparse.push((path.to_owned(), Vec::with_capacity(map.len())));
                        self.out.sparse.len() - 1
                    }
                };
                // A second object of the same field is rare: only then are repeats looked for.
                let repeats_possible = !self.out.sparse[at].1.is_empty();
                for (feature, value) in map {
                    self.steps.push(Step::Key(feature.clone()));
                    let weight = self.feature(leaf, path, feature, value)?;
                    self.steps.pop();
                    let Some(weight) = weight else { continue };
                    let tokens = &mut self.out.sparse[at].1;
                    let known = if repeats_possible {
                        tokens.iter().position(|(token, _)| **token == **feature)
                    } else {
                        None
                    };
                    match known {
                        None => tokens.push((feature.as_str().into(), weight)),
                        Some(known) if matches!(leaf.field_type, FieldType::SparseVector) => {
                            tokens[known].1 = tokens[known].1.max(weight);
                        }
                        Some(_) => {
                            self.steps.push(Step::Key(feature.clone()));
                            return Err(self.illegal(format!(
                                "[rank_features] fields do not support indexing multiple values for the same rank \
                                 feature [{path}.{feature}] in the same document"
                            )));
                        }
                    }
                }
                if self.out.sparse[at].1.is_empty() {
                    self.out.sparse.remove(at);
                } else {
                    self.seen(path);
                }
                Ok(())
            }
            other => Err(self.illegal(format!(
                "[{type_name}] fields must be json objects, expected a START_OBJECT but got: {}",
                token_name(other).replace("_FLOAT", "")
            ))),
        }
    }

    fn feature(
        &self,
        leaf: &LeafNode,
        path: &str,
        feature: &str,
        value: &Value,
    ) -> Result<Option<f32>, DocumentError> {
        let type_name = leaf.field_type.name();
        if matches!(leaf.field_type, FieldType::RankFeatures) && feature.contains('.') {
            let mut steps = self.steps.clone();
            steps.pop();
            steps.push(Step::Name(feature.to_owned()));
            return Err(DocumentError::illegal(
                format!("[{type_name}] fields do not support dots in feature names but found [{feature}]"),
                steps,
            ));
        }
        if feature.len() > MAX_TERM {
            return Err(self.illegal(format!(
                "[{type_name}] feature names may have at most {MAX_TERM} bytes, found {}",
                feature.len()
            )));
        }
        if matches!(value, Value::Bool(_) | Value::Array(_) | Value::Object(_)) {
            return Err(self.illegal(format!(
                "[{type_name}] fields take hashes that map a feature to a strictly positive float, but got \
                 unexpected token {}",
                token_name(value)
            )));
        }
        values::weight(path, feature, value)
            .map_err(|causes| self.fail(DocumentErrorKind::Failed { causes }))
    }

    fn dense(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        let FieldType::DenseVector { dims, similarity, index } = &leaf.field_type else { return Ok(()) };
        let list = match value {
            Value::Null => return Ok(()),
            Value::Array(list) => list,
            other => {
                return Err(self.fail(DocumentErrorKind::Failed {
                    causes: vec![(
                        "parsing_exception",
                        format!(
                            "Failed to parse object: expecting token of type [START_ARRAY] but found [{}]",
                            token_name(other).replace("_FLOAT", "")
                        ),
                    )],
                }));
            }
        };
        if self.out.dense.iter().any(|(known, _)| known == path) {
            return Err(self.illegal(format!(
                "Field [{path}] of type [dense_vector] doesn't support indexing multiple values for the same field in the same document"
            )));
        }
        let mut vector = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            self.steps.push(Step::Index(at));
            if dims.is_some_and(|dims| at >= dims) {
                return Err(self.illegal(format!(
                    "The [dense_vector] field [{path}] in doc [document with id '{}'] has more dimensions than \
                     defined in the mapping [{}]",
                    self.id,
                    dims.unwrap_or_default()
                )));
            }
            let component = match value {
                Value::Number(number) => number.as_f64().map(|float| float as f32),
                Value::String(text) => values::parse_double(text).map(|float| float as f32),
                _ => None,
            };
            match component {
                Some(component) if component.is_finite() => vector.push(component),
                Some(component) => {
                    return Err(self.illegal(format!(
                        "element_type [float] vectors do not support NaN or infinite values but found [{}] at dim [{at}];",
                        java_float(component)
                    )));
                }
                None => {
                    return Err(self.fail(DocumentErrorKind::Failed {
                        causes: vec![(
                            "parsing_exception",
                            format!(
                                "Failed to parse object: expecting token of type [VALUE_NUMBER] but found [{}]",
                                token_name(value)
                            ),
                        )],
                    }));
                }
            }
            self.steps.pop();
        }
        self.steps.push(Step::End);
        match dims {
            Some(dims) if vector.len() != *dims => {
                return Err(self.illegal(format!(
                    "The [dense_vector] field [{path}] in doc [document with id '{}'] has a different number of \
                     dimensions [{}] than defined in the mapping [{dims}]",
                    self.id,
                    vector.len()
                )));
            }
            Some(_) => {}
            None if vector.is_empty() || vector.len() > MAX_DYNAMIC_DIMS => {
                return Err(self.illegal(format!(
                    "The number of dimensions should be in the range [1, {MAX_DYNAMIC_DIMS}] but was [{}]",
                    vector.len()
                )));
            }
            None => {
                let mut known = leaf.clone();
                if let FieldType::DenseVector { dims, .. } = &mut known.field_type {
                    *dims = Some(vector.len());
                }
                known.params.insert("dims".to_owned(), vector.len().into());
                self.added.insert(path.to_owned(), Node::Leaf(known));
            }
        }
        self.check_magnitude(*similarity, *index, &vector)?;
        self.steps.pop();
        if *index {
            self.seen(path);
            self.out.dense.push((path.to_owned(), vector));
        }
        Ok(())
    }

    fn check_magnitude(
        &self,
        similarity: Similarity,
        index: bool,
        vector: &[f32],
    ) -> Result<(), DocumentError> {
        if !index {
            return Ok(());
        }
        let squared: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let problem = match similarity {
            Similarity::Cosine if squared == 0.0 => "does not support vectors with zero magnitude",
            Similarity::DotProduct if (squared - 1.0).abs() > 1e-3 => {
                "can only be used with unit-length vectors"
            }
            _ => return Ok(()),
        };
        let preview: Vec<String> = vector.iter().take(5).map(|&component| java_float(component)).collect();
        let more = if vector.len() > 5 { ", ..." } else { "" };
        Err(self.illegal(format!(
            "The [{}] similarity {problem}. Preview of invalid vector: [{}{more}]",
            super::print::similarity_name(similarity),
            preview.join(", ")
        )))
    }
}

enum Found<'a> {
    /// `None`: added by this document.
    Object(Option<&'a ObjectNode>),
    Leaf(LeafNode),
    Nothing,
}

/// A scope that owns its path.
struct Inner<'a> {
    node: Option<&'a ObjectNode>,
    path: String,
    dynamic: Dynamic,
    depth: usize,
}

impl<'a> Inner<'a> {
    fn with<R>(self, reader: &mut Reader<'a>, run: impl FnOnce(&mut Reader<'a>, &Scope<'_, 'a>) -> R) -> R {
        let Inner { node, path, dynamic, depth } = self;
        run(reader, &Scope { node, path: &path, dynamic, depth })
    }
}

/// Text of a scalar; `None` for null.
fn text_of(value: &Value) -> Result<Option<String>, Vec<Cause>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(flag) => Ok(Some(flag.to_string())),
        other => Err(vec![(
            "illegal_state_exception",
            format!("Can't get text on a {}", token_name(other)),
        )]),
    }
}

fn looks_dense(values: &[Value]) -> bool {
    (MIN_DYNAMIC_DIMS..=MAX_DYNAMIC_DIMS).contains(&values.len())
        && values.iter().all(|value| value.is_f64())
}

fn dense_leaf(dims: usize) -> LeafNode {
    let mut params = Map::new();
    params.insert("dims".to_owned(), dims.into());
    LeafNode {
        field_type: FieldType::DenseVector {
            dims: Some(dims),
            similarity: Similarity::Cosine,
            index: true,
        },
        options: LeafOptions::default(),
        params,
        fields: BTreeMap::new(),
    }
}
