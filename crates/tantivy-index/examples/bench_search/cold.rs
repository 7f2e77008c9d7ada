//! Measures a cold start, with nothing in the page cache: opening, first result, first hundred results,
//! memory.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use sparrow_tantivy_index::query::SearchOptions;

use crate::build::Built;
use crate::corpus::Corpus;
use crate::measure::{micros, percentile};

/// Makes the kernel drop the cached pages of all files in a directory: `dd` with `nocache` and a count of 0
/// gives that advice.
fn drop_pages(dir: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        fs::File::open(&path)?.sync_all()?;
        let done = Command::new("dd")
            .arg(format!("if={}", path.display()))
            .args(["iflag=nocache", "count=0", "status=none"])
            .status()?;
        if !done.success() {
            return Err("dd failed".into());
        }
    }
    Ok(())
}

/// Anonymous and file-backed resident memory of the process, in megabytes.
fn memory() -> (f64, f64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
    };
    (of("RssAnon:"), of("RssFile:"))
}

pub fn measure(dir: &Path, corpus: &Corpus) -> Result<(), Box<dyn Error>> {
    drop_pages(dir)?;
    let before = memory();
    let start = Instant::now();
    let built = Built::open(dir)?;
    let opened = start.elapsed().as_secs_f64();
    let open_memory = memory();
    let snapshot = built.snapshot();
    let options = SearchOptions::default();
    let mut times = Vec::new();
    for question in 0..corpus.questions().min(100) {
        let query = corpus.sparse(question);
        let start = Instant::now();
        let found = snapshot.search(&query, &options)?;
        for hit in &found.hits {
            snapshot.fetch(hit.addr)?;
        }
        times.push(start.elapsed().as_secs_f64());
    }
    let after = memory();
    println!(
        "{}",
        json!({
            "part": "cold",
            "index": built.label,
            "documents": corpus.len(),
            "open_ms": micros(opened) / 1000.0,
            "first_answer_ms": micros(opened + times[0]) / 1000.0,
            "first_question_us": micros(times[0]),
            "first_100_p50_us": micros(percentile(&times, 0.5)),
            "first_100_p95_us": micros(percentile(&times, 0.95)),
            "first_100_sum_ms": micros(times.iter().sum()) / 1000.0,
            "open_anonymous_mb": (open_memory.0 - before.0).round(),
            "open_file_mb": (open_memory.1 - before.1).round(),
            "after_100_anonymous_mb": (after.0 - before.0).round(),
            "after_100_file_mb": (after.1 - before.1).round(),
        })
    );
    Ok(())
}
