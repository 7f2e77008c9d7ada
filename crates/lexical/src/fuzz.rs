//! Feeds damaged posting lists and positions to all searches, which must find nothing in them, or something, without a
//! panic.

use sparrow_fuzzing::{Campaign, mutated};
use tantivy::directory::OwnedBytes;
use tantivy::postings::TermInfo;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{DocId, Index, TantivyError, Term, doc};

use crate::all::{self, Hits, Place};
use crate::any::{self, Clause};
use crate::field::{Factors, SegmentField};

const TERMS: [&str; 4] = ["each", "second", "often", "seldom"];
/// Documents of which the term of each makes a list that is scored block by block.
const DOCS: usize = 5000;

/// A field in one segment, and where the lists of [`TERMS`] are.
struct Sample {
    field: SegmentField,
    terms: Vec<TermInfo>,
}

impl Sample {
    fn new(option: IndexRecordOption) -> Result<Self, TantivyError> {
        let indexing = TextFieldIndexing::default().set_tokenizer("default").set_index_option(option);
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 15_000_000)?;
        for number in 0..DOCS {
            let mut words = "each ".repeat(1 + number % 3);
            let others = [("second", number % 2), ("often", number % 7), ("seldom", number % 97)];
            for (word, _) in others.iter().filter(|(_, rest)| *rest == 0) {
                words += word;
                words += " ";
            }
            writer.add_document(doc!(text => words))?;
        }
        writer.commit()?;
        let searcher = index.reader()?.searcher();
        let field = SegmentField::open(searcher.segment_reader(0), text, option, 3.0)?;
        let field = field.ok_or(TantivyError::InvalidArgument("no field".to_owned()))?;
        let infos = TERMS.map(|term| field.inverted.get_term_info(&Term::from_field_text(text, term)));
        let terms = infos.into_iter().filter_map(|info| info.ok().flatten()).collect();
        Ok(Self { field, terms })
    }

    /// The lists and the positions as one input: how long the lists are comes first.
    fn bytes(&self, option: u8) -> Vec<u8> {
        let length = self.field.postings.len() as u32;
        [&[option][..], &length.to_le_bytes(), &self.field.postings, &self.field.positions].concat()
    }

    /// The sample's field with posting lists and positions read from an input in the form of [`Sample::bytes`], without the option.
    fn with(&self, bytes: &[u8]) -> SegmentField {
        let (length, bytes) = bytes.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let (postings, positions) =
            bytes.split_at_checked(u32::from_le_bytes(*length) as usize).unwrap_or((bytes, &[]));
        SegmentField {
            inverted: self.field.inverted.clone(),
            postings: OwnedBytes::new(postings.to_vec()),
            positions: OwnedBytes::new(positions.to_vec()),
            lengths: self.field.lengths.clone(),
            bounds: self.field.bounds.clone(),
            option: self.field.option,
            max_doc: self.field.max_doc,
        }
    }
}

/// Hits of a search, of which there must not be others than the segment's documents.
struct Found {
    live: Vec<bool>,
    taken: Vec<DocId>,
}

impl Hits for Found {
    fn wants(&self, doc: DocId) -> bool {
        self.live[doc as usize]
    }

    fn least(&self) -> f32 {
        0.0
    }

    fn take(&mut self, doc: DocId, _score: f32) {
        self.taken.push(doc);
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// Searches for any term, all of them, and two as a phrase; returns how many documents each finds.
fn searches(field: &SegmentField, terms: &[TermInfo]) -> [usize; 3] {
    let factors = Factors::new(3.0);
    let clause = |term| Clause { list: field.list(term), field, factors: &factors, weight: 1.0 };
    let found = || Found { live: vec![true; DOCS], taken: Vec::new() };
    let mut counts = [0; 3];
    for size in [10, DOCS] {
        let live = found().live;
        let wanted = |doc: DocId| live[doc as usize];
        counts[0] = 0;
        let offer = |doc: DocId, _| counts[0] += usize::from(wanted(doc));
        let clauses = terms.iter().map(clause).collect();
        any::search(clauses, field.max_doc, size, std::iter::empty(), None, wanted, offer);
    }
    let mut hits = found();
    all::anywhere(terms.iter().map(clause).collect(), &mut hits);
    counts[1] = hits.taken.len();
    if field.option == IndexRecordOption::WithFreqsAndPositions {
        let mut hits = found();
        let place = |(offset, term)| Place { clause: clause(term), positions: field.positions(term), offset };
        all::phrase((0..).zip(&terms[..2]).map(place).collect(), &mut hits);
        counts[2] = hits.taken.len();
    }
    counts
}

#[test]
fn damaged_lists() -> Result<(), TantivyError> {
    let options =
        [IndexRecordOption::Basic, IndexRecordOption::WithFreqs, IndexRecordOption::WithFreqsAndPositions];
    let samples = options.into_iter().map(Sample::new).collect::<Result<Vec<_>, _>>()?;
    let seeds: Vec<Vec<u8>> = (0..).zip(&samples).map(|(option, sample)| sample.bytes(option)).collect();
    for (sample, bytes) in samples.iter().zip(&seeds) {
        let phrases = if sample.field.option.has_positions() { DOCS / 2 } else { 0 };
        let found = searches(&sample.with(&bytes[1..]), &sample.terms);
        assert_eq!(found, [DOCS, DOCS.div_ceil(2 * 7 * 97), phrases]);
    }
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "lists").run(
        |random| mutated(random, &seeds, &[]),
        |bytes| {
            let Some((option, bytes)) = bytes.split_first() else { return };
            let sample = &samples[usize::from(*option) % samples.len()];
            searches(&sample.with(bytes), &sample.terms);
        },
    );
    Ok(())
}
