//! Errors of encoding a text.

use std::path::PathBuf;

/// An error of the encoder. Variants carry data; the layers above choose the wording that a user reads.
///
/// Cloneable, since one failed batch fails every call that had texts in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EncoderError {
    /// The ONNX Runtime library could not be loaded.
    #[error("ONNX Runtime{} is not available: {reason}", at(library))]
    RuntimeUnavailable {
        /// Path that was tried; empty if none is known.
        library: PathBuf,
        /// The loader's error message.
        reason: String,
    },
    /// A model directory is missing, incomplete or damaged.
    #[error("model files at [{path}] are not usable: {reason}")]
    ModelNotReadable {
        /// The file or directory at fault.
        path: PathBuf,
        /// Why the file or directory of the model cannot be read.
        reason: String,
    },
    /// The model is readable, but of a kind that this encoder does not support.
    #[error("model at [{path}] is not supported: {reason}")]
    Unsupported {
        /// The model directory.
        path: PathBuf,
        /// Which part of the model is not supported.
        reason: String,
    },
    /// An option of a deployment is out of range.
    #[error("[{option}] must be at least {minimum}, but was {value}")]
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// Value that was given.
        value: usize,
        /// Lowest value that is accepted.
        minimum: usize,
    },
    /// The queue has no room for all texts of the call; none of them was queued.
    #[error("inference process queue is full. Unable to execute command")]
    QueueFull {
        /// Highest number of texts that may wait at the same time.
        capacity: usize,
        /// Number of texts in the call.
        requested: usize,
    },
    /// The call's time limit was reached; what was still queued has been removed.
    #[error("timeout [{timeout_ms}ms] waiting for inference result")]
    Timeout {
        /// The time limit, in milliseconds.
        timeout_ms: u64,
    },
    /// The caller's cancel flag was set.
    #[error("inference was cancelled")]
    Cancelled,
    /// The deployment was stopped before the call was answered.
    #[error("the model deployment was stopped")]
    Stopped,
    /// ONNX Runtime or the tokenizer failed on this input.
    #[error("inference failed during {phase}: {reason}")]
    Runtime {
        /// Phase that failed: `tokenize`, `load`, `infer` or `project`.
        phase: &'static str,
        /// Error message of the library that failed.
        reason: String,
    },
}

/// The path of a library as part of an error message; empty if it is not known.
fn at(library: &std::path::Path) -> String {
    match library.as_os_str().is_empty() {
        true => String::new(),
        false => format!(" library [{}]", library.display()),
    }
}
