//! Encodes the `text` of JSON lines into the vectors that the benchmarks search.
//!
//! `zcat passages.jsonl.gz | cargo run --release -p sparrow-encoder --example encode_corpus -- MODEL_DIR PREFIX [LIMIT] [ALLOCATIONS]`;
//! the library comes from SPARROW_ONNXRUNTIME. Writes rows of a sparse matrix whose columns are the vocabulary's
//! numbers, little-endian: `PREFIX.ptr` (u32 per row and one more), `PREFIX.idx` (u32), `PREFIX.val` (f32); for a model of
//! dense vectors rows of f32 in `PREFIX.f32`, and nothing else.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use sparrow_encoder::{Deployment, DeploymentOptions, Model, Output, set_runtime};

/// Texts per call.
const CHUNK: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, prefix, ..] = &arguments[..] else {
        return Err("usage: encode_corpus MODEL_DIR PREFIX [LIMIT] [ALLOCATIONS] < LINES".into());
    };
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (limit, allocations) = (number(2, usize::MAX)?, number(3, 2)?);
    let model = Model::load(&PathBuf::from(dir))?;
    if !model.is_native() {
        set_runtime(std::env::var_os("SPARROW_ONNXRUNTIME").ok_or("set SPARROW_ONNXRUNTIME")?.into());
    }
    let options =
        DeploymentOptions { allocations, threads_per_allocation: 1, queue_capacity: 4096, cache_bytes: 0 };
    let deployment = Deployment::start(model, options)?;
    let mut lines = std::io::stdin().lock().lines().take(limit);
    let Some(first) = lines.next().transpose()? else { return Err("no lines".into()) };
    let probe = deployment.encode_paced(&[&text(&first)?], None)?.remove(0);
    let mut lines = std::iter::once(Ok(first)).chain(lines);
    if matches!(probe.output, Output::Dense(_)) {
        return dense(&deployment, &mut lines, prefix);
    }
    let vocabulary = vocabulary(&PathBuf::from(dir))?;

    let file = |ending: &str| File::create(format!("{prefix}.{ending}")).map(BufWriter::new);
    let (mut ptr, mut idx, mut val) = (file("ptr")?, file("idx")?, file("val")?);
    let (mut rows, mut weights, mut tokens) = (0_usize, 0_u32, 0_u64);
    ptr.write_all(&0_u32.to_le_bytes())?;
    let start = Instant::now();
    loop {
        let texts = lines.by_ref().take(CHUNK).map(|line| text(&line?)).collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() {
            break;
        }
        rows += texts.len();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for encoded in deployment.encode_paced(&texts, None)? {
            tokens += u64::from(encoded.token_count);
            let Output::Sparse(pairs) = encoded.output else { return Err("the model is not sparse".into()) };
            let mut row = pairs
                .pairs()
                .iter()
                .map(|(token, weight)| {
                    Ok((*vocabulary.get(&**token).ok_or("a token without number")?, *weight))
                })
                .collect::<Result<Vec<(u32, f32)>, Box<dyn Error>>>()?;
            row.sort_unstable_by_key(|(term, _)| *term);
            for (term, weight) in row {
                idx.write_all(&term.to_le_bytes())?;
                val.write_all(&weight.to_le_bytes())?;
                weights += 1;
            }
            ptr.write_all(&weights.to_le_bytes())?;
        }
    }
    for mut file in [ptr, idx, val] {
        file.flush()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{rows} texts of {:.1} tokens, {:.1} weights each: {seconds:.1} s, {:.0} texts/s on {allocations} allocations",
        tokens as f64 / rows as f64,
        f64::from(weights) / rows as f64,
        rows as f64 / seconds
    );
    Ok(())
}

/// Writes the dense vectors of all texts as f32, one after another.
fn dense(
    deployment: &Deployment,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    prefix: &str,
) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(format!("{prefix}.f32"))?);
    let (mut rows, start) = (0_usize, Instant::now());
    loop {
        let texts = lines.take(CHUNK).map(|line| text(&line?)).collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() {
            break;
        }
        rows += texts.len();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for encoded in deployment.encode_paced(&texts, None)? {
            let Output::Dense(vector) = encoded.output else { return Err("the model is not dense".into()) };
            for component in vector.iter() {
                file.write_all(&component.to_le_bytes())?;
            }
        }
    }
    file.flush()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{rows} texts: {seconds:.1} s, {:.0} texts/s", rows as f64 / seconds);
    Ok(())
}

fn text(line: &str) -> Result<String, Box<dyn Error>> {
    let line: serde_json::Value = serde_json::from_str(line)?;
    Ok(line["text"].as_str().ok_or("a line without text")?.to_owned())
}

/// Maps each token of the tokenizer's vocabulary, spelled as in sparse vectors, to its id.
fn vocabulary(dir: &std::path::Path) -> Result<HashMap<String, u32>, Box<dyn Error>> {
    let tokenizer: serde_json::Value =
        serde_json::from_reader(std::io::BufReader::new(File::open(dir.join("tokenizer.json"))?))?;
    let entries = tokenizer["model"]["vocab"].as_object().ok_or("tokenizer without vocabulary")?;
    entries
        .iter()
        .map(|(token, id)| Ok((token.replace('.', "__"), u32::try_from(id.as_u64().ok_or("not a number")?)?)))
        .collect()
}
