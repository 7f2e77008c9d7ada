//! The `completion` suggester: the inputs of documents that begin with a text, those of the highest weight first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, TERMINATED, Term};

use sparrow_mapping::{
    AskedContext, Completion as CompletionField, CompletionEntry, FieldType, asked_contexts, completion_keys,
    split_context,
};
use sparrow_query::RegexpQuery;
use sparrow_query::regexp::Automaton;
use sparrow_runtime::work;
use sparrow_segments::schema::{flat_key, keyword_column};
use sparrow_tantivy_index::query::QueryError;
use sparrow_tantivy_index::{DocMeta, Snapshot};

use super::near_prefix::{FuzzyOptions, NearPrefix};

/// Number of steps of comparing inputs that are charged to the request at a time.
const PIECE: u64 = 1024;
/// How many times as many inputs are looked for, where those found first are of too few documents.
const MORE: usize = 4;

/// A request for completions: a text, and how the inputs of a field of type `completion` are compared with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Path of a field of type `completion`, or of an alias of it.
    pub field: String,
    /// The beginning to look for, or a regular expression that matches it.
    pub text: String,
    /// How inputs are compared with the text.
    pub way: CompletionWay,
    /// Analyzer for the text; `None` for the field's own search analyzer.
    pub analyzer: Option<String>,
    /// Highest number of suggestions.
    pub size: usize,
    /// Whether inputs that are written the same are suggested once.
    pub skip_duplicates: bool,
    /// The contexts that inputs have to have one of, by their names.
    pub contexts: Map<String, Value>,
}

/// How inputs are compared with a text.
#[derive(Debug, Clone, PartialEq)]
pub enum CompletionWay {
    /// They begin with it.
    Prefix,
    /// They begin with something similar.
    Fuzzy(FuzzyOptions),
    /// They begin with something that it matches as a regular expression; its own text is not used.
    Regexp(RegexpQuery),
}

/// A suggestion: an input of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// The input as the document has it, cut to the length that the field keeps.
    pub text: String,
    /// Weight of the input, 0 or more; for a fuzzy completion multiplied by the number of bytes or characters that it has in common with the
    /// text of the request.
    pub score: f32,
    pub doc: DocMeta,
}

/// Decides which analyzed inputs are suggested.
enum Matcher {
    Prefix(Vec<String>),
    Fuzzy(Vec<NearPrefix>, String),
    Regexp(Arc<Automaton>),
}

impl Matcher {
    /// `None` where nothing matches: as in Elasticsearch, an empty text has no completions.
    fn new(
        snapshot: &Snapshot,
        request: &Completion,
        field: &CompletionField,
    ) -> Result<Option<Self>, QueryError> {
        if request.text.is_empty() {
            return Ok(None);
        }
        if let CompletionWay::Regexp(query) = &request.way {
            let query = RegexpQuery { value: request.text.clone(), ..query.clone() };
            return Ok(Some(Self::Regexp(Arc::new(Automaton::new(&query)?))));
        }
        let name = request.analyzer.as_deref().unwrap_or_else(|| field.search_analyzer());
        let analyzer = snapshot
            .analysis()
            .analyzer(name)
            .ok_or_else(|| QueryError::UnknownAnalyzer { clause: "completion", name: name.to_owned() })?;
        let keys = completion_keys(field, &analyzer, &request.text);
        if keys.is_empty() {
            return Ok(None);
        }
        let CompletionWay::Fuzzy(options) = &request.way else { return Ok(Some(Self::Prefix(keys))) };
        let near: Vec<NearPrefix> = keys.iter().map(|key| NearPrefix::new(key, options)).collect();
        let literals = keys.iter().zip(&near).map(|(key, near)| {
            let end = near.literal_bytes();
            // Part of a character is nothing to look up.
            &key[..(0..=end).rev().find(|at| key.is_char_boundary(*at)).unwrap_or_default()]
        });
        let literal = common_start(literals);
        Ok(Some(Self::Fuzzy(near, literal)))
    }

    /// How many units an input has in common with what is to be completed, 0 where that does not count; `None` if it does not match.
    fn common(&self, key: &str) -> Option<usize> {
        match self {
            Self::Prefix(prefixes) => {
                prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())).then_some(0)
            }
            Self::Fuzzy(near, _) => {
                let bytes = near.iter().filter_map(|one| one.shortest(key)).min()?;
                near.iter().map(|one| one.common(&key.as_bytes()[..bytes])).max()
            }
            Self::Regexp(automaton) => automaton.matches_start(key).then_some(0),
        }
    }

    /// What all matching inputs begin with.
    fn literal_prefix(&self) -> String {
        match self {
            Self::Prefix(prefixes) => common_start(prefixes.iter().map(String::as_str)),
            Self::Fuzzy(_, literal) => literal.clone(),
            Self::Regexp(automaton) => automaton.literal_prefix(),
        }
    }
}

/// What all texts begin with.
fn common_start<'t>(mut texts: impl Iterator<Item = &'t str>) -> String {
    let Some(mut start) = texts.next() else { return String::new() };
    for text in texts {
        let same = start.char_indices().zip(text.chars()).find(|((_, one), other)| one != other);
        let most = start.len().min(text.len());
        start = &start[..same.map_or(most, |((at, _), _)| at)];
    }
    start.to_owned()
}

/// An input in the order of suggestions: by score, then by its text, then by the age of its document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// The bits of the score, which is not negative: they are in the order of the numbers.
    score: Reverse<u32>,
    text: String,
    seq_no: u64,
    addr: DocAddress,
}

/// The key by which suggestions differ: each document, or each text, is suggested once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Once {
    Document(DocAddress),
    Text(String),
}

/// The best inputs, one of each document, or one of each text.
struct Best {
    size: usize,
    by_text: bool,
    ranked: BTreeSet<Ranked>,
    places: FxHashMap<Once, Ranked>,
}

impl Best {
    fn new(size: usize, by_text: bool) -> Self {
        Self { size, by_text, ranked: BTreeSet::new(), places: FxHashMap::default() }
    }

    /// Whether there is no place for an input of this score and text, whichever document it is of.
    fn is_beyond(&self, score: Reverse<u32>, text: &str) -> bool {
        self.ranked.len() == self.size
            && self.ranked.last().is_some_and(|last| (score, text) > (last.score, last.text.as_str()))
    }

    fn offer(&mut self, new: Ranked) {
        let once = self.once(&new);
        match self.places.get(&once) {
            Some(known) if *known <= new => return,
            Some(known) => {
                self.ranked.remove(known);
            }
            None => {}
        }
        self.places.insert(once, new.clone());
        self.ranked.insert(new);
        if self.ranked.len() > self.size
            && let Some(last) = self.ranked.pop_last()
        {
            self.places.remove(&self.once(&last));
        }
    }

    fn once(&self, ranked: &Ranked) -> Once {
        match self.by_text {
            true => Once::Text(ranked.text.clone()),
            false => Once::Document(ranked.addr),
        }
    }
}

/// The best inputs of documents for a text, at most one of each document; `None` if the field is not mapped.
///
/// # Errors
/// For fields of another type, analyzers that do not exist, and regular expressions that are malformed or too large.
pub fn complete(
    snapshot: &Snapshot,
    request: &Completion,
    cancel: &AtomicBool,
) -> Result<Option<Vec<Completed>>, QueryError> {
    let Some(field) = snapshot.mapping().field(&request.field) else { return Ok(None) };
    let FieldType::Completion(field) = field else {
        let reason = format!("Field [{}] is not a completion suggest field", request.field);
        return Err(QueryError::Invalid { reason });
    };
    let contexts = match (field.contexts.is_empty(), request.contexts.is_empty()) {
        // All inputs are in the same one, which is nothing in their terms.
        (true, true) => vec![AskedContext { start: String::new(), is_whole: true, boost: 0 }],
        (true, false) => {
            let reason = format!("Field [{}] has no contexts", request.field);
            return Err(QueryError::Invalid { reason });
        }
        (false, _) => asked_contexts(&field.contexts, &request.contexts)
            .map_err(|reason| QueryError::Invalid { reason })?,
    };
    let Some(matcher) = Matcher::new(snapshot, request, field)? else { return Ok(Some(Vec::new())) };
    let search = Search { snapshot, request, field, contexts, matcher, cancel };
    let mut size = request.size;
    loop {
        let best = search.best_inputs(size)?;
        let is_all = best.len() < size;
        let mut seen = FxHashSet::default();
        let mut found: Vec<Ranked> = best.into_iter().filter(|one| seen.insert(one.addr)).collect();
        // Texts that are there once each may be of few documents.
        if found.len() < request.size && !is_all {
            size = size.saturating_mul(MORE);
            continue;
        }
        found.truncate(request.size);
        return Ok(Some(found.into_iter().map(|one| completed(snapshot, one)).collect()));
    }
}

fn completed(snapshot: &Snapshot, ranked: Ranked) -> Completed {
    let Ranked { score, text, seq_no, addr } = ranked;
    let version = snapshot.segment(addr.segment_ord).version(addr.doc_id);
    Completed { text, score: f32::from_bits(score.0), doc: DocMeta { addr, seq_no, version } }
}

/// A search for completions.
struct Search<'a> {
    snapshot: &'a Snapshot,
    request: &'a Completion,
    field: &'a CompletionField,
    contexts: Vec<AskedContext>,
    matcher: Matcher,
    cancel: &'a AtomicBool,
}

impl Search<'_> {
    fn best_inputs(&self, size: usize) -> Result<BTreeSet<Ranked>, QueryError> {
        let mut best = Best::new(size, self.request.skip_duplicates);
        let mut steps = 0;
        for ord in 0..self.snapshot.searcher().segment_readers().len() {
            self.in_segment(ord as u32, &mut best, &mut steps)?;
        }
        self.spend(&mut steps)?;
        Ok(best.ranked)
    }

    fn spend(&self, steps: &mut u64) -> Result<(), QueryError> {
        work::spend(std::mem::take(steps))?;
        work::check()?;
        if self.cancel.load(Ordering::Relaxed) { Err(QueryError::Cancelled) } else { Ok(()) }
    }

    /// Offers the inputs of a segment that are in the contexts.
    fn in_segment(&self, ord: u32, best: &mut Best, steps: &mut u64) -> Result<(), QueryError> {
        let snapshot = self.snapshot;
        let keywords = snapshot.schema().keywords;
        let path = snapshot.mapping().concrete(&self.request.field);
        let segment = snapshot.segment(ord);
        let reader = snapshot.searcher().segment_reader(ord);
        let inverted = reader.inverted_index(keywords)?;
        // The dictionary of the column has the same terms as that of the postings, and is several times as fast to walk.
        let Some(column) = reader.fast_fields().str(&keyword_column(&path))? else { return Ok(()) };
        let common_start = self.matcher.literal_prefix();
        for context in &self.contexts {
            // Looking for a context costs something where nothing is in it.
            self.step(1, steps)?;
            let literal = match context.is_whole {
                true => context.start.clone() + &common_start,
                false => context.start.clone(),
            };
            let mut stream = column.dictionary().range().ge(literal.as_bytes()).into_stream()?;
            while stream.advance() && stream.key().starts_with(literal.as_bytes()) {
                self.step(1 + stream.key().len() as u64 / 16, steps)?;
                let Ok(text) = std::str::from_utf8(stream.key()) else { continue };
                let Some(entry) = CompletionEntry::read(text) else { continue };
                let Some(common) = self.matcher.common(split_context(self.field, entry.key).1) else {
                    continue;
                };
                let score = Reverse(score(entry.weight, context.boost as usize + common).to_bits());
                if best.is_beyond(score, entry.input) {
                    continue;
                }
                let mut term = Term::from_field_json_path(keywords, &flat_key(&path), false);
                term.append_type_and_str(text);
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    self.step(1, steps)?;
                    if segment.is_live(doc) {
                        best.offer(Ranked {
                            score,
                            text: entry.input.to_owned(),
                            seq_no: segment.seq_no(doc),
                            addr: DocAddress::new(ord, doc),
                        });
                    }
                    doc = postings.advance();
                }
            }
        }
        Ok(())
    }

    fn step(&self, more: u64, steps: &mut u64) -> Result<(), QueryError> {
        *steps += more;
        if *steps >= PIECE { self.spend(steps) } else { Ok(()) }
    }
}

/// Score of an input, as Lucene's `CompletionScorer` has it.
fn score(weight: u32, common: usize) -> f32 {
    match (weight as f32, common as f32) {
        (weight, 0.0) => weight,
        (0.0, common) => common,
        (weight, common) => weight * common,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use serde_json::{Map, Value, json};
    use sparrow_mapping::{Limits, Mapping};
    use sparrow_runtime::work::{self, Memory, Probe, Work};
    use sparrow_tantivy_index::{IndexOptions, Snapshot, SparrowIndex, WriteDocument};

    use super::{
        Best, Completion, CompletionWay, DocAddress, Ranked, Reverse, common_start, complete, score,
    };

    /// The suggestions for `a` in some contexts, and how often was looked whether the request must stop.
    fn in_contexts(snapshot: &Snapshot, contexts: Value) -> (Vec<(String, f32)>, u64) {
        let request = Completion {
            field: "c".to_owned(),
            text: "a".to_owned(),
            way: CompletionWay::Prefix,
            analyzer: None,
            size: 10,
            skip_duplicates: false,
            contexts: Map::from_iter([("of".to_owned(), contexts)]),
        };
        let probe = Probe::new(u64::MAX);
        Probe::set(Some(Arc::clone(&probe)));
        let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
        let entered = work::enter(Some(Work::new(Arc::default(), memory, "<test>")));
        Probe::set(None);
        let found = complete(snapshot, &request, &AtomicBool::new(false)).unwrap().unwrap();
        drop(entered);
        (found.into_iter().map(|one| (one.text, one.score)).collect(), probe.checks())
    }

    #[test]
    fn contexts_in_which_nothing_is_are_steps_in_every_segment() {
        let contexts = json!({"name": "of", "type": "category"});
        let properties = json!({"c": {"type": "completion", "contexts": contexts}});
        let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
        let index = SparrowIndex::create(&dir.path().join("index"), &mapping, &options).unwrap();
        for (seq_no, input) in [(0, "ash"), (1, "alder")] {
            let source = json!({"c": {"input": input, "weight": 2, "contexts": {"of": ["tree", input]}}});
            let id = seq_no.to_string();
            let (parsed, _) = mapping.parse_document(&id, &source, &Limits::default()).unwrap();
            let source = source.to_string().into_bytes();
            index.add(WriteDocument { id, seq_no, version: 1, parsed, source, replaces: true }).unwrap();
            index.refresh().unwrap();
        }
        let snapshot = index.searcher();
        let both = json!(["tree", {"context": "ash", "boost": 3}]);
        let (found, few) = in_contexts(&snapshot, both);
        assert_eq!(found, [("ash".to_owned(), 6.0), ("alder".to_owned(), 2.0)]);
        let unknown: Vec<String> = (0..8_192).map(|number| number.to_string()).collect();
        let (found, many) = in_contexts(&snapshot, unknown.into());
        assert_eq!(found, []);
        // Two segments of so many contexts, 1,024 at a time.
        assert!(many >= few + 15, "{many} {few}");
    }

    #[test]
    fn scores_are_those_of_lucene() {
        assert_eq!([score(7, 0), score(0, 3), score(7, 3), score(0, 0)], [7.0, 3.0, 21.0, 0.0]);
    }

    #[test]
    fn what_texts_begin_with() {
        let of = |texts: &[&str]| common_start(texts.iter().copied());
        assert_eq!(of(&["für", "fürs", "fünf"]), "fü");
        assert_eq!([of(&["a", "b"]), of(&["ab"]), of(&[])], ["", "ab", ""]);
    }

    #[test]
    fn the_best_input_of_each_document_or_text_stays() {
        let ranked = |score: f32, text: &str, doc| Ranked {
            score: Reverse(score.to_bits()),
            text: text.to_owned(),
            seq_no: u64::from(doc),
            addr: DocAddress::new(0, doc),
        };
        let offered = [
            ranked(1.0, "b", 1),
            ranked(2.0, "a", 1),
            ranked(2.0, "a", 2),
            ranked(3.0, "c", 1),
            ranked(1.0, "d", 3),
        ];
        let best = |size, by_text| {
            let mut best = Best::new(size, by_text);
            offered.iter().cloned().for_each(|one| best.offer(one));
            assert_eq!(best.ranked.len(), best.places.len());
            best.ranked
                .iter()
                .map(|one| format!("{}{}", one.text, one.addr.doc_id))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(best(5, false), "c1 a2 d3");
        assert_eq!(best(2, false), "c1 a2");
        assert_eq!(best(5, true), "c1 a1 b1 d3");
        assert_eq!(best(1, true), "c1");
    }
}
