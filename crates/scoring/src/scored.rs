//! BM25 over frequencies that tantivy does not count: phrases whose places hold several terms or whose terms
//! may move, synonyms, and terms of several fields taken as one.

use rustc_hash::FxHashMap;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use crate::error;
use crate::statistics::{FieldStatistics, idf};
use crate::stoppable::stops_after;
use crate::weights;
use sparrow_lexical::sloppy::{PhrasePlace, SloppyPhrase, exact_frequency};
use sparrow_lexical::{B, K1};
use sparrow_runtime::work;

/// BM25 with the statistics of a whole field.
#[derive(Debug, Clone, Copy)]
pub struct Bm25 {
    /// Sum of the idf of all terms, times `k1 + 1`.
    weight: f32,
    average_length: f32,
}

impl Bm25 {
    /// Parameters for terms with these document frequencies, which score as one.
    pub fn new(statistics: FieldStatistics, frequencies: &[u64]) -> Self {
        let docs = statistics.docs.max(frequencies.iter().copied().max().unwrap_or(0)).max(1);
        let idf: f64 = frequencies.iter().map(|frequency| idf(*frequency, docs)).sum();
        Self {
            weight: idf as f32 * (K1 + 1.0),
            average_length: (statistics.tokens as f64 / docs as f64).max(f64::from(f32::MIN_POSITIVE)) as f32,
        }
    }

    /// Upper bound on the score, which a term in an infinitely repetitive document approaches.
    #[inline]
    pub fn weight(&self) -> f32 {
        self.weight
    }

    /// The norm that a term frequency is weighed against, for a field with `length` tokens.
    #[inline]
    pub fn norm(&self, length: f32) -> f32 {
        K1 * (1.0 - B + B * length / self.average_length)
    }

    fn score(&self, frequency: f32, length: f32) -> f32 {
        self.weight * frequency / (frequency + self.norm(length))
    }
}

/// Field lengths in a segment, in tokens; fields without stored lengths count as one token each.
pub fn lengths(reader: &SegmentReader, field: Field) -> FieldNormReader {
    reader.get_fieldnorms_reader(field).unwrap_or_else(|_| FieldNormReader::constant(reader.max_doc(), 1))
}

/// Posting lists of the terms that may stand at a place of a phrase.
struct Union {
    postings: Vec<SegmentPostings>,
}

impl Union {
    fn doc(&self) -> DocId {
        self.postings.iter().map(DocSet::doc).min().unwrap_or(TERMINATED)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        for postings in &mut self.postings {
            if postings.doc() < target {
                postings.seek(target);
            }
        }
        self.doc()
    }

    /// Positions of all terms in a document, ascending, without duplicates.
    fn positions(&mut self, doc: DocId, out: &mut Vec<u32>) {
        out.clear();
        let mut lists = 0;
        for postings in &mut self.postings {
            if postings.doc() == doc {
                postings.append_positions_with_offset(0, out);
                lists += 1;
            }
        }
        if lists > 1 {
            out.sort_unstable();
            out.dedup();
        }
    }
}

/// A phrase that allows several terms at a place, and terms to be out of place (`slop`).
pub struct PhraseWeight {
    field: Field,
    places: Vec<PhrasePlace>,
    /// The distinct sets of terms at places.
    terms: Vec<Vec<Term>>,
    /// Matcher for phrases with slop; `None` if the terms must stand exactly as in the phrase.
    sloppy: Option<SloppyPhrase>,
    bm25: Option<Bm25>,
}

impl PhraseWeight {
    /// `places` has the offset and the terms of each place; `slop` is the total distance that terms may move.
    pub fn new(field: Field, places: Vec<(u32, Vec<Term>)>, slop: u32, bm25: Option<Bm25>) -> Self {
        let sloppy = (slop > 0).then(|| {
            let parts: Vec<(u32, &[Term])> = places.iter().map(|(at, terms)| (*at, &terms[..])).collect();
            SloppyPhrase::new(&parts, slop, stops_after)
        });
        let mut numbers: FxHashMap<Vec<Term>, usize> = FxHashMap::default();
        let mut lists = Vec::new();
        let places = places.into_iter().map(|(offset, terms)| {
            let list = *numbers.entry(terms).or_insert_with_key(|terms| {
                lists.push(terms.clone());
                lists.len() - 1
            });
            PhrasePlace { offset, list }
        });
        Self { field, places: places.collect(), terms: lists, sloppy, bm25 }
    }
}

impl Weight for PhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let inverted = reader.inverted_index(self.field)?;
        let mut lists = Vec::with_capacity(self.terms.len());
        for terms in &self.terms {
            // A phrase may have thousands of different terms, and opening the lists of one reads from the disk.
            work::check().map_err(|_| error::stopped())?;
            let mut postings = Vec::with_capacity(terms.len());
            for term in terms {
                postings.extend(inverted.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?);
            }
            lists.push(Union { postings });
        }
        let mut scorer = PhraseScorer {
            positions: vec![Vec::new(); lists.len()],
            lists,
            places: self.places.clone(),
            sloppy: self.sloppy.clone(),
            scoring: self.bm25.map(|bm25| (bm25, lengths(reader, self.field))),
            boost,
            doc: 0,
            frequency: 0.0,
        };
        scorer.find(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "BM25 of the phrase")
    }
}

struct PhraseScorer {
    lists: Vec<Union>,
    /// Positions in the document that each list has.
    positions: Vec<Vec<u32>>,
    places: Vec<PhrasePlace>,
    sloppy: Option<SloppyPhrase>,
    scoring: Option<(Bm25, FieldNormReader)>,
    boost: Score,
    doc: DocId,
    frequency: f32,
}

impl PhraseScorer {
    /// Goes to the first match at or after `target`; to the end if the request of this thread is to stop.
    fn find(&mut self, mut target: DocId) -> DocId {
        'documents: loop {
            if stops_after(self.lists.len()) {
                self.doc = TERMINATED;
                return TERMINATED;
            }
            for list in &mut self.lists {
                let doc = list.seek(target);
                if doc == TERMINATED {
                    self.doc = TERMINATED;
                    return TERMINATED;
                }
                if doc > target {
                    target = doc;
                    continue 'documents;
                }
            }
            for (list, positions) in self.lists.iter_mut().zip(&mut self.positions) {
                list.positions(target, positions);
                if stops_after(positions.len()) {
                    self.doc = TERMINATED;
                    return TERMINATED;
                }
            }
            self.frequency = match &self.sloppy {
                Some(sloppy) => sloppy.frequency(&self.places, &self.positions),
                None => exact_frequency(&self.places, &self.positions, stops_after),
            };
            if self.frequency > 0.0 {
                self.doc = target;
                return target;
            }
            target += 1;
        }
    }
}

impl DocSet for PhraseScorer {
    fn advance(&mut self) -> DocId {
        match self.doc {
            TERMINATED => TERMINATED,
            doc => self.find(doc + 1),
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        match target {
            _ if target <= self.doc => self.doc,
            TERMINATED => {
                self.doc = TERMINATED;
                TERMINATED
            }
            _ => self.find(target),
        }
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        let size = |list: &Union| list.postings.iter().map(DocSet::size_hint).sum();
        self.lists.iter().map(size).min().unwrap_or(0)
    }
}

impl Scorer for PhraseScorer {
    fn score(&mut self) -> Score {
        match &self.scoring {
            Some((bm25, lengths)) => {
                bm25.score(self.frequency, lengths.fieldnorm(self.doc) as f32) * self.boost
            }
            None => self.boost,
        }
    }
}

/// Terms that score as one: their weighted frequencies are added up, and so are the weighted lengths of their
/// fields.
pub struct SummedWeight {
    /// The terms, each with its weight.
    pub terms: Vec<(Term, f32)>,
    /// The fields of the terms, each once, with its weight.
    pub fields: Vec<(Field, f32)>,
    pub bm25: Option<Bm25>,
}

impl Weight for SummedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let option = match self.bm25 {
            Some(_) => IndexRecordOption::WithFreqs,
            None => IndexRecordOption::Basic,
        };
        let mut postings = Vec::with_capacity(self.terms.len());
        for (term, weight) in &self.terms {
            let list = reader.inverted_index(term.field())?.read_postings(term, option)?;
            postings.extend(list.map(|list| (list, *weight)));
        }
        let scoring = self.bm25.map(|bm25| {
            let fields = self.fields.iter().map(|(field, weight)| (lengths(reader, *field), *weight));
            (bm25, fields.collect())
        });
        let doc = postings.iter().map(|(postings, _)| postings.doc()).min().unwrap_or(TERMINATED);
        Ok(Box::new(SummedScorer { postings, scoring, boost, doc }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "BM25 of terms that count as one")
    }
}

struct SummedScorer {
    postings: Vec<(SegmentPostings, f32)>,
    scoring: Option<(Bm25, Vec<(FieldNormReader, f32)>)>,
    boost: Score,
    doc: DocId,
}

impl SummedScorer {
    fn settle(&mut self) -> DocId {
        self.doc = self.postings.iter().map(|(postings, _)| postings.doc()).min().unwrap_or(TERMINATED);
        self.doc
    }
}

impl DocSet for SummedScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        for (postings, _) in &mut self.postings {
            if postings.doc() == self.doc {
                postings.advance();
            }
        }
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        for (postings, _) in &mut self.postings {
            if postings.doc() < target {
                postings.seek(target);
            }
        }
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.postings.iter().map(|(postings, _)| postings.size_hint()).sum()
    }
}

impl Scorer for SummedScorer {
    fn score(&mut self) -> Score {
        let Some((bm25, fields)) = &self.scoring else { return self.boost };
        let here = self.postings.iter().filter(|(postings, _)| postings.doc() == self.doc);
        let frequency = here.map(|(postings, weight)| postings.term_freq() as f32 * weight).sum();
        let length = fields.iter().map(|(lengths, weight)| lengths.fieldnorm(self.doc) as f32 * weight).sum();
        bm25.score(frequency, length) * self.boost
    }
}
