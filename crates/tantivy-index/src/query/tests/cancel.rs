//! Searches that end early: because the caller has gone away, or because their time limit is reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Fixture;
use crate::Snapshot;
use crate::query::{QueryError, SearchOptions};
use sparrow_query::script::{QueryScript, ScriptUse};
use sparrow_query::{
    BoolQuery, MatchPhrasePrefixQuery, MatchPhraseQuery, MatchQuery, Query, QueryKind, ScriptScoreQuery,
    SparseQuery, TermQuery,
};
use sparrow_runtime::work::{self, Memory, Probe, Work};

fn words(text: &str) -> Query {
    QueryKind::Match(MatchQuery { field: "t".into(), text: text.into(), ..Default::default() }).into()
}

fn sparse() -> Query {
    let tokens = vec![("a".into(), 1.0), ("b".into(), 1.0)];
    QueryKind::Sparse(SparseQuery { field: "v".into(), tokens, ..Default::default() }).into()
}

fn queries() -> Vec<Query> {
    let term = |value: &str| -> Query {
        QueryKind::Term(TermQuery { field: "k".into(), value: json!(value), case_insensitive: false }).into()
    };
    let both = BoolQuery { must: vec![sparse(), words("one two")], ..Default::default() };
    let filtered = BoolQuery { must: vec![words("one")], filter: vec![term("x")], ..Default::default() };
    vec![
        Query::match_all(),
        sparse(),
        words("one two"),
        QueryKind::Bool(both).into(),
        QueryKind::Bool(filtered).into(),
        term("x"),
    ]
}

#[test]
fn a_set_flag_ends_every_kind_of_search() {
    let mut fixture = Fixture::new(json!({
        "t": {"type": "text"}, "k": {"type": "keyword"}, "v": {"type": "sparse_vector"}}));
    for batch in 0..3 {
        let doc = json!({"t": "one two", "k": "x", "v": {"a": 1.0, "b": 2.0}});
        fixture.batch(&[(&format!("{batch}a"), doc.clone()), (&format!("{batch}b"), doc)]);
    }
    let snapshot = fixture.snapshot();
    for query in queries() {
        let with = |set: bool, partial: bool| {
            let cancel = Some(Arc::new(AtomicBool::new(set)));
            snapshot.search(&query, &SearchOptions { cancel, partial, ..SearchOptions::default() })
        };
        assert_eq!(with(false, true).unwrap(), with(false, false).unwrap());
        assert_eq!(with(false, false).unwrap().hits.len(), 6, "{query:?}");
        assert!(matches!(with(true, false), Err(QueryError::Cancelled)), "{query:?}");
        // Without a document looked at there is nothing to return, but it is no failure where it could be.
        match with(true, true) {
            Ok(top) => assert!(top.hits.is_empty(), "{query:?}"),
            Err(error) => assert!(matches!(error, QueryError::Cancelled), "{query:?}: {error}"),
        }
        let flag = AtomicBool::new(true);
        assert!(matches!(snapshot.matching_until(&query, Some(&flag)), Err(QueryError::Cancelled)));
    }
}

/// An index of so many documents with the same source.
fn alike(count: usize, properties: Value, source: &Value) -> Fixture {
    let mut fixture = Fixture::new(properties);
    let ids: Vec<String> = (0..count).map(|id| id.to_string()).collect();
    let docs: Vec<_> = ids.iter().map(|id| (id.as_str(), source.clone())).collect();
    fixture.batch(&docs);
    fixture
}

/// How often a search asks whether to stop, and the most bytes that it has.
fn checked(snapshot: &Snapshot, query: &Value) -> (u64, usize) {
    let query = sparrow_query::dsl::parse_value(query).unwrap();
    let probe = Probe::new(u64::MAX);
    Probe::set(Some(Arc::clone(&probe)));
    let work = Work::new(Arc::default(), Memory::new(usize::MAX, usize::MAX).into(), "<test>");
    Probe::set(None);
    let entered = work::enter(Some(work.clone()));
    snapshot.search(&query, &SearchOptions::default()).unwrap();
    drop(entered);
    (probe.checks(), work.peak())
}

fn repeated(times: usize, one: &Value) -> Value {
    vec![one.clone(); times].into()
}

/// Words that no document has.
fn unknown_words(count: usize) -> Value {
    let words: Vec<String> = (0..count).map(|at| format!("none{at}")).collect();
    json!({"intervals": {"t": {"match": {"query": words.join(" ")}}}})
}

/// Clauses that take some microseconds for each document, and match none.
#[test]
fn queries_of_many_parts_ask_between_documents_whether_to_go_on() {
    let properties = json!({"t": {"type": "text"}, "n": {"type": "long"}});
    let different: Vec<String> = (0..200).map(|at| format!("word{at}")).collect();
    let backwards: Vec<&str> = different.iter().rev().map(String::as_str).collect();
    let text = format!("red fox {}", backwards.join(" "));
    let indexes = [30, 3000].map(|count| alike(count, properties.clone(), &json!({"t": text, "n": 1000})));
    let [few, many] = indexes.each_ref().map(Fixture::snapshot);
    let red = json!({"match": {"query": "red"}});
    let blue = json!({"containing": {"match": {"query": "blue"}}});
    let words: Vec<String> = (0..399).map(|at| format!("none{at}")).chain(["red".to_owned()]).collect();
    for query in [
        json!({"intervals": {"t": {"any_of": {"intervals": repeated(400, &red), "filter": blue}}}}),
        json!({"intervals": {"t": {"all_of": {"intervals": repeated(400, &red), "ordered": true}}}}),
        json!({"terms_set": {"t": {"terms": words, "minimum_should_match_field": "n"}}}),
        json!({"bool": {"filter": [{"match_phrase": {"t": different.join(" ")}}]}}),
        json!({"match_phrase_prefix": {"t": different.join(" ")}}),
    ] {
        let (least, most) = (checked(&few, &query).0, checked(&many, &query).0);
        assert!(most > least + 250, "{query}: {least}, {most}");
    }
}

/// Positions of one document that are combined in very many ways.
#[test]
fn intervals_end_within_a_document() {
    let text = ["a b"; 600].join(" ");
    let fixture = alike(1, json!({"t": {"type": "text"}}), &json!({"t": text}));
    let snapshot = fixture.snapshot();
    let a = json!({"match": {"query": "a"}});
    let checks = |rule: &str, parts: usize| {
        // Equal rules would be taken together.
        let different = |at| json!({"any_of": {"intervals": [a, {"match": {"query": format!("none{at}")}}]}});
        let parts: Vec<Value> = (0..parts).map(different).collect();
        let query = json!({"intervals": {"t": {rule: {"intervals": parts}}}});
        checked(&snapshot, &query).0
    };
    // Beside what it takes to open each part.
    for (rule, least) in [("any_of", 40), ("all_of", 3000)] {
        let (few, many) = (checks(rule, 2), checks(rule, 200));
        assert!(many > few + 8 * 198 + least, "{rule}: {few}, {many}");
    }
}

#[test]
fn words_of_intervals_are_opened_one_by_one_and_are_not_too_many() {
    let fixture = alike(20_000, json!({"t": {"type": "text"}}), &json!({"t": "red"}));
    let snapshot = fixture.snapshot();
    let ((few, least), (many, most)) =
        (checked(&snapshot, &unknown_words(24)), checked(&snapshot, &unknown_words(1024)));
    // One for the clause, one for its set of documents, one for its word.
    assert!(many >= few + 3 * 1000, "{few}, {many}");
    // Not all sets of documents, each of which takes 2,500 bytes, are there at the same time.
    assert!(most < least + 1000 * 2500 / 2, "{least}, {most}");
    let a = json!({"match": {"query": "red"}});
    for (query, parts) in [
        (unknown_words(1025), 1025),
        (
            json!({"intervals": {"t": {"any_of": {"intervals": repeated(1024, &a), "filter": {"before": a}}}}}),
            1025,
        ),
    ] {
        let query = sparrow_query::dsl::parse_value(&query).unwrap();
        let error = snapshot.search(&query, &SearchOptions::default()).unwrap_err();
        assert_eq!(
            error.reason(),
            format!(
                "failed to create query: [intervals] has [{parts}] words and rules, at most [1024] are possible on this server"
            )
        );
    }
}

/// Every clause of a query may have a set of all documents.
#[test]
fn sets_of_documents_are_not_made_without_a_look_at_the_request() {
    // So few that they are not stoppable otherwise.
    const CLAUSES: usize = 120;
    let properties = json!({"n": {"type": "long"}, "d": {"type": "date"}});
    let fixture = alike(10, properties, &json!({"n": 1, "d": "2024-01-01"}));
    let snapshot = fixture.snapshot();
    let exists = |field: &str| json!({"exists": {"field": field}});
    let range = |field: &str| json!({"range": {field: {"gte": "2024"}}});
    let terms = |field: &str| json!({"terms": {field: ["2024-01-01"]}});
    // A field that is not there has no set.
    for (with, without) in
        [(exists("n"), exists("none")), (range("d"), range("none")), (terms("d"), terms("none"))]
    {
        let checks =
            |clause: &Value| checked(&snapshot, &json!({"bool": {"should": repeated(CLAUSES, clause)}})).0;
        let (most, least) = (checks(&with), checks(&without));
        assert!(most >= least + CLAUSES as u64, "{with}: {least}, {most}");
    }
}

/// Opening a clause may take a millisecond, and a query may have thousands.
#[test]
fn many_clauses_are_opened_with_a_look_before_each() {
    let fixture = alike(10, json!({"t": {"type": "text"}}), &json!({"t": "red"}));
    let snapshot = fixture.snapshot();
    let term = json!({"term": {"t": "red"}});
    for query in [
        |clauses: Value| json!({"bool": {"should": clauses}}),
        |clauses: Value| json!({"bool": {"must": clauses}}),
        |clauses: Value| json!({"dis_max": {"queries": clauses}}),
    ] {
        let checks = |count: usize| checked(&snapshot, &query(repeated(count, &term))).0;
        // One where it is compiled, one where it is opened.
        let (few, many) = (checks(200), checks(400));
        assert!(many >= few + 2 * 200, "{few}, {many}");
    }
}

/// Thousands of functions take milliseconds for one document.
#[test]
fn many_functions_ask_between_documents_whether_to_go_on() {
    let fixture = alike(300, json!({"n": {"type": "long"}}), &json!({"n": 1}));
    let snapshot = fixture.snapshot();
    let checks = |functions: usize, min_score: Option<f32>| {
        let function = json!({"gauss": {"n": {"origin": 0, "scale": 1}}});
        let mut query = json!({"function_score": {"functions": vec![function; functions]}});
        if let Some(least) = min_score {
            query["function_score"]["min_score"] = least.into();
        }
        checked(&snapshot, &query).0
    };
    for min_score in [None, Some(1e30)] {
        let (few, many) = (checks(1, min_score), checks(400, min_score));
        // One where each is opened, and one for each document.
        assert!(many > few + 399 + 290, "{few}, {many}");
    }
}

/// A query of many words takes milliseconds for one document.
#[test]
fn queries_of_very_many_words_end_within_a_document() {
    let text: Vec<String> = (0..400).map(|word| format!("a{}", word % 3)).collect();
    let fixture = alike(300, json!({"t": {"type": "text"}}), &json!({"t": text.join(" ")}));
    let snapshot = fixture.snapshot();
    let prefix = MatchPhrasePrefixQuery {
        phrase: MatchPhraseQuery {
            field: "t".into(),
            text: format!("{} a", ["a1"; 400].join(" ")),
            slop: 50,
            ..Default::default()
        },
        max_expansions: 50,
    };
    let repeated = MatchQuery {
        field: "t".into(),
        text: ["a1 b1"; 5000].join(" "),
        minimum_should_match: Some("50%".to_owned()),
        ..Default::default()
    };
    let repeated: Query = QueryKind::Match(repeated).into();
    for query in [QueryKind::MatchPhrasePrefix(prefix).into(), repeated.clone()] {
        ends_early(&snapshot, &query);
    }
    // What excludes all documents does so to the end.
    let none: Query = QueryKind::Bool(BoolQuery {
        must: vec![Query::match_all()],
        must_not: vec![repeated],
        ..Default::default()
    })
    .into();
    let mut partial = 0;
    for tenths in 0..10 {
        let stop = Arc::new(AtomicBool::new(false));
        let _entered = work::enter(Some(Work::new(
            Arc::clone(&stop),
            Arc::new(Memory::new(1 << 30, 1 << 30)),
            "<test>",
        )));
        let setter = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(10 + 15 * tenths));
                stop.store(true, Ordering::Relaxed);
            })
        };
        let found = snapshot
            .search(&none, &SearchOptions { cancel: Some(stop), partial: true, ..Default::default() });
        setter.join().unwrap();
        match found {
            Ok(top) => {
                assert!(top.hits.is_empty());
                partial += 1;
            }
            // This thread was late: the search had not begun when the flag was set.
            Err(error) => assert!(matches!(error, QueryError::Cancelled), "{error}"),
        }
    }
    assert!(partial > 0);
}

/// A document takes a script as long as thousands of others: between two looks at the flag lie minutes.
#[test]
fn scripts_end_before_the_next_document() {
    let fixture = alike(2000, json!({"t": {"type": "text"}}), &json!({"t": "one"}));
    let snapshot = fixture.snapshot();
    let six = format!("({})", ["Math.exp(1)"; 6].join("+"));
    let script = QueryScript::parse(&json!([six.as_str(); 100].join("+")), ScriptUse::Score).unwrap();
    let scripts = |number: usize, min_score: Option<f32>| -> Query {
        let query = Box::new(Query::match_all());
        let clause = ScriptScoreQuery { query, script: script.clone(), min_score };
        let should = vec![QueryKind::ScriptScore(clause).into(); number];
        QueryKind::Bool(BoolQuery { should, ..Default::default() }).into()
    };
    for query in [scripts(10, None), scripts(10, Some(f32::MAX)), scripts(40, Some(1.0))] {
        ends_early(&snapshot, &query);
    }
}

/// A search that is told to stop after a tenth of its time takes less than half of it.
fn ends_early(snapshot: &Snapshot, query: &Query) {
    let stop = Arc::new(AtomicBool::new(false));
    let _entered =
        work::enter(Some(Work::new(Arc::clone(&stop), Arc::new(Memory::new(1 << 30, 1 << 30)), "<test>")));
    let options = || SearchOptions { cancel: Some(Arc::clone(&stop)), partial: false, ..Default::default() };
    let end = Instant::now() + Duration::from_secs(30);
    // Other processes may take their time from any one try, and from what it is compared with.
    loop {
        stop.store(false, Ordering::Relaxed);
        let started = Instant::now();
        snapshot.search(query, &options()).unwrap();
        let whole = started.elapsed();
        let setter = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                thread::sleep(whole / 10);
                stop.store(true, Ordering::Relaxed);
            })
        };
        let started = Instant::now();
        let cancelled = snapshot.search(query, &options());
        let took = started.elapsed();
        setter.join().unwrap();
        match cancelled {
            Err(QueryError::Cancelled) if took < whole / 2 => return,
            // It ended before it was told to stop, or looked too late.
            Ok(_) | Err(QueryError::Cancelled) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < end, "{whole:?} without an end");
    }
}
