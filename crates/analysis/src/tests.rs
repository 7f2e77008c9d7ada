//! Analyzers against Lucene: `tests/lucene.jsonl` holds what Lucene 9.12.1 (that of Elasticsearch 8.19) made of some
//! texts, one analyzer and text a line: `{"analyzer", "text", "tokens": [[text, start, end, increment, length, type]]}`
//! with offsets in UTF-16 code units.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_runtime::work::Counted;

use super::*;

#[global_allocator]
static ALLOCATOR: Counted<std::alloc::System> = Counted(std::alloc::System);

/// Builds the analyzer with a name, or that of a definition with inline components.
fn analyzer(definition: &Value) -> Arc<Analyzer> {
    if let Value::String(name) = definition {
        return Analysis::built_in().analyzer(name).unwrap_or_else(|| panic!("no analyzer {name}"));
    }
    let limits = AnalysisLimits { max_ngram_diff: 10, max_shingle_diff: 5 };
    if definition.get("type").is_some() {
        let analysis = analysis(json!({"analyzer": {"x": definition}}), limits).unwrap();
        return analysis.analyzer("x").unwrap();
    }
    let list = |key: &str| definition[key].as_array().into_iter().flatten().collect::<Vec<_>>();
    let parts = CustomAnalyzer {
        char_filters: list("char_filter"),
        tokenizer: definition.get("tokenizer"),
        filters: list("filter"),
    };
    let custom = analysis(json!({}), limits).unwrap().custom(&parts);
    Arc::new(custom.unwrap_or_else(|error| panic!("{definition}: {error}")))
}

fn analysis(definition: Value, limits: AnalysisLimits) -> Result<Analysis, AnalysisError> {
    let Value::Object(map) = definition else { panic!("not an object") };
    Analysis::parse(&map, limits)
}

/// Byte offset to UTF-16 offset.
fn units(text: &str, byte: usize) -> usize {
    text[..byte].chars().map(char::len_utf16).sum()
}

#[test]
fn chains_do_as_lucene_does() {
    let mut wrong = Vec::new();
    for line in include_str!("tests/lucene.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap();
        let analyzer = analyzer(&case["analyzer"]);
        let found: Vec<Value> = analyzer
            .tokens(text)
            .map(|token| {
                let (start, end) = (units(text, token.start), units(text, token.end));
                json!([token.text, start, end, token.increment, token.length, token.kind])
            })
            .collect();
        if Value::Array(found.clone()) != case["tokens"] {
            wrong.push(format!(
                "{}\n  {text}\n  found  {}\n  lucene {}",
                case["analyzer"],
                Value::Array(found),
                case["tokens"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_trial_shows_what_the_analyzer_makes_and_ends_with_its_request() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use sparrow_runtime::work::{Memory, Stopped, Work, enter};

    let grows = json!({"type": "pattern_replace", "pattern": ".", "replacement": "$0$0 "});
    let analyzer =
        analyzer(&json!({"char_filter": [grows], "tokenizer": "standard", "filter": ["lowercase"]}));
    let shown = analyzer.trial("AB").unwrap().tokens(10).unwrap();
    assert_eq!(shown, analyzer.tokens("AB").collect::<Vec<_>>());
    assert_eq!(shown.len(), 2);
    let detail = analyzer.trial("AB").unwrap().detail(10).unwrap();
    assert_eq!(detail.char_filters, [("__anonymous__pattern_replace".to_owned(), "AA BB ".to_owned())]);
    assert_eq!(
        (detail.tokenizer.tokens[0].text.as_str(), detail.filters[0].tokens[0].text.as_str()),
        ("AA", "aa")
    );
    assert!(matches!(analyzer.trial("AB").unwrap().tokens(1), Err(Unfinished::TooManyTokens)));

    let stop = Arc::new(AtomicBool::new(false));
    let memory = Arc::new(Memory::new(usize::MAX, 1_000_000));
    let work = Work::new(Arc::clone(&stop), memory, "<test>");
    let long = "a".repeat(10_000);
    {
        let _entered = enter(Some(work.part()));
        let trial = analyzer.trial(&long).unwrap();
        let Err(Unfinished::Stopped(Stopped::Exceeded(_))) = trial.tokens(100_000) else { panic!() };
    }
    let _entered = enter(Some(work));
    let trial = analyzer.trial(&long).unwrap();
    stop.store(true, Relaxed);
    assert!(matches!(trial.tokens(100_000), Err(Unfinished::Stopped(_))));
    assert!(matches!(analyzer.trial(&long), Err(Unfinished::Stopped(_))));
    // A document is analyzed to its end.
    assert_eq!(analyzer.tokens(&long).count(), 10_000);
}

/// The single pass of `standard` and `english` finds the terms of their chains.
#[test]
fn the_terms_of_a_single_pass_are_those_of_the_chain() {
    let texts = [
        "",
        "The quick brown foxes' dens, it's 3.14 and U.S.A.; don't_stop the E-MAIL a\u{301}b",
        "Straße İstanbul ΣΊΣΥΦΟΣ 東京タワー ひらがな 한국어 🙂🙃 1\u{FE0F}\u{20E3} שלום",
        "a  an\tthe\nrunning runner's ponies",
        " of \u{1}\u{0}\u{7f} \u{a0}\u{3000}",
    ];
    // Words are cut after 255 characters; the second piece of the last one is nothing but a possessive.
    let long = format!("{} y {}'s of the z", "x".repeat(600), "x".repeat(255));
    for name in ["standard", "english"] {
        let analyzer = Analysis::default().analyzer(name).unwrap();
        for text in texts.into_iter().chain([long.as_str()]) {
            assert!(analyzer.fast.is_some());
            let mut found = Vec::new();
            let took_all = analyzer.take_terms(text, |term, position| {
                found.push((term.to_owned(), position));
                true
            });
            assert!(took_all);
            let chain: Vec<_> = analyzer.tokens(text).map(|token| (token.text, token.position)).collect();
            assert_eq!(found, chain, "{name}: {text:?}");
            let mut first = 0;
            let took_two = analyzer.take_terms(text, |_, _| {
                first += 1;
                first < 2
            });
            assert_eq!((took_two, first), (chain.len() < 2, chain.len().min(2)));
        }
    }
}

#[test]
fn analyzers_of_all_indices_have_a_bound() {
    use sparrow_runtime::work::{Exceeded, Memory, Stopped, Work, enter};
    let of = |count: usize| {
        let rules: Vec<String> = (0..count).map(|number| format!("a{number}, b{number}")).collect();
        let definition = json!({
            "filter": {"f": {"type": "synonym_graph", "synonyms": rules}},
            "analyzer": {"x": {"tokenizer": "standard", "filter": ["f"]}},
        });
        analysis(definition, AnalysisLimits::default())
    };
    // Those of one key may keep an eighth of so many MiB. Other tests keep analyzers meanwhile, though little.
    let with = |key: u64, mib: usize| {
        enter(Some(Work::new(Arc::default(), Arc::new(Memory::new(mib << 20, usize::MAX)), "<test>").of(key)))
    };
    let refused = |error: AnalysisError| match error.stopped.as_deref() {
        Some(Stopped::Exceeded(Exceeded::Memory(limit))) => limit.label,
        other => panic!("{other:?}"),
    };
    // 5,000 rules keep about 2.5 MB: more than half of 4 MiB, which leaves less than that to others.
    let entered = with(1, 32);
    assert_eq!(refused(of(5_000).unwrap_err()), "the analyzers and pipelines of one key");
    assert!(of(10).is_err(), "a request that went over a limit stops");
    drop(entered);
    let entered = with(1, 48);
    let first = of(5_000).unwrap();
    drop(entered);
    let entered = with(2, 32);
    assert_eq!(refused(of(5_000).unwrap_err()), "all analyzers and pipelines");
    drop(entered);
    drop(first);
    let _entered = with(2, 48);
    assert!(of(5_000).is_ok());
}
