//! The encoder on real models: numbers against references, and the behaviour of a deployment.

mod checkpoints;
mod common;
mod deployment;
mod exports;
mod heads;
mod reference;
mod rerankers;
