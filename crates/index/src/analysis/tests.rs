//! Analyzers against Lucene: `tests/lucene.jsonl` holds what Lucene 9.12.1 (that of Elasticsearch 8.19) made of some
//! texts, one analyzer and text a line: `{"analyzer", "text", "tokens": [[text, start, end, increment, length, type]]}`
//! with offsets in UTF-16 code units.

use serde_json::{Value, json};

use super::*;

/// The analyzer of a name, or of a definition whose parts may be inline.
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
