//! Runs sorted searches: every matching document of every segment is offered with its keys.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use tantivy::query::Weight;
use tantivy::{DocAddress, DocId, TERMINATED};

use super::collect::{Entry, Groups, Top};
use super::columns::KeyReader;
use super::groups::{GroupReader, SeveralValues};
use super::value::compare;
use super::{
    ColumnKey, Distance, MAX_SORT_KEYS, Slice, SortSource, SortValue, SortedDocs, SortedHit, SortedSearch,
    Ties,
};
use crate::query::SearchOptions;
use crate::query::compile::Compiler;
use crate::query::scripts::DocumentScript;
use crate::snapshot::Snapshot;
use sparrow_query::Query;
use sparrow_runtime::Executor;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::score_error::ScoreErrors;
use sparrow_segments::nested::Owners;
use sparrow_segments::segment_docs::SegmentDocs;

/// Number of documents between two checks of the cancel flag.
const CANCEL_INTERVAL: u32 = 4096;

impl Snapshot {
    /// Finds the first hits of a query, sorted by columns.
    ///
    /// Hits with equal keys come in the order of writing. The total counts all matching documents of the
    /// slice.
    ///
    /// # Errors
    /// As [`Snapshot::search`]; when a document has several values in the column that hits are collapsed by;
    /// when there are more than [`MAX_SORT_KEYS`] keys.
    pub fn search_sorted(
        &self,
        query: &Query,
        sorted: &SortedSearch,
        options: &SearchOptions,
    ) -> Result<SortedDocs, QueryError> {
        match sorted.keys.len() {
            0 | 1 => self.sorted_by::<1>(query, sorted, options),
            2 => self.sorted_by::<2>(query, sorted, options),
            3 | 4 => self.sorted_by::<4>(query, sorted, options),
            5..=8 => self.sorted_by::<8>(query, sorted, options),
            9..=MAX_SORT_KEYS => self.sorted_by::<MAX_SORT_KEYS>(query, sorted, options),
            _ => Err(QueryError::TooManySortKeys { limit: MAX_SORT_KEYS }),
        }
    }

    /// Reduces a set of documents in each segment to the live ones, then to those of a slice, then to the
    /// first `most` of these.
    ///
    /// # Errors
    /// When a column cannot be read.
    pub fn keep_part(
        &self,
        matching: &mut [Vec<u64>],
        slice: Option<&Slice>,
        most: Option<u64>,
    ) -> Result<(), QueryError> {
        let mut left = most.unwrap_or(u64::MAX);
        for (ord, words) in (0..).zip(matching) {
            let segment = self.segment(ord);
            let reader = self.searcher().segment_reader(ord);
            let key = match slice {
                None => None,
                Some(Slice { column: None, .. }) => Some(KeyReader::seq_no(false)),
                Some(Slice { column: Some(column), .. }) => {
                    Some(KeyReader::column(reader, column, false, None, Owners::Document)?)
                }
            };
            for (index, word) in (0..).zip(words) {
                let mut bits_left = *word;
                while bits_left != 0 {
                    let bit = bits_left & bits_left.wrapping_neg();
                    let doc = index * 64 + bits_left.trailing_zeros();
                    bits_left &= bits_left - 1;
                    let inside = match (&key, slice) {
                        (Some(key), Some(slice)) => {
                            part(key.key(doc, 0.0, || segment.seq_no(doc)), slice.max) == slice.id
                        }
                        _ => true,
                    };
                    match inside && left > 0 {
                        true => left -= 1,
                        false => *word &= !bit,
                    }
                }
            }
        }
        Ok(())
    }

    /// The objects whose values a key sorts by; `None` for those of the documents themselves.
    fn objects_of(&self, nested: &[(String, Option<Query>)]) -> Result<Option<Arc<Snapshot>>, QueryError> {
        let mut view = None;
        for (path, filter) in nested {
            let inside = view.as_deref().unwrap_or(self).inside(path);
            view = Some(match filter {
                None => inside,
                Some(filter) => Arc::new(inside.restricted(filter)?),
            });
        }
        Ok(view)
    }

    fn sorted_by<const N: usize>(
        &self,
        query: &Query,
        sorted: &SortedSearch,
        options: &SearchOptions,
    ) -> Result<SortedDocs, QueryError> {
        let mut compiler = Compiler::new(self, options.cancel.as_deref());
        let by_score = sorted.keys.iter().any(|key| match &key.source {
            SortSource::Score => true,
            SortSource::Script(script) => script.script.uses("_score"),
            SortSource::SeqNo | SortSource::Column(_) | SortSource::Distance(..) => false,
        });
        let scores = by_score || sorted.scored || options.min_score.is_some();
        let (docs, weight) = if scores {
            let allowed = compiler.filter_docs(&options.post_filter, [])?;
            (allowed, Some(compiler.compile(query, true)?))
        } else {
            (compiler.filter_docs([query].into_iter().chain(&options.post_filter), [])?, None)
        };
        let mut bound = Vec::with_capacity(sorted.keys.len());
        for key in &sorted.keys {
            bound.push(match &key.source {
                SortSource::Score => BoundSource::Score,
                SortSource::SeqNo => BoundSource::SeqNo,
                SortSource::Column(column) => BoundSource::Column(column, self.objects_of(&column.nested)?),
                SortSource::Distance(column, distance) => {
                    BoundSource::Distance(column, distance, self.objects_of(&column.nested)?)
                }
                SortSource::Script(script) => BoundSource::Script(self.script(script)),
            });
        }
        let mut sorted_docs = SortedDocs::default();
        for (ord, docs) in (0..).zip(&docs) {
            compiler.check_cancelled()?;
            if matches!(docs, SegmentDocs::None) {
                continue;
            }
            let left = sorted.terminate_after.map(|limit| limit - sorted_docs.total.min(limit));
            let mut segment =
                Segment::<N>::open(self, ord, sorted, &bound, options, left, compiler.score_errors())?;
            match &weight {
                Some(weight) => segment.scored(&**weight, docs, &compiler)?,
                None => segment.unscored(docs, &compiler)?,
            }
            segment.finish(&mut sorted_docs)?;
            if sorted_docs.terminated_early {
                break;
            }
        }
        // Scores that are computed end early when the search is cancelled.
        compiler.check_cancelled()?;
        compiler.score_errors().check()?;
        merge(sorted, options.size, &mut sorted_docs);
        compiler.executors.note(if scores { Executor::DocumentAtATime } else { Executor::Bitset });
        sorted_docs.executors = compiler.executors.noted();
        Ok(sorted_docs)
    }
}

/// A [`SortSource`] with what its values need of a whole snapshot.
enum BoundSource<'a> {
    Score,
    SeqNo,
    /// A column, and the view of the objects whose values it has; none for those of the documents themselves.
    Column(&'a ColumnKey, Option<Arc<Snapshot>>),
    /// Distances of the points in a column, and the view of the objects whose points count; none for those of the documents themselves.
    Distance(&'a ColumnKey, &'a Distance, Option<Arc<Snapshot>>),
    Script(DocumentScript),
}

/// What has the values of a document of a segment: itself, or the objects that a view shows of it.
fn owners(snapshot: &Snapshot, objects: &Option<Arc<Snapshot>>, ord: u32) -> Owners {
    match objects {
        None => Owners::Document,
        Some(view) => Owners::Objects(snapshot.blocks(view, ord)),
    }
}

/// The search of one segment.
struct Segment<'a, const N: usize> {
    snapshot: &'a Snapshot,
    ord: u32,
    sorted: &'a SortedSearch,
    keys: Vec<KeyReader>,
    after: Option<([u64; N], Ties)>,
    slice: Option<(KeyReader, u32, u32)>,
    groups: Option<(GroupReader, Groups<N>)>,
    top: Top<N>,
    min_score: Option<f32>,
    matched: u64,
    /// Number of documents that may still be examined; `None` for no limit.
    left: Option<u64>,
    terminated: bool,
    max_score: Option<f32>,
}

impl<'a, const N: usize> Segment<'a, N> {
    fn open(
        snapshot: &'a Snapshot,
        ord: u32,
        sorted: &'a SortedSearch,
        bound: &[BoundSource<'_>],
        options: &SearchOptions,
        left: Option<u64>,
        errors: &ScoreErrors,
    ) -> Result<Self, QueryError> {
        let reader = snapshot.searcher().segment_reader(ord);
        let mut keys = Vec::with_capacity(sorted.keys.len());
        for (number, (key, source)) in sorted.keys.iter().zip(bound).enumerate() {
            let after = sorted.after.as_ref().and_then(|after| after.values.get(number));
            keys.push(match source {
                BoundSource::Score => KeyReader::score(key.descending),
                BoundSource::SeqNo => KeyReader::seq_no(key.descending),
                BoundSource::Script(script) => {
                    KeyReader::script(script, reader, key.descending, errors.clone())
                }
                BoundSource::Column(column, objects) => {
                    KeyReader::column(reader, column, key.descending, after, owners(snapshot, objects, ord))?
                }
                BoundSource::Distance(column, distance, objects) => {
                    let owners = owners(snapshot, objects, ord);
                    KeyReader::distance(reader, column, (*distance).clone(), key.descending, owners)?
                }
            });
        }
        let after = sorted.after.as_ref().map(|after| {
            let mut places = [0; N];
            for ((place, key), value) in places.iter_mut().zip(&keys).zip(&after.values) {
                *place = key.key_of(value);
            }
            (places, after.ties)
        });
        let slice = match &sorted.slice {
            None => None,
            Some(slice) => {
                let key = match &slice.column {
                    None => KeyReader::seq_no(false),
                    Some(column) => KeyReader::column(reader, column, false, None, Owners::Document)?,
                };
                Some((key, slice.id, slice.max))
            }
        };
        let groups = match &sorted.collapse {
            None => None,
            Some(column) => Some((GroupReader::open(reader, column)?, Groups::new(options.size))),
        };
        Ok(Self {
            snapshot,
            ord,
            sorted,
            keys,
            after,
            slice,
            groups,
            top: Top::new(options.size),
            min_score: options.min_score,
            matched: 0,
            left,
            terminated: false,
            max_score: None,
        })
    }

    fn unscored(&mut self, docs: &SegmentDocs, compiler: &Compiler<'_>) -> Result<(), QueryError> {
        let plain = self.slice.is_none() && self.left.is_none();
        if plain && self.top_is_empty() {
            self.matched = self.snapshot.count_live(self.ord as usize, docs);
            return Ok(());
        }
        for (index, word) in (0..).zip(self.snapshot.live_words_from(self.ord as usize, docs, 0)) {
            let mut word: u64 = word;
            if index % (CANCEL_INTERVAL / 64) == 0 {
                compiler.check_cancelled()?;
            }
            while word != 0 {
                let doc = index * 64 + word.trailing_zeros();
                word &= word - 1;
                if !self.offer(doc, f32::NAN)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn scored(
        &mut self,
        weight: &dyn Weight,
        docs: &SegmentDocs,
        compiler: &Compiler<'_>,
    ) -> Result<(), QueryError> {
        let reader = self.snapshot.searcher().segment_reader(self.ord);
        let segment = self.snapshot.segment(self.ord);
        let mut scorer = weight.scorer(reader, 1.0)?;
        let mut until_poll = CANCEL_INTERVAL;
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            until_poll -= 1;
            if until_poll == 0 {
                compiler.check_cancelled()?;
                until_poll = CANCEL_INTERVAL;
            }
            if segment.is_live(doc) && docs.contains(doc) {
                let score = scorer.score();
                if self.min_score.is_none_or(|least| score >= least) && !self.offer(doc, score)? {
                    return Ok(());
                }
            }
            doc = scorer.advance();
        }
        Ok(())
    }

    fn top_is_empty(&self) -> bool {
        self.groups.is_none() && !self.top.admits(0)
    }

    /// Processes a matching document; returns `false` when the search may end.
    #[inline]
    fn offer(&mut self, doc: DocId, score: f32) -> Result<bool, QueryError> {
        let segment = self.snapshot.segment(self.ord);
        let seq_no = || segment.seq_no(doc);
        if let Some((key, id, max)) = &self.slice
            && part(key.key(doc, 0.0, seq_no), *max) != *id
        {
            return Ok(true);
        }
        if let Some(left) = &mut self.left {
            if *left == 0 {
                self.terminated = true;
                return Ok(false);
            }
            *left -= 1;
        }
        self.matched += 1;
        if !score.is_nan() && self.max_score.is_none_or(|highest| score > highest) {
            self.max_score = Some(score);
        }
        let first = self.keys.first().map_or(0, |key| key.key(doc, score, seq_no));
        if self.groups.is_none() && !self.top.admits(first) {
            return Ok(true);
        }
        let mut keys = [0; N];
        keys[0] = first;
        for (place, key) in keys.iter_mut().zip(&self.keys).skip(1) {
            *place = key.key(doc, score, seq_no);
        }
        let entry = Entry { keys, seq_no: seq_no(), doc, score };
        if let Some((after, ties)) = &self.after {
            let behind = match entry.keys.cmp(after) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => match ties {
                    Ties::None => false,
                    Ties::All => true,
                    Ties::After(seq_no) => entry.seq_no > *seq_no,
                },
            };
            if !behind {
                return Ok(true);
            }
        }
        match &mut self.groups {
            None => self.top.offer(entry),
            Some((reader, groups)) => {
                let group = reader.group(doc).map_err(|SeveralValues| QueryError::CollapseSeveral { doc })?;
                groups.offer(group, entry);
            }
        }
        Ok(true)
    }

    /// Converts the documents kept to hits with values, and adds them to `sorted_docs`.
    fn finish(self, sorted_docs: &mut SortedDocs) -> Result<(), QueryError> {
        sorted_docs.total += self.matched;
        sorted_docs.terminated_early |= self.terminated;
        sorted_docs.max_score = match (sorted_docs.max_score, self.max_score) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let (groups, entries): (Vec<SortValue>, Vec<Entry<N>>) = match self.groups {
            None => (Vec::new(), self.top.finish()),
            Some((reader, heads)) => {
                let mut groups = Vec::new();
                let mut entries = Vec::new();
                for (group, entry) in heads.finish() {
                    groups.push(reader.value_of(group)?);
                    entries.push(entry);
                }
                (groups, entries)
            }
        };
        let mut groups = groups.into_iter();
        let mut keys = self.keys;
        let wanted = self.sorted.keys.len();
        sorted_docs.hits.reserve(entries.len());
        for entry in entries {
            let mut values = Vec::with_capacity(wanted);
            for (key, place) in keys.iter_mut().zip(entry.keys) {
                values.push(key.value_of(place)?);
            }
            sorted_docs.hits.push(SortedHit {
                addr: DocAddress::new(self.ord, entry.doc),
                seq_no: entry.seq_no,
                score: entry.score,
                values: values.into(),
                group: groups.next().unwrap_or_default(),
            });
        }
        Ok(())
    }
}

/// The slice, out of `max`, that a key belongs to. All bits of the key are mixed, so that neighbouring values
/// are spread.
fn part(key: u64, max: u32) -> u32 {
    let mut mixed = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) % u64::from(max.max(1))) as u32
}

/// Sorts the hits of all segments and keeps the first of each collapse group.
fn merge(sorted: &SortedSearch, size: usize, sorted_docs: &mut SortedDocs) {
    let order = |a: &SortedHit, b: &SortedHit| {
        compare(&sorted.keys, &a.values, &b.values).then(a.seq_no.cmp(&b.seq_no)).then(a.addr.cmp(&b.addr))
    };
    sorted_docs.hits.sort_by(order);
    if sorted.collapse.is_some() {
        let mut seen = HashSet::new();
        sorted_docs.hits.retain(|hit| seen.insert(GroupId::of(&hit.group)));
    }
    sorted_docs.hits.truncate(size);
}

/// A collapse group, comparable across segments and indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GroupId {
    Null,
    Whole(i128),
    Bits(u64),
    Text(std::sync::Arc<str>),
}

impl GroupId {
    /// The collapse group of a hit with this value.
    pub fn of(value: &SortValue) -> Self {
        match value {
            SortValue::Null => GroupId::Null,
            SortValue::Long(value) => GroupId::Whole(i128::from(*value)),
            SortValue::Unsigned(value) => GroupId::Whole(i128::from(*value)),
            SortValue::Double(value) => GroupId::Bits(value.to_bits()),
            SortValue::Text(text) => GroupId::Text(text.clone()),
        }
    }
}
