//! Converts text and keyword values of a document to the form that tantivy indexes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use tantivy::schema::OwnedValue;

use sparrow_analysis::{Analysis, Analyzer, POSITION_INCREMENT_GAP};
use sparrow_mapping::{
    FieldType, MAX_TERM, Mapping, NumberValue, ParsedDocument, TextOptions, completion_terms,
};
use sparrow_segments::plugins::{MAX_TERM_BYTES, TextInverter};
use sparrow_segments::schema::record_option;

thread_local! {
    static INVERTER: RefCell<TextInverter> = RefCell::default();
}

/// Replaces the texts of a document by their terms, in the form in which a segment takes them. The thread that writes the
/// segment has little left to do then, and this needs no lock. Texts of fields without a known analyzer stay. The terms of fields with
/// `fielddata` become keywords too.
///
/// Returns the first field whose terms are not all there because those of the document would take more than
/// [`MAX_TERM_BYTES`].
pub fn invert_texts(mapping: &Mapping, analysis: &Analysis, parsed: &mut ParsedDocument) -> Option<String> {
    let mut left = MAX_TERM_BYTES;
    let mut cut = None;
    let mut texts = std::mem::take(&mut parsed.texts);
    // Values of one field become neighbours, in their order.
    texts.sort_by(|(a, _), (b, _)| a.cmp(b));
    INVERTER.with_borrow_mut(|inverter| {
        for values in texts.chunk_by_mut(|(a, _), (b, _)| a == b) {
            let path = &values[0].0;
            if let Some(FieldType::TokenCount { analyzer, gaps }) = mapping.field(path)
                && let Some(analyzer) = analysis.analyzer(analyzer)
            {
                let counts = values.iter().map(|(_, text)| {
                    let steps = analyzer.tokens(text).map(|token| i64::from(token.increment));
                    NumberValue::I64(steps.map(|step| if *gaps { step } else { step.min(1) }).sum())
                });
                parsed.numbers.extend(counts.map(|count| (path.clone(), count)));
                continue;
            }
            let field = match mapping.field(path) {
                Some(FieldType::Text { options }) => analysis.analyzer(&options.analyzer).zip(Some(options)),
                _ => None,
            };
            let Some((analyzer, options)) = field else {
                parsed.texts.extend(values.iter_mut().map(std::mem::take));
                continue;
            };
            let gap = position_gap(options, &analyzer);
            let mut next = 0;
            let mut column = options.fielddata.then(BTreeSet::new);
            inverter.clear();
            let is_whole = values.iter().all(|(_, value)| {
                let start = next;
                analyzer.take_terms(value, |term, position| {
                    let position = start + position;
                    next = next.max(position + 1 + gap);
                    if let Some(column) = &mut column
                        && term.len() <= MAX_TERM
                        && !column.contains(term)
                    {
                        column.insert(term.to_owned());
                    }
                    inverter.push(term, position as u32, left)
                })
            });
            parsed.keywords.extend(column.into_iter().flatten().map(|term| (path.clone(), term)));
            if !is_whole && cut.is_none() {
                cut = Some(path.clone());
            }
            let terms = inverter.finish(record_option(options.index_options));
            left = left.saturating_sub(terms.len());
            parsed.inverted.push((std::mem::take(&mut values[0].0), terms));
        }
    });
    for (_, object) in &mut parsed.nested {
        cut = cut.or(invert_texts(mapping, analysis, object));
    }
    cut
}

/// Number of positions between two values of a field.
fn position_gap(options: &TextOptions, analyzer: &Analyzer) -> usize {
    options.position_increment_gap.unwrap_or_else(|| match analyzer.is_custom() {
        true => analyzer.position_increment_gap(),
        false => POSITION_INCREMENT_GAP,
    })
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
                let value = analysis.normalizer(name).map(|one| one.normalize(&value)).unwrap_or(value);
                // Values that were told apart before may be the same now.
                if !seen.insert((path.clone(), value.clone())) {
                    continue;
                }
                value
            }
            Some(FieldType::Completion(field)) => {
                for term in completion_terms(field, analysis, &value) {
                    push_value(&mut keywords, path.clone(), OwnedValue::Str(term));
                }
                continue;
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
        Entry::Vacant(entry) => _ = entry.insert(value),
        Entry::Occupied(mut entry) => match entry.get_mut() {
            OwnedValue::Array(values) => values.push(value),
            single => {
                let first = std::mem::replace(single, OwnedValue::Null);
                *single = OwnedValue::Array(vec![first, value]);
            }
        },
    }
}
