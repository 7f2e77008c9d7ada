//! Speed and memory of bulk loading: 117,000 documents of 130 tokens, a refresh every 5,000. Slow, so
//! only on request: `cargo test --release -p sparrow-tantivy-index --test it -- load:: --ignored --nocapture`.

use std::io::Write;
use std::time::Instant;

use crate::common::{document, mapping};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use sparrow_tantivy_index::{IndexOptions, SparrowIndex};

fn anonymous_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
}

#[test]
#[ignore = "slow; prints figures"]
fn bulk_load() {
    let dir = tempfile::tempdir().unwrap();
    let mapping = mapping(json!({
        "text": {"type": "text", "analyzer": "english"}, "tokens": {"type": "sparse_vector"},
        "pos": {"type": "keyword"}, "number": {"type": "long"}
    }));
    let index = SparrowIndex::create(dir.path(), &mapping, &IndexOptions::default()).unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    let mut out = std::io::stderr();
    let started = Instant::now();
    let (mut peak, mut parsing, mut adding, mut refreshing) = (0, 0.0, 0.0, 0.0);
    for n in 0..117_000u64 {
        let mut tokens = Map::new();
        for _ in 0..130 {
            // Skewed like a vocabulary: the square of a uniform number.
            let at = (rng.random::<f64>().powi(2) * 30_000.0) as u32;
            tokens.insert(format!("token{at}"), json!(rng.random_range(0.01..3.0f32)));
        }
        let words: Vec<String> =
            (0..15).map(|_| format!("word{}", (rng.random::<f64>().powi(2) * 20_000.0) as u32)).collect();
        let source =
            json!({"text": words.join(" "), "tokens": Value::Object(tokens), "pos": "n", "number": n});
        let at = Instant::now();
        let written = document(&mapping, &n.to_string(), n, &source, false);
        parsing += at.elapsed().as_secs_f64();
        let at = Instant::now();
        index.add(written).unwrap();
        adding += at.elapsed().as_secs_f64();
        if n % 5000 == 4999 {
            let at = Instant::now();
            index.refresh().unwrap();
            refreshing += at.elapsed().as_secs_f64();
        }
        if n % 1000 == 0 {
            peak = peak.max(anonymous_mb());
        }
    }
    index.refresh().unwrap();
    let loaded = started.elapsed().as_secs_f64();
    let at = Instant::now();
    index.flush(Some(117_000)).unwrap();
    let flushed = at.elapsed().as_secs_f64();
    let stats = index.stats().unwrap();
    let _ = writeln!(
        out,
        "loaded in {loaded:.1} s (parse {parsing:.1}, add {adding:.1}, refresh {refreshing:.1}), flush {flushed:.2} s, {stats:?}, RssAnon peak {peak} MB"
    );
    let at = Instant::now();
    index.merge_all().unwrap();
    let _ = writeln!(out, "merged in {:.1} s, RssAnon {} MB", at.elapsed().as_secs_f64(), anonymous_mb());
    index.flush(None).unwrap();
    let snapshot = index.searcher();
    let at = Instant::now();
    for n in (0..117_000).step_by(100) {
        let meta = snapshot.lookup(&n.to_string()).unwrap().unwrap();
        snapshot.fetch(meta.addr).unwrap();
    }
    let _ = writeln!(
        out,
        "{:.1} µs a lookup and fetch, {} bytes",
        at.elapsed().as_secs_f64() * 1e6 / 1170.0,
        index.stats().unwrap().bytes
    );
    drop(snapshot);
    drop(index);
    let at = Instant::now();
    let (index, _) = SparrowIndex::open(dir.path(), &mapping, &IndexOptions::default()).unwrap();
    let _ = writeln!(out, "opened in {:.1} ms", at.elapsed().as_secs_f64() * 1e3);
    assert_eq!(index.searcher().num_docs(), 117_000);
}
