//! Converts text and keyword values of a document to the form that tantivy indexes.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use tantivy::TantivyDocument;
use tantivy::schema::{Field, OwnedValue};
use tantivy::tokenizer::{PreTokenizedString, Token};

use sparrow_analysis::{Analysis, Analyzer, POSITION_INCREMENT_GAP};
use sparrow_mapping::{FieldType, Mapping, ParsedDocument, TextOptions};
use sparrow_segments::IndexError;
use sparrow_segments::schema::IndexSchema;

/// Analyses a document's texts in advance, so that the thread which writes need not do it while holding the
/// lock. Needs no lock itself.
pub fn make_terms(mapping: &Mapping, analysis: &Analysis, parsed: &mut ParsedDocument) {
    let is_alone = |at: usize, path: &str| {
        parsed.texts.iter().enumerate().all(|(other, (name, _))| other == at || name != path)
    };
    let terms = parsed.texts.iter().enumerate().map(|(at, (path, text))| {
        let Some(FieldType::Text { options }) = mapping.field(path) else { return None };
        if is_alone(at, path) { analysis.analyzer(&options.analyzer)?.packed(text) } else { None }
    });
    parsed.terms = terms.collect();
}

/// Adds the texts, whose terms [`make_terms`] has made where it could. A single value without terms is left
/// to the index, which runs its analyzer; several values of one field are tokenized here, since the mapping
/// says how far apart their positions are.
pub(crate) fn add_texts(
    out: &mut TantivyDocument,
    schema: &IndexSchema,
    mapping: &Mapping,
    analysis: &Analysis,
    parsed: &ParsedDocument,
) -> Result<(), IndexError> {
    for (at, (path, text)) in parsed.texts.iter().enumerate() {
        let unknown = || IndexError::UnknownField { field: path.to_owned() };
        let field = schema.text(path).ok_or_else(unknown)?;
        if let Some(Some(terms)) = parsed.terms.get(at) {
            out.add_text(field, terms);
            continue;
        }
        let same = |other: &&(String, String)| other.0 == *path;
        if parsed.texts[..at].iter().any(|other| same(&other)) {
            continue;
        }
        let mut values = parsed.texts[at..].iter().filter(same).peekable();
        values.next();
        let Some(FieldType::Text { options }) = mapping.field(path) else { return Err(unknown()) };
        let analyzer = analysis.analyzer(&options.analyzer).ok_or_else(unknown)?;
        if values.peek().is_none() {
            out.add_text(field, text);
        } else {
            let values = std::iter::once(text).chain(values.map(|(_, text)| text));
            add_values(out, field, options, &analyzer, values);
        }
    }
    Ok(())
}

fn add_values<'a>(
    out: &mut TantivyDocument,
    field: Field,
    options: &TextOptions,
    analyzer: &Analyzer,
    values: impl Iterator<Item = &'a String>,
) {
    let gap = options.position_increment_gap.unwrap_or_else(|| match analyzer.is_custom() {
        true => analyzer.position_increment_gap(),
        false => POSITION_INCREMENT_GAP,
    });
    let mut tokens = Vec::new();
    let mut next = 0;
    for value in values {
        let start = next;
        for token in analyzer.tokens(value) {
            let position = start + token.position;
            next = next.max(position + 1 + gap);
            tokens.push(Token {
                offset_from: token.start,
                offset_to: token.end,
                position,
                text: token.text,
                position_length: token.length as usize,
            });
        }
    }
    out.add_pre_tokenized_text(field, PreTokenizedString { text: String::new(), tokens });
}

/// The keyword values of each field, by path, passed through their normalizers.
pub(crate) fn keywords(
    mapping: &Mapping,
    analysis: &Analysis,
    values: Vec<(String, String)>,
) -> BTreeMap<String, OwnedValue> {
    let mut keywords = BTreeMap::new();
    let mut seen = FxHashSet::default();
    for (path, value) in values {
        let value = match mapping.field(&path) {
            Some(FieldType::Keyword { normalizer: Some(name), .. }) => {
                let value = match analysis.normalizer(name) {
                    Some(normalizer) => normalizer.normalize(&value),
                    None => value,
                };
                // Values that were told apart before may be the same now.
                if !seen.insert((path.clone(), value.clone())) {
                    continue;
                }
                value
            }
            _ => value,
        };
        push_value(&mut keywords, path, OwnedValue::Str(value));
    }
    keywords
}

/// Adds a value under a flat key of a JSON object; several values of one key become an array.
pub(crate) fn push_value(object: &mut BTreeMap<String, OwnedValue>, path: String, value: OwnedValue) {
    use std::collections::btree_map::Entry;
    match object.entry(path) {
        Entry::Vacant(entry) => {
            entry.insert(value);
        }
        Entry::Occupied(mut entry) => match entry.get_mut() {
            OwnedValue::Array(values) => values.push(value),
            single => {
                let first = std::mem::replace(single, OwnedValue::Null);
                *single = OwnedValue::Array(vec![first, value]);
            }
        },
    }
}
