//! ONNX Runtime sessions; the only file that uses the `ort` crate.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::ep;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session};
use ort::value::{Tensor, TensorElementType, ValueType};
use parking_lot::Mutex;

use crate::bert::Sequence;
use crate::error::EncoderError;
use sparrow_runtime::work::Elsewhere;

/// The ONNX Runtime environment. It lives as long as the process: ONNX Runtime allows only one, and does not
/// unload cleanly.
static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();

/// Path of the ONNX Runtime library, as set last. The lock is held while the library is loaded.
static LIBRARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Environment variable that ONNX Runtime reads when it is loaded. Without it the library writes an
/// identifier of the machine below the user's home directory and reports its use to its maker;
/// `with_telemetry(false)` comes too late for either.
const SILENCE: &str = "ORT_DISABLE_TELEMETRY";

/// Advice for when a model needs the library and it is missing; there is no package of it for musl, nor for
/// macOS on Intel.
const NOT_INSTALLED: &str = if cfg!(target_env = "musl")
    || cfg!(all(target_os = "macos", target_arch = "x86_64"))
{
    "a graph runs in it, and there is no package with it for this platform: name a library of version 1.24 or newer in the \
     environment variable [SPARROW_ONNXRUNTIME]"
} else {
    "a graph runs in it, and it is not installed: run [npm install @sparrow-search/onnxruntime] beside the server and start anew, or \
     save the model as [model.safetensors], which needs no ONNX Runtime"
};

/// Sets the path of the ONNX Runtime library (`libonnxruntime.so.1`, `libonnxruntime.dylib` or
/// `onnxruntime.dll`). It is loaded, once per process, by the first [`crate::Deployment`] whose model runs in
/// it: most need no library.
pub fn set_runtime(library: PathBuf) {
    *LIBRARY.lock() = Some(library);
}

/// The environment of ONNX Runtime; loads the library if that has not happened yet.
///
/// # Errors
/// [`EncoderError::RuntimeUnavailable`] if no library is known, if it is missing or too old, or if it would
/// report to its maker.
fn environment() -> Result<&'static Environment, EncoderError> {
    let configured = LIBRARY.lock();
    if let Some(environment) = ENVIRONMENT.get() {
        return Ok(environment);
    }
    let library = configured.clone().unwrap_or_default();
    let unavailable = |reason: String| EncoderError::RuntimeUnavailable { library: library.clone(), reason };
    if configured.is_none() {
        return Err(unavailable(NOT_INSTALLED.to_owned()));
    }
    if std::env::var_os(SILENCE).is_none_or(|value| value != "1") {
        return Err(unavailable(format!(
            "[{SILENCE}=1] is not in the environment of the process, so it would report to its maker"
        )));
    }
    let environment = ort::init_from(&library)
        .map_err(|error| unavailable(error.to_string()))?
        .with_name("sparrow")
        .with_telemetry(false)
        .build()
        .map_err(|error| unavailable(error.to_string()))?;
    Ok(ENVIRONMENT.get_or_init(|| environment))
}

/// Purpose of a graph input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Ids,
    Mask,
    /// Token types: 0 for a single text or a question, 1 for the text that follows the question.
    TokenTypes,
}

#[derive(Debug)]
struct Input {
    name: String,
    role: Role,
    /// Whether the input takes 32-bit integers instead of 64-bit ones.
    narrow: bool,
}

/// A batch of token ids, padded to the longest.
#[derive(Debug)]
pub(crate) struct Batch {
    ids: Vec<i64>,
    mask: Vec<i64>,
    types: Vec<i64>,
    rows: usize,
    columns: usize,
}

impl Batch {
    /// Pads texts with token 0, which the attention mask hides.
    pub(crate) fn new(texts: &[Sequence<'_>]) -> Self {
        let rows = texts.len();
        let columns = texts.iter().map(|text| text.ids.len()).max().unwrap_or(0);
        let mut ids = vec![0i64; rows * columns];
        let mut mask = vec![0i64; rows * columns];
        let mut types = vec![0i64; rows * columns];
        for (row, text) in texts.iter().enumerate() {
            let start = row * columns;
            let end = start + text.ids.len();
            for (slot, id) in ids[start..end].iter_mut().zip(text.ids) {
                *slot = i64::from(*id);
            }
            mask[start..end].fill(1);
            types[start + text.second..end].fill(1);
        }
        Self { ids, mask, types, rows, columns }
    }

    /// Length of a padded text, in tokens.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

/// A loaded graph, owned by one worker thread.
pub(crate) struct OnnxSession {
    session: Session,
    run_options: RunOptions<HasSelectedOutputs>,
    inputs: Vec<Input>,
    /// The weights.
    _kept: Elsewhere,
}

impl std::fmt::Debug for OnnxSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxSession").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl OnnxSession {
    /// Loads a graph, of which one output will be read.
    ///
    /// # Errors
    /// [`EncoderError::RuntimeUnavailable`] without a library, [`EncoderError::Unsupported`] for foreign
    /// inputs, or ONNX Runtime's error for the file.
    pub(crate) fn open(graph: &Path, dir: &Path, output: &str, threads: usize) -> Result<Self, EncoderError> {
        let environment = environment()?;
        let failed = |error: String| EncoderError::Runtime { phase: "load", reason: error };
        let mut builder = options(environment, threads).map_err(failed)?;
        let session = builder.commit_from_file(graph).map_err(|error| failed(error.to_string()))?;
        let unsupported = |reason: String| EncoderError::Unsupported { path: dir.to_path_buf(), reason };
        if !session.outputs().iter().any(|outlet| outlet.name() == output) {
            return Err(unsupported(format!("graph has no output [{output}]")));
        }
        let inputs = session
            .inputs()
            .iter()
            .map(|outlet| {
                let name = outlet.name();
                let role = match name {
                    "input_ids" => Role::Ids,
                    "attention_mask" => Role::Mask,
                    "token_type_ids" => Role::TokenTypes,
                    _ => return Err(unsupported(format!("graph wants an input [{name}]"))),
                };
                let narrow = match outlet.dtype() {
                    ValueType::Tensor { ty: TensorElementType::Int64, .. } => false,
                    ValueType::Tensor { ty: TensorElementType::Int32, .. } => true,
                    other => return Err(unsupported(format!("input [{name}] is of type {other}"))),
                };
                Ok(Input { name: name.to_owned(), role, narrow })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let run_options = RunOptions::new()
            .map_err(|error| failed(error.to_string()))?
            .with_outputs(OutputSelector::no_default().with(output));
        Ok(Self { session, run_options, inputs, _kept: Elsewhere::new(bytes_of(dir)) })
    }

    /// Runs a batch and hands the shape and the values of the output to `read`.
    ///
    /// # Errors
    /// [`EncoderError::Runtime`] with ONNX Runtime's message.
    pub(crate) fn run<R>(
        &mut self,
        batch: &Batch,
        read: impl FnOnce(&[i64], &[f32]) -> R,
    ) -> Result<R, EncoderError> {
        let failed = |error: ort::Error| EncoderError::Runtime { phase: "infer", reason: error.to_string() };
        let shape = [batch.rows, batch.columns];
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let values = match input.role {
                Role::Ids => batch.ids.clone(),
                Role::Mask => batch.mask.clone(),
                Role::TokenTypes => batch.types.clone(),
            };
            let value = if input.narrow {
                let values: Vec<i32> = values.into_iter().map(|value| value as i32).collect();
                Tensor::from_array((shape, values)).map_err(failed)?.into_dyn()
            } else {
                Tensor::from_array((shape, values)).map_err(failed)?.into_dyn()
            };
            inputs.push((input.name.as_str(), value));
        }
        let outputs = self.session.run_with_options(inputs, &self.run_options).map_err(failed)?;
        let (shape, values) = outputs[0].try_extract_tensor::<f32>().map_err(failed)?;
        Ok(read(shape, values))
    }
}

/// Bytes of the files of a model: as many as its weights, at least. None of those that cannot be looked at.
fn bytes_of(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|found| found.len() as usize).sum()
}

/// Session options; `examples/throughput.rs` measures their effect.
fn options(environment: &Environment, threads: usize) -> Result<SessionBuilder, String> {
    let text = |error: ort::Error<SessionBuilder>| error.to_string();
    Session::builder(environment)
        .map_err(|error| error.to_string())?
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(text)?
        .with_intra_threads(threads)
        .map_err(text)?
        .with_inter_threads(1)
        .map_err(text)?
        // A spinning thread steals the core from the worker beside it.
        .with_intra_op_spinning(false)
        .map_err(text)?
        .with_inter_op_spinning(false)
        .map_err(text)?
        // Patterns are remembered per shape, and every batch has another shape.
        .with_memory_pattern(false)
        .map_err(text)?
        // An arena keeps what the largest batch took, and batches are bounded. Without it, glibc's heaps of two workers
        // grew to 497 MB on 512-token texts of the dense model, and to 337 MB with it; short texts make no difference.
        .with_execution_providers([ep::CPU::default().with_arena_allocator(true).build()])
        .map_err(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Batch, NOT_INSTALLED};
    use crate::bert::Sequence;
    use crate::{Deployment, DeploymentOptions, EncoderError, Model};

    #[test]
    fn batches_are_padded_and_masked() {
        let batch = Batch::new(&[Sequence { ids: &[5, 6, 7], second: 1 }, [8][..].into(), [][..].into()]);
        assert_eq!((batch.rows, batch.columns()), (3, 3));
        assert_eq!(batch.ids, [5, 6, 7, 8, 0, 0, 0, 0, 0]);
        assert_eq!(batch.mask, [1, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(batch.types, [0, 1, 1, 0, 0, 0, 0, 0, 0]);
    }

    /// No test in this process sets the path of the library.
    #[test]
    fn a_graph_without_the_library_is_loaded_but_not_started() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let options = DeploymentOptions {
            allocations: 1,
            threads_per_allocation: 1,
            queue_capacity: 1,
            cache_bytes: 0,
        };
        for name in ["cross-graph", "plain-mlm"] {
            let model = Model::load(&fixtures.join(name)).unwrap();
            match Deployment::start(model, options.clone()) {
                Err(EncoderError::RuntimeUnavailable { reason, .. }) => assert_eq!(reason, NOT_INSTALLED),
                other => panic!("{other:?}"),
            }
        }
    }
}
