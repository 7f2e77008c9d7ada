//! Measures how close `_reindex` through an inference pipeline comes to the bare encoder's throughput, in one process.
//!
//! `reindex MODEL_DIR ROUNDS < LINES`, where each line is a document with a `text`; the ONNX Runtime library comes from
//! SPARROW_ONNXRUNTIME. Each round takes its share of the documents, so that no cache has seen them: the bare encoder encodes their
//! texts, and a reindex copies them with as many allocations; which of the two goes first alternates. One JSON object per round
//! goes to standard output.
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
    put_pipeline(&engine)?;
    let rounds: usize = rounds.parse()?;
    for (round, documents) in documents.chunks(documents.len().div_ceil(rounds.max(1)).max(1)).enumerate() {
        load(&engine, round, documents)?;
        let (bare, copied) = if round % 2 == 0 {
            let bare = measured(|| encode(&model, documents))?;
            (bare, measured(|| reindex(&engine, round))?)
        } else {
            let copied = measured(|| reindex(&engine, round))?;
            (measured(|| encode(&model, documents))?, copied)
        };
        check(&engine, round, documents.len())?;
        let count = documents.len() as f64;
        let micros = |seconds: f64| (seconds / count * 1e6).round();
        println!(
            "{}",
            json!({
                "documents": documents.len(),
                "first": if round % 2 == 0 { "bare" } else { "reindex" },
                "bare_per_second": count / bare.seconds,
                "reindex_per_second": count / copied.seconds,
                "ratio": bare.seconds / copied.seconds,
                "bare_cpu_micros": micros(bare.cpu),
                "reindex_cpu_micros": micros(copied.cpu),
                "cpu_ratio": bare.cpu / copied.cpu,
            })
        );
    }
    engine.close();
    Ok(())
}

fn open(data: &Path, model: &Path) -> Result<Arc<Engine>, Box<dyn Error>> {
    let library = std::env::var_os("SPARROW_ONNXRUNTIME").ok_or("set SPARROW_ONNXRUNTIME")?;
    let options = EngineOptions::new(data.to_path_buf(), library.into(), vec![model.to_path_buf()]);
    Engine::open(options).map_err(|error| error.reason().into())
}

/// What a piece of work took: the seconds that it reports itself, and the CPU seconds of all threads of the process.
struct Measured {
    seconds: f64,
    cpu: f64,
}

fn measured(work: impl FnOnce() -> Result<f64, Box<dyn Error>>) -> Result<Measured, Box<dyn Error>> {
    let before = cpu_seconds();
    let seconds = work()?;
    Ok(Measured { seconds, cpu: cpu_seconds() - before })
}

fn put_pipeline(engine: &Arc<Engine>) -> Result<(), Box<dyn Error>> {
    let processor = json!({"inference": {
        "model_id": MODEL,
        "input_output": [{"input_field": "text", "output_field": "v"}],
    }});
    execute(engine, "put_pipeline", &[("pipeline", "p")], &json!({"processors": [processor]}))?;
    Ok(())
}

fn load(engine: &Arc<Engine>, round: usize, documents: &[Value]) -> Result<(), Box<dyn Error>> {
    let index = format!("texts-{round}");
    for (chunk, part) in documents.chunks(1000).enumerate() {
        let mut lines = String::new();
        for (at, document) in part.iter().enumerate() {
            lines.push_str(&json!({"index": {"_id": (chunk * 1000 + at).to_string()}}).to_string());
            lines.push('\n');
            lines.push_str(&json!({"title": document["title"], "text": document["text"]}).to_string());
            lines.push('\n');
        }
        engine
            .execute(&request("bulk", &[("index", &index)]), lines.as_bytes(), &CancelFlag::default())
            .map_err(|error| error.reason())?;
    }
    // What is left to do for the source is no part of the measurement.
    execute(engine, "flush", &[("index", &index)], &Value::Null)?;
    Ok(())
}

/// Seconds that a reindex into a new index takes.
fn reindex(engine: &Arc<Engine>, round: usize) -> Result<f64, Box<dyn Error>> {
    let index = format!("vectors-{round}");
    let mappings = json!({"mappings": {"properties": {
        "title": {"type": "text"}, "text": {"type": "text"}, "v": {"type": "sparse_vector"},
    }}});
    execute(engine, "create_index", &[("index", &index)], &mappings)?;
    let source = format!("texts-{round}");
    let body = json!({"source": {"index": source}, "dest": {"index": index, "pipeline": "p"}});
    let begun = Instant::now();
    let report = execute(engine, "reindex", &[], &body)?;
    let seconds = begun.elapsed().as_secs_f64();
    if report["failures"].as_array().is_none_or(|failures| !failures.is_empty()) {
        return Err(report.to_string().into());
    }
    Ok(seconds)
}

/// Checks that `expected` documents of the round's new index have a vector.
fn check(engine: &Arc<Engine>, round: usize, expected: usize) -> Result<(), Box<dyn Error>> {
    let index = format!("vectors-{round}");
    execute(engine, "refresh", &[("index", &index)], &Value::Null)?;
    let exists = json!({"query": {"exists": {"field": "v"}}});
    let found = execute(engine, "count", &[("index", &index)], &exists)?;
    if found["count"] != expected {
        return Err(format!("{} of {expected} documents have a vector", found["count"]).into());
    }
    Ok(())
}

/// Seconds that the encoder alone needs for all texts in a single call, which is the best case for it.
fn encode(model: &Path, documents: &[Value]) -> Result<f64, Box<dyn Error>> {
    let allocations = std::thread::available_parallelism()?.get();
    let options =
        DeploymentOptions { allocations, threads_per_allocation: 1, queue_capacity: 1024, cache_bytes: 0 };
    let deployment = Deployment::start(Model::load(model)?, options)?;
    let texts: Vec<&str> = documents.iter().filter_map(|document| document["text"].as_str()).collect();
    let begun = Instant::now();
    deployment.encode_paced(&texts, None)?;
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

/// CPU seconds that this process has used so far, including threads that have ended.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are the 12th and 13th field behind the name, in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
