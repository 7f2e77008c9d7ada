//! Mappings: what fields an index has, and how a JSON document becomes values of them.

mod alias;
mod checks;
mod chunking;
mod completion;
mod completion_contexts;
mod completion_keys;
mod dense;
mod document;
mod dynamic;
mod encoded;
mod error;
pub mod geo;
pub mod ip;
mod java;
mod json_cursor;
mod location;
mod nested;
mod parameters;
mod parse;
pub mod passages;
mod print;
pub mod range;
mod semantic;
mod semantic_text;
mod slots;
mod source;
mod source_selection;
mod sparse_options;
#[cfg(test)]
mod tests;
mod types;
mod update;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use self::dynamic::DynamicTemplate;
use self::types::Nested;
use sparrow_runtime::work;
use sparrow_wire::json::{self, WrittenNumbers};

pub use chunking::{Chunking, ChunkingError, Separator};
pub use completion::Completion;
pub use completion_contexts::{AskedContext, asked as asked_contexts};
pub use completion_keys::{
    CompletionEntry, keys as completion_keys, split_context, terms as completion_terms,
};
pub use dense::problems::{component_problem, magnitude_problem, preview};
pub use dense::{DenseVector, VectorOptions};
pub use document::MAX_TERM;
pub use encoded::query_vector;
pub use error::{DocumentError, DocumentErrorKind, MappingError};
pub use geo::GeoPoint;
pub use java::{java_double, java_string, json_token};
pub use parse::{mapping_shape, schemas};
pub use semantic::Copies;
pub use semantic_text::{
    DEFAULT_INFERENCE_ID, HYBRID_TASK, SemanticModel, SemanticText, Slot, Slots, field_of, number_of,
};
pub use source::{SourceFilter, objects_at, values_at, wrapped, wrapping};
pub use source_selection::SourceSelection;
pub use sparrow_wire::date_format::{self as date, DateFormat};
pub use sparse_options::{PruningConfig, SparseIndexOptions};
pub use types::{
    DEFAULT_ANALYZER, Dynamic, FieldType, IGNORED, KeywordKind, LONGEST_NAME, Limits, MOST_LEVELS,
    MOST_TOTAL_FIELDS, NumberValue, ParsedDocument, ROUTING, TextIndexOptions, TextKind, TextOptions,
    feature_value,
};
pub use values::{is_above, normalize_float};

/// The `_source` section of a mapping: whether and in which parts the source of documents is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceConfig {
    pub enabled: bool,
    pub filter: SourceFilter,
}

impl SourceConfig {
    /// What to store of a document's source; `None` to store it as it came.
    pub(crate) fn stored(&self, source: &Value, numbers: Option<&WrittenNumbers>) -> Option<Vec<u8>> {
        if !self.enabled {
            return Some(Vec::new());
        }
        if self.filter.is_empty() {
            return None;
        }
        let mut stored = Vec::new();
        json::write(&self.filter.apply(source), numbers.as_slice(), &mut stored);
        Some(stored)
    }
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self { enabled: true, filter: SourceFilter::default() }
    }
}

/// A leaf's parameters that change how values are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafOptions {
    /// Whether values are indexed; otherwise they are only checked.
    pub indexed: bool,
    pub coerce: bool,
    /// Whether values that the field cannot take are left out; as the index is set, if the mapping does not say.
    pub ignore_malformed: Option<bool>,
    pub null_value: Option<Value>,
    /// Paths of the fields that `copy_to` copies the values to.
    pub copy_to: Vec<String>,
}

impl Default for LeafOptions {
    fn default() -> Self {
        Self { indexed: true, coerce: true, ignore_malformed: None, null_value: None, copy_to: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LeafNode {
    pub field_type: FieldType,
    pub options: LeafOptions,
    /// Parameters as they were written, without those that say the default.
    pub params: Map<String, Value>,
    pub fields: BTreeMap<String, LeafNode>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectNode {
    pub dynamic: Option<Dynamic>,
    pub enabled: bool,
    /// `None` for an object whose values are those of the document around it.
    pub nested: Option<Nested>,
    pub properties: BTreeMap<String, Node>,
}

impl Default for ObjectNode {
    fn default() -> Self {
        Self { dynamic: None, enabled: true, nested: None, properties: BTreeMap::new() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Object(ObjectNode),
    Leaf(Box<LeafNode>),
}

impl From<LeafNode> for Node {
    fn from(leaf: LeafNode) -> Self {
        Self::Leaf(Box::new(leaf))
    }
}

/// Date formats under the name that the mapping gives them; a name may stand for several alternatives.
type DateFormats = Arc<[(String, Vec<DateFormat>)]>;

/// The fields of an index. Cheap to clone apart from its tree.
#[derive(Debug, Clone)]
pub struct Mapping {
    pub(crate) root: ObjectNode,
    source: SourceConfig,
    /// Whether documents have to be written, and are only found by their ids, with a routing (`_routing.required`).
    routing_required: bool,
    meta: Option<Value>,
    date_detection: bool,
    numeric_detection: bool,
    /// Date formats (`dynamic_date_formats`) that detect dates in unmapped fields, as the mapping names them; `None`
    /// for the default formats.
    dynamic_dates: Option<DateFormats>,
    dynamic_templates: Arc<[DynamicTemplate]>,
    /// Paths and values of the `constant_keyword` fields whose value is known.
    constants: Arc<[(String, Arc<str>)]>,
    /// Every field, object and multi-field by full path.
    by_path: Arc<FxHashMap<String, FieldType>>,
    /// Paths of the `semantic_text` fields, sorted: writes ask for them.
    semantic: Arc<[String]>,
    has_flattened: bool,
    has_aliases: bool,
    /// Paths of the `nested` fields, sorted, so that one comes before those inside it.
    nested: Arc<[String]>,
    /// See [`Mapping::semantic_key`].
    semantic_key: u64,
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
            && self.source == other.source
            && self.routing_required == other.routing_required
            && self.meta == other.meta
            && self.date_detection == other.date_detection
            && self.numeric_detection == other.numeric_detection
            && self.dynamic_dates == other.dynamic_dates
            && self.dynamic_templates == other.dynamic_templates
    }
}

impl Default for Mapping {
    fn default() -> Self {
        Self::empty()
    }
}

impl Mapping {
    /// A mapping without fields; documents add them.
    pub fn empty() -> Self {
        Self {
            root: ObjectNode::default(),
            source: SourceConfig::default(),
            routing_required: false,
            meta: None,
            date_detection: true,
            numeric_detection: false,
            dynamic_dates: None,
            dynamic_templates: Arc::default(),
            constants: Arc::default(),
            by_path: Arc::default(),
            semantic: Arc::default(),
            has_flattened: false,
            has_aliases: false,
            nested: Arc::default(),
            semantic_key: 0,
        }
    }

    /// Reads the `mappings` object of a create-index or put-mapping request.
    ///
    /// # Errors
    /// See [`MappingError`]. The limit of fields is not checked: [`Mapping::check_total_fields`].
    pub fn parse(definition: &Value) -> Result<Self, MappingError> {
        let mapping = Self::parse_part(definition)?;
        mapping.check_dependent()?;
        Ok(mapping)
    }

    /// Parses a definition that is merged with others, as [`Mapping::parse`] does, but an alias may stand for a field that only the others
    /// have.
    ///
    /// # Errors
    /// See [`MappingError`].
    pub fn parse_part(definition: &Value) -> Result<Self, MappingError> {
        parse::parse(definition)
    }

    /// Reads a mapping that the server has stored. Formats of dates that an earlier version took and this one does not know read
    /// nothing; see [`Mapping::unusable_formats`].
    ///
    /// # Errors
    /// See [`MappingError`].
    pub fn stored(definition: &Value) -> Result<Self, MappingError> {
        parse::stored(definition)
    }

    /// The formats of dates that read nothing, each with the field or the parameter that has it, and the reason.
    pub fn unusable_formats(&self) -> Vec<(String, String)> {
        let of_fields =
            self.leaf_fields().filter_map(|(path, field_type)| Some((path, field_type.date_formats()?)));
        let dynamic = self.dynamic_dates.iter().flat_map(|formats| formats.iter());
        let formats = of_fields.chain(dynamic.map(|(_, formats)| ("dynamic_date_formats", &formats[..])));
        formats.filter_map(|(owner, formats)| Some((owner.to_owned(), date::unusable(formats)?))).collect()
    }

    /// The formats of dates as the mapping writes them, of fields and of `dynamic_date_formats`.
    pub(crate) fn date_formats(&self) -> impl Iterator<Item = &str> {
        let dates = self.leaf_fields().filter(|(_, field)| field.date_formats().is_some());
        let of_fields = dates.filter_map(|(path, _)| self.parameter(path, "format")?.as_str());
        let dynamic = self.dynamic_dates.iter().flat_map(|formats| formats.iter());
        of_fields.chain(dynamic.map(|(formats, _)| formats.as_str()))
    }

    /// The mapping as `GET _mapping` shows it: the value of `mappings`.
    pub fn to_json(&self) -> Value {
        // This is written to disk as well, so it must not end early when a request has to stop.
        print::print(self, &|| Ok(())).unwrap_or_default()
    }

    /// As [`Mapping::to_json`], for the answer of the current thread's request.
    ///
    /// # Errors
    /// When the request must stop.
    pub fn shown(&self) -> Result<Value, work::Stopped> {
        print::print(self, &work::check)
    }

    /// This mapping updated with the fields and parameters of `definition`.
    ///
    /// # Errors
    /// If the definition is malformed or would change an existing field in a way that is not allowed.
    pub fn merge_update(&self, definition: &Value) -> Result<Self, MappingError> {
        update::merge_update(self, definition)
    }

    /// Whether documents have to be written, and are only found by their ids, with a routing.
    pub fn requires_routing(&self) -> bool {
        self.routing_required
    }

    /// Type of the field, object or multi-field (`title.raw`) at `path`, of the field that `path` is an alias of, or of the
    /// `flattened` field that it lies in.
    pub fn field(&self, path: &str) -> Option<&FieldType> {
        self.at(path).or_else(|| if self.has_flattened { self.flattened_around(path) } else { None })
    }

    /// Whether any field is `flattened`.
    pub fn has_flattened(&self) -> bool {
        self.has_flattened
    }

    /// Whether a path lies in the objects of a `flattened` field.
    pub fn is_in_flattened(&self, path: &str) -> bool {
        self.has_flattened && !self.by_path.contains_key(path) && self.flattened_around(path).is_some()
    }

    /// Type of the `flattened` field in whose objects a path lies.
    fn flattened_around(&self, path: &str) -> Option<&FieldType> {
        let mut path = path;
        while let Some((around, _)) = path.rsplit_once('.') {
            if let Some(field_type) = self.at(around) {
                return field_type.is_flattened().then_some(field_type);
            }
            path = around;
        }
        None
    }

    /// All fields with values, multi-fields included, objects and aliases not, in no particular order.
    pub fn leaf_fields(&self) -> impl Iterator<Item = (&str, &FieldType)> {
        self.by_path
            .iter()
            .filter(|(_, field_type)| {
                !matches!(field_type, FieldType::Object { .. } | FieldType::Alias { .. })
            })
            .map(|(path, field_type)| (path.as_str(), field_type))
    }

    /// Number of fields, multi-fields, aliases and objects, as counted for `index.mapping.total_fields.limit`.
    pub fn field_count(&self) -> usize {
        self.by_path.len()
    }

    /// What happens to unmapped fields at the top level.
    pub fn dynamic(&self) -> Dynamic {
        self.root.dynamic.unwrap_or_default()
    }

    /// The `_source` settings: which parts of a document are stored.
    pub fn source_filter(&self) -> &SourceConfig {
        &self.source
    }

    /// The user's `_meta` object.
    pub fn meta(&self) -> Option<&Value> {
        self.meta.as_ref()
    }

    /// Value of a parameter of the leaf field at `path`, as written in the mapping (`index_options`, ...).
    pub fn parameter(&self, path: &str, name: &str) -> Option<&Value> {
        self.leaf(path)?.params.get(name)
    }

    /// `index_options` of the `sparse_vector` field at `path`; all unset for any other field.
    pub fn sparse_index_options(&self, path: &str) -> SparseIndexOptions {
        let of_field = self.leaf(path).filter(|leaf| matches!(leaf.field_type, FieldType::SparseVector));
        of_field
            .map_or_else(|| self.sparse_options_of_slot(path), |leaf| leaf.params.get("index_options"))
            .and_then(|options| SparseIndexOptions::parse(options).ok())
            .unwrap_or_default()
    }

    /// Reads a document into values of the mapped fields. The second part of the result is the extended mapping that
    /// has to take effect **before** the document is written, if dynamic mapping adds fields.
    ///
    /// # Errors
    /// See [`DocumentError`]; positions are filled in by [`DocumentError::locate`].
    pub fn parse_document(
        &self,
        id: &str,
        source: &Value,
        limits: &Limits,
    ) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
        document::parse_document(self, id, source, None, limits)
    }

    /// As [`Mapping::parse_document`], with the numbers of the JSON that `source` was parsed from: texts and keywords hold
    /// them as they were written, and whole numbers are compared down to the last digit.
    ///
    /// # Errors
    /// As [`Mapping::parse_document`].
    pub fn parse_written_document(
        &self,
        id: &str,
        source: &Value,
        numbers: Option<&WrittenNumbers>,
        limits: &Limits,
    ) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
        document::parse_document(self, id, source, numbers, limits)
    }

    /// As [`Mapping::parse_written_document`], from the JSON of a document and in less time. `None` if the document is
    /// invalid, and for what only that one reads: token weights in an unusual form, and numbers whose digits count.
    pub fn read_document(
        &self,
        id: &str,
        source: &[u8],
        limits: &Limits,
    ) -> Option<(ParsedDocument, Option<Mapping>)> {
        document::read::read(self, id, source, limits)
    }

    /// Recomputes everything derived from the field tree, after the tree changed.
    pub(crate) fn rebuilt(mut self) -> Self {
        let mut by_path = FxHashMap::default();
        collect(&self.root, "", &mut by_path);
        let semantic = by_path.iter().filter(|(_, found)| matches!(found, FieldType::SemanticText(_)));
        let mut semantic: Vec<String> = semantic.map(|(path, _)| path.clone()).collect();
        semantic.sort_unstable();
        self.semantic = semantic.into();
        let nested =
            by_path.iter().filter(|(_, found)| matches!(found, FieldType::Object { nested: true, .. }));
        let mut nested: Vec<String> = nested.map(|(path, _)| path.clone()).collect();
        nested.sort_unstable();
        self.nested = nested.into();
        self.constants = by_path
            .iter()
            .filter_map(|(path, field_type)| match field_type {
                FieldType::Keyword { kind: KeywordKind::Constant(Some(value)), .. } => {
                    Some((path.clone(), value.clone()))
                }
                _ => None,
            })
            .collect();
        self.has_flattened = by_path.values().any(FieldType::is_flattened);
        self.has_aliases = by_path.values().any(|field_type| matches!(field_type, FieldType::Alias { .. }));
        self.by_path = Arc::new(by_path);
        self.semantic_key = self.hash_semantic();
        self
    }

    /// The definition of the field at `path`, or of the one that `path` is an alias of.
    pub(crate) fn leaf(&self, path: &str) -> Option<&LeafNode> {
        let leaf = self.leaf_at(path)?;
        match &leaf.field_type {
            FieldType::Alias { path } => self.leaf_at(path),
            _ => Some(leaf),
        }
    }

    fn leaf_at(&self, path: &str) -> Option<&LeafNode> {
        let mut object = &self.root;
        let mut parts = path.split('.');
        while let Some(part) = parts.next() {
            match object.properties.get(part)? {
                Node::Object(inner) => object = inner,
                Node::Leaf(leaf) => {
                    return parts.try_fold(&**leaf, |leaf, part| leaf.fields.get(part));
                }
            }
        }
        None
    }
}

fn collect(object: &ObjectNode, prefix: &str, by_path: &mut FxHashMap<String, FieldType>) {
    for (name, node) in &object.properties {
        let path = join(prefix, name);
        match node {
            Node::Object(inner) => {
                by_path.insert(
                    path.clone(),
                    FieldType::Object {
                        dynamic: inner.dynamic,
                        enabled: inner.enabled,
                        nested: inner.nested.is_some(),
                    },
                );
                collect(inner, &path, by_path);
            }
            Node::Leaf(leaf) => collect_leaf(leaf, path, by_path),
        }
    }
}

fn collect_leaf(leaf: &LeafNode, path: String, by_path: &mut FxHashMap<String, FieldType>) {
    for (name, sub) in &leaf.fields {
        collect_leaf(sub, join(&path, name), by_path);
    }
    by_path.insert(path, leaf.field_type.clone());
}

/// Joins a path and a name to `prefix.name`; just `name` at the top level.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}
