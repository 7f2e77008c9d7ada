//! The values of a field in one segment: how they are read, and the codes that stand for them.

use std::sync::Arc;

use sparrow_runtime::work;
use tantivy::SegmentReader;
use tantivy::columnar::{Column, ColumnIndex, DynamicColumn, StrColumn};

use super::error::AggregationError;
use super::fields::{Kind, Place, Resolved};
use super::key::Key;
use sparrow_segments::schema::open_columns;
use sparrow_tantivy_index::query::QueryError;
use sparrow_tantivy_index::query::sorted::Distance;

impl Resolved {
    /// Opens the column of a segment.
    pub fn open(&self, reader: &SegmentReader) -> Result<Values, AggregationError> {
        work::check()?;
        let columns = reader.fast_fields();
        let column = match &self.place {
            Place::Nowhere => ColumnValues::Nothing,
            Place::Constant(text) => ColumnValues::Constant(text.clone()),
            Place::Texts(name) | Place::Ranges(name, _) => {
                match columns.str(name).map_err(QueryError::from)? {
                    Some(column) => ColumnValues::Texts(column),
                    None => ColumnValues::Nothing,
                }
            }
            Place::Nanos(name) => {
                whole_numbers(reader, name)?.map_or(ColumnValues::Nothing, ColumnValues::Nanos)
            }
            Place::Distances(name, distance) => {
                let points = whole_numbers(reader, name)?;
                points.map_or(ColumnValues::Nothing, |column| ColumnValues::Points(column, distance.clone()))
            }
            Place::Numbers(name) => {
                let mut column_values = ColumnValues::Nothing;
                for column in open_columns(reader, name).map_err(QueryError::from)? {
                    match column {
                        DynamicColumn::I64(column) => column_values = ColumnValues::I64(column),
                        DynamicColumn::U64(column) => column_values = ColumnValues::U64(column),
                        DynamicColumn::F64(column) => column_values = ColumnValues::F64(column),
                        DynamicColumn::Bool(column) => column_values = ColumnValues::Bool(column),
                        _ => {}
                    }
                }
                column_values
            }
        };
        let missing = match &self.missing {
            None => None,
            Some(key) => Some(self.missing_code(&column, key)?),
        };
        Ok(Values { kind: self.kind, column, missing, missing_key: self.missing.clone() })
    }

    fn missing_code(&self, column: &ColumnValues, key: &Key) -> Result<u64, AggregationError> {
        Ok(match (key, column) {
            (Key::Text(text), ColumnValues::Texts(column)) => {
                column.dictionary().term_ord(text.as_bytes())?.unwrap_or(NO_ORDINAL)
            }
            (Key::Text(_), _) => NO_ORDINAL,
            (key, _) => encode(self.kind, key),
        })
    }
}

/// The column of this name, of which all values are whole numbers.
fn whole_numbers(reader: &SegmentReader, name: &str) -> Result<Option<Column<i64>>, AggregationError> {
    let columns = open_columns(reader, name).map_err(QueryError::from)?;
    Ok(columns.into_iter().find_map(|column| match column {
        DynamicColumn::I64(column) => Some(column),
        _ => None,
    }))
}

/// Largest number of values, or of codes of buckets, listed at a time: documents that have more are seen in pieces.
pub const MOST_CODES: usize = 1 << 18;
/// Number of entries that a loop handles before it looks again whether the request must stop.
pub const UNCHECKED: usize = 4096;
/// Number of texts that a dictionary is asked for at a time: it cannot be told to stop before the last.
const TEXTS_AT_ONCE: usize = 1024;

/// The millisecond that a nanosecond lies in.
fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}

/// Code of a text that no document of the segment has.
const NO_ORDINAL: u64 = u64::MAX;

fn encode(kind: Kind, key: &Key) -> u64 {
    match (kind, key) {
        (_, Key::Double(bits)) => *bits,
        (_, Key::Long(value)) => *value as u64,
        (_, Key::Unsigned(value)) => *value,
        _ => 0,
    }
}

/// Values of a field in one segment. Each value has a 64-bit code that is unique within the segment: the ordinal of a
/// text, or the bits of a number.
pub struct Values {
    /// The type of the values.
    pub kind: Kind,
    column: ColumnValues,
    /// Code of the value used for documents that have none.
    missing: Option<u64>,
    missing_key: Option<Key>,
}

enum ColumnValues {
    Nothing,
    Texts(StrColumn),
    I64(Column<i64>),
    U64(Column<u64>),
    F64(Column<f64>),
    Bool(Column<bool>),
    /// Dates in nanoseconds, of which milliseconds count.
    Nanos(Column<i64>),
    Points(Column<i64>, Distance),
    Constant(Arc<str>),
}

/// Buffers for the values of a block of documents, reused between blocks.
#[derive(Default)]
pub struct Scratch {
    u64: Vec<u64>,
    i64: Vec<i64>,
    f64: Vec<f64>,
    bool: Vec<bool>,
}

impl Values {
    /// Collects the codes of documents' values, each with the document's index in `docs`, in ascending order of
    /// index.
    pub fn codes(&self, docs: &[u32], scratch: &mut Scratch, out: &mut Vec<(u32, u64)>) {
        out.clear();
        let missing = self.missing;
        let double = self.kind == Kind::Double;
        let from_f64 = |value: f64| match self.kind {
            Kind::Double => (if value == 0.0 { 0.0 } else { value }).to_bits(),
            Kind::Unsigned => value as u64,
            _ => value as i64 as u64,
        };
        match &self.column {
            ColumnValues::Nothing => {
                if let Some(missing) = missing {
                    out.extend((0..docs.len() as u32).map(|place| (place, missing)));
                }
            }
            ColumnValues::Constant(_) => out.extend((0..docs.len() as u32).map(|place| (place, 0))),
            ColumnValues::Texts(column) => {
                read(column.ords(), docs, missing, &mut scratch.u64, |ord| ord, out);
            }
            ColumnValues::I64(column) if double => {
                read(column, docs, missing, &mut scratch.i64, |value| from_f64(value as f64), out);
            }
            ColumnValues::I64(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| value as u64, out);
            }
            ColumnValues::Nanos(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| millis(value) as u64, out);
            }
            ColumnValues::U64(column) if double => {
                read(column, docs, missing, &mut scratch.u64, |value| from_f64(value as f64), out);
            }
            ColumnValues::U64(column) => read(column, docs, missing, &mut scratch.u64, |value| value, out),
            ColumnValues::F64(column) => read(column, docs, missing, &mut scratch.f64, from_f64, out),
            ColumnValues::Points(column, distance) => {
                read(column, docs, missing, &mut scratch.i64, |point| from_f64(distance.of(point)), out);
            }
            ColumnValues::Bool(column) => {
                read(column, docs, missing, &mut scratch.bool, u64::from, out);
            }
        }
    }

    /// Collects documents' values as numbers, each with the document's index in `docs`.
    pub fn numbers(&self, docs: &[u32], scratch: &mut Scratch, out: &mut Vec<(u32, f64)>) {
        out.clear();
        let missing = self.missing.map(|code| self.number(code));
        match &self.column {
            ColumnValues::Nothing | ColumnValues::Texts(_) | ColumnValues::Constant(_) => {
                if let Some(missing) = missing {
                    out.extend((0..docs.len() as u32).map(|place| (place, missing)));
                }
            }
            ColumnValues::I64(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| value as f64, out);
            }
            ColumnValues::Nanos(column) => {
                read(column, docs, missing, &mut scratch.i64, |value| millis(value) as f64, out);
            }
            ColumnValues::U64(column) => {
                read(column, docs, missing, &mut scratch.u64, |value| value as f64, out);
            }
            ColumnValues::F64(column) => read(column, docs, missing, &mut scratch.f64, |value| value, out),
            ColumnValues::Points(column, distance) => {
                read(column, docs, missing, &mut scratch.i64, |point| distance.of(point), out);
            }
            ColumnValues::Bool(column) => {
                read(column, docs, missing, &mut scratch.bool, |value| f64::from(u8::from(value)), out);
            }
        }
    }

    /// The number that a code represents; meaningless for texts.
    pub fn number(&self, code: u64) -> f64 {
        match self.kind {
            Kind::Double => f64::from_bits(code),
            Kind::Unsigned => code as f64,
            _ => code as i64 as f64,
        }
    }

    /// Exclusive upper bound of the codes, if it is small and known.
    pub fn code_limit(&self) -> Option<usize> {
        match &self.column {
            ColumnValues::Texts(column) if self.missing != Some(NO_ORDINAL) => Some(column.num_terms()),
            ColumnValues::Bool(_) => Some(2),
            _ => None,
        }
    }

    /// The column with the dictionary of texts, if the values are texts.
    pub fn texts(&self) -> Option<&StrColumn> {
        match &self.column {
            ColumnValues::Texts(column) => Some(column),
            _ => None,
        }
    }

    /// The bucket keys that the given codes represent, in the same order.
    pub fn keys(&self, codes: &[u64]) -> Result<Vec<Key>, AggregationError> {
        work::room_for(size_of_val(codes) + codes.len() * size_of::<Key>())?;
        let mut keys = Vec::with_capacity(codes.len());
        if self.texts().is_none() || codes.is_sorted_by(|a, b| a < b) {
            self.each_key(codes, |key| keys.push(key))?;
            keys.resize(codes.len(), Key::Missing);
            return Ok(keys);
        }
        let mut ascending = codes.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        let keys_of_ascending = self.keys(&ascending)?;
        for code in codes {
            work::check()?;
            keys.push(keys_of_ascending[ascending.binary_search(code).unwrap_or(0)].clone());
        }
        Ok(keys)
    }

    /// Shows the keys that the given codes represent, one after another: those of texts are not in memory together. Codes of texts ascend,
    /// and each is there once.
    pub fn each_key(&self, codes: &[u64], mut see: impl FnMut(Key)) -> Result<(), AggregationError> {
        let missing = || self.missing_key.clone().unwrap_or(Key::Missing);
        for codes in codes.chunks(TEXTS_AT_ONCE) {
            work::check()?;
            match (&self.column, self.kind) {
                (ColumnValues::Constant(text), _) => codes.iter().for_each(|_| see(Key::Text(text.clone()))),
                (ColumnValues::Texts(column), _) => {
                    let known = codes.partition_point(|&code| code != NO_ORDINAL);
                    let mut outcome = Ok(());
                    column.dictionary().sorted_ords_to_term_cb(&codes[..known], |bytes| {
                        // A text may be long: what they take together is looked at before each.
                        outcome = outcome.clone().and_then(|()| work::check());
                        if outcome.is_ok() {
                            see(Key::Text(String::from_utf8_lossy(bytes).into()));
                        }
                    })?;
                    outcome?;
                    codes[known..].iter().for_each(|_| see(missing()));
                }
                (_, Kind::Text) => codes.iter().for_each(|_| see(missing())),
                (_, Kind::Double) => codes.iter().for_each(|&code| see(Key::Double(code))),
                (_, Kind::Unsigned) => codes.iter().for_each(|&code| see(Key::Unsigned(code))),
                (_, _) => codes.iter().for_each(|&code| see(Key::Long(code as i64))),
            }
        }
        Ok(())
    }

    /// The code that stands for a key; `None` if no document of the segment has it.
    pub fn code(&self, key: &Key) -> Result<Option<u64>, AggregationError> {
        Ok(match (&self.column, key) {
            (ColumnValues::Texts(column), Key::Text(text)) => {
                column.dictionary().term_ord(text.as_bytes())?
            }
            (ColumnValues::Constant(own), Key::Text(text)) => (own == text).then_some(0),
            (_, Key::Text(_)) => None,
            // Another index may have doubles, of which only whole numbers can be here as well.
            (_, Key::Double(bits)) if self.kind != Kind::Double => {
                let number = f64::from_bits(*bits);
                let code = if self.kind == Kind::Unsigned { number as u64 } else { number as i64 as u64 };
                (self.number(code) == number).then_some(code)
            }
            (_, key) => Some(encode(self.kind, key)),
        })
    }

    /// Whether documents without a value count as if they had one.
    pub fn has_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Whether a document itself has a value, without the substitute for missing ones.
    pub fn has_value(&self, doc: u32) -> bool {
        match self.index() {
            Some(index) => index.has_value(doc),
            None => matches!(self.column, ColumnValues::Constant(_)),
        }
    }

    fn index(&self) -> Option<&ColumnIndex> {
        Some(match &self.column {
            ColumnValues::Nothing | ColumnValues::Constant(_) => return None,
            ColumnValues::Texts(column) => &column.ords().index,
            ColumnValues::I64(column) | ColumnValues::Nanos(column) | ColumnValues::Points(column, _) => {
                &column.index
            }
            ColumnValues::U64(column) => &column.index,
            ColumnValues::F64(column) => &column.index,
            ColumnValues::Bool(column) => &column.index,
        })
    }

    /// What tells how many values each document has, if any of them may have several.
    pub fn several(&self) -> Option<&ColumnIndex> {
        self.index().filter(|index| matches!(index, ColumnIndex::Multivalued(_)))
    }

    /// Number of the first documents that have at most `most` values together, or 1 if already the first has more.
    pub fn fitting(&self, docs: &[u32], most: usize) -> usize {
        let docs = &docs[..docs.len().min(most.max(1))];
        match self.several() {
            Some(index) => fitting(docs, most, |doc| index.value_row_ids(doc).len()),
            None => docs.len(),
        }
    }
}

/// Number of the first documents of which `count` says at most `most` together, or 1 if it says more of already the first.
/// Each counts for at least 1.
pub fn fitting(docs: &[u32], most: usize, count: impl Fn(u32) -> usize) -> usize {
    let (mut sum, mut last) = (0_usize, None);
    for (place, &doc) in docs.iter().enumerate() {
        let own = match last {
            // A document that is in many buckets comes once for each of them.
            Some((known, own)) if known == doc => own,
            _ => count(doc).max(1),
        };
        last = Some((doc, own));
        sum = sum.saturating_add(own);
        if sum > most {
            return place.max(1);
        }
    }
    docs.len()
}

/// Reads the values of documents, each with the document's index in `docs`.
fn read<T, U>(
    column: &Column<T>,
    docs: &[u32],
    missing: Option<U>,
    scratch: &mut Vec<T>,
    convert: impl Fn(T) -> U,
    out: &mut Vec<(u32, U)>,
) where
    T: PartialOrd + Copy + Default + std::fmt::Debug + Send + Sync + 'static,
    U: Copy,
{
    if matches!(column.index, ColumnIndex::Full) {
        scratch.clear();
        scratch.resize(docs.len(), T::default());
        column.values.get_vals(docs, scratch);
        out.extend(scratch.iter().enumerate().map(|(place, &value)| (place as u32, convert(value))));
        return;
    }
    for (place, &doc) in docs.iter().enumerate() {
        let before = out.len();
        out.extend(column.values_for_doc(doc).map(|value| (place as u32, convert(value))));
        if let (Some(missing), true) = (missing, out.len() == before) {
            out.push((place as u32, missing));
        }
    }
}

/// Removes repeated codes of the same document. Skips the work if no document can have several codes.
pub fn dedup_codes(codes: &mut Vec<(u32, u64)>, docs: usize) {
    let single = codes.len() <= docs && codes.windows(2).all(|pair| pair[0].0 != pair[1].0);
    if !single {
        codes.sort_unstable();
        codes.dedup();
    }
}
