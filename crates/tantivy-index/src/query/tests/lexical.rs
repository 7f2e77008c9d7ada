//! Tests of clauses on text, against a naive evaluator that scores every document by Lucene's formulas.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use sparrow_query::{
    BoostingQuery, CombinedFieldsQuery, FuzzyQuery, MatchBoolPrefixQuery, MatchPhrasePrefixQuery,
    MatchPhraseQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Operator, PrefixQuery, Query, QueryKind,
    RegexpQuery, Rewrite, TermsSetMinimum, TermsSetQuery, WildcardQuery,
};

const WORDS: [&str; 6] = ["aa", "ab", "ba", "abc", "bb", "cab"];

/// A document: the words of two text fields, its keywords, and how many matches it requires of a `terms_set`.
#[derive(Debug, Clone)]
struct Doc {
    fields: [Vec<&'static str>; 2],
    tags: Vec<&'static str>,
    least: Option<u8>,
}

const FIELDS: [&str; 2] = ["a", "b"];

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&WORDS[..])
}

fn words(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(word(), range)
}

fn doc() -> impl Strategy<Value = Doc> {
    (words(0..8), words(0..4), proptest::collection::btree_set(word(), 0..4), proptest::option::of(0u8..4))
        .prop_map(|(a, b, tags, least)| Doc { fields: [a, b], tags: tags.into_iter().collect(), least })
}

#[derive(Debug, Clone)]
enum Clause {
    Match { field: usize, words: Vec<&'static str>, all: bool, minimum: Option<usize> },
    BoolPrefix { field: usize, words: Vec<&'static str>, start: &'static str },
    Phrase { field: usize, words: Vec<&'static str> },
    PhrasePrefix { field: usize, words: Vec<&'static str>, start: &'static str },
    Fuzzy { field: usize, word: &'static str },
    Pattern { field: usize, shape: usize, start: &'static str, scoring: bool },
    Multi { words: Vec<&'static str>, kind: MultiMatchType, boost: u8, tie_breaker: u8, all: bool },
    Combined { words: Vec<&'static str>, boost: u8, all: bool },
    TermsSet { values: Vec<&'static str> },
    Boosting { positive: Box<Clause>, negative: Box<Clause>, factor: u8 },
}

fn start() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&["a", "b", "ab", "c", "x", "cab"][..])
}

fn clause() -> impl Strategy<Value = Clause> {
    let kinds = proptest::sample::select(
        &[
            MultiMatchType::BestFields,
            MultiMatchType::MostFields,
            MultiMatchType::CrossFields,
            MultiMatchType::Phrase,
        ][..],
    );
    let leaf = prop_oneof![
        (0usize..2, words(0..4), any::<bool>(), proptest::option::of(1usize..4))
            .prop_map(|(field, words, all, minimum)| Clause::Match { field, words, all, minimum }),
        (0usize..2, words(0..3), start()).prop_map(|(field, words, start)| Clause::BoolPrefix {
            field,
            words,
            start
        }),
        (0usize..2, words(1..4)).prop_map(|(field, words)| Clause::Phrase { field, words }),
        (0usize..2, words(0..3), start()).prop_map(|(field, words, start)| Clause::PhrasePrefix {
            field,
            words,
            start
        }),
        (0usize..2, word()).prop_map(|(field, word)| Clause::Fuzzy { field, word }),
        (0usize..3, 0usize..3, start(), any::<bool>())
            .prop_map(|(field, shape, start, scoring)| Clause::Pattern { field, shape, start, scoring }),
        (words(1..4), kinds, 1u8..4, 0u8..3, any::<bool>()).prop_map(
            |(words, kind, boost, tie_breaker, all)| {
                Clause::Multi { words, kind, boost, tie_breaker, all }
            }
        ),
        (words(1..4), 1u8..4, any::<bool>()).prop_map(|(words, boost, all)| Clause::Combined {
            words,
            boost,
            all
        }),
        words(0..4).prop_map(|values| Clause::TermsSet { values }),
    ];
    leaf.prop_recursive(1, 4, 2, |inner| {
        (inner.clone(), inner, 0u8..3).prop_map(|(positive, negative, factor)| Clause::Boosting {
            positive: Box::new(positive),
            negative: Box::new(negative),
            factor,
        })
    })
}

fn operator(all: bool) -> Operator {
    if all { Operator::And } else { Operator::Or }
}

fn field_name(field: usize) -> &'static str {
    ["a", "b", "tag"][field]
}

fn query(clause: &Clause) -> Query {
    let text = |words: &[&str]| words.join(" ");
    let kind = match clause {
        Clause::Match { field, words, all, minimum } => QueryKind::Match(MatchQuery {
            field: field_name(*field).into(),
            text: text(words),
            operator: operator(*all),
            minimum_should_match: minimum.map(|minimum| minimum.to_string()),
            ..MatchQuery::default()
        }),
        Clause::BoolPrefix { field, words, start } => {
            QueryKind::MatchBoolPrefix(MatchBoolPrefixQuery(MatchQuery {
                field: field_name(*field).into(),
                text: format!("{} {start}", text(words)),
                ..MatchQuery::default()
            }))
        }
        Clause::Phrase { field, words } => QueryKind::MatchPhrase(MatchPhraseQuery {
            field: field_name(*field).into(),
            text: text(words),
            ..MatchPhraseQuery::default()
        }),
        Clause::PhrasePrefix { field, words, start } => {
            QueryKind::MatchPhrasePrefix(MatchPhrasePrefixQuery {
                phrase: MatchPhraseQuery {
                    field: field_name(*field).into(),
                    text: format!("{} {start}", text(words)),
                    ..MatchPhraseQuery::default()
                },
                max_expansions: 50,
            })
        }
        Clause::Fuzzy { field, word } => QueryKind::Fuzzy(FuzzyQuery {
            field: field_name(*field).into(),
            value: (*word).into(),
            fuzziness: "1".into(),
            ..FuzzyQuery::default()
        }),
        Clause::Pattern { field, shape, start, scoring } => {
            let field = field_name(*field).to_owned();
            let rewrite = if *scoring { Rewrite::ScoringBoolean } else { Rewrite::Constant };
            match shape {
                0 => QueryKind::Prefix(PrefixQuery {
                    field,
                    value: (*start).into(),
                    case_insensitive: false,
                    rewrite,
                }),
                1 => QueryKind::Wildcard(WildcardQuery {
                    field,
                    value: format!("{start}*"),
                    case_insensitive: false,
                    rewrite,
                }),
                _ => QueryKind::Regexp(RegexpQuery {
                    rewrite,
                    ..RegexpQuery::new(field, format!("{start}.*"))
                }),
            }
        }
        Clause::Multi { words, kind, boost, tie_breaker, all } => QueryKind::MultiMatch(MultiMatchQuery {
            fields: vec![("a".into(), f32::from(*boost)), ("b".into(), 1.0)],
            kind: *kind,
            tie_breaker: Some(f32::from(*tie_breaker) / 2.0),
            template: MatchQuery { text: text(words), operator: operator(*all), ..MatchQuery::default() },
            slop: 0,
            words_only: false,
        }),
        Clause::Combined { words, boost, all } => QueryKind::CombinedFields(CombinedFieldsQuery {
            fields: vec![("a".into(), f32::from(*boost)), ("b".into(), 1.0)],
            text: text(words),
            operator: operator(*all),
            ..CombinedFieldsQuery::default()
        }),
        Clause::TermsSet { values } => QueryKind::TermsSet(TermsSetQuery {
            field: "tag".into(),
            values: values.iter().map(|value| json!(value)).collect(),
            minimum: TermsSetMinimum::Field("least".into()),
        }),
        Clause::Boosting { positive, negative, factor } => QueryKind::Boosting(BoostingQuery {
            positive: Box::new(query(positive)),
            negative: Box::new(query(negative)),
            negative_boost: f32::from(*factor) / 4.0,
        }),
    };
    kind.into()
}

/// All documents, from which statistics are computed.
struct Corpus<'a>(&'a [Doc]);

fn idf(doc_freq: f64, docs: f64) -> f64 {
    (1.0 + (docs - doc_freq + 0.5) / (doc_freq + 0.5)).ln()
}

fn bm25(idf: f64, frequency: f64, length: f64, average: f64) -> f64 {
    2.2 * idf * frequency / (frequency + 1.2 * (0.25 + 0.75 * length / average))
}

fn text_of(doc: &Doc, field: usize) -> &[&'static str] {
    if field == 2 { &doc.tags } else { &doc.fields[field] }
}

impl Corpus<'_> {
    fn doc_freq(&self, field: usize, word: &str) -> f64 {
        self.0.iter().filter(|doc| text_of(doc, field).contains(&word)).count() as f64
    }

    /// Number of documents that have the field, and number of its tokens.
    fn size(&self, field: usize) -> (f64, f64) {
        let docs = self.0.iter().filter(|doc| !text_of(doc, field).is_empty()).count();
        let tokens: usize = self.0.iter().map(|doc| text_of(doc, field).len()).sum();
        (docs as f64, tokens as f64)
    }

    /// The score of a word in a document, computed with the given document frequency.
    fn term_as(&self, doc: &Doc, field: usize, word: &str, doc_freq: f64) -> Option<f64> {
        let text = text_of(doc, field);
        let frequency = text.iter().filter(|found| **found == word).count() as f64;
        let (docs, tokens) = self.size(field);
        // A keyword has no length.
        let length = if field == 2 { 1.0 } else { text.len() as f64 };
        let docs_at_least = docs.max(doc_freq);
        (frequency > 0.0)
            .then(|| bm25(idf(doc_freq, docs_at_least), frequency, length, tokens / docs_at_least))
    }

    fn term(&self, doc: &Doc, field: usize, word: &str) -> Option<f64> {
        self.term_as(doc, field, word, self.doc_freq(field, word))
    }

    fn expansions(&self, field: usize, wanted: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let mut found: Vec<&str> =
            WORDS.into_iter().filter(|word| wanted(word) && self.doc_freq(field, word) > 0.0).collect();
        found.sort_unstable();
        found
    }

    /// The score of a phrase of consecutive words, with alternatives at each place.
    fn phrase(&self, doc: &Doc, field: usize, places: &[Vec<&str>]) -> Option<f64> {
        let text = text_of(doc, field);
        let found = text
            .windows(places.len())
            .filter(|window| window.iter().zip(places).all(|(word, place)| place.contains(word)))
            .count() as f64;
        let (docs, tokens) = self.size(field);
        let idfs: f64 = places
            .iter()
            .flatten()
            .map(|word| self.doc_freq(field, word))
            .filter(|doc_freq| *doc_freq > 0.0)
            .map(|doc_freq| idf(doc_freq, docs))
            .sum();
        (found > 0.0).then(|| bm25(idfs, found, text.len() as f64, tokens / docs))
    }

    fn evaluate(&self, clause: &Clause, doc: &Doc) -> Option<f64> {
        match clause {
            Clause::Match { field, words, all, minimum } => {
                let least = if *all { words.len() } else { minimum.unwrap_or(1) };
                let least = if words.len() == 1 { 1 } else { least };
                join(words.iter().map(|word| self.term(doc, *field, word)), least)
            }
            Clause::BoolPrefix { field, words, start } => {
                let last = text_of(doc, *field).iter().any(|word| word.starts_with(start)).then_some(1.0);
                join(words.iter().map(|word| self.term(doc, *field, word)).chain([last]), 1)
            }
            Clause::Phrase { field, words } => match &words[..] {
                [word] => self.term(doc, *field, word),
                words => {
                    let places: Vec<Vec<&str>> = words.iter().map(|word| vec![*word]).collect();
                    self.phrase(doc, *field, &places)
                }
            },
            Clause::PhrasePrefix { field, words, start } => {
                let ends = self.expansions(*field, |word| word.starts_with(start));
                if words.is_empty() {
                    return join(ends.iter().map(|word| self.term(doc, *field, word)), 1);
                }
                let mut places: Vec<Vec<&str>> = words.iter().map(|word| vec![*word]).collect();
                places.push(ends);
                self.phrase(doc, *field, &places)
            }
            Clause::Fuzzy { field, word } => {
                let near = self.expansions(*field, |other| distance(word, other) <= 1);
                let boost =
                    |other: &str| 1.0 - distance(word, other) as f64 / word.len().min(other.len()) as f64;
                let near: Vec<&str> = near.into_iter().filter(|other| boost(other) > 0.0).collect();
                let most = near.iter().map(|other| self.doc_freq(*field, other)).fold(0.0, f64::max);
                let scores = near
                    .iter()
                    .map(|other| self.term_as(doc, *field, other, most).map(|score| score * boost(other)));
                join(scores, 1)
            }
            Clause::Pattern { field, start, scoring, .. } => {
                let found = self.expansions(*field, |word| word.starts_with(start));
                let score = join(found.iter().map(|word| self.term(doc, *field, word)), 1);
                if *scoring { score } else { score.map(|_| 1.0) }
            }
            Clause::Multi { words, kind, boost, tie_breaker, all } => {
                let boosts = [f64::from(*boost), 1.0];
                let tie_breaker = f64::from(*tie_breaker) / 2.0;
                if *kind == MultiMatchType::CrossFields {
                    let terms = words.iter().map(|word| {
                        let blended = self.blended(word);
                        let scores = (0..2).map(|field| {
                            let score = self.term_as(doc, field, word, blended[field])?;
                            Some(score * boosts[field])
                        });
                        best(scores.collect(), tie_breaker)
                    });
                    return join(terms, if *all { words.len() } else { 1 });
                }
                let scores = (0..2).map(|field| {
                    let clause = match kind {
                        MultiMatchType::Phrase => Clause::Phrase { field, words: words.clone() },
                        _ => Clause::Match { field, words: words.clone(), all: *all, minimum: None },
                    };
                    Some(self.evaluate(&clause, doc)? * boosts[field])
                });
                best(scores.collect(), tie_breaker)
            }
            Clause::Combined { words, boost, all } => {
                let boosts = [f64::from(*boost), 1.0];
                let sizes = [self.size(0), self.size(1)];
                let docs = sizes[0].0.max(sizes[1].0);
                let tokens: f64 = (0..2).map(|field| (sizes[field].1 * boosts[field]).floor()).sum();
                let length: f64 = (0..2).map(|field| doc.fields[field].len() as f64 * boosts[field]).sum();
                let terms = words.iter().map(|word| {
                    let frequency: f64 = (0..2)
                        .map(|field| {
                            doc.fields[field].iter().filter(|found| *found == word).count() as f64
                                * boosts[field]
                        })
                        .sum();
                    let most = self.doc_freq(0, word).max(self.doc_freq(1, word));
                    (frequency > 0.0).then(|| bm25(idf(most, docs), frequency, length, tokens / docs))
                });
                join(terms, if *all { words.len() } else { 1 })
            }
            Clause::TermsSet { values } => {
                let mut distinct: Vec<&str> = Vec::new();
                for value in values {
                    if !distinct.contains(value) {
                        distinct.push(value);
                    }
                }
                let least = usize::from(doc.least?).max(1);
                join(distinct.iter().map(|value| self.term(doc, 2, value)), least)
            }
            Clause::Boosting { positive, negative, factor } => {
                let score = self.evaluate(positive, doc)?;
                let lowered = self.evaluate(negative, doc).is_some();
                Some(if lowered { score * f64::from(*factor) / 4.0 } else { score })
            }
        }
    }

    fn blended(&self, word: &str) -> [f64; 2] {
        let own = [self.doc_freq(0, word), self.doc_freq(1, word)];
        let limit = (self.0.len() as f64).min(self.size(0).1).min(self.size(1).1);
        let most = own[0].max(own[1]).min(limit);
        [0, 1].map(|field| {
            let lower = own[field] < own[1 - field];
            (most + f64::from(u8::from(lower))).min(limit).max(1.0)
        })
    }
}

fn join(scores: impl Iterator<Item = Option<f64>>, least: usize) -> Option<f64> {
    let matching: Vec<f64> = scores.flatten().collect();
    (!matching.is_empty() && matching.len() >= least).then(|| matching.iter().sum())
}

fn best(scores: Vec<Option<f64>>, tie_breaker: f64) -> Option<f64> {
    let matching: Vec<f64> = scores.into_iter().flatten().collect();
    let best = matching.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!matching.is_empty()).then(|| best + tie_breaker * (matching.iter().sum::<f64>() - best))
}

/// Number of edits between two words, where a swap of neighbours is one edit.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            table[i][j] = match (i, j) {
                (0, j) => j,
                (i, 0) => i,
                _ => {
                    let differs = usize::from(left[i - 1] != right[j - 1]);
                    let mut cost =
                        (table[i - 1][j] + 1).min(table[i][j - 1] + 1).min(table[i - 1][j - 1] + differs);
                    if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                        cost = cost.min(table[i - 2][j - 2] + 1);
                    }
                    cost
                }
            };
        }
    }
    table[left.len()][right.len()]
}

fn source(doc: &Doc) -> Value {
    let mut source = json!({});
    for (name, words) in FIELDS.iter().zip(&doc.fields) {
        if !words.is_empty() {
            source[*name] = json!(words.join(" "));
        }
    }
    if !doc.tags.is_empty() {
        source["tag"] = json!(doc.tags);
    }
    if let Some(least) = doc.least {
        source["least"] = json!(least);
    }
    source
}

fn index(docs: &[Doc]) -> Fixture {
    let mut fixture = Fixture::new(json!({
        "a": {"type": "text"},
        "b": {"type": "text"},
        "tag": {"type": "keyword"},
        "least": {"type": "integer"},
    }));
    let rows: Vec<(String, Value)> =
        docs.iter().enumerate().map(|(n, doc)| (n.to_string(), source(doc))).collect();
    let rows: Vec<(&str, Value)> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    let (first, second) = rows.split_at(rows.len() / 3);
    fixture.batch(first).batch(second);
    fixture
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn clauses_agree_with_a_naive_evaluator(
        docs in proptest::collection::vec(doc(), 1..25),
        clauses in proptest::collection::vec(clause(), 40),
    ) {
        let fixture = index(&docs);
        let corpus = Corpus(&docs);
        for clause in &clauses {
            let query = query(clause);
            let mut found = fixture.hits(query.clone());
            found.sort_by_key(|(id, _)| id.parse::<usize>().unwrap());
            let wanted: Vec<(String, f64)> = docs
                .iter()
                .enumerate()
                .filter_map(|(n, doc)| Some((n.to_string(), corpus.evaluate(clause, doc)?)))
                .collect();
            let ids = |list: &[(String, f32)]| list.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
            let wanted_ids: Vec<String> = wanted.iter().map(|(id, _)| id.clone()).collect();
            prop_assert_eq!(ids(&found), wanted_ids, "{:?}", clause);
            for ((id, score), (_, expected)) in found.iter().zip(&wanted) {
                prop_assert!(
                    (f64::from(*score) - expected).abs() <= 1e-4 * expected.abs().max(1e-3),
                    "{clause:?}: {id} has {score} instead of {expected}",
                );
            }
            // In filter context the same documents match.
            prop_assert_eq!(fixture.snapshot().count(&query).unwrap(), wanted.len() as u64, "{:?}", clause);
        }
    }
}
