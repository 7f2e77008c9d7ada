//! Field types of a mapping and the parameters that change how a value is read.

use std::sync::Arc;

use sparrow_analysis::shingles;
use sparrow_runtime::PackedTokens;

use super::completion::Completion;
use super::dense::DenseVector;
use super::semantic_text::SemanticText;
use crate::passages::Passage;
use sparrow_wire::date_format::DateFormat;

/// Reserved keyword field that lists the document's fields whose values were left out of the index because of
/// `ignore_malformed` or `ignore_above`.
pub const IGNORED: &str = "_ignored";

/// Reserved keyword field with the routing that a document was written with.
pub const ROUTING: &str = "_routing";

/// Default of `max_shingle_size` of a `search_as_you_type` field.
pub(super) const DEFAULT_SHINGLE_SIZE: u8 = 3;

/// Name of the analyzer of `text` fields whose mapping does not name one.
pub const DEFAULT_ANALYZER: &str = "default";

/// How a `text` field is analyzed and what its postings hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// Name of the analyzer of documents; [`DEFAULT_ANALYZER`] if the mapping names none.
    pub analyzer: String,
    /// Name of the analyzer of queries, if the mapping names one.
    pub search_analyzer: Option<String>,
    /// Name of the analyzer of phrases, if the mapping names one.
    pub search_quote_analyzer: Option<String>,
    pub index_options: TextIndexOptions,
    /// Whether the length of a text counts in its score.
    pub norms: bool,
    /// Gap in term positions between two values of the field, if the mapping sets one.
    pub position_increment_gap: Option<usize>,
    /// Name of the similarity, if the mapping names one that the index's settings define.
    pub similarity: Option<String>,
    /// Whether the terms of a document are its keywords as well, to sort and aggregate by.
    pub fielddata: bool,
    pub kind: TextKind,
}

/// Field types whose values are analyzed texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextKind {
    /// `text`.
    #[default]
    Text,
    /// `match_only_text`, which has no parameters and ignores the length of texts in scores.
    MatchOnly,
    /// `search_as_you_type`, which has sub-fields of its own for each number of neighbouring words up to this one.
    AsYouType { max_shingle_size: u8 },
}

impl TextKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::MatchOnly => "match_only_text",
            Self::AsYouType { .. } => "search_as_you_type",
        }
    }
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            analyzer: DEFAULT_ANALYZER.to_owned(),
            search_analyzer: None,
            search_quote_analyzer: None,
            index_options: TextIndexOptions::Positions,
            norms: true,
            position_increment_gap: None,
            similarity: None,
            fielddata: false,
            kind: TextKind::Text,
        }
    }
}

impl TextOptions {
    /// Options of a `search_as_you_type` field.
    pub fn as_you_type() -> Self {
        Self { kind: TextKind::AsYouType { max_shingle_size: DEFAULT_SHINGLE_SIZE }, ..Self::default() }
    }

    /// Options of its sub-field for so many neighbouring words.
    fn of_shingles(&self, size: u8) -> Self {
        let analyzer = shingles(&self.analyzer, usize::from(size));
        let search_analyzer = self
            .search_analyzer
            .as_ref()
            .map_or_else(|| analyzer.clone(), |analyzer| shingles(analyzer, usize::from(size)));
        Self {
            analyzer,
            search_analyzer: Some(search_analyzer),
            search_quote_analyzer: None,
            fielddata: false,
            kind: TextKind::Text,
            ..self.clone()
        }
    }

    /// Options of a `match_only_text` field.
    pub fn match_only() -> Self {
        Self { norms: false, kind: TextKind::MatchOnly, ..Self::default() }
    }
}

/// What the postings of a `text` field hold besides documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextIndexOptions {
    Docs,
    Freqs,
    Positions,
}

/// What happens to a field of a document that the mapping does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dynamic {
    /// Unmapped fields are added to the mapping.
    #[default]
    True,
    /// Unmapped fields stay in `_source` only.
    False,
    /// Documents with unmapped fields are refused.
    Strict,
}

impl Dynamic {
    /// The value as mappings write it.
    pub fn name(self) -> &'static str {
        match self {
            Dynamic::True => "true",
            Dynamic::False => "false",
            Dynamic::Strict => "strict",
        }
    }
}

/// Field types whose values are indexed as whole terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeywordKind {
    /// `keyword`: each document has its own values.
    #[default]
    Keyword,
    /// `wildcard`: the same here, as patterns are fast on all keywords.
    Wildcard,
    /// `constant_keyword`: every document has this same value; `None` until it is known.
    Constant(Option<Arc<str>>),
    /// `flattened`: all values of an object of at most so many levels, each also under its path in the object. These paths have the same
    /// type.
    Flattened { depth_limit: usize },
}

impl KeywordKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Wildcard => "wildcard",
            Self::Constant(_) => "constant_keyword",
            Self::Flattened { .. } => "flattened",
        }
    }
}

/// Type of a mapped field, with the parameters a query needs.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldType {
    /// Analyzed text, tantivy field `t:<path>`.
    Text {
        options: Arc<TextOptions>,
    },
    /// One term per value, in `_kw`. Values longer than `ignore_above` characters are not indexed.
    Keyword {
        ignore_above: Option<usize>,
        /// Name of the normalizer, which values and terms of queries pass through.
        normalizer: Option<Arc<str>>,
        kind: KeywordKind,
    },
    Long,
    Integer,
    Short,
    Byte,
    UnsignedLong,
    /// The number of words of a text, which an analyzer of this name finds.
    TokenCount {
        analyzer: Arc<str>,
        /// Whether words that the analyzer removes count as well.
        gaps: bool,
    },
    Double,
    Float,
    HalfFloat,
    /// A double stored as `round(value * factor) / factor`.
    ScaledFloat {
        factor: f64,
    },
    Boolean,
    /// Milliseconds since the epoch, as `i64` in `_num`. `formats` holds the alternatives in order.
    Date {
        formats: Vec<DateFormat>,
    },
    /// Nanoseconds since the epoch, as `i64` in `_num`, none before it. `formats` holds the alternatives in order.
    DateNanos {
        formats: Vec<DateFormat>,
    },
    /// An IPv4 or IPv6 address, in `_kw` as [`super::ip`] encodes it.
    Ip,
    /// A point on the earth, in `_num` as [`super::geo`] encodes it.
    GeoPoint,
    /// Ranges of numbers, dates or addresses, whose type this is, in `_kw` as [`super::range`] encodes them.
    Range(Box<FieldType>),
    /// Bytes in base64, in `_source` only. With `doc_values` or `store` an `exists` query finds them.
    Binary,
    /// Token weights, custom field `s:<path>`.
    SparseVector,
    /// Token weights whose keys may not contain a dot, custom field `s:<path>`.
    RankFeatures,
    /// One positive feature of a document, for the `rank_feature` query only. `_num` holds what the query
    /// computes with: the value, or with `positive_score_impact: false` its reciprocal, cut to the nine
    /// significant bits that Lucene keeps (see [`feature_value`]).
    RankFeature {
        positive_score_impact: bool,
    },
    /// A dense vector, custom field `d:<path>`.
    DenseVector(Box<DenseVector>),
    /// Text that is cut into passages, custom field `p:<path>`.
    SemanticText(Box<SemanticText>),
    /// Texts with weights that are completed while somebody types, in `_kw` as the index encodes them.
    Completion(Arc<Completion>),
    /// Another name, in requests, of the field at this path. [`super::Mapping::field`] gives the type of that field instead.
    Alias {
        path: Arc<str>,
    },
    /// A JSON object; `enabled: false` keeps its content in `_source` only. Where it is `nested`, each object is a document of its
    /// own.
    Object {
        dynamic: Option<Dynamic>,
        enabled: bool,
        nested: bool,
    },
}

impl FieldType {
    /// Name of the type in mappings and error messages.
    pub fn name(&self) -> &'static str {
        match self {
            FieldType::Text { options } => options.kind.name(),
            FieldType::Keyword { kind, .. } => kind.name(),
            FieldType::Long => "long",
            FieldType::Integer => "integer",
            FieldType::Short => "short",
            FieldType::Byte => "byte",
            FieldType::UnsignedLong => "unsigned_long",
            FieldType::TokenCount { .. } => "token_count",
            FieldType::Double => "double",
            FieldType::Float => "float",
            FieldType::HalfFloat => "half_float",
            FieldType::ScaledFloat { .. } => "scaled_float",
            FieldType::Boolean => "boolean",
            FieldType::Date { .. } => "date",
            FieldType::DateNanos { .. } => "date_nanos",
            FieldType::Ip => "ip",
            FieldType::GeoPoint => "geo_point",
            FieldType::Range(of) => match **of {
                FieldType::Integer => "integer_range",
                FieldType::Float => "float_range",
                FieldType::Double => "double_range",
                FieldType::Date { .. } => "date_range",
                FieldType::Ip => "ip_range",
                _ => "long_range",
            },
            FieldType::Binary => "binary",
            FieldType::SparseVector => "sparse_vector",
            FieldType::RankFeatures => "rank_features",
            FieldType::RankFeature { .. } => "rank_feature",
            FieldType::DenseVector(_) => "dense_vector",
            FieldType::SemanticText(_) => "semantic_text",
            FieldType::Completion(_) => "completion",
            FieldType::Alias { .. } => "alias",
            FieldType::Object { nested: true, .. } => "nested",
            FieldType::Object { .. } => "object",
        }
    }

    /// Name of the type family that behaves alike, as `_field_caps` shows it.
    pub fn family(&self) -> &'static str {
        match self {
            FieldType::Keyword { kind: KeywordKind::Flattened { .. }, .. } => "flattened",
            FieldType::Keyword { .. } => "keyword",
            // As Elasticsearch has it.
            FieldType::Text { .. } | FieldType::SemanticText(_) => "text",
            other => other.name(),
        }
    }

    /// Names and types of the sub-fields that the type has by itself: those of a `search_as_you_type` field.
    pub(crate) fn own_sub_fields(&self) -> Vec<(String, FieldType)> {
        let FieldType::Text { options } = self else { return Vec::new() };
        let TextKind::AsYouType { max_shingle_size } = options.kind else { return Vec::new() };
        let sub =
            |size| (format!("_{size}gram"), FieldType::Text { options: Arc::new(options.of_shingles(size)) });
        (2..=max_shingle_size).map(sub).collect()
    }

    /// Whether values that the field cannot take may be left out of the index.
    pub(crate) fn may_ignore_malformed(&self) -> bool {
        let others = matches!(self, FieldType::Boolean | FieldType::Ip | FieldType::GeoPoint);
        let dates = matches!(self, FieldType::Date { .. } | FieldType::DateNanos { .. });
        let numbers = self.is_integer() && !matches!(self, FieldType::TokenCount { .. }) || self.is_float();
        others || dates || numbers
    }

    /// The formats of the dates of a field; `None` for fields of other values.
    pub fn date_formats(&self) -> Option<&[DateFormat]> {
        match self {
            FieldType::Date { formats } | FieldType::DateNanos { formats } => Some(formats),
            FieldType::Range(of) => of.date_formats(),
            _ => None,
        }
    }

    /// Whether the texts of a document are in a column, which can be sorted and aggregated by.
    pub fn has_text_column(&self) -> bool {
        match self {
            FieldType::Keyword { .. } | FieldType::Ip => true,
            FieldType::Text { options } => options.fielddata,
            _ => false,
        }
    }

    /// Whether a value is an object whose members are no fields of the mapping.
    pub fn is_flattened(&self) -> bool {
        matches!(self, FieldType::Keyword { kind: KeywordKind::Flattened { .. }, .. })
    }

    /// Whether a value is an object of weights by token.
    pub(crate) fn has_tokens(&self) -> bool {
        matches!(self, FieldType::SparseVector | FieldType::RankFeatures)
    }

    /// Whether values are whole numbers kept as `i64` (or `u64` for `unsigned_long`).
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            FieldType::Long
                | FieldType::Integer
                | FieldType::Short
                | FieldType::Byte
                | FieldType::UnsignedLong
                | FieldType::TokenCount { .. }
        )
    }

    /// Whether values are fractions kept as `f64`.
    pub fn is_float(&self) -> bool {
        matches!(
            self,
            FieldType::Double | FieldType::Float | FieldType::HalfFloat | FieldType::ScaledFloat { .. }
        )
    }

    /// Whether the field holds token weights.
    pub fn is_sparse(&self) -> bool {
        matches!(self, FieldType::SparseVector | FieldType::RankFeatures)
    }
}

/// Feature value stored by a `rank_feature` field: larger is better. Only nine significant bits are kept, as in
/// Lucene's `FeatureField`, so that scores are the same.
pub fn feature_value(value: f32, positive_score_impact: bool) -> f32 {
    let feature = if positive_score_impact { value } else { 1.0 / value };
    f32::from_bits(feature.to_bits() >> 15 << 15)
}

/// A number, boolean or date as it is indexed in `_num`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NumberValue {
    I64(i64),
    U64(u64),
    F64(f64),
    Bool(bool),
}

/// A document ready for the index: values by field path, several per path for arrays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedDocument {
    /// Texts that are not analyzed yet.
    pub texts: Vec<(String, String)>,
    /// The terms of each text field, in the form that the index takes; they replace `texts`.
    pub inverted: Vec<(String, Vec<u8>)>,
    pub keywords: Vec<(String, String)>,
    pub numbers: Vec<(String, NumberValue)>,
    /// Token weights of sparse fields, in the order in which the document has them.
    pub sparse: Vec<(String, PackedTokens)>,
    pub dense: Vec<(String, Vec<f32>)>,
    /// Passages of `semantic_text` fields, by slot name: see [`super::Mapping::attach_passages`].
    pub passages: Vec<(String, Vec<Passage>)>,
    /// Full path of each mapped leaf that has a value, without repeats.
    pub field_names: Vec<String>,
    /// What is stored as `_source` when the mapping filters it (`None`: the source as it came).
    pub stored_source: Option<Vec<u8>>,
    /// The objects of `nested` fields, with the path of the field. Those inside another one come before it, those of one field in the
    /// order of the document; this is the order in which they are stored, before the document.
    pub nested: Vec<(String, ParsedDocument)>,
}

impl ParsedDocument {
    /// Adds the routing that the document is written with.
    pub fn add_routing(&mut self, routing: &str) {
        self.keywords.push((ROUTING.to_owned(), routing.to_owned()));
        self.field_names.push(ROUTING.to_owned());
    }
}

/// The parameters of a `nested` field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Nested {
    /// Whether the values of an object count as values of the document or object around it as well.
    pub include_in_parent: bool,
    /// Whether they count as values of the document as well.
    pub include_in_root: bool,
}

/// Largest allowed nesting depth of objects in a mapping, whatever `index.mapping.depth.limit` says: each level takes
/// two levels of the JSON in which a mapping is stored, and JSON parsers follow no more than 127.
pub const MOST_LEVELS: usize = 50;

/// Longest name of a field, in characters, whatever `index.mapping.field_name_length.limit` says: a request names a field by an alias in
/// a few bytes as often as it likes, and each time its columns are looked up by the whole name.
pub const LONGEST_NAME: usize = 4096;

/// Most fields of a mapping, whatever `index.mapping.total_fields.limit` says: a request of a few bytes asks for all of them, in each
/// index that it names.
pub const MOST_TOTAL_FIELDS: usize = 50_000;

/// Limits that documents and mappings are checked against.
#[derive(Debug, Clone)]
pub struct Limits {
    /// `index.mapping.total_fields.limit`: most fields, objects and multi-fields of a mapping, at most [`MOST_TOTAL_FIELDS`].
    pub total_fields: usize,
    /// `index.mapping.total_fields.ignore_dynamic_beyond_limit`: whether new fields beyond the limit are ignored
    /// instead of the document being refused.
    pub ignore_dynamic_beyond_limit: bool,
    /// `index.mapping.depth.limit`, at most [`MOST_LEVELS`].
    pub depth: usize,
    /// `index.mapping.field_name_length.limit`, in characters, at most [`LONGEST_NAME`].
    pub field_name: usize,
    /// `index.mapping.nested_fields.limit`: most fields of type `nested`.
    pub nested_fields: usize,
    /// `index.mapping.nested_objects.limit`: most objects of `nested` fields in one document.
    pub nested_objects: usize,
    /// `index.mapping.ignore_malformed`: whether values that their fields cannot take are left out, where the mapping does not say.
    pub ignore_malformed: bool,
}

impl Limits {
    /// Error message for a field name that is too long; `None` if it is not.
    pub(crate) fn name_problem(&self, name: &str) -> Option<String> {
        // Most names are short in bytes already.
        (name.len() > self.field_name && name.chars().count() > self.field_name).then(|| {
            format!("Field name [{name}] is longer than the limit of [{}] characters", self.field_name)
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total_fields: 1000,
            ignore_dynamic_beyond_limit: false,
            depth: 20,
            field_name: usize::MAX,
            nested_fields: 50,
            nested_objects: 10_000,
            ignore_malformed: false,
        }
    }
}
