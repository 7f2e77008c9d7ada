//! Measures a deployment: passages per CPU-second, the time to encode a question, two allocations against one, the cache, questions while
//! long documents are encoded, and memory.
//!
//! `throughput MODEL_DIR [ROUNDS [PACKED | TRUNK_DIR]] < JOB`, with a file for the packed weights of a large model, or the directory of the model that
//! a head is on, where the job is `{"passages": [texts], "questions": [texts], "top": n}` as JSON; the
//! library comes from SPARROW_ONNXRUNTIME, the instruction set from SPARROW_SIMD. Prints one line of JSON, with the `n` tokens of
//! the highest weights of each text. `benches/suites/encoder.mjs` runs it beside onnxruntime-node.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_encoder::{
    Deployment, DeploymentOptions, Encoded, EncoderError, Model, Output, Priority, load_packed, set_runtime,
};

#[derive(Deserialize)]
struct Job {
    passages: Vec<String>,
    questions: Vec<String>,
    top: usize,
    /// Whether only passages with one allocation are measured, as for large models.
    #[serde(default)]
    alone: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(
        arguments.first().ok_or("usage: throughput MODEL_DIR [ROUNDS [PACKED | TRUNK_DIR]] < JOB")?,
    );
    let rounds = arguments.get(1).map_or(Ok(3), |text| text.parse::<usize>())?.max(1);
    let job: Job = serde_json::from_reader(std::io::stdin().lock())?;
    let (passages, questions) = (strs(&job.passages), strs(&job.questions));
    let before = Instant::now();
    let model = match arguments.get(2) {
        Some(trunk) if Path::new(trunk).is_dir() => Model::load_head(&dir, &Model::load(Path::new(trunk))?)?,
        Some(packed) => load_packed(&dir, Path::new(packed))?,
        None => Model::load(&dir)?,
    };
    if !model.is_native() {
        let library = std::env::var_os("SPARROW_ONNXRUNTIME").ok_or("set SPARROW_ONNXRUNTIME")?.into();
        set_runtime(library);
    }
    let one = start(&model, 1, 0)?;
    let load_ms = milliseconds(before.elapsed());
    if job.alone {
        println!("{}", alone(&model, &one, &passages, rounds, (&job, load_ms))?);
        return Ok(());
    }
    let two = start(&model, 2, 0)?;
    let answers = one.encode_paced(&passages, None)?;
    two.encode_paced(&passages, None)?;
    let asked = questions
        .iter()
        .map(|text| Ok(one.encode(&[text], Priority::Search, None, None)?.remove(0)))
        .collect::<Result<Vec<_>, EncoderError>>()?;

    // One and two allocations take turns, so that a busy machine hurts both; the best round of each counts.
    let (mut per_cpu_s, mut alone, mut together) = (0f64, 0f64, 0f64);
    for _ in 0..rounds {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        one.encode_paced(&passages, None)?;
        per_cpu_s = per_cpu_s.max(passages.len() as f64 / (cpu_seconds() - cpu));
        alone = alone.max(passages.len() as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        two.encode_paced(&passages, None)?;
        together = together.max(passages.len() as f64 / start.elapsed().as_secs_f64());
    }
    let question = ask(&one, &questions, rounds)?;
    let report = json!({
        "kernels": model.instructions(),
        "native": model.is_native(),
        "load_ms": load_ms,
        "texts": passages.len(),
        "tokens_per_text": answers.iter().map(|text| f64::from(text.token_count)).sum::<f64>() / passages.len() as f64,
        "tokens_per_question": asked.iter().map(|text| f64::from(text.token_count)).sum::<f64>() / questions.len() as f64,
        "texts_per_cpu_s": per_cpu_s,
        "texts_per_s_1_allocation": alone,
        "texts_per_s_2_allocations": together,
        "question": question,
        "question_beside_ingest": beside_ingest(&one, &passages, &questions)?,
        "cache": cache(&model, &passages, &questions)?,
        "rss_anon_kb": status("RssAnon:"),
        "peak_rss_kb": status("VmHWM:"),
        "passages": top(&answers, job.top),
        "questions": top(&asked, job.top),
    });
    println!("{report}");
    Ok(())
}

/// Passages per CPU-second of one allocation, and the memory of a process that has nothing else.
fn alone(
    model: &Model,
    one: &Deployment,
    passages: &[&str],
    rounds: usize,
    (job, load_ms): (&Job, f64),
) -> Result<Value, EncoderError> {
    let mut answers = one.encode_paced(passages, None)?;
    let mut per_cpu_s = 0f64;
    for _ in 0..rounds {
        let cpu = cpu_seconds();
        answers = one.encode_paced(passages, None)?;
        per_cpu_s = per_cpu_s.max(passages.len() as f64 / (cpu_seconds() - cpu));
    }
    let tokens: f64 = answers.iter().map(|text| f64::from(text.token_count)).sum();
    Ok(json!({
        "kernels": model.instructions(),
        "native": model.is_native(),
        "mapped": model.is_mapped(),
        "load_ms": load_ms,
        "texts": passages.len(),
        "tokens_per_text": tokens / passages.len() as f64,
        "texts_per_cpu_s": per_cpu_s,
        "rss_anon_kb": status("RssAnon:"),
        "rss_kb": status("VmRSS:"),
        "peak_rss_kb": status("VmHWM:"),
        "passages": top(&answers, job.top),
    }))
}

fn start(model: &Arc<Model>, allocations: usize, cache_bytes: usize) -> Result<Deployment, EncoderError> {
    let options =
        DeploymentOptions { allocations, threads_per_allocation: 1, queue_capacity: 4096, cache_bytes };
    Deployment::start(Arc::clone(model), options)
}

/// Quantiles of the time to encode one question after another; the best of several rounds.
fn ask(deployment: &Deployment, questions: &[&str], rounds: usize) -> Result<Value, EncoderError> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let times = questions
            .iter()
            .map(|text| {
                let start = Instant::now();
                deployment.encode(&[text], Priority::Search, None, None)?;
                Ok(milliseconds(start.elapsed()))
            })
            .collect::<Result<Vec<_>, EncoderError>>()?;
        let found = (quantile(&times, 0.5), quantile(&times, 0.95));
        best = if found.0 < best.0 { found } else { best };
    }
    Ok(json!({ "p50_ms": best.0, "p95_ms": best.1 }))
}

/// Quantiles of the time to encode a question while documents of 512 tokens are queued as fast as possible; a question should wait for at
/// most one such document.
fn beside_ingest(one: &Deployment, passages: &[&str], questions: &[&str]) -> Result<Value, Box<dyn Error>> {
    let long: Vec<String> = passages.chunks(8).map(|some| some.join(" ").repeat(4)).collect();
    let long = strs(&long);
    let times = long
        .iter()
        .take(20)
        .map(|text| {
            let start = Instant::now();
            one.encode(&[text], Priority::Ingest, None, None)?;
            Ok(milliseconds(start.elapsed()))
        })
        .collect::<Result<Vec<_>, EncoderError>>()?;
    let done = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            let before = one.stats().inference_count;
            while !done.load(Ordering::Relaxed) {
                one.encode_paced(&long, Some(&done)).ok();
            }
            one.stats().inference_count - before
        });
        std::thread::sleep(Duration::from_millis(50));
        let found = ask(one, questions, 1);
        done.store(true, Ordering::Relaxed);
        let written = background.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        found.map(|found| (found, written))
    })?;
    Ok(json!({ "question": found.0, "long_text_p50_ms": quantile(&times, 0.5), "texts_meanwhile": found.1 }))
}

/// Times of encoding texts with and without cached vectors.
fn cache(model: &Arc<Model>, passages: &[&str], questions: &[&str]) -> Result<Value, Box<dyn Error>> {
    let cached = start(model, 1, 64 << 20)?;
    let timed = |texts: &[&str]| -> Result<(f64, Vec<Encoded>), EncoderError> {
        let start = Instant::now();
        let found = cached.encode_paced(texts, None)?;
        Ok((milliseconds(start.elapsed()) / texts.len() as f64, found))
    };
    let (first, computed) = timed(passages)?;
    let (again, remembered) = timed(passages)?;
    if computed != remembered {
        return Err("the cache answers differently".into());
    }
    let new = ask(&cached, questions, 1)?;
    let known = ask(&cached, questions, 3)?;
    Ok(json!({ "text_ms": first, "text_again_ms": again, "question": new, "question_again": known }))
}

fn top(texts: &[Encoded], count: usize) -> Vec<Value> {
    texts
        .iter()
        .map(|text| match &text.output {
            Output::Sparse(weights) | Output::Hybrid { sparse: weights, .. } => {
                let pairs = weights.pairs().iter().take(count);
                Value::Array(pairs.map(|(token, weight)| json!([&**token, weight])).collect())
            }
            Output::Dense(vector) => json!(&vector[..]),
        })
        .collect()
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// A figure of the process from `/proc/self/status`, in kB; `None` where the system has no such file.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// CPU time of all threads of the process, in seconds; NaN where the system does not tell.
fn cpu_seconds() -> f64 {
    // The scheduler's own count, in nanoseconds, of every thread; `stat` counts in hundredths of a second.
    let of = |path: PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    threads.flatten().filter_map(|thread| of(thread.path())).sum::<f64>() / 1e9
}
