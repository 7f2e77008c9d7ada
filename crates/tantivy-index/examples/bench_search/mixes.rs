//! Measures `bool` queries that combine a sparse clause with others, against the sum of what the clauses cost
//! alone.
//!
//! All kinds of queries and all clauses take turns question by question, and the fastest of several passes
//! counts.

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use sparrow_query::{BoolQuery, MatchQuery, MultiMatchQuery, Query, QueryKind, QueryStringQuery};
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::{SearchOptions, TotalHits};

use crate::Arguments;
use crate::build::Built;
use crate::checks;
use crate::corpus::Corpus;
use crate::measure::{CHECKED, micros, percentile, range, ratio, term};

/// Every how many questions the result is checked; fewer than elsewhere, as every document is scored for each
/// clause.
const STEP: usize = CHECKED * 5;

/// A clause that is also measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Clause {
    Sparse,
    Match,
    QueryString,
    MultiMatch,
    Term,
    Range,
}

use Clause::{Match, MultiMatch, QueryString, Range, Sparse, Term};

impl Clause {
    fn query(self, corpus: &Corpus, question: usize) -> Query {
        match self {
            Sparse => corpus.sparse(question),
            Match => corpus.words(question),
            QueryString => QueryKind::QueryString(QueryStringQuery {
                query: plain(&corpus.question_text(question)),
                default_field: Some("text".to_owned()),
                ..QueryStringQuery::default()
            })
            .into(),
            MultiMatch => QueryKind::MultiMatch(MultiMatchQuery {
                fields: vec![("title".to_owned(), 2.0), ("text".to_owned(), 1.0)],
                template: MatchQuery { text: corpus.question_text(question), ..MatchQuery::default() },
                ..MultiMatchQuery::default()
            })
            .into(),
            Term => term("half", "half-1".to_owned()),
            Range => range(100, 150),
        }
    }
}

/// Replaces all characters that have a meaning in the syntax of `query_string`, and any other punctuation, by
/// spaces.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect()
}

/// A `bool` query that is measured.
#[derive(Debug, Default)]
struct Mix {
    name: &'static str,
    must: &'static [Clause],
    should: &'static [Clause],
    filter: &'static [Clause],
    /// Boost of the text clauses; `None` for 1.
    boost: Option<f32>,
    /// The `min_score` of the search, as a share of the tenth best score without it. The clauses alone are searched with
    /// the option too, since counting the hits that reach it costs them time as well.
    least: Option<f32>,
}

const NONE: Mix = Mix { name: "", must: &[], should: &[], filter: &[], boost: None, least: None };

const MIXES: [Mix; 12] = [
    Mix { name: "must sparse+match", must: &[Sparse, Match], ..NONE },
    Mix { name: "should sparse+match", should: &[Sparse, Match], ..NONE },
    Mix { name: "must sparse, should match", must: &[Sparse], should: &[Match], ..NONE },
    Mix { name: "must match, should sparse", must: &[Match], should: &[Sparse], ..NONE },
    Mix { name: "must sparse, filter term 50%", must: &[Sparse], filter: &[Term], ..NONE },
    Mix { name: "must sparse, filter range 5%", must: &[Sparse], filter: &[Range], ..NONE },
    Mix { name: "must sparse+match, filter term 50%", must: &[Sparse, Match], filter: &[Term], ..NONE },
    Mix {
        name: "must sparse, should match, filter term 50% and range 5%",
        must: &[Sparse],
        should: &[Match],
        filter: &[Term, Range],
        ..NONE
    },
    Mix { name: "should sparse+match boosted 4", should: &[Sparse, Match], boost: Some(4.0), ..NONE },
    Mix { name: "must sparse+query_string", must: &[Sparse, QueryString], ..NONE },
    Mix { name: "should sparse+multi_match", should: &[Sparse, MultiMatch], ..NONE },
    Mix { name: "must sparse+match, min_score", must: &[Sparse, Match], least: Some(0.8), ..NONE },
];

impl Mix {
    fn boost_of(&self, clause: Clause) -> f32 {
        if clause == Sparse { 1.0 } else { self.boost.unwrap_or(1.0) }
    }

    fn query(&self, corpus: &Corpus, question: usize) -> Query {
        let of = |clauses: &[Clause]| -> Vec<Query> {
            let query = |clause: &Clause| clause.query(corpus, question).with_boost(self.boost_of(*clause));
            clauses.iter().map(query).collect()
        };
        let (must, should, filter) = (of(self.must), of(self.should), of(self.filter));
        QueryKind::Bool(BoolQuery { must, should, filter, ..BoolQuery::default() }).into()
    }

    fn clauses(&self) -> impl Iterator<Item = Clause> {
        self.must.iter().chain(self.should).chain(self.filter).copied()
    }

    /// Search options for a question.
    fn options(
        &self,
        snapshot: &Snapshot,
        corpus: &Corpus,
        question: usize,
    ) -> Result<SearchOptions, Box<dyn Error>> {
        options(snapshot, &self.query(corpus, question), self.least)
    }

    /// The clauses whose costs are added up. The cost of a filter counts as part of the sparse clause's.
    fn parts(&self) -> impl Iterator<Item = Part> {
        self.must.iter().chain(self.should).map(|clause| (*clause, self.least))
    }

    /// Checks a result against the sum of the scores that each clause gives alone.
    fn check(&self, snapshot: &Snapshot, corpus: &Corpus, question: usize) -> Result<(), Box<dyn Error>> {
        let mut documents: HashMap<u64, (f32, Vec<Clause>)> = HashMap::new();
        for clause in self.clauses() {
            for (row, score) in scores(snapshot, corpus, question, clause)? {
                let own = documents.entry(row).or_default();
                let score = if self.filter.contains(&clause) { 0.0 } else { score * self.boost_of(clause) };
                own.0 += score;
                own.1.push(clause);
            }
        }
        let options = self.options(snapshot, corpus, question)?;
        let least = options.min_score.unwrap_or(f32::NEG_INFINITY);
        let matches = |of: &[Clause]| {
            let has = |clause: &Clause| of.contains(clause);
            let required = self.must.iter().chain(self.filter).all(has);
            required && (!self.must.is_empty() || !self.filter.is_empty() || self.should.iter().any(has))
        };
        let mut expected: Vec<(u64, f32)> = documents
            .into_iter()
            .filter(|(_, (score, of))| matches(of) && *score >= least)
            .map(|(row, (score, _))| (row, score))
            .collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let total = expected.len() as u64;
        expected.truncate(20);
        let found = snapshot.search(&self.query(corpus, question), &options)?;
        checks::check_sum(&found, &expected, self.name)?;
        // A sum may be rounded to the other side of the least score.
        let slack = u64::from(self.least.is_some());
        if found.total.abs_diff(total.min(10_000)) > slack {
            return Err(format!("{}: {} hits counted instead of {total}", self.name, found.total).into());
        }
        Ok(())
    }
}

/// A clause that is searched alone, with its `min_score` as in [`Mix::least`].
type Part = (Clause, Option<f32>);

fn options(snapshot: &Snapshot, query: &Query, least: Option<f32>) -> Result<SearchOptions, Box<dyn Error>> {
    let mut options = SearchOptions::default();
    if let Some(share) = least {
        let found = snapshot.search(query, &options)?;
        options.min_score = found.hits.last().map(|hit| hit.score * share);
    }
    Ok(options)
}

/// The score that a clause alone gives each document.
fn scores(
    snapshot: &Snapshot,
    corpus: &Corpus,
    question: usize,
    clause: Clause,
) -> Result<Vec<(u64, f32)>, Box<dyn Error>> {
    if clause == Sparse {
        return Ok(checks::exhaustive(snapshot, &corpus.tokens(question), corpus.len(), &|_| true).0);
    }
    let track_total_hits = TotalHits::Exact;
    let all = SearchOptions { size: corpus.len(), track_total_hits, ..SearchOptions::default() };
    let found = snapshot.search(&clause.query(corpus, question), &all)?;
    Ok(checks::named(&found.hits))
}

/// Measures one index; prints one line for each clause and each mix.
pub fn measure(built: &Built, corpus: &Corpus, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let snapshot = &*built.snapshot();
    let mixes: Vec<&Mix> = MIXES.iter().filter(|mix| mix.name.contains(&arguments.kinds)).collect();
    for mix in &mixes {
        for question in (0..corpus.questions()).step_by(STEP) {
            mix.check(snapshot, corpus, question)?;
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    for part in mixes.iter().flat_map(|mix| mix.parts()) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let mut alone = vec![vec![f64::MAX; corpus.questions()]; parts.len()];
    let mut mixed = vec![vec![f64::MAX; corpus.questions()]; mixes.len()];
    for _ in 0..arguments.passes {
        for question in 0..corpus.questions() {
            for ((clause, least), times) in parts.iter().zip(&mut alone) {
                let query = clause.query(corpus, question);
                let options = options(snapshot, &query, *least)?;
                time(snapshot, &query, &options, &mut times[question])?;
            }
            for (mix, times) in mixes.iter().zip(&mut mixed) {
                let options = mix.options(snapshot, corpus, question)?;
                time(snapshot, &mix.query(corpus, question), &options, &mut times[question])?;
            }
        }
    }
    for (mix, times) in mixes.iter().zip(&mixed) {
        let cost = |question: usize| -> f64 {
            let of = |part: Part| parts.iter().zip(&alone).find(|(other, _)| **other == part);
            mix.parts().filter_map(of).map(|(_, times)| times[question]).sum()
        };
        let sums: Vec<f64> = (0..corpus.questions()).map(cost).collect();
        println!(
            "{}",
            json!({
                "part": "mix",
                "index": built.label,
                "documents": corpus.len(),
                "what": mix.name,
                "p50_us": micros(percentile(times, 0.5)),
                "p95_us": micros(percentile(times, 0.95)),
                "mean_us": micros(mean(times)),
                "clauses_p50_us": micros(percentile(&sums, 0.5)),
                "clauses_p95_us": micros(percentile(&sums, 0.95)),
                "clauses_mean_us": micros(mean(&sums)),
                "p50_ratio": ratio(percentile(times, 0.5), percentile(&sums, 0.5)),
                "p95_ratio": ratio(percentile(times, 0.95), percentile(&sums, 0.95)),
                "mean_ratio": ratio(mean(times), mean(&sums)),
            })
        );
    }
    Ok(())
}

fn time(
    snapshot: &Snapshot,
    query: &Query,
    options: &SearchOptions,
    best: &mut f64,
) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    black_box(snapshot.search(query, options)?);
    *best = best.min(start.elapsed().as_secs_f64());
    Ok(())
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}
