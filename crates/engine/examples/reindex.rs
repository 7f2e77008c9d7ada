//! How near `_reindex` through an inference pipeline comes to the bare encoder, in one process.
//!
//! `reindex MODEL_DIR ROUNDS < LINES`, where each line is a document with a `text`; the ONNX Runtime library comes from
//! SPARROW_ONNXRUNTIME. In each round the bare encoder encodes all texts, then a reindex of the same documents does,
//! with as many allocations; one JSON object a round goes to standard output.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use sparrow_encoder::{Deployment, DeploymentOptions, Model};
use sparrow_engine::{CancelFlag, Engine, EngineOptions, Request};

const MODEL: &str = ".sparse_encoder_model_2";
/// Texts of one call to the bare encoder: as many as a reindex has under way.
const CALL: usize = 750;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, rounds] = &arguments[..] else {
        return Err("usage: reindex MODEL_DIR ROUNDS < LINES".into());
    };
    let model = PathBuf::from(model);
    let documents: Vec<Value> = std::io::stdin()
        .lock()
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let data = tempfile::tempdir()?;
    let engine = open(data.path(), &model)?;
    load(&engine, &documents)?;
    let count = documents.len() as f64;
    for round in 0..rounds.parse()? {
        let before = Cpu::now();
        let bare = encode(&model, &documents)?;
        let between = Cpu::now();
        let begun = Instant::now();
        let report = reindex(&engine, round)?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = Cpu::now();
        let micros = |seconds: f64| (seconds / count * 1e6).round();
        println!(
            "{}",
            json!({
                "documents": documents.len(),
                "created": report["created"],
                "bare_per_second": count / bare,
                "reindex_per_second": count / seconds,
                "ratio": bare / seconds,
                "bare_cpu_micros": micros(between.all - before.all),
                "reindex_encoder_cpu_micros": micros(after.encoder - between.encoder),
                "reindex_other_cpu_micros":
                    micros(after.all - between.all - (after.encoder - between.encoder)),
            })
        );
        execute(&engine, "delete_index", &[("index", &format!("vectors-{round}"))], &Value::Null)?;
    }
    engine.close();
    Ok(())
}

fn open(data: &Path, model: &Path) -> Result<Arc<Engine>, Box<dyn Error>> {
    let library = std::env::var_os("SPARROW_ONNXRUNTIME").ok_or("set SPARROW_ONNXRUNTIME")?;
    let options = EngineOptions::new(data.to_path_buf(), library.into(), vec![model.to_path_buf()]);
    Engine::open(options).map_err(|error| error.reason().into())
}

fn load(engine: &Arc<Engine>, documents: &[Value]) -> Result<(), Box<dyn Error>> {
    for (chunk, part) in documents.chunks(1000).enumerate() {
        let mut lines = String::new();
        for (at, document) in part.iter().enumerate() {
            lines.push_str(&json!({"index": {"_id": (chunk * 1000 + at).to_string()}}).to_string());
            lines.push('\n');
            lines.push_str(&json!({"title": document["title"], "text": document["text"]}).to_string());
            lines.push('\n');
        }
        let request = request("bulk", &[("index", "texts")]);
        engine.execute(&request, lines.as_bytes(), &CancelFlag::default()).map_err(|error| error.reason())?;
    }
    let processor = json!({"inference": {
        "model_id": MODEL,
        "input_output": [{"input_field": "text", "output_field": "v"}],
    }});
    execute(engine, "put_pipeline", &[("pipeline", "p"), ("id", "p")], &json!({"processors": [processor]}))?;
    Ok(())
}

/// Copies all documents into a new index through the pipeline; refreshed at the end, as the bare encoder has no more
/// to do then either.
fn reindex(engine: &Arc<Engine>, round: usize) -> Result<Value, Box<dyn Error>> {
    let index = format!("vectors-{round}");
    let mappings = json!({"mappings": {"properties": {
        "title": {"type": "text"}, "text": {"type": "text"}, "v": {"type": "sparse_vector"},
    }}});
    execute(engine, "create_index", &[("index", &index)], &mappings)?;
    let body = json!({"source": {"index": "texts"}, "dest": {"index": index, "pipeline": "p"}});
    let report = execute(engine, "reindex", &[], &body)?;
    if report["failures"].as_array().is_none_or(|failures| !failures.is_empty()) {
        return Err(report.to_string().into());
    }
    Ok(report)
}

/// Seconds that the encoder alone needs for all texts.
fn encode(model: &Path, documents: &[Value]) -> Result<f64, Box<dyn Error>> {
    let allocations = std::thread::available_parallelism()?.get();
    let options =
        DeploymentOptions { allocations, threads_per_allocation: 1, queue_capacity: 1024, cache_bytes: 0 };
    let deployment = Deployment::start(Model::load(model)?, options)?;
    let texts: Vec<&str> = documents.iter().filter_map(|document| document["text"].as_str()).collect();
    let begun = Instant::now();
    // As a reindex: some calls at once, so that the queue never runs dry between two.
    std::thread::scope(|scope| {
        let calls: Vec<_> = texts
            .chunks(texts.len().div_ceil(2))
            .map(|half| {
                let deployment = &deployment;
                scope.spawn(move || {
                    half.chunks(CALL / 2).try_for_each(|call| deployment.encode_paced(call, None).map(drop))
                })
            })
            .collect();
        calls.into_iter().try_for_each(|call| {
            call.join().map_err(|_| "the encoder panicked")?.map_err(|error| error.to_string())
        })
    })?;
    Ok(begun.elapsed().as_secs_f64())
}

fn request(op: &str, path: &[(&str, &str)]) -> Request {
    let path: BTreeMap<String, String> =
        path.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request { op: op.to_owned(), path, ..Request::default() }
}

fn execute(
    engine: &Arc<Engine>,
    op: &str,
    path: &[(&str, &str)],
    body: &Value,
) -> Result<Value, Box<dyn Error>> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let reply =
        engine.execute(&request(op, path), &bytes, &CancelFlag::default()).map_err(|error| error.reason())?;
    Ok(serde_json::from_slice(&reply.body)?)
}

/// CPU seconds that this process has used.
struct Cpu {
    /// By all threads, also those that ended.
    all: f64,
    /// By the threads of the encoder that run now.
    encoder: f64,
}

impl Cpu {
    fn now() -> Self {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/self/stat".into());
        // User and system time are the 12th and 13th field behind the name, in hundredths of a second.
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let encoder = tasks
            .filter(|task| read(task.path().join("comm")).starts_with("encoder-"))
            .filter_map(|task| read(task.path().join("schedstat")).split(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
        Self { all: (ticks(11) + ticks(12)) / 100.0, encoder: encoder / 1e9 }
    }
}
