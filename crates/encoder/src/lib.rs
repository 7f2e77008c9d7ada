//! Text to vectors: tokenization, the forward pass (our own for BERT, ONNX Runtime for other models), SPLADE head, batching
//! queue.
//!
//! [`Model`] is what a model directory holds, read once and shared; [`Deployment`] is a model at work: a bounded queue
//! and worker threads (allocations) that take batches from it. Nothing outside `session.rs` knows ONNX Runtime, and
//! `unsafe` lives in `head/kernels/`, `bert/kernels/`, `amx/` and `numbers.rs` (mapped files) alone. Absent: networking, and any knowledge of indices or documents.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod attribution;
mod bert;
mod cache;
mod deployment;
mod error;
mod fixed;
mod forward;
mod head;
mod instructions;
mod model;
mod numbers;
mod packed;
mod pooling;
mod queue;
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
mod word_piece;

pub use attribution::Attribution;
pub use deployment::{
    Deployment, DeploymentOptions, Encoded, LoneText, Output, PendingQueries, QueryOptions, Scored,
};
pub use error::EncoderError;
pub use model::{Calibration, Model, ModelInfo, ModelKind, Recognised};
pub use queue::Priority;
pub use session::set_runtime;
pub use stats::DeploymentStats;
pub use timings::Timings;
