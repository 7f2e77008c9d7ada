//! Clauses in filter context: the documents of each segment that match, as bitmaps.
//!
//! Bitmaps of single clauses come from the segment's [`SegmentFilters`](sparrow_segments::filter_cache::SegmentFilters)
//! if they have been computed before; compound clauses combine the bitmaps of their parts word by word.

pub(super) mod key;

use std::sync::Arc;

use tantivy::TERMINATED;

use super::kinds::meaning;
use crate::query::compile::Compiler;
use crate::query::filters::key::filter_key;
use sparrow_query::{Query, QueryKind, ScriptQuery};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::stoppable::stops_after;
use sparrow_scoring::weights;
use sparrow_segments::doc_bits::next_in;
use sparrow_segments::doc_bits::{BitsScorer, DocBits};
use sparrow_segments::filter_cache::Cached;
use sparrow_segments::segment_docs::SegmentDocs;

/// For each segment of the snapshot, the set of documents that remain.
pub(crate) type Docs = Vec<SegmentDocs>;

pub(crate) fn combine(docs: &mut Docs, others: Docs, join: fn(&mut SegmentDocs, SegmentDocs)) {
    for (docs, others) in docs.iter_mut().zip(others) {
        join(docs, others);
    }
}

impl Compiler<'_> {
    /// Documents that match every one of `wanted` and none of `excluded`, deleted ones included.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub(crate) fn filter_docs<'q>(
        &mut self,
        wanted: impl IntoIterator<Item = &'q Query>,
        excluded: impl IntoIterator<Item = &'q Query>,
    ) -> Result<Docs, QueryError> {
        let mut docs = self.every(SegmentDocs::All);
        type Join = fn(&mut SegmentDocs, SegmentDocs);
        let mut scripts: Vec<(&ScriptQuery, Join)> = Vec::new();
        let wanted = wanted.into_iter().map(|query| (query, SegmentDocs::intersect as Join));
        let excluded = excluded.into_iter().map(|query| (query, SegmentDocs::subtract as Join));
        for (query, join) in wanted.chain(excluded) {
            match &query.kind {
                QueryKind::Script(script) => scripts.push((script, join)),
                _ => combine(&mut docs, self.matching_docs(query)?, join),
            }
        }
        // Scripts run last, as in Elasticsearch: they may fail on documents that another clause excludes.
        for (script, join) in scripts {
            let found = self.script_docs(script, &docs)?;
            combine(&mut docs, found, join);
        }
        Ok(docs)
    }

    /// Those of `docs` on which a script is true. It runs on visible documents only, as its errors tell of them.
    fn script_docs(&mut self, query: &ScriptQuery, docs: &Docs) -> Result<Docs, QueryError> {
        self.count_clause()?;
        let script = self.snapshot.script(&query.script);
        let mut found = Vec::with_capacity(docs.len());
        for (ord, docs) in docs.iter().enumerate() {
            let reader = self.searcher().segment_reader(ord as u32);
            let mut running = script.open(reader);
            let mut bits = weights::empty_docs(reader)?;
            for (index, word) in (0..).zip(self.snapshot.live_words_from(ord, docs, 0)) {
                let mut word: u64 = word;
                if word != 0 {
                    self.check_cancelled()?;
                }
                while word != 0 {
                    let doc = index * 64 + word.trailing_zeros();
                    word &= word - 1;
                    match running.run(doc, None)?.as_bool() {
                        Some(true) => bits.insert(doc),
                        Some(false) => {}
                        None => {
                            let reason = "the script must return true or false".to_owned();
                            return Err(QueryError::Score { kind: "class_cast_exception", reason });
                        }
                    }
                }
            }
            found.push(SegmentDocs::of(Arc::new(bits)));
        }
        Ok(found)
    }

    /// Documents that match a clause, deleted ones included.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub(crate) fn matching_docs(&mut self, query: &Query) -> Result<Docs, QueryError> {
        self.check_cancelled()?;
        let meaning = meaning(&query.kind);
        if let Some(matches) = meaning.of_index(self.snapshot.name()) {
            self.count_clause()?;
            return Ok(self.every(if matches { SegmentDocs::All } else { SegmentDocs::None }));
        }
        match meaning.documents(self)? {
            Some(docs) => Ok(docs),
            None => {
                let mut docs = self.clause_docs(query)?;
                if self.spreads {
                    docs.iter_mut().enumerate().for_each(|(ord, docs)| self.spread(ord, docs));
                }
                Ok(docs)
            }
        }
    }

    /// Adds to documents of a segment the objects of the view that are in them.
    pub(crate) fn spread(&self, ord: usize, docs: &mut SegmentDocs) {
        let segment = self.snapshot.segment(ord as u32);
        let SegmentDocs::Some(bits) = &mut *docs else { return };
        let (live, mut spread) = (segment.live().unwrap_or_default(), DocBits::clone(bits));
        for documents in self.snapshot.levels_around(segment) {
            let mut object = next_in(live, 0);
            while object != TERMINATED && !stops_after(1) {
                if bits.contains(next_in(documents, object)) {
                    spread.insert(object);
                }
                object = next_in(live, object + 1);
            }
        }
        *docs = SegmentDocs::of(Arc::new(spread));
    }

    pub(crate) fn every(&self, docs: SegmentDocs) -> Docs {
        vec![docs; self.snapshot.segments().len()]
    }

    pub(crate) fn any_of(&mut self, queries: &[Query]) -> Result<Docs, QueryError> {
        let mut docs = self.every(SegmentDocs::None);
        for query in queries {
            combine(&mut docs, self.matching_docs(query)?, SegmentDocs::unite);
        }
        Ok(docs)
    }

    /// Documents that match a single clause, from the segments' caches where possible.
    fn clause_docs(&mut self, query: &Query) -> Result<Docs, QueryError> {
        let key: Option<Arc<[u8]>> = filter_key(query, self.snapshot.mapping_epoch()).map(Into::into);
        let mut cached_docs: Vec<Option<SegmentDocs>> = vec![None; self.snapshot.segments().len()];
        if let Some(key) = &key {
            let mut clauses = 0;
            for (cached_docs, segment) in cached_docs.iter_mut().zip(self.snapshot.segments()) {
                if let Some(cached) = segment.filters().get(key) {
                    *cached_docs = Some(cached.docs);
                    clauses = cached.clauses;
                }
            }
            if !cached_docs.is_empty() && cached_docs.iter().all(Option::is_some) {
                self.count_clauses(clauses)?;
                return Ok(cached_docs.into_iter().flatten().collect());
            }
        }
        let before = self.clauses();
        let weight = match meaning(&query.kind).compile_whole(self)? {
            Some(weight) => weight,
            None => self.compile(query, false)?,
        };
        let clauses = self.clauses() - before;
        let mut docs = Vec::with_capacity(cached_docs.len());
        for (ord, cached_docs) in cached_docs.into_iter().enumerate() {
            if let Some(cached_docs) = cached_docs {
                docs.push(cached_docs);
                continue;
            }
            self.check_cancelled()?;
            let reader = self.searcher().segment_reader(ord as u32);
            let mut scorer = weight.scorer(reader, 1.0)?;
            let cheap = scorer.downcast_ref().is_some_and(BitsScorer::is_cheap);
            let matching = SegmentDocs::collect(&mut *scorer, reader, self.cancel());
            self.check_cancelled()?;
            if let Some(key) = &key {
                let cached = Cached { docs: matching.clone(), clauses };
                self.snapshot.segment(ord as u32).filters().insert(key, cached, cheap);
            }
            docs.push(matching);
        }
        self.score_errors().check()?;
        Ok(docs)
    }
}
