//! Finds what the tests need: the ONNX Runtime library and the model packages of the workspace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use sparrow_encoder::{Deployment, DeploymentOptions, Model, set_runtime};

/// The root directory of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A model package of the workspace.
pub fn model_dir(name: &str) -> PathBuf {
    let dir = root().join("packages").join(name);
    assert!(
        dir.join("model.safetensors").is_file(),
        "no model at {}: run tools/ to build the packages",
        dir.display()
    );
    dir
}

/// Sets the path of the ONNX Runtime library, once per process.
pub fn runtime() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| set_runtime(library()));
}

/// Deploys a model of the workspace with the default options, changed by `change`.
pub fn deploy(name: &str, change: impl FnOnce(&mut DeploymentOptions)) -> Deployment {
    runtime();
    start(Model::load(&model_dir(name)).expect("model loads"), change)
}

/// Deploys a loaded model with the default options, changed by `change`.
pub fn start(model: Arc<Model>, change: impl FnOnce(&mut DeploymentOptions)) -> Deployment {
    let mut options =
        DeploymentOptions { allocations: 1, threads_per_allocation: 1, queue_capacity: 1024, cache_bytes: 0 };
    change(&mut options);
    Deployment::start(model, options).expect("deployment starts")
}

fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("SPARROW_ONNXRUNTIME") {
        return path.into();
    }
    let (os, prefix) = match std::env::consts::OS {
        "macos" => ("darwin", "libonnxruntime."),
        "windows" => ("win32", "onnxruntime.dll"),
        other => (other, "libonnxruntime.so"),
    };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let inside = format!("node_modules/onnxruntime-node/bin/napi-v6/{os}/{arch}");
    for dir in Path::new(env!("CARGO_MANIFEST_DIR")).ancestors() {
        let found = std::fs::read_dir(dir.join(&inside)).into_iter().flatten().flatten();
        if let Some(file) = found
            .map(|entry| entry.path())
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        {
            return file;
        }
    }
    panic!("no ONNX Runtime library: set SPARROW_ONNXRUNTIME, or run `npm ci` so that {inside} exists");
}
