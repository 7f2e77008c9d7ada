//! Converts texts to vectors: tokenization, the forward pass (our own for BERT, ONNX Runtime for other
//! models), SPLADE head, batching queue.
//!
//! [`Model`] is the content of a model directory, read once and shared; [`Deployment`] is a running model: a
//! bounded queue and worker threads (allocations) that take batches from it. Only `session.rs` uses ONNX
//! Runtime, and `unsafe` lives in `head/kernels/`, `bert/kernels/`, `amx/` and `numbers.rs` (mapped files)
//! only. The crate does no networking, and knows nothing of indices or documents.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod attribution;
mod bert;
mod cache;
mod deployment;
mod encoded;
mod error;
mod fixed;
mod forward;
mod head;
mod instructions;
mod model;
mod nibbles;
mod numbers;
mod packed;
mod pooling;
mod queue;
mod rounding;
mod scorer;
mod session;
mod small_file;
mod stats;
mod stored;
mod table;
#[cfg(test)]
mod testing;
mod timings;
mod tokenizer;
mod vocabulary;

pub use attribution::Attribution;
pub use deployment::{Deployment, DeploymentOptions, LoneText, PendingQueries, QueryOptions};
pub use encoded::{Encoded, Output, Scored};
pub use error::EncoderError;
pub use model::{Calibration, MOST_PREFIX, Model, ModelInfo, ModelKind, Recognised, Trunk};
pub use queue::Priority;
pub use rounding::load_packed;
pub use session::set_runtime;
pub use stats::DeploymentStats;
pub use timings::Timings;

/// A hundred English sentences of many kinds, by which properties of a model are measured.
pub fn sample() -> impl Iterator<Item = &'static str> {
    include_str!("sample.txt").lines()
}
