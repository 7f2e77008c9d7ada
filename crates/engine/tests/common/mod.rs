//! An engine on a temporary directory, called as the HTTP layer calls it.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod jobs;
pub mod workspace;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sparrow_engine::{CancelFlag, Counted, Engine, EngineOptions, Request};

/// Counts what requests allocate, as the addon's allocator does: without it no memory limit would be exceeded.
#[global_allocator]
static ALLOCATOR: Counted<std::alloc::System> = Counted(std::alloc::System);

/// An open engine and its data.
pub struct Node {
    /// The first field: the engine is closed before its data is removed.
    closing: Closing,
    pub engine: Arc<Engine>,
    pub folder: tempfile::TempDir,
}

/// Closes an engine with the test that opened it. Its threads and mapped files would stay otherwise, and all tests together would have
/// more than one process may have.
pub struct Closing(pub Arc<Engine>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What a test takes in the first tier of tests, and what where both run; `test/tiers.mjs` says which is which.
pub fn by_tier<T>(first: T, both: T) -> T {
    if std::env::var_os("SPARROW_TEST_TIER").is_some_and(|tier| tier == "first") { first } else { both }
}

/// Options for an engine without models on `data`.
pub fn options(data: &Path) -> EngineOptions {
    let mut options = EngineOptions::new(data.to_path_buf(), PathBuf::from("no-such-library.so"), Vec::new());
    options.deploy_at_start = false;
    options.index_buffer_bytes = 15 << 20;
    options
}

impl Node {
    pub fn new(engine: Arc<Engine>, folder: tempfile::TempDir) -> Self {
        Self { closing: Closing(engine.clone()), engine, folder }
    }

    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut EngineOptions)) -> Self {
        Self::open(tempfile::tempdir().expect("a temporary folder"), change)
    }

    pub fn open(folder: tempfile::TempDir, change: impl FnOnce(&mut EngineOptions)) -> Self {
        let mut options = options(folder.path());
        change(&mut options);
        let engine = Engine::open(options).expect("the engine opens");
        Self::new(engine, folder)
    }

    /// Opens another engine on a copy of what a crash at this moment would leave behind. The old engine is closed meanwhile, on its own
    /// files, so that nothing it does later can help.
    pub fn crash(self) -> Self {
        self.crash_with(|_| {})
    }

    pub fn crash_with(self, change: impl FnOnce(&mut EngineOptions)) -> Self {
        let copy = self.copy_data();
        std::thread::spawn(move || drop(self));
        Self::open(copy, change)
    }

    /// Copies the data directory as it is now into a temporary folder.
    pub fn copy_data(&self) -> tempfile::TempDir {
        // Files are copied one after another, so a copy during which metadata changed, or a log was trimmed after a commit, shows two
        // moments in one, which no crash does: such a copy is made again.
        loop {
            let copy = tempfile::tempdir().expect("a temporary folder");
            let before = read_metadata(self.folder.path());
            copy_tree(self.folder.path(), copy.path());
            if read_metadata(self.folder.path()) == before {
                return copy;
            }
        }
    }

    /// Closes the engine as stopping the server does, and opens it again on the same data.
    pub fn restart(self) -> Self {
        Self::open_again(self.stop(), |_| {})
    }

    /// Closes the engine as stopping the server does, and gives its data.
    pub fn stop(self) -> tempfile::TempDir {
        let Self { closing, engine, folder } = self;
        drop(closing);
        drop_engine(engine);
        folder
    }

    /// Opens an engine on a directory of which one that was dropped may still hold the lock: the thread of a task lets go of it a moment
    /// after the task has ended.
    pub fn open_again(folder: tempfile::TempDir, change: impl Fn(&mut EngineOptions)) -> Self {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let mut options = options(folder.path());
            change(&mut options);
            match Engine::open(options) {
                Ok(engine) => return Self::new(engine, folder),
                Err(error)
                    if error.reason().contains("in use by another process") && Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => panic!("the engine opens: {}", error.reason()),
            }
        }
    }

    /// Status and JSON body of an operation; `path` and `query` are `name=value` pairs joined by `&`.
    pub fn call(&self, op: &str, path: &str, query: &str, body: &str) -> (u16, Value) {
        let (status, bytes) = self.call_raw(op, path, query, body);
        let value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                panic!("{op} answered no JSON ({error}): {}", String::from_utf8_lossy(&bytes))
            })
        };
        (status, value)
    }

    pub fn call_raw(&self, op: &str, path: &str, query: &str, body: &str) -> (u16, Vec<u8>) {
        let request =
            Request { op: op.to_owned(), path: pairs(path), query: pairs(query), ..Request::default() };
        match self.engine.execute(&request, body.as_bytes(), &CancelFlag::default()) {
            Ok(reply) => (reply.status, reply.body),
            Err(error) => (error.status(), error.body().to_string().into_bytes()),
        }
    }

    /// The answer to a call that has to succeed.
    pub fn ok(&self, op: &str, path: &str, query: &str, body: &str) -> Value {
        let (status, value) = self.call(op, path, query, body);
        assert!(status < 300, "{op} {path} answered {status}: {value}");
        value
    }

    /// Status, type and reason of a call that has to fail.
    pub fn error(&self, op: &str, path: &str, query: &str, body: &str) -> (u16, String, String) {
        let (status, value) = self.call(op, path, query, body);
        let text = |name: &str| value["error"][name].as_str().unwrap_or_default().to_owned();
        assert!(status >= 400, "{op} {path} answered {status}: {value}");
        (status, text("type"), text("reason"))
    }

    /// Number of searchable documents.
    pub fn count(&self, index: &str) -> u64 {
        self.ok("count", &format!("index={index}"), "", "")["count"].as_u64().unwrap_or_default()
    }

    /// Ids and scores of a search, best first.
    pub fn hits(&self, index: &str, body: &str) -> Vec<(String, f64)> {
        let answer = self.ok("search", &format!("index={index}"), "", body);
        let hits = answer["hits"]["hits"].as_array().cloned().unwrap_or_default();
        hits.iter()
            .map(|hit| {
                (
                    hit["_id"].as_str().unwrap_or_default().to_owned(),
                    hit["_score"].as_f64().unwrap_or_default(),
                )
            })
            .collect()
    }
}

fn drop_engine(engine: Arc<Engine>) {
    // Threads of the engine may hold it for a moment longer; the lock of the directory goes with the last one.
    for _ in 0..200 {
        if Arc::strong_count(&engine) == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(engine);
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Contents of the stores and of the commits, and the names of the files of logs.
fn read_metadata(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![data.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let is = |name: &str| folder.file_name().is_some_and(|it| it == name);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if is("store") || entry.file_name() == "meta.json" {
                found.insert(path.clone(), fs::read(path).unwrap_or_default());
            } else if is("wal") {
                found.insert(path, Vec::new());
            }
        }
    }
    found
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    let Ok(entries) = fs::read_dir(from) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    // A log that is written meanwhile must not be older in the copy than what is known to be durable of it.
    entries.sort_by_key(|entry| entry.file_name() != "durable");
    for entry in entries {
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy_tree(&entry.path(), &target),
            // A file may be removed by a merge while it is copied; a crash would not see it either.
            _ => {
                let _ = fs::copy(entry.path(), &target);
            }
        }
    }
}
