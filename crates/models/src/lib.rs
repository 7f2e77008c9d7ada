//! Models and their deployments: which models there are, which of them run, and encoding with those that run.
//!
//! Deployments are remembered in the data directory and run again after a restart. On the first start the embedded
//! sparse model is deployed by itself, if the options say so; the embedded dense model starts with the first text that
//! needs it, as it is much larger and many installations never search by it.

mod adaptive;
mod aliases;
mod api;
mod config;
mod deployments;
pub mod endpoints;
mod id;
mod language;
mod manage;
mod models;
mod monitor;
mod operations;
mod packed;
mod registry;
mod rerank;
mod resolve;
mod service;
mod spread;
mod start;
mod store;
mod text_encoder;
mod transfer;
mod upload;
mod view;

use std::path::PathBuf;

pub use sparrow_inference::{ModelError, Purpose, TextEncoder, encode_documents, is_blank};

pub use self::adaptive::AdaptiveAllocations;
pub use self::adaptive::AdaptiveTiming;
pub use self::api::{MOST_TEXTS, get_trained_models, trained_model_stats};
pub use self::models::{DeploymentSize, DeploymentTotals, Models};
pub use self::operations::OPERATIONS;
pub use self::registry::{DENSE_MODEL, RegisteredModel};
pub use self::service::ModelService;
pub use self::store::damages;

/// The options of the engine that concern models.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// The ONNX Runtime library, which is loaded when a model needs it.
    pub library: Option<PathBuf>,
    /// Model directories that are registered at the start.
    pub directories: Vec<PathBuf>,
    /// The folder under which requests may name model directories; without one they may not.
    pub folder: Option<PathBuf>,
    /// Whether the embedded models are deployed automatically: the sparse one on the first start, the dense one with the first text that
    /// needs it.
    pub deploy_at_start: bool,
    /// Cores that encoding may use; 0 for all of the machine.
    pub threads: usize,
    /// Times of the policy that adapts allocations.
    pub adaptive: AdaptiveTiming,
}
