//! Derives the tantivy schema from a mapping.
//!
//! Text fields need a tantivy field each, as their lengths and average lengths are their own; keywords
//! and numbers share one JSON field each, keyed by the full dotted path as one flat key. Fields are only
//! ever appended, so a tantivy `Field` keeps its meaning for the life of an index.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::json;
use tantivy::SegmentReader;
use tantivy::columnar::DynamicColumn;
use tantivy::schema::{
    FAST, Field, FieldEntry, FieldType as TantivyType, INDEXED, IndexRecordOption, JsonObjectOptions,
    NumericOptions, STORED, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{RawTokenizer, TokenizerManager};

use sparrow_analysis::tokenizer_name;
use sparrow_mapping::{FieldType, Mapping, TextIndexOptions, TextOptions as TextMapping};

/// Reserved field with the document's `_id`.
pub const ID: &str = "_id";
/// Reserved field with the sequence number of the write.
pub const SEQ_NO: &str = "_seq_no";
/// Reserved field with the version of the document.
pub const VERSION: &str = "_version";
/// Reserved field with the document's JSON as stored.
pub const SOURCE: &str = "_source";
/// Reserved field with the paths of the mapped leaf fields that a document has.
pub const FIELD_NAMES: &str = "_field_names";
/// Reserved field with keywords, keyed by path.
pub const KEYWORDS: &str = "_kw";
/// Reserved field with numbers, booleans and dates, keyed by path.
pub const NUMBERS: &str = "_num";

/// Type name of sparse custom fields.
pub const SPARSE_TYPE: &str = "sparse";
/// Type name of dense custom fields.
pub const DENSE_TYPE: &str = "dense";
/// Type name of custom fields with several vectors a document: those of `semantic_text`.
pub const PASSAGES_TYPE: &str = "passages";

/// Kinds of mapped fields that need a tantivy field of their own.
#[derive(Debug, Clone, PartialEq)]
enum OwnField {
    Text(Arc<TextMapping>),
    Sparse,
    Dense,
    Passages,
}

/// The tantivy schema of an index, with the tantivy field of each mapped field.
#[derive(Debug, Clone)]
pub struct IndexSchema {
    pub schema: Schema,
    pub id: Field,
    pub seq_no: Field,
    pub version: Field,
    pub source: Field,
    pub field_names: Field,
    pub keywords: Field,
    pub numbers: Field,
    text: FxHashMap<String, Field>,
    sparse: FxHashMap<String, Field>,
    dense: FxHashMap<String, Field>,
    passages: FxHashMap<String, Field>,
}

impl IndexSchema {
    /// The schema of a new index.
    pub fn for_mapping(mapping: &Mapping) -> IndexSchema {
        let mut builder = Schema::builder();
        for (name, entry) in reserved_fields() {
            debug_assert_eq!(name, entry.name());
            builder.add_field(entry);
        }
        for (path, own) in own_fields(mapping) {
            builder.add_field(own_entry(&path, &own));
        }
        Self::from_schema(builder.build()).expect("reserved fields were just added")
    }

    /// Reads a schema written by [`IndexSchema::for_mapping`]; `None` if a reserved field is missing.
    pub fn from_schema(schema: Schema) -> Option<IndexSchema> {
        let reserved = |name: &str| schema.get_field(name).ok();
        let mut text = FxHashMap::default();
        let mut sparse = FxHashMap::default();
        let mut dense = FxHashMap::default();
        let mut passages = FxHashMap::default();
        for (field, entry) in schema.fields() {
            let name = entry.name();
            if let Some(path) = name.strip_prefix("t:") {
                text.insert(path.to_owned(), field);
            } else if let Some(path) = name.strip_prefix("s:") {
                sparse.insert(path.to_owned(), field);
            } else if let Some(path) = name.strip_prefix("d:") {
                dense.insert(path.to_owned(), field);
            } else if let Some(path) = name.strip_prefix("p:") {
                passages.insert(path.to_owned(), field);
            }
        }
        Some(IndexSchema {
            id: reserved(ID)?,
            seq_no: reserved(SEQ_NO)?,
            version: reserved(VERSION)?,
            source: reserved(SOURCE)?,
            field_names: reserved(FIELD_NAMES)?,
            keywords: reserved(KEYWORDS)?,
            numbers: reserved(NUMBERS)?,
            text,
            sparse,
            dense,
            passages,
            schema,
        })
    }

    /// tantivy field of the text field at `path`.
    pub fn text(&self, path: &str) -> Option<Field> {
        self.text.get(path).copied()
    }

    /// Custom field of the sparse field at `path`.
    pub fn sparse(&self, path: &str) -> Option<Field> {
        self.sparse.get(path).copied()
    }

    /// Custom field of the dense field at `path`.
    pub fn dense(&self, path: &str) -> Option<Field> {
        self.dense.get(path).copied()
    }

    /// Custom field for the passages of a `semantic_text` slot.
    pub fn passages(&self, slot: &str) -> Option<Field> {
        self.passages.get(slot).copied()
    }

    /// Custom fields of all sparse fields.
    pub fn sparse_fields(&self) -> impl Iterator<Item = Field> + '_ {
        self.sparse.values().copied()
    }

    /// Custom fields of all dense fields.
    pub fn dense_fields(&self) -> impl Iterator<Item = Field> + '_ {
        self.dense.values().copied()
    }

    /// Paths of all dense fields, with their custom fields.
    pub fn dense_paths(&self) -> impl Iterator<Item = (&str, Field)> + '_ {
        self.dense.iter().map(|(path, field)| (path.as_ref(), *field))
    }

    /// Field entries that `mapping` needs and the schema lacks, in a stable order; empty if it needs none.
    pub fn missing_entries(&self, mapping: &Mapping) -> Vec<FieldEntry> {
        own_fields(mapping)
            .into_iter()
            .filter(|(path, own)| match own {
                OwnField::Text(_) => !self.text.contains_key(path),
                OwnField::Sparse => !self.sparse.contains_key(path),
                OwnField::Dense => !self.dense.contains_key(path),
                OwnField::Passages => !self.passages.contains_key(path),
            })
            .map(|(path, own)| own_entry(&path, &own))
            .collect()
    }
}

/// Tokenizers of the names that a schema has. tantivy wants them all to be there, and uses none of those of text
/// fields: texts come to a segment inverted ([`crate::plugins::TextInverter`]).
pub fn tokenizers(schema: &Schema) -> TokenizerManager {
    let manager = TokenizerManager::default();
    for (_, entry) in schema.fields() {
        if let TantivyType::Str(options) = entry.field_type()
            && let Some(indexing) = options.get_indexing_options()
        {
            manager.register(indexing.tokenizer(), RawTokenizer::default());
        }
    }
    manager
}

/// Type name of a custom field, which the segment plugin owns; `None` for a field that tantivy indexes.
pub fn custom_type(entry: &FieldEntry) -> Option<&str> {
    match entry.field_type() {
        TantivyType::Custom(options) => Some(options.type_name()),
        _ => None,
    }
}

fn own_fields(mapping: &Mapping) -> BTreeMap<String, OwnField> {
    mapping
        .leaf_fields()
        .filter_map(|(path, field_type)| {
            let own = match field_type {
                FieldType::Text { options } => OwnField::Text(options.clone()),
                FieldType::SparseVector | FieldType::RankFeatures => OwnField::Sparse,
                FieldType::DenseVector(_) => OwnField::Dense,
                _ => return None,
            };
            Some((path.to_owned(), own))
        })
        .chain(mapping.slots().map(|slot| (slot.name.into_owned(), OwnField::Passages)))
        .collect()
}

fn own_entry(path: &str, own: &OwnField) -> FieldEntry {
    match own {
        OwnField::Text(options) => FieldEntry::new(
            format!("t:{path}"),
            TantivyType::Str(
                TextOptions::default().set_indexing_options(
                    TextFieldIndexing::default()
                        .set_tokenizer(&tokenizer_name(&options.analyzer))
                        .set_index_option(record_option(options.index_options))
                        .set_fieldnorms(options.norms),
                ),
            ),
        ),
        OwnField::Sparse => custom_entry(&format!("s:{path}"), SPARSE_TYPE),
        OwnField::Dense => custom_entry(&format!("d:{path}"), DENSE_TYPE),
        OwnField::Passages => custom_entry(&format!("p:{path}"), PASSAGES_TYPE),
    }
}

/// What tantivy records of a text field's terms.
pub fn record_option(options: TextIndexOptions) -> IndexRecordOption {
    match options {
        TextIndexOptions::Docs => IndexRecordOption::Basic,
        TextIndexOptions::Freqs => IndexRecordOption::WithFreqs,
        TextIndexOptions::Positions => IndexRecordOption::WithFreqsAndPositions,
    }
}

/// A custom field entry. Made through a schema builder, as tantivy offers no other way.
fn custom_entry(name: &str, type_name: &str) -> FieldEntry {
    let mut builder = Schema::builder();
    let field = builder.add_custom_field(name, type_name, json!({}));
    builder.build().get_field_entry(field).clone()
}

fn raw_text() -> TextFieldIndexing {
    TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false)
}

fn reserved_fields() -> [(&'static str, FieldEntry); 7] {
    let number =
        |name: &str, options: NumericOptions| FieldEntry::new(name.to_owned(), TantivyType::U64(options));
    let id = TextOptions::default().set_indexing_options(raw_text()) | STORED;
    let names = TextOptions::default().set_indexing_options(raw_text());
    let keywords = JsonObjectOptions::default().set_indexing_options(raw_text()).set_fast("raw");
    let numbers = JsonObjectOptions::default().set_indexing_options(raw_text()).set_fast("raw");
    [
        (ID, FieldEntry::new(ID.to_owned(), TantivyType::Str(id))),
        (SEQ_NO, number(SEQ_NO, NumericOptions::from(FAST | INDEXED))),
        (VERSION, number(VERSION, NumericOptions::from(FAST))),
        (SOURCE, FieldEntry::new(SOURCE.to_owned(), TantivyType::Bytes(STORED.into()))),
        (FIELD_NAMES, FieldEntry::new(FIELD_NAMES.to_owned(), TantivyType::Str(names))),
        (KEYWORDS, FieldEntry::new(KEYWORDS.to_owned(), TantivyType::JsonObject(keywords))),
        (NUMBERS, FieldEntry::new(NUMBERS.to_owned(), TantivyType::JsonObject(numbers))),
    ]
}

/// Escapes the dots of a path: tantivy splits JSON paths at dots, but Sparrow's paths are a single flat key.
pub fn flat_key(path: &str) -> String {
    let mut key = String::with_capacity(path.len() + 4);
    for character in path.chars() {
        if matches!(character, '.' | '\\') {
            key.push('\\');
        }
        key.push(character);
    }
    key
}

/// Name under which tantivy finds the columns of a number, boolean or date field.
pub fn number_column(path: &str) -> String {
    format!("{NUMBERS}.{}", flat_key(path))
}

/// Name under which tantivy finds the column of a keyword field.
pub fn keyword_column(path: &str) -> String {
    format!("{KEYWORDS}.{}", flat_key(path))
}

/// The columns of this name in a segment. There are several where its values are of different types, which may differ between
/// segments: tantivy keeps whole numbers as integers.
///
/// # Errors
/// When they cannot be read.
pub fn open_columns(reader: &SegmentReader, name: &str) -> tantivy::Result<Vec<DynamicColumn>> {
    let mut columns = Vec::new();
    for handle in reader.fast_fields().dynamic_column_handles(name)? {
        columns.push(handle.open()?);
    }
    Ok(columns)
}
