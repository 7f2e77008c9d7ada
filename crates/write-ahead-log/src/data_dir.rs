//! The data directory: opened by one process at a time, with a permanent node id and small checksummed JSON
//! stores.
//!
//! ```text
//! lock                held as long as the process lives
//! store/<name>.json   {"format":1,"checksum":crc32 of the value's bytes,"value":…}
//! indices/<uuid>/     one index
//! models/<id>/        an uploaded model (the engine's)
//! packed/             packed weights of models: may be deleted while no server runs (the engine's)
//! ```

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sparrow_file_system::{self as fs, File};

use crate::durable;
use crate::error::StorageError;

const STORE_FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    format: u32,
    checksum: u32,
    #[serde(borrow)]
    value: &'a RawValue,
}

/// An open, locked data directory.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    node_id: String,
    /// Lock file, locked for this process; the operating system releases the lock when the process ends, for
    /// whatever reason. `None` for a read-only directory without a lock file, which no process can have open
    /// for writing.
    _lock: Option<File>,
    /// Stores whose replacement failed, but whose file may already have the new content; each with the
    /// content to restore, `None` if the store did not exist.
    doubts: Mutex<BTreeMap<String, Option<Vec<u8>>>>,
    /// Held shared while stores are replaced, exclusively while the contents of `doubts` are restored.
    replacing: RwLock<()>,
}

/// Deepest nesting of objects and arrays in a store, in levels; the JSON parser reads no more.
const MOST_LEVELS: usize = 127;

/// Whether objects and arrays are nested no deeper than `left` levels.
fn is_readable(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(items) => left > 0 && items.iter().all(|item| is_readable(item, left - 1)),
        Value::Object(members) => left > 0 && members.values().all(|item| is_readable(item, left - 1)),
        _ => true,
    }
}

impl DataDir {
    /// Opens the directory, creating it when it is not there, and locks it for this process.
    ///
    /// # Errors
    /// [`StorageError::Locked`] when another process has it open, [`StorageError::NotWritable`], [`StorageError::Io`], and
    /// [`StorageError::Corrupt`] when the node's identity cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let path = path.as_ref();
        let begin = || {
            fs::create_dir_all(path.join("store")).map_err(StorageError::io("create", path))?;
            fs::create_dir_all(path.join("indices")).map_err(StorageError::io("create", path))?;
            lock(path)
        };
        let lock = begin().map_err(|error| match error {
            StorageError::Io { source, .. }
                if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
            {
                StorageError::NotWritable { path: path.to_path_buf(), source }
            }
            other => other,
        })?;
        let mut directory = Self::at(path, Some(lock));
        directory.remove_unfinished()?;
        directory.node_id = directory.read_or_create_node_id()?;
        Ok(directory)
    }

    /// Locks an existing directory in order to inspect it: creates nothing but a missing lock file, not even
    /// that where it cannot be written, and does not read the node's identity.
    ///
    /// # Errors
    /// [`StorageError::Locked`] when a process has it open, and [`StorageError::Io`], also when it is no data directory.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let path = path.as_ref();
        fs::read_dir(path.join("store")).map_err(StorageError::io("open", &path.join("store")))?;
        Ok(Self::at(path, lock_to_look(path)?))
    }

    fn at(path: &Path, lock: Option<File>) -> Self {
        Self {
            path: path.to_path_buf(),
            node_id: String::new(),
            _lock: lock,
            doubts: Mutex::default(),
            replacing: RwLock::default(),
        }
    }

    /// Removes temporary files of stores that a process was writing when it ended.
    fn remove_unfinished(&self) -> Result<(), StorageError> {
        let folder = self.path.join("store");
        for name in durable::list_dir(&folder)?.iter().filter(|name| name.ends_with(".tmp")) {
            durable::remove_file(&folder.join(name))?;
        }
        Ok(())
    }

    /// Path of the data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Identity of this node: made on first start, kept across restarts; letters, digits, `-` and `_`.
    pub fn node_id(&self) -> &str {
        &self.node_id
    }

    /// Directory of the index with this uuid; not created here.
    pub fn index_dir(&self, uuid: &str) -> PathBuf {
        self.path.join("indices").join(uuid)
    }

    /// Reads a store; `None` when it was never written.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`], [`StorageError::NewerFormat`], [`StorageError::InvalidName`] or
    /// [`StorageError::Io`].
    pub fn read_json(&self, name: &str) -> Result<Option<Value>, StorageError> {
        let path = self.store_path(name)?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io("read", &path)(error)),
        };
        let corrupt = |detail: String| StorageError::Corrupt { path: path.clone(), detail };
        let envelope: Envelope<'_> =
            serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
        if envelope.format > STORE_FORMAT {
            return Err(StorageError::NewerFormat { path, found: envelope.format, supported: STORE_FORMAT });
        }
        let text = envelope.value.get();
        let (found, expected) = (crc32fast::hash(text.as_bytes()), envelope.checksum);
        if found != expected {
            return Err(corrupt(format!("crc32 {found:08x}, expected {expected:08x}")));
        }
        // The checksum says nothing of what is around the value: that is always the same.
        if enveloped(text) != bytes {
            return Err(corrupt("what is around its value is not what was written".into()));
        }
        serde_json::from_str(text).map(Some).map_err(|error| corrupt(error.to_string()))
    }

    /// Replaces a store, durably and atomically.
    ///
    /// # Errors
    /// [`StorageError::InvalidName`], [`StorageError::TooDeep`], [`StorageError::RecordTooLarge`] or [`StorageError::Io`]; the
    /// store then keeps its old content. If that cannot be written back either, [`DataDir::settle`] tries again; after a crash
    /// before that, the store has the old or the new content.
    pub fn write_json(&self, name: &str, value: &Value) -> Result<(), StorageError> {
        let path = self.store_path(name)?;
        if !is_readable(value, MOST_LEVELS) {
            return Err(StorageError::TooDeep { limit: MOST_LEVELS });
        }
        let written = enveloped(&value.to_string());
        // It could not be read again.
        if written.len() as u64 > fs::MOST_WHOLE {
            return Err(StorageError::RecordTooLarge {
                bytes: written.len(),
                limit: fs::MOST_WHOLE as usize,
            });
        }
        let replacing = self.replacing.read();
        let before = content(&path);
        let Err(error) = durable::atomic_write(&path, &written) else {
            self.doubts.lock().remove(name);
            return Ok(());
        };
        if let Ok(before) = before
            && content(&path).ok().as_ref() != Some(&before)
        {
            // What was in force before the first of several failures is in force still.
            self.doubts.lock().entry(name.to_owned()).or_insert(before);
        }
        drop(replacing);
        if let Err(error) = self.settle_store(name) {
            tracing::error!(store = name, %error, "a store may hold a change that was refused; what is in force is written again as soon as the disk lets it");
        }
        Err(error)
    }

    /// Writes the old content back to a store whose replacement failed, if the store may have the new
    /// content. To be called before something is acknowledged without a write to the store.
    ///
    /// # Errors
    /// [`StorageError::Io`]: the store may still have the new content.
    pub fn settle_store(&self, name: &str) -> Result<(), StorageError> {
        if !self.doubts.lock().contains_key(name) {
            return Ok(());
        }
        let _nobody_else = self.replacing.write();
        let Some(in_force) = self.doubts.lock().get(name).cloned() else { return Ok(()) };
        let path = self.store_path(name)?;
        match in_force {
            Some(bytes) => durable::atomic_write(&path, &bytes)?,
            None => durable::remove_file(&path)?,
        }
        self.doubts.lock().remove(name);
        Ok(())
    }

    /// Same as [`DataDir::settle_store`], for all stores; to be called from time to time.
    pub fn settle(&self) {
        let names: Vec<String> = self.doubts.lock().keys().cloned().collect();
        for name in names {
            match self.settle_store(&name) {
                Ok(()) => tracing::warn!(store = name, "a store holds what is in force again"),
                Err(error) => tracing::debug!(store = name, %error, "a store still cannot be written"),
            }
        }
    }

    /// Removes a store; one that is not there counts as removed.
    ///
    /// # Errors
    /// [`StorageError::InvalidName`] or [`StorageError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), StorageError> {
        let _replacing = self.replacing.read();
        // It is to go, whatever it may hold.
        self.doubts.lock().remove(name);
        durable::remove_file(&self.store_path(name)?)
    }

    /// Names of the stores that start with `prefix`, sorted.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let folder = self.path.join("store");
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(StorageError::io("list", &folder))? {
            let entry = entry.map_err(StorageError::io("list", &folder))?;
            if let Some(name) = entry.file_name().to_str().and_then(|file| file.strip_suffix(".json"))
                && name.starts_with(prefix)
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn store_path(&self, name: &str) -> Result<PathBuf, StorageError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 200 || !name.chars().all(allowed) {
            return Err(StorageError::InvalidName { name: name.to_owned() });
        }
        Ok(self.path.join("store").join(format!("{name}.json")))
    }

    fn read_or_create_node_id(&self) -> Result<String, StorageError> {
        match self.read_json("node")? {
            None => {}
            Some(Value::String(id)) => return Ok(id),
            Some(_) => {
                let path = self.store_path("node")?;
                return Err(StorageError::Corrupt { path, detail: "it does not hold a name".into() });
            }
        }
        let id = new_node_id();
        self.write_json("node", &Value::String(id.clone()))?;
        Ok(id)
    }
}

/// A random node id of 22 letters, digits, `-` and `_`. Ids of tasks begin with it, so it begins with a letter or a digit: a shell's
/// command would take another one for an option.
fn new_node_id() -> String {
    // The standard library's hash seeds come from the operating system's random source; that is
    // all the uniqueness a single node's name needs.
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::process::id());
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bits = (u128::from(random()) << 64) | u128::from(random());
    let letter = |place| {
        let choices = if place == 0 { ALPHABET.len() - 2 } else { ALPHABET.len() };
        let letter = ALPHABET[(bits & 63) as usize % choices] as char;
        bits >>= 6;
        letter
    };
    (0..22).map(letter).collect()
}

/// Content of a file; `None` if it does not exist.
fn content(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens the lock file of a data directory, creating it if needed, and locks it for this process.
fn lock(path: &Path) -> Result<File, StorageError> {
    let lock_path = path.join("lock");
    let lock = File::open_or_create(&lock_path).map_err(StorageError::io("open", &lock_path))?;
    held(lock, path)
}

/// Like [`lock`], for a directory that may be on a read-only file system or belong to another user: an
/// existing lock file is then opened for reading, and a missing one is not needed (`None`), because a process
/// that cannot create it cannot open the directory.
fn lock_to_look(path: &Path) -> Result<Option<File>, StorageError> {
    let lock_path = path.join("lock");
    let unopened = StorageError::io("open", &lock_path);
    let read_only = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
    };
    match File::open_or_create(&lock_path) {
        Ok(lock) => held(lock, path).map(Some),
        Err(error) if read_only(&error) => match File::open(&lock_path) {
            Ok(lock) => held(lock, path).map(Some),
            Err(missing) if missing.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unopened(error)),
        },
        Err(error) => Err(unopened(error)),
    }
}

/// Locks an open lock file for this process; `path` is the data directory.
fn held(lock: File, path: &Path) -> Result<File, StorageError> {
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => StorageError::Locked { path: path.to_path_buf() },
        TryLockError::Error(source) => StorageError::io("lock", &path.join("lock"))(source),
    })?;
    Ok(lock)
}

/// Content of a store's file for a value in JSON.
fn enveloped(value: &str) -> Vec<u8> {
    let checksum = crc32fast::hash(value.as_bytes());
    format!("{{\"format\":{STORE_FORMAT},\"checksum\":{checksum},\"value\":{value}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn no_id_of_a_node_looks_like_an_option() {
        for _ in 0..2000 {
            let id = super::new_node_id();
            assert_eq!(id.len(), 22);
            assert!(id.starts_with(|first: char| first.is_ascii_alphanumeric()), "{id}");
        }
    }

    #[test]
    fn stores_survive_reopening_and_the_node_keeps_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        let id = first.node_id().to_owned();
        assert_eq!(id.len(), 22);
        first.write_json("pipelines", &json!({"a": {"z": 1, "b": [1.5]}})).unwrap();
        drop(first);
        let second = DataDir::open(folder.path()).unwrap();
        assert_eq!(second.node_id(), id);
        assert_eq!(second.read_json("pipelines").unwrap(), Some(json!({"a": {"z": 1, "b": [1.5]}})));
        assert_eq!(second.read_json("absent").unwrap(), None);
        assert_eq!(second.list("pipe").unwrap(), ["pipelines"]);
        second.remove("pipelines").unwrap();
        assert_eq!(second.read_json("pipelines").unwrap(), None);
    }

    /// A pipe, a socket's end or a device in place of a file: nobody waits for it, and the error names it.
    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let other = |name: &str, make: &dyn Fn(&Path)| {
            let path = folder.path().join(name);
            let _ = fs::rename(&path, folder.path().join("kept"));
            make(&path);
            let reads = DataDir::inspect(folder.path()).and_then(|data| data.read_json("node"));
            for error in [DataDir::open(folder.path()).unwrap_err(), reads.unwrap_err()] {
                let sentence = error.to_string();
                assert!(
                    sentence.contains(&format!("{}: not a regular file; move it", path.display())),
                    "{sentence}"
                );
            }
            fs::remove_file(&path).unwrap();
            fs::rename(folder.path().join("kept"), &path).unwrap();
        };
        drop(DataDir::open(folder.path()).unwrap());
        for name in ["lock", "store/node.json"] {
            other(name, &|path| sparrow_fuzzing::make_pipe(path).unwrap());
            other(name, &|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()));
            other(name, &|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap());
        }
        DataDir::open(folder.path()).unwrap();
    }

    #[test]
    fn a_store_without_an_end_is_not_read_and_none_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let path = folder.path().join("store/long.json");
        let file = fs::File::create(&path).unwrap();
        file.set_len(20 << 30).unwrap();
        let sentence = data.read_json("long").unwrap_err().to_string();
        assert!(sentence.contains(&format!("{}: larger than 256 MiB", path.display())), "{sentence}");
        let value = Value::String("x".repeat(sparrow_file_system::MOST_WHOLE as usize));
        assert!(matches!(data.write_json("new", &value), Err(StorageError::RecordTooLarge { .. })));
        assert_eq!(data.read_json("new").unwrap(), None);
    }

    #[test]
    fn a_second_owner_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _first = DataDir::open(folder.path()).unwrap();
        assert!(matches!(DataDir::open(folder.path()), Err(StorageError::Locked { .. })));
    }

    /// Fails all changes, like a read-only file system.
    struct ReadOnly;

    impl sparrow_file_system::Observer for ReadOnly {
        fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
            match call.kind.changes() {
                true => sparrow_file_system::Verdict::Fail(ErrorKind::ReadOnlyFilesystem.into()),
                false => sparrow_file_system::Verdict::Allow,
            }
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_can_be_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let open = DataDir::open(folder.path()).unwrap();
        let _guard = sparrow_file_system::observe(folder.path(), std::sync::Arc::new(ReadOnly));
        assert!(matches!(DataDir::inspect(folder.path()), Err(StorageError::Locked { .. })));
        drop(open);
        assert_eq!(DataDir::inspect(folder.path()).unwrap().list("").unwrap(), ["node"]);
        fs::remove_file(folder.path().join("lock")).unwrap();
        assert_eq!(DataDir::inspect(folder.path()).unwrap().list("").unwrap(), ["node"]);
        assert!(!folder.path().join("lock").exists());
    }

    /// While set, fails the syncing of directories, so that a file already has its new content when its
    /// replacement fails.
    #[derive(Default)]
    struct NoFolders(std::sync::atomic::AtomicBool);

    impl sparrow_file_system::Observer for NoFolders {
        fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
            let fails = self.0.load(std::sync::atomic::Ordering::SeqCst);
            match fails && call.kind == sparrow_file_system::Kind::SyncFolder {
                true => sparrow_file_system::Verdict::Fail(std::io::Error::other("the disk failed")),
                false => sparrow_file_system::Verdict::Allow,
            }
        }
    }

    #[test]
    fn what_was_refused_does_not_stay_in_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let disk = std::sync::Arc::new(NoFolders::default());
        let set = |fails: bool| disk.0.store(fails, std::sync::atomic::Ordering::SeqCst);
        let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
        data.write_json("old", &json!(1)).unwrap();
        set(true);
        for value in [2, 3] {
            data.write_json("old", &json!(value)).unwrap_err();
            data.write_json("new", &json!(value)).unwrap_err();
        }
        data.settle_store("old").unwrap_err();
        set(false);
        data.settle_store("old").unwrap();
        assert_eq!(data.read_json("old").unwrap(), Some(json!(1)));
        data.settle();
        assert_eq!(data.read_json("new").unwrap(), None);
        // A later replacement is in force.
        set(true);
        data.write_json("old", &json!(4)).unwrap_err();
        set(false);
        data.write_json("old", &json!(5)).unwrap();
        data.settle();
        assert_eq!(data.read_json("old").unwrap(), Some(json!(5)));
    }

    #[test]
    fn a_store_that_was_being_written_at_the_end_is_removed_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        drop(DataDir::open(folder.path()).unwrap());
        let half = folder.path().join("store/index-AAAAAAAAAAAAAAAAAAAAAA.tmp");
        fs::write(&half, "{\"form").unwrap();
        drop(DataDir::inspect(folder.path()).unwrap());
        assert!(half.exists(), "who only looks removes nothing");
        let open = DataDir::open(folder.path()).unwrap();
        assert!(!half.exists());
        assert_eq!(open.list("").unwrap(), ["node"]);
    }

    #[test]
    fn a_changed_store_is_refused_and_so_is_a_newer_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.write_json("keys", &json!({"secret": 12345})).unwrap();
        let path = folder.path().join("store/keys.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("12345", "12346")).unwrap();
        assert!(matches!(data.read_json("keys"), Err(StorageError::Corrupt { .. })));
        fs::write(&path, text.replace("\"format\":1", "\"format\":2")).unwrap();
        assert!(matches!(data.read_json("keys"), Err(StorageError::NewerFormat { found: 2, .. })));
    }

    #[test]
    fn each_changed_bit_of_a_store_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.write_json("keys", &json!({"a": [1, "x"]})).unwrap();
        let path = folder.path().join("store/keys.json");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                fs::write(&path, &bytes).unwrap();
                assert!(data.read_json("keys").is_err(), "bit {bit} of byte {at}");
            }
            fs::write(&path, &whole[..at]).unwrap();
            assert!(data.read_json("keys").is_err(), "cut at {at}");
        }
        fs::write(&path, [whole.as_slice(), b" "].concat()).unwrap();
        assert!(data.read_json("keys").is_err());
    }

    #[test]
    fn store_names_cannot_leave_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        for name in ["", "../x", "a/b", "a.b", "ä"] {
            assert!(
                matches!(data.write_json(name, &json!(1)), Err(StorageError::InvalidName { .. })),
                "{name}"
            );
        }
    }
}
