//! Sort keys of documents, read from the columns of one segment.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::columnar::{Column, DynamicColumn, StrColumn};
use tantivy::{DocId, SegmentReader};

use super::scripts::ScriptReader;
use super::value::{decode_double, decode_long, encode_double, encode_long};
use super::{ColumnKey, ColumnKind, Distance, Missing, SortMode, SortValue};
use crate::query::scripts::DocumentScript;
use sparrow_scoring::fields::{keyword_column, number_column, open_columns};
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_segments::nested::Owners;

/// Reads the values of one sort key in a segment, as `u64`s that ascend in the order of the result.
pub(super) struct KeyReader {
    values: Values,
    flip: u64,
}

enum Values {
    Score,
    SeqNo,
    Number(NumberReader),
    Keyword(Box<KeywordReader>),
    Script(Box<ScriptReader>),
}

impl KeyReader {
    pub(super) fn score(descending: bool) -> Self {
        Self { values: Values::Score, flip: flip(descending) }
    }

    pub(super) fn seq_no(descending: bool) -> Self {
        Self { values: Values::SeqNo, flip: flip(descending) }
    }

    /// A reader that runs a script on each document; its errors are noted.
    pub(super) fn script(
        script: &DocumentScript,
        reader: &SegmentReader,
        descending: bool,
        errors: ScoreErrors,
    ) -> Self {
        Self {
            values: Values::Script(Box::new(ScriptReader::new(script, reader, errors))),
            flip: flip(descending),
        }
    }

    /// A reader of a field's column. `after` is the value of this key behind which hits are wanted.
    pub(super) fn column(
        reader: &SegmentReader,
        key: &ColumnKey,
        descending: bool,
        after: Option<&SortValue>,
        owners: Owners,
    ) -> tantivy::Result<Self> {
        let flip = flip(descending);
        let values = match key.kind {
            ColumnKind::Keyword => KeywordReader::open(reader, key, descending, after, owners)
                .map(Box::new)
                .map(Values::Keyword)?,
            _ => Values::Number(NumberReader::open(reader, key, descending)?.of(owners)),
        };
        Ok(Self { values, flip })
    }

    /// A reader of the distances of the points in a column.
    pub(super) fn distance(
        reader: &SegmentReader,
        key: &ColumnKey,
        distance: Distance,
        descending: bool,
        owners: Owners,
    ) -> tantivy::Result<Self> {
        let mut numbers = NumberReader::open(reader, key, descending)?;
        numbers.single &= distance.from.len() == 1;
        numbers.distance = Some(distance);
        Ok(Self { values: Values::Number(numbers.of(owners)), flip: flip(descending) })
    }

    /// The key of a document. `seq_no` is only called when sorting by sequence number.
    #[inline]
    pub(super) fn key(&self, doc: DocId, score: f32, seq_no: impl FnOnce() -> u64) -> u64 {
        let ascending = match &self.values {
            Values::Number(column) => column.value(doc),
            Values::Keyword(column) => column.position(doc),
            Values::Score => encode_double(f64::from(score)),
            Values::Script(script) => encode_double(script.number(doc, score)),
            Values::SeqNo => seq_no(),
        };
        ascending ^ self.flip
    }

    /// The key that a value has in this segment, or would have if it occurred.
    pub(super) fn key_of(&self, value: &SortValue) -> u64 {
        let ascending = match &self.values {
            Values::Number(column) => column.encode(value),
            Values::Keyword(column) => column.position_of(value),
            Values::Score | Values::Script(_) => encode_number(ColumnKind::Double, value),
            Values::SeqNo => encode_number(ColumnKind::Unsigned, value),
        };
        ascending ^ self.flip
    }

    /// The value that a key stands for.
    pub(super) fn value_of(&mut self, key: u64) -> tantivy::Result<SortValue> {
        let ascending = key ^ self.flip;
        Ok(match &mut self.values {
            Values::Number(column) => decode_number(column.kind, ascending),
            Values::Keyword(column) => column.value_at(ascending)?,
            Values::Score | Values::Script(_) => SortValue::Double(decode_double(ascending)),
            Values::SeqNo => SortValue::Long(ascending as i64),
        })
    }
}

fn flip(descending: bool) -> u64 {
    if descending { u64::MAX } else { 0 }
}

fn encode_number(kind: ColumnKind, value: &SortValue) -> u64 {
    match (kind, value) {
        (ColumnKind::Double, SortValue::Double(value)) => encode_double(*value),
        (ColumnKind::Double, SortValue::Long(value)) => encode_double(*value as f64),
        (ColumnKind::Double, SortValue::Unsigned(value)) => encode_double(*value as f64),
        (ColumnKind::Unsigned, SortValue::Unsigned(value)) => *value,
        (ColumnKind::Unsigned, SortValue::Long(value)) => u64::try_from(*value).unwrap_or(0),
        (ColumnKind::Unsigned, SortValue::Double(value)) => *value as u64,
        (_, SortValue::Long(value)) => encode_long(*value),
        (_, SortValue::Unsigned(value)) => encode_long(i64::try_from(*value).unwrap_or(i64::MAX)),
        (_, SortValue::Double(value)) => encode_long(*value as i64),
        (_, SortValue::Null | SortValue::Text(_)) => u64::MAX,
    }
}

fn decode_number(kind: ColumnKind, key: u64) -> SortValue {
    match kind {
        ColumnKind::Double => SortValue::Double(decode_double(key)),
        ColumnKind::Unsigned => SortValue::Unsigned(key),
        ColumnKind::Long | ColumnKind::Nanos | ColumnKind::Millis | ColumnKind::Keyword => {
            SortValue::Long(decode_long(key))
        }
    }
}

/// Values of a number, boolean or date field. Segments may differ in the type of a column, and one segment
/// may have several: tantivy stores whole numbers as integers.
pub(super) struct NumberReader {
    columns: Vec<DynamicColumn>,
    kind: ColumnKind,
    mode: SortMode,
    missing: u64,
    /// Whether every document has at most one value.
    pub(super) single: bool,
    owners: Owners,
    /// How far the values are, where they are points.
    distance: Option<Distance>,
}

impl NumberReader {
    pub(super) fn open(reader: &SegmentReader, key: &ColumnKey, descending: bool) -> tantivy::Result<Self> {
        let columns = open_columns(reader, &number_column(&key.path))?;
        let single = columns.len() == 1
            && columns.iter().all(|column| {
                !matches!(column.get_cardinality(), tantivy::columnar::Cardinality::Multivalued)
            });
        let missing = match &key.missing {
            Missing::Value(value) => encode_number(key.kind, value),
            Missing::First => flip(descending),
            Missing::Last => !flip(descending),
        };
        Ok(Self {
            columns,
            kind: key.kind,
            mode: key.mode,
            missing,
            single,
            owners: Owners::Document,
            distance: None,
        })
    }

    /// This reader for values that a hit has through its objects.
    fn of(self, owners: Owners) -> Self {
        let single = self.single && matches!(owners, Owners::Document);
        Self { single, owners, ..self }
    }

    fn encode(&self, value: &SortValue) -> u64 {
        match value {
            SortValue::Null | SortValue::Text(_) => self.missing,
            value => encode_number(self.kind, value),
        }
    }

    #[inline]
    fn value(&self, doc: DocId) -> u64 {
        self.first(doc).unwrap_or(self.missing)
    }

    #[inline]
    pub(super) fn first(&self, doc: DocId) -> Option<u64> {
        if self.single {
            let kind = self.kind;
            return match self.columns.first()? {
                DynamicColumn::I64(column) => column.first(doc).map(|value| self.whole(value)),
                DynamicColumn::F64(column) => column.first(doc).map(|value| double_as(kind, value)),
                DynamicColumn::U64(column) => column.first(doc).map(|value| unsigned_as(kind, value)),
                DynamicColumn::Bool(column) => column.first(doc).map(|value| long_as(kind, i64::from(value))),
                _ => None,
            };
        }
        self.combined(doc)
    }

    /// The key of a whole number or a point.
    #[inline]
    fn whole(&self, value: i64) -> u64 {
        match &self.distance {
            None => long_as(self.kind, value),
            Some(distance) => encode_double(distance.of(value)),
        }
    }

    /// All values of a document as keys, in no particular order.
    pub(super) fn all(&self, doc: DocId, out: &mut Vec<u64>) {
        self.owners.each(doc, |doc| self.all_of(doc, out));
    }

    fn all_of(&self, doc: DocId, out: &mut Vec<u64>) {
        let kind = self.kind;
        for column in &self.columns {
            match column {
                DynamicColumn::I64(column) => {
                    let values = column.values_for_doc(doc);
                    match &self.distance {
                        None => out.extend(values.map(|value| long_as(kind, value))),
                        Some(distance) => {
                            values.for_each(|point| out.extend(distance.each(point).map(encode_double)));
                        }
                    }
                }
                DynamicColumn::U64(column) => {
                    out.extend(column.values_for_doc(doc).map(|value| unsigned_as(kind, value)));
                }
                DynamicColumn::F64(column) => {
                    out.extend(column.values_for_doc(doc).map(|value| double_as(kind, value)));
                }
                DynamicColumn::Bool(column) => {
                    out.extend(column.values_for_doc(doc).map(|value| long_as(kind, i64::from(value))));
                }
                _ => {}
            }
        }
    }

    pub(super) fn decode(&self, key: u64) -> SortValue {
        decode_number(self.kind, key)
    }

    fn combined(&self, doc: DocId) -> Option<u64> {
        let mut values = Vec::new();
        self.all(doc, &mut values);
        match (self.mode, &values[..]) {
            (_, []) => None,
            (_, [one]) => Some(*one),
            (SortMode::Min, several) => several.iter().copied().min(),
            (SortMode::Max, several) => several.iter().copied().max(),
            (mode, _) => {
                values.sort_unstable();
                Some(self.aggregate(mode, &values))
            }
        }
    }

    /// Sum, average or median of several sorted values, rounded where the field holds whole numbers.
    fn aggregate(&self, mode: SortMode, keys: &[u64]) -> u64 {
        let middle = keys.len() / 2;
        if self.kind == ColumnKind::Double {
            let sum = || keys.iter().map(|key| decode_double(*key)).sum::<f64>();
            return encode_double(match mode {
                SortMode::Avg => sum() / keys.len() as f64,
                SortMode::Median if keys.len().is_multiple_of(2) => {
                    (decode_double(keys[middle - 1]) + decode_double(keys[middle])) / 2.0
                }
                SortMode::Median => decode_double(keys[middle]),
                _ => sum(),
            });
        }
        let whole = |key: u64| match self.kind {
            ColumnKind::Unsigned => i128::from(key),
            _ => i128::from(decode_long(key)),
        };
        // As Java's `Math.round`: half goes up.
        let rounded = |sum: i128, count: i128| (2 * sum + count).div_euclid(2 * count);
        let sum = || keys.iter().map(|key| whole(*key)).sum::<i128>();
        let value = match mode {
            SortMode::Avg => rounded(sum(), keys.len() as i128),
            SortMode::Median if keys.len().is_multiple_of(2) => {
                rounded(whole(keys[middle - 1]) + whole(keys[middle]), 2)
            }
            SortMode::Median => whole(keys[middle]),
            _ => sum(),
        };
        match self.kind {
            ColumnKind::Unsigned => value.clamp(0, i128::from(u64::MAX)) as u64,
            _ => encode_long(value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64),
        }
    }
}

#[inline]
fn long_as(kind: ColumnKind, value: i64) -> u64 {
    match kind {
        ColumnKind::Double => encode_double(value as f64),
        ColumnKind::Unsigned => u64::try_from(value).unwrap_or(0),
        ColumnKind::Nanos => encode_long(value.saturating_mul(1_000_000)),
        ColumnKind::Millis => encode_long(value.div_euclid(1_000_000)),
        ColumnKind::Long | ColumnKind::Keyword => encode_long(value),
    }
}

fn unsigned_as(kind: ColumnKind, value: u64) -> u64 {
    match kind {
        ColumnKind::Unsigned => value,
        ColumnKind::Double => encode_double(value as f64),
        _ => encode_long(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

fn double_as(kind: ColumnKind, value: f64) -> u64 {
    match kind {
        ColumnKind::Double => encode_double(value),
        ColumnKind::Unsigned => value as u64,
        // The cast saturates.
        _ => encode_long(value as i64),
    }
}

/// Reads the values of a keyword field. The key of entry `o` of the dictionary is `4·o + 4`; the numbers
/// between leave room for texts that are not in the dictionary, and those below for "missing first".
struct KeywordReader {
    column: Option<StrColumn>,
    ords: Option<Column<u64>>,
    owners: Owners,
    highest: bool,
    missing: u64,
    /// Texts that the request names, with their keys.
    placed: Vec<(Arc<str>, u64)>,
    null: Option<u64>,
    /// Cache of texts looked up before, by key.
    texts: FxHashMap<u64, Arc<str>>,
}

impl KeywordReader {
    fn open(
        reader: &SegmentReader,
        key: &ColumnKey,
        descending: bool,
        after: Option<&SortValue>,
        owners: Owners,
    ) -> tantivy::Result<Self> {
        let column = reader.fast_fields().str(&keyword_column(&key.path))?;
        let mut texts: Vec<Arc<str>> = Vec::new();
        if let Missing::Value(SortValue::Text(text)) = &key.missing {
            texts.push(text.clone());
        }
        if let Some(SortValue::Text(text)) = after {
            texts.push(text.clone());
        }
        texts.sort();
        texts.dedup();
        let mut placed = Vec::new();
        for (number, text) in (0..).zip(texts) {
            let position = match &column {
                None => 1 + number,
                Some(column) => {
                    use tantivy_ord::{Place, insertion};
                    match insertion(column, text.as_bytes())? {
                        Place::At(ord) => 4 * ord + 4,
                        Place::Before(ord) => 4 * ord + 1 + number,
                    }
                }
            };
            placed.push((text, position));
        }
        let (null, missing) = match &key.missing {
            Missing::First => (Some(flip(descending)), flip(descending)),
            Missing::Value(SortValue::Text(text)) => {
                let place = placed.iter().find(|(other, _)| other == text);
                (None, place.map_or(u64::MAX, |(_, position)| *position))
            }
            Missing::Last | Missing::Value(_) => (Some(!flip(descending)), !flip(descending)),
        };
        let ords = column.as_ref().map(|column| column.ords().clone());
        Ok(Self {
            column,
            ords,
            owners,
            highest: key.mode == SortMode::Max,
            missing,
            placed,
            null,
            texts: FxHashMap::default(),
        })
    }

    #[inline]
    fn position(&self, doc: DocId) -> u64 {
        let Some(ords) = &self.ords else { return self.missing };
        let mut best = None;
        self.owners.each(doc, |doc| {
            let better = if self.highest { u64::max } else { u64::min };
            best = best.into_iter().chain(ords.values_for_doc(doc)).reduce(better);
        });
        best.map_or(self.missing, |ord| 4 * ord + 4)
    }

    fn position_of(&self, value: &SortValue) -> u64 {
        match value {
            SortValue::Text(text) => self
                .placed
                .iter()
                .find(|(other, _)| other == text)
                .map_or(self.missing, |(_, position)| *position),
            // A null of another index, where this one places documents without a value by a text.
            _ => self.null.unwrap_or(self.missing),
        }
    }

    fn value_at(&mut self, position: u64) -> tantivy::Result<SortValue> {
        if Some(position) == self.null {
            return Ok(SortValue::Null);
        }
        if let Some((text, _)) = self.placed.iter().find(|(_, other)| *other == position) {
            return Ok(SortValue::Text(text.clone()));
        }
        if let Some(text) = self.texts.get(&position) {
            return Ok(SortValue::Text(text.clone()));
        }
        let mut text = String::new();
        if let Some(column) = &self.column {
            column.ord_to_str(position / 4 - 1, &mut text)?;
        }
        let text: Arc<str> = text.into();
        self.texts.insert(position, text.clone());
        Ok(SortValue::Text(text))
    }
}

/// Finds the place of a text in a column's dictionary, whether it is there or not.
mod tantivy_ord {
    use std::ops::Bound;

    use tantivy::columnar::StrColumn;

    pub(super) enum Place {
        At(u64),
        Before(u64),
    }

    pub(super) fn insertion(column: &StrColumn, text: &[u8]) -> std::io::Result<Place> {
        let dictionary = column.dictionary();
        if let Some(ord) = dictionary.term_ord(text)? {
            return Ok(Place::At(ord));
        }
        let end = dictionary.num_terms() as u64;
        Ok(Place::Before(match dictionary.term_bounds_to_ord(Bound::Included(text), Bound::Unbounded)? {
            (Bound::Included(ord), _) => ord.min(end),
            (Bound::Excluded(ord), _) => (ord + 1).min(end),
            (Bound::Unbounded, _) => 0,
        }))
    }
}
