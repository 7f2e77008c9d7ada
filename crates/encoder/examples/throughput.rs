//! Documents per second and memory of a deployment.
//!
//! `cargo run --release --example throughput -- MODEL_DIR [ALLOCATIONS] [TEXTS] [WORDS] [THREADS_PER_ALLOCATION]`; the
//! library comes from SPARROW_ONNXRUNTIME. Texts are made of words of a fixed list, the same in every run (no cache).
//! Results: benches/results/.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sparrow_encoder::{
    Deployment, DeploymentOptions, EncoderError, Model, Priority, RuntimeOptions, init_runtime, simd_name,
};

const WORDS: &str = "the of a person or to in and state something small large used plant animal family act group having \
    without water body light part house city river music language machine sudden quality relating feeling theory \
    instrument American genus tropical colored metal government religious ancient medical disease treatment";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(
        arguments.first().ok_or("usage: throughput MODEL_DIR [ALLOCATIONS] [TEXTS] [WORDS] [THREADS]")?,
    );
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (allocations, texts, words, threads) =
        (number(1, 2)?, number(2, 20_000)?, number(3, 16)?, number(4, 1)?);
    let library = std::env::var_os("SPARROW_ONNXRUNTIME").ok_or("set SPARROW_ONNXRUNTIME")?.into();
    init_runtime(&RuntimeOptions { library })?;
    let before = Instant::now();
    let model = Model::load(&dir)?;
    println!("model read in {:.2?}, kernels {}, {}", before.elapsed(), simd_name(), memory());
    let before = Instant::now();
    let options = DeploymentOptions {
        allocations,
        threads_per_allocation: threads,
        queue_capacity: 1024,
        cache_bytes: 0,
    };
    let deployment = Deployment::start(model, options)?;
    println!("{allocations} allocations started in {:.2?}, {}", before.elapsed(), memory());

    let list: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut made = Vec::with_capacity(texts);
    for _ in 0..texts {
        let length = words / 2 + next() % words.max(1) + 1;
        made.push((0..length).map(|_| list[next() % list.len()]).collect::<Vec<_>>().join(" "));
    }
    let (started, cpu) = (Instant::now(), cpu_seconds());
    for chunk in made.chunks(500) {
        let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
        assert_eq!(deployment.encode_paced(&chunk, None)?.len(), chunk.len());
    }
    let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let stats = deployment.stats();
    assert_eq!(stats.inference_count, texts as u64);
    println!(
        "{texts} texts of {:.1} tokens: {wall:.2} s, {cpu:.2} CPU s; {:.0} texts/s, {:.0} texts/CPU-s, {:.3} ms a text, {}",
        stats.encoded_tokens as f64 / texts as f64,
        texts as f64 / wall,
        texts as f64 / cpu,
        stats.average_inference_time_ms,
        memory()
    );
    println!("one text at a time: {}", latency(&deployment, &made)?);
    let done = AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            let texts: Vec<&str> = made.iter().map(String::as_str).collect();
            while !done.load(Ordering::Relaxed) {
                deployment.encode_paced(&texts, Some(&done)).ok();
            }
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        let before = deployment.stats().inference_count;
        let busy = latency(&deployment, &made);
        let ingested = deployment.stats().inference_count - before;
        done.store(true, Ordering::Relaxed);
        background.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        busy.map(|busy| format!("{busy}, {ingested} texts in all"))
    })?;
    println!("the same beside a paced ingest: {busy}");
    Ok(())
}

fn latency(deployment: &Deployment, texts: &[String]) -> Result<String, EncoderError> {
    let mut times = Vec::new();
    for text in texts.iter().take(500) {
        let start = Instant::now();
        deployment.encode(&[text], Priority::Search, None, None)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(format!("p50 {:.2} ms, p95 {:.2} ms", times[times.len() / 2], times[times.len() * 95 / 100]))
}

/// Anonymous memory of the process, where the system tells.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status.lines().find(|line| line.starts_with(name)).map_or("?", |line| line[name.len()..].trim())
    };
    format!("RssAnon {}, VmHWM {}", field("RssAnon:"), field("VmHWM:"))
}

/// User and system time of the process in seconds, where the system tells.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}
