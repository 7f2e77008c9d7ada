//! Tests of the two query syntaxes: texts against the trees of clauses that they stand for (which other tests
//! compare with a naive evaluator), clauses over several fields against one clause for each field, and dates
//! by their distance.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use sparrow_query::{
    BoolQuery, DisMaxQuery, DistanceFeatureQuery, ExistsQuery, FuzzyQuery, MatchBoolPrefixQuery,
    MatchPhrasePrefixQuery, MatchPhraseQuery, MatchQuery, MultiMatchQuery, MultiMatchType, PrefixQuery,
    Query, QueryKind, QueryStringQuery, RangeQuery, Rewrite, SimpleQueryStringQuery, WildcardQuery,
};

const WORDS: [&str; 6] = ["aa", "ab", "ba", "abc", "bb", "cab"];

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&WORDS[..])
}

fn words(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(word(), range)
}

#[derive(Debug, Clone)]
struct Doc {
    a: Vec<&'static str>,
    b: Vec<&'static str>,
    n: Option<i8>,
}

fn doc() -> impl Strategy<Value = Doc> {
    (words(0..7), words(0..4), proptest::option::of(0i8..6)).prop_map(|(a, b, n)| Doc { a, b, n })
}

fn index(docs: &[Doc]) -> Fixture {
    let mut fixture = Fixture::new(json!({
        "a": {"type": "text"}, "b": {"type": "text"}, "n": {"type": "integer"},
    }));
    let rows: Vec<(String, Value)> = docs
        .iter()
        .enumerate()
        .map(|(number, doc)| {
            let mut source = json!({});
            for (name, words) in [("a", &doc.a), ("b", &doc.b)] {
                if !words.is_empty() {
                    source[name] = words.join(" ").into();
                }
            }
            if let Some(n) = doc.n {
                source["n"] = n.into();
            }
            (number.to_string(), source)
        })
        .collect();
    let rows: Vec<(&str, Value)> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    let (first, second) = rows.split_at(rows.len() / 3);
    fixture.batch(first).batch(second);
    fixture
}

/// A query that both syntaxes can express, up to `Fuzzy`; the other kinds need Lucene's.
#[derive(Debug, Clone)]
enum Clause {
    Word(&'static str),
    Phrase(Vec<&'static str>, u32),
    Prefix(&'static str),
    Fuzzy(&'static str),
    /// A word in a named field. This and what follows can only be expressed in Lucene's syntax.
    OfField(&'static str),
    Wildcard(&'static str),
    Range(i8, i8, bool),
    Exists,
    Boost(Box<Clause>, u8),
    /// Clauses with their operator: 0 is optional, 1 required, 2 forbidden. The first is never forbidden.
    Group(Vec<(u8, Clause)>),
    All(Vec<Clause>),
    Any(Vec<Clause>),
}

fn shared() -> impl Strategy<Value = Clause> {
    prop_oneof![
        word().prop_map(Clause::Word),
        (words(2..4), 0u32..3).prop_map(|(words, slop)| Clause::Phrase(words, slop)),
        word().prop_map(Clause::Prefix),
        word().prop_map(Clause::Fuzzy),
    ]
}

fn lucene() -> impl Strategy<Value = Clause> {
    let leaf = prop_oneof![
        4 => shared(),
        1 => word().prop_map(Clause::OfField),
        1 => proptest::sample::select(&["a", "b", "c"][..]).prop_map(Clause::Wildcard),
        1 => (0i8..6, 0i8..4, any::<bool>()).prop_map(|(from, span, open)| Clause::Range(from, from + span, open)),
        1 => Just(Clause::Exists),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec((0u8..3, inner.clone()), 1..4).prop_map(|mut clauses| {
                clauses[0].0 = clauses[0].0.min(1);
                Clause::Group(clauses)
            }),
            (inner, 2u8..4).prop_map(|(inner, boost)| match inner {
                boosted @ Clause::Boost(..) => boosted,
                other => Clause::Boost(Box::new(other), boost),
            }),
        ]
    })
}

fn simple() -> impl Strategy<Value = Clause> {
    shared().prop_recursive(3, 16, 3, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![some().prop_map(Clause::All), some().prop_map(Clause::Any)]
    })
}

fn text(clause: &Clause) -> String {
    let joined = |clauses: &[Clause], with: &str| {
        format!("({})", clauses.iter().map(text).collect::<Vec<_>>().join(with))
    };
    match clause {
        Clause::Word(word) => (*word).to_owned(),
        Clause::Phrase(words, 0) => format!("\"{}\"", words.join(" ")),
        Clause::Phrase(words, slop) => format!("\"{}\"~{slop}", words.join(" ")),
        Clause::Prefix(word) => format!("{word}*"),
        Clause::Fuzzy(word) => format!("{word}~1"),
        Clause::OfField(word) => format!("b:{word}"),
        Clause::Wildcard(start) => format!("{start}?*"),
        Clause::Range(from, to, true) => format!("n:{{{from} TO {to}}}"),
        Clause::Range(from, to, false) => format!("n:[{from} TO {to}]"),
        Clause::Exists => "_exists_:b".to_owned(),
        Clause::Boost(inner, boost) => format!("{}^{boost}", text(inner)),
        Clause::Group(clauses) => {
            let sign = |occur: &u8| ["", "+", "-"][usize::from(*occur)];
            let parts: Vec<String> =
                clauses.iter().map(|(occur, clause)| format!("{}{}", sign(occur), text(clause))).collect();
            format!("({})", parts.join(" "))
        }
        Clause::All(clauses) => joined(clauses, " + "),
        Clause::Any(clauses) => joined(clauses, " | "),
    }
}

fn matching(field: &str, word: &str) -> Query {
    QueryKind::Match(MatchQuery { field: field.into(), text: word.into(), ..MatchQuery::default() }).into()
}

fn tree(clause: &Clause) -> Query {
    let field = "a".to_owned();
    let all = |clauses: &[Clause]| clauses.iter().map(tree).collect::<Vec<_>>();
    match clause {
        Clause::Word(word) => matching("a", word),
        Clause::OfField(word) => matching("b", word),
        Clause::Phrase(words, slop) => {
            let text = words.join(" ");
            QueryKind::MatchPhrase(MatchPhraseQuery {
                field,
                text,
                slop: *slop,
                ..MatchPhraseQuery::default()
            })
            .into()
        }
        Clause::Prefix(word) => {
            let value = (*word).to_owned();
            QueryKind::Prefix(PrefixQuery {
                field,
                value,
                case_insensitive: false,
                rewrite: Rewrite::Constant,
            })
            .into()
        }
        Clause::Wildcard(start) => {
            let value = format!("{start}?*");
            QueryKind::Wildcard(WildcardQuery {
                field,
                value,
                case_insensitive: false,
                rewrite: Rewrite::Constant,
            })
            .into()
        }
        Clause::Fuzzy(word) => QueryKind::Fuzzy(FuzzyQuery {
            field,
            value: (*word).to_owned(),
            fuzziness: "1".into(),
            prefix_length: 0,
            max_expansions: 50,
            without_transpositions: false,
            rewrite: None,
        })
        .into(),
        Clause::Range(from, to, open) => {
            let (from, to) = (Some(json!(from)), Some(json!(to)));
            let range = RangeQuery { field: "n".into(), ..RangeQuery::default() };
            QueryKind::Range(match open {
                true => RangeQuery { gt: from, lt: to, ..range },
                false => RangeQuery { gte: from, lte: to, ..range },
            })
            .into()
        }
        Clause::Exists => QueryKind::Exists(ExistsQuery { field: "b".into() }).into(),
        Clause::Boost(inner, boost) => {
            let inner = tree(inner);
            let boost = inner.boost * f32::from(*boost);
            inner.with_boost(boost)
        }
        Clause::Group(clauses) => {
            let of = |wanted: u8| {
                clauses.iter().filter(|(occur, _)| *occur == wanted).map(|(_, clause)| tree(clause)).collect()
            };
            QueryKind::Bool(BoolQuery { should: of(0), must: of(1), must_not: of(2), ..BoolQuery::default() })
                .into()
        }
        Clause::All(clauses) => {
            QueryKind::Bool(BoolQuery { must: all(clauses), ..BoolQuery::default() }).into()
        }
        Clause::Any(clauses) => {
            QueryKind::Bool(BoolQuery { should: all(clauses), ..BoolQuery::default() }).into()
        }
    }
}

/// Whether two queries find the same documents with the same scores, up to rounding.
fn agree(fixture: &Fixture, left: Query, right: Query, what: &str) -> Result<(), TestCaseError> {
    let sorted = |query: Query| {
        let mut hits = fixture.hits(query);
        hits.sort_by(|a, b| a.0.cmp(&b.0));
        hits
    };
    let (left, right) = (sorted(left), sorted(right));
    let ids = |hits: &[(String, f32)]| hits.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    prop_assert_eq!(ids(&left), ids(&right), "{}", what);
    for ((id, a), (_, b)) in left.iter().zip(&right) {
        prop_assert!((a - b).abs() <= 1e-4 * b.abs().max(1e-3), "{what}: {id} has {a} instead of {b}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn query_strings_agree_with_their_trees(
        docs in proptest::collection::vec(doc(), 1..20),
        clauses in proptest::collection::vec(lucene(), 30),
    ) {
        let fixture = index(&docs);
        for clause in &clauses {
            let text = text(clause);
            let query = QueryStringQuery { query: text.clone(), default_field: Some("a".into()), ..Default::default() };
            agree(&fixture, QueryKind::QueryString(query).into(), tree(clause), &text)?;
        }
    }

    #[test]
    fn simple_query_strings_agree_with_their_trees(
        docs in proptest::collection::vec(doc(), 1..20),
        clauses in proptest::collection::vec(simple(), 30),
    ) {
        let fixture = index(&docs);
        for clause in &clauses {
            let text = text(clause);
            let query = SimpleQueryStringQuery {
                query: text.clone(),
                fields: vec![("a".into(), 1.0)],
                ..SimpleQueryStringQuery::default()
            };
            agree(&fixture, QueryKind::SimpleQueryString(query).into(), tree(clause), &text)?;
        }
    }

    #[test]
    fn prefixes_in_several_fields_agree_with_a_clause_per_field(
        docs in proptest::collection::vec(doc(), 1..20),
        texts in proptest::collection::vec((words(0..3), proptest::sample::select(&["a", "b", "ab", "c", "x"][..])), 20),
        boost in 1u8..4,
    ) {
        let fixture = index(&docs);
        let fields = vec![("a".to_owned(), f32::from(boost)), ("b".to_owned(), 1.0)];
        for (words, start) in texts {
            let text = format!("{} {start}", words.join(" ")).trim().to_owned();
            let several = |kind| {
                let template = MatchQuery { text: text.clone(), ..MatchQuery::default() };
                let fields = fields.clone();
                Query::new(QueryKind::MultiMatch(MultiMatchQuery { fields, kind, template, ..MultiMatchQuery::default() }))
            };
            let per_field = |make: &dyn Fn(String) -> QueryKind| -> Vec<Query> {
                fields.iter().map(|(name, boost)| Query::new(make(name.clone())).with_boost(*boost)).collect()
            };
            let phrases = per_field(&|field| {
                let phrase = MatchPhraseQuery { field, text: text.clone(), ..MatchPhraseQuery::default() };
                QueryKind::MatchPhrasePrefix(MatchPhrasePrefixQuery { phrase, max_expansions: 50 })
            });
            let best = QueryKind::DisMax(DisMaxQuery { queries: phrases, tie_breaker: 0.0 }).into();
            agree(&fixture, several(MultiMatchType::PhrasePrefix), best, &text)?;
            let should = per_field(&|field| {
                QueryKind::MatchBoolPrefix(MatchBoolPrefixQuery(MatchQuery { field, text: text.clone(), ..MatchQuery::default() }))
            });
            let sum = QueryKind::Bool(BoolQuery { should, ..BoolQuery::default() }).into();
            agree(&fixture, several(MultiMatchType::BoolPrefix), sum, &text)?;
        }
    }

    #[test]
    fn dates_score_by_their_distance(
        days in proptest::collection::vec(proptest::collection::btree_set(0i64..200, 0..3), 1..20),
        origin in 0i64..200,
        pivot in 1i64..30,
    ) {
        const DAY: i64 = 86_400_000;
        let mut fixture = Fixture::new(json!({"at": {"type": "date"}}));
        let rows: Vec<(String, Value)> = days
            .iter()
            .enumerate()
            .map(|(number, days)| {
                let dates: Vec<i64> = days.iter().map(|day| day * DAY).collect();
                (number.to_string(), json!({"at": dates}))
            })
            .collect();
        let rows: Vec<(&str, Value)> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
        fixture.batch(&rows);
        let query = QueryKind::DistanceFeature(DistanceFeatureQuery {
            field: "at".into(),
            origin: json!(origin * DAY),
            pivot: format!("{pivot}d"),
        });
        let mut found = fixture.hits(Query::new(query).with_boost(3.0));
        found.sort_by_key(|(id, _)| id.parse::<usize>().unwrap());
        let wanted: Vec<(String, f64)> = days
            .iter()
            .enumerate()
            .filter_map(|(number, days)| {
                let distance = days.iter().map(|day| (day - origin).abs()).min()?;
                Some((number.to_string(), 3.0 * pivot as f64 / (pivot + distance) as f64))
            })
            .collect();
        prop_assert_eq!(found.len(), wanted.len());
        for ((id, score), (wanted_id, wanted)) in found.iter().zip(&wanted) {
            prop_assert_eq!(id, wanted_id);
            prop_assert!((f64::from(*score) - wanted).abs() < 1e-5, "{} is not {}", score, wanted);
        }
    }
}
