//! `include` and `exclude` of a terms aggregation, bound to the values of a segment.

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::ast::Selection;
use super::error::AggregationError;
use super::fields::Resolved;
use super::key::Key;
use super::values::Values;
use sparrow_query::RegexpQuery;
use sparrow_query::regexp::Automaton;
use sparrow_runtime::work;
use sparrow_tantivy_index::query::QueryError;

/// The value codes of a segment that get a bucket.
pub enum Allowed {
    /// For texts: whether each ordinal is selected, and whether texts that no document of the segment has are.
    Texts(Vec<bool>, bool),
    /// For numbers: a filter of their values.
    Numbers(NumberFilter),
}

/// The numbers selected by `include` and `exclude`.
pub struct NumberFilter {
    include: Option<FxHashSet<u64>>,
    exclude: FxHashSet<u64>,
    partition: Option<(u64, u64)>,
}

impl Allowed {
    /// Evaluates `include` and `exclude` for a segment; `None` if every value gets a bucket.
    pub fn new(
        name: &str,
        (include, exclude): Chosen<'_>,
        resolved: &Resolved,
        values: &Values,
        now: i64,
    ) -> Result<Option<Self>, AggregationError> {
        if include.is_none() && exclude.is_none() {
            return Ok(None);
        }
        if resolved.kind.is_numeric() {
            return NumberFilter::new(name, (include, exclude), resolved, now)
                .map(|numbers| Some(Allowed::Numbers(numbers)));
        }
        let patterns = [include, exclude].into_iter().flatten();
        if resolved.format.is_address() && patterns.into_iter().any(|one| matches!(one, Selection::Regexp(_)))
        {
            return Err(AggregationError::IllegalArgument(format!(
                "Aggregation [{name}] cannot support regular expression style include/exclude settings as they can \
                 only be applied to string fields. Use an array of values for include/exclude clauses"
            )));
        }
        let tests = TextTests::new(include, exclude)?;
        let accepts = |keyword: &str| tests.accept(&resolved.format.keyword(keyword));
        let mut by_ordinal = Vec::new();
        if let Some(column) = values.texts() {
            work::room_for(column.num_terms())?;
            by_ordinal.reserve(column.num_terms());
            let mut stream = column.dictionary().stream()?;
            while stream.advance() {
                // A regular expression reads the whole text, which may be long.
                work::check()?;
                by_ordinal.push(std::str::from_utf8(stream.key()).is_ok_and(accepts));
            }
        }
        let other = match values.keys(&[u64::MAX])?.first() {
            Some(Key::Text(text)) => accepts(text),
            _ => false,
        };
        Ok(Some(Allowed::Texts(by_ordinal, other)))
    }

    /// Whether the value with this code gets a bucket.
    pub fn contains(&self, code: u64) -> bool {
        match self {
            Allowed::Texts(by_ordinal, other) => by_ordinal.get(code as usize).copied().unwrap_or(*other),
            Allowed::Numbers(numbers) => {
                numbers.include.as_ref().is_none_or(|values| values.contains(&code))
                    && !numbers.exclude.contains(&code)
                    && numbers.partition.is_none_or(|(wanted, of)| {
                        (mix64(code) as i64).rem_euclid(of as i64) == wanted as i64
                    })
            }
        }
    }
}

/// `include` and `exclude`.
type Chosen<'a> = (&'a Option<Selection>, &'a Option<Selection>);

/// Which texts `include` and `exclude` select.
pub struct TextTests<'a> {
    include: Option<TextTest<'a>>,
    exclude: Option<TextTest<'a>>,
}

impl<'a> TextTests<'a> {
    /// Reads patterns.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn new(
        include: &'a Option<Selection>,
        exclude: &'a Option<Selection>,
    ) -> Result<Self, AggregationError> {
        let test = |selection: &'a Option<Selection>| selection.as_ref().map(TextTest::new).transpose();
        Ok(Self { include: test(include)?, exclude: test(exclude)? })
    }

    /// Whether a text gets a bucket.
    pub fn accept(&self, text: &str) -> bool {
        self.include.as_ref().is_none_or(|test| test.matches(text))
            && !self.exclude.as_ref().is_some_and(|test| test.matches(text))
    }
}

impl NumberFilter {
    fn new(
        name: &str,
        (include, exclude): Chosen<'_>,
        resolved: &Resolved,
        now: i64,
    ) -> Result<Self, AggregationError> {
        let codes = |values: &[String]| -> Result<FxHashSet<u64>, AggregationError> {
            values
                .iter()
                .map(|text| {
                    Ok(match resolved.key(&Value::String(text.clone()), now, false)? {
                        Key::Double(bits) => bits,
                        Key::Unsigned(value) => value,
                        Key::Long(value) => value as u64,
                        _ => 0,
                    })
                })
                .collect()
        };
        let refused = || {
            AggregationError::IllegalArgument(format!(
                "Aggregation [{name}] cannot support regular expression style include/exclude settings as they can \
                 only be applied to string fields. Use an array of numeric values for include/exclude clauses used to \
                 filter numeric fields"
            ))
        };
        let mut numbers = NumberFilter { include: None, exclude: FxHashSet::default(), partition: None };
        match include {
            None => {}
            Some(Selection::Regexp(_)) => return Err(refused()),
            Some(Selection::Values(values)) => numbers.include = Some(codes(values)?),
            Some(Selection::Partition { partition, partitions }) => {
                numbers.partition = Some((*partition, *partitions));
            }
        }
        match exclude {
            None | Some(Selection::Partition { .. }) => {}
            Some(Selection::Regexp(_)) => return Err(refused()),
            Some(Selection::Values(values)) => numbers.exclude = codes(values)?,
        }
        Ok(numbers)
    }
}

enum TextTest<'a> {
    Regexp(Box<Automaton>),
    Values(FxHashSet<&'a str>),
    Partition(u64, u64),
}

impl<'a> TextTest<'a> {
    fn new(selection: &'a Selection) -> Result<Self, AggregationError> {
        Ok(match selection {
            Selection::Regexp(pattern) => {
                let automaton = Automaton::new(&RegexpQuery::new("", pattern.as_str()))
                    .map_err(|error| AggregationError::IllegalArgument(QueryError::from(error).reason()))?;
                TextTest::Regexp(Box::new(automaton))
            }
            Selection::Values(values) => TextTest::Values(values.iter().map(String::as_str).collect()),
            Selection::Partition { partition, partitions } => TextTest::Partition(*partition, *partitions),
        })
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            TextTest::Regexp(automaton) => automaton.matches(text),
            TextTest::Values(values) => values.contains(text),
            TextTest::Partition(wanted, of) => {
                i64::from(murmur3(text.as_bytes(), 31) as i32).rem_euclid(*of as i64) == *wanted as i64
            }
        }
    }
}

/// MurmurHash3 (32 bits), by which Elasticsearch partitions texts.
fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mut hash = seed;
    let (words, tail) = bytes.as_chunks::<4>();
    let scramble = |word: u32| word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    for word in words {
        hash ^= scramble(u32::from_le_bytes(*word));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    if !tail.is_empty() {
        hash ^= scramble(u32::from_le_bytes(last));
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The 64-bit mixing function (variant 9 of Stafford's) by which Elasticsearch partitions numbers.
fn mix64(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 32)).wrapping_mul(0x4cd6_944c_5cc2_0b6d);
    hash = (hash ^ (hash >> 29)).wrapping_mul(0xfc12_c5b1_9d32_59e9);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::{mix64, murmur3};

    #[test]
    fn partitions_are_those_of_elasticsearch() {
        let text = |text: &str| i64::from(murmur3(text.as_bytes(), 31) as i32).rem_euclid(2);
        assert_eq!((text("bcd"), text("abc")), (0, 1));
        let number = |number: u64| (mix64(number) as i64).rem_euclid(2);
        assert_eq!((number(5678), number(1234)), (0, 1));
    }
}
