//! Measures what writing costs: processor time of indexing with the default options, by thread.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::time::Instant;

use serde_json::json;
use sparrow_tantivy_index::{IndexOptions, SparrowIndex};

use crate::Arguments;
use crate::build::{mapping, write_document};
use crate::corpus::Corpus;

/// Number of documents that are parsed before writing them is timed, and between two refreshes.
const BATCH: usize = 5_000;

/// Processor time of each group of threads of this process, in seconds; by thread name without trailing
/// digits.
fn by_thread() -> BTreeMap<String, f64> {
    let mut seconds = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let (Some(open), Some(close)) = (stat.find('('), stat.rfind(')')) else { continue };
        let name = stat[open + 1..close].trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let fields: Vec<f64> =
            stat[close + 1..].split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        // utime and stime, in hundredths of a second.
        *seconds.entry(name).or_insert(0.0) += (fields[10] + fields[11]) / 100.0;
    }
    seconds
}

pub fn measure(arguments: &Arguments, corpus: &Corpus) -> Result<(), Box<dyn Error>> {
    let dir = arguments.work.join("written");
    let _ = fs::remove_dir_all(&dir);
    let mapping = mapping()?;
    let index = SparrowIndex::create(&dir, &mapping, &IndexOptions::default())?;
    let (mut adding, mut all) = (0.0, 0.0);
    let mut spent: BTreeMap<String, f64> = BTreeMap::new();
    for from in (0..corpus.len()).step_by(BATCH) {
        let rows = from..corpus.len().min(from + BATCH);
        let documents =
            rows.map(|row| write_document(&mapping, corpus, row)).collect::<Result<Vec<_>, _>>()?;
        let (start, before) = (Instant::now(), by_thread());
        for document in documents {
            index.add(document)?;
        }
        adding += start.elapsed().as_secs_f64();
        index.refresh()?;
        all += start.elapsed().as_secs_f64();
        // Threads of a finished commit are gone with their time: the wall clock stands in for them.
        for (name, after) in by_thread() {
            let used = after - before.get(&name).copied().unwrap_or(0.0);
            *spent.entry(name).or_insert(0.0) += used.max(0.0);
        }
    }
    let start = Instant::now();
    index.flush(Some(corpus.len() as u64))?;
    let flushed = start.elapsed().as_secs_f64();
    let start = Instant::now();
    index.merge_all()?;
    let merged = start.elapsed().as_secs_f64();
    let process = fs::read_to_string("/proc/self/stat")?;
    println!(
        "{}",
        json!({
            "part": "write",
            "documents": corpus.len(),
            "documents_per_second": (corpus.len() as f64 / all).round(),
            "adding_seconds": adding,
            "adding_and_refreshing_seconds": all,
            "flush_seconds": flushed,
            "merge_all_seconds": merged,
            "bytes": index.stats()?.bytes,
            "plugin_bytes": index.stats()?.plugin_bytes,
            "processor_seconds": spent,
            "process_ticks": process.rsplit(')').next().map(|rest| {
                rest.split_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum::<u64>()
            }),
        })
    );
    Ok(())
}
