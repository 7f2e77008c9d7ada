//! Writes the fixture of the index upgrade: a data directory whose index has sparse postings of format 1.
//!
//! ```text
//! cargo run --release -p sparrow-engine --example make_format_1_fixture -- test/fixtures/format-1
//! ```
//!
//! The documents are made from fixed arithmetic, so that a test can make them again and compare.

use std::path::PathBuf;

use sparrow_engine::{CancelFlag, Engine, EngineError, EngineOptions, Request};

fn main() -> Result<(), EngineError> {
    let target = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "test/fixtures/format-1".into()));
    let mut options = EngineOptions::new(target, PathBuf::from("none"), Vec::new());
    options.deploy_at_start = false;
    options.sparse_format = EngineOptions::oldest_sparse_format();
    let engine = Engine::open(options)?;
    let call = |op: &str, body: String| {
        let mut request = Request { op: op.to_owned(), ..Request::default() };
        request.path.insert("index".into(), "old".into());
        engine.execute(&request, body.as_bytes(), &CancelFlag::default())
    };
    call(
        "create_index",
        r#"{"settings":{"number_of_replicas":0},"mappings":{"properties":{
            "tokens":{"type":"sparse_vector"},"title":{"type":"text"},"n":{"type":"integer"}}}}"#
            .to_owned(),
    )?;
    // Three flushes, so that there are several segments.
    for range in [0..150, 150..280, 280..400] {
        let lines: String = range.map(document).collect();
        call("bulk", lines)?;
        call("flush", String::new())?;
    }
    engine.close();
    Ok(())
}

/// The bulk lines of document `n`: twelve tokens out of sixty, weights from 0.1 to 3.
fn document(n: u32) -> String {
    let tokens: Vec<String> = (0..12)
        .map(|i| {
            let token = (n * 7 + i * i * 13 + i) % 60;
            let weight = f64::from((n * 31 + token * 17) % 290 + 10) / 100.0;
            format!("\"token{token}\":{weight}")
        })
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    format!(
        "{{\"index\":{{\"_id\":\"{n}\"}}}}\n{{\"tokens\":{{{}}},\"title\":\"document number {n}\",\"n\":{n}}}\n",
        tokens.join(",")
    )
}
