//! Simulation of what a power cut leaves on a disk, for tests.
//!
//! A [`Recorder`] observes a folder and records every change. [`Recorder::cut`] then builds the folder as it could be
//! found if the power had failed at a given moment: everything that was synced is there. Of the rest, changes of
//! names survive in order up to some point, as in a journaling file system, while content may be lost, truncated or
//! torn by sectors, in any order. So a file that was renamed but never synced may have its new name without its
//! content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::call::{Call, HandleId, Kind, Observer, Verdict};

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

/// A recorded change.
#[derive(Debug, Clone)]
enum Event {
    Create(HandleId, PathBuf),
    Open(HandleId, PathBuf),
    Write(HandleId, Vec<u8>),
    SetLength(HandleId, u64),
    Sync(HandleId),
    Name(NameChange),
    SyncFolder,
}

#[derive(Debug, Clone)]
enum NameChange {
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
    CreateFolder(PathBuf),
    RemoveFolder(PathBuf),
}

/// Recorder of the changes below a folder.
#[derive(Debug)]
pub struct Recorder {
    root: PathBuf,
    before: Vec<(PathBuf, Option<Vec<u8>>)>,
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// Starts recording; the folder's present content counts as durable.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn new(root: &Path) -> io::Result<Self> {
        let mut before = Vec::new();
        collect(root, &mut before)?;
        Ok(Self { root: root.to_path_buf(), before, events: Mutex::default() })
    }

    /// Number of changes recorded so far; a power cut can be simulated after each of them.
    pub fn moments(&self) -> usize {
        self.events.lock().len()
    }

    /// Builds in `target`, which must not be there, what a power cut after the first `moment` changes could leave. `seed` picks
    /// one of the many possibilities.
    ///
    /// # Errors
    /// When `target` cannot be written.
    pub fn cut(&self, moment: usize, seed: u64, target: &Path) -> io::Result<()> {
        let mut disk = Disk::new(&self.before);
        let events = self.events.lock();
        for event in &events[..moment.min(events.len())] {
            disk.apply(event);
        }
        drop(events);
        disk.cut(&self.root, target, &mut Random(seed))
    }
}

fn collect(folder: &Path, into: &mut Vec<(PathBuf, Option<Vec<u8>>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            into.push((path.clone(), None));
            collect(&path, into)?;
        } else {
            let bytes = fs::read(&path)?;
            into.push((path, Some(bytes)));
        }
    }
    Ok(())
}

impl Observer for Recorder {
    fn before(&self, _: &Call<'_>) -> Verdict {
        Verdict::Allow
    }

    fn after(&self, call: &Call<'_>) {
        let path = || call.path.to_path_buf();
        let to = || call.to.unwrap_or(call.path).to_path_buf();
        let handle = call.handle.unwrap_or_default();
        let event = match call.kind {
            Kind::Create => Event::Create(handle, path()),
            // A file that is opened for reading can be synced, too.
            Kind::Open | Kind::OpenForWriting => Event::Open(handle, path()),
            Kind::Write => Event::Write(handle, call.bytes.to_vec()),
            Kind::SetLength => Event::SetLength(handle, call.length),
            Kind::Sync => Event::Sync(handle),
            Kind::Rename => Event::Name(NameChange::Rename(path(), to())),
            Kind::Link => Event::Name(NameChange::Link(path(), to())),
            Kind::Remove => Event::Name(NameChange::Remove(path())),
            Kind::CreateFolder => Event::Name(NameChange::CreateFolder(path())),
            Kind::RemoveFolder => Event::Name(NameChange::RemoveFolder(path())),
            Kind::SyncFolder => Event::SyncFolder,
            Kind::Read | Kind::List | Kind::Map | Kind::Lock => return,
        };
        self.events.lock().push(event);
    }
}

/// Index of a file's content, which names point to.
type Content = usize;

#[derive(Debug, Default)]
struct Stored {
    durable: Vec<u8>,
    /// Changes to the content that are not synced yet.
    pending: Vec<Pending>,
}

#[derive(Debug)]
enum Pending {
    Append(Vec<u8>),
    Cut(usize),
}

#[derive(Debug, Clone, Default)]
struct DirectoryEntries {
    files: BTreeMap<PathBuf, Content>,
    folders: BTreeSet<PathBuf>,
}

impl DirectoryEntries {
    fn apply(&mut self, change: &Applied) {
        match change {
            Applied::Add(path, content) => {
                self.files.insert(path.clone(), *content);
            }
            Applied::Change(NameChange::Rename(from, to)) => {
                if let Some(content) = self.files.remove(from) {
                    self.files.insert(to.clone(), content);
                }
                let below = |path: &PathBuf| path.starts_with(from);
                let folders = std::mem::take(&mut self.folders);
                self.folders = folders.into_iter().map(|path| moved(&path, from, to)).collect();
                let moving: Vec<PathBuf> = self.files.keys().filter(|path| below(path)).cloned().collect();
                for path in moving {
                    if let Some(content) = self.files.remove(&path) {
                        self.files.insert(moved(&path, from, to), content);
                    }
                }
            }
            Applied::Change(NameChange::Link(from, to)) => {
                if let Some(content) = self.files.get(from) {
                    self.files.insert(to.clone(), *content);
                }
            }
            Applied::Change(NameChange::Remove(path)) => {
                self.files.remove(path);
            }
            Applied::Change(NameChange::CreateFolder(path)) => {
                self.folders.insert(path.clone());
            }
            Applied::Change(NameChange::RemoveFolder(path)) => {
                self.files.retain(|file, _| !file.starts_with(path));
                self.folders.retain(|folder| !folder.starts_with(path));
            }
        }
    }
}

fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    path.strip_prefix(from).map_or_else(|_| path.to_path_buf(), |rest| to.join(rest))
}

#[derive(Debug, Clone)]
enum Applied {
    Add(PathBuf, Content),
    Change(NameChange),
}

/// Model of a disk with a write cache that is lost in a power cut.
#[derive(Debug, Default)]
struct Disk {
    contents: Vec<Stored>,
    handles: HashMap<HandleId, Content>,
    now: DirectoryEntries,
    durable: DirectoryEntries,
    /// Changes of names since the last sync of a folder, in order.
    pending: Vec<Applied>,
}

impl Disk {
    fn new(before: &[(PathBuf, Option<Vec<u8>>)]) -> Self {
        let mut disk = Self::default();
        for (path, bytes) in before {
            match bytes {
                None => _ = disk.now.folders.insert(path.clone()),
                Some(bytes) => {
                    disk.contents.push(Stored { durable: bytes.clone(), pending: Vec::new() });
                    disk.now.files.insert(path.clone(), disk.contents.len() - 1);
                }
            }
        }
        disk.durable = disk.now.clone();
        disk
    }

    fn change(&mut self, change: Applied) {
        self.now.apply(&change);
        self.pending.push(change);
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(handle, path) => {
                let content = match self.now.files.get(path) {
                    Some(content) => {
                        self.contents[*content].pending.push(Pending::Cut(0));
                        *content
                    }
                    None => {
                        self.contents.push(Stored::default());
                        let content = self.contents.len() - 1;
                        self.change(Applied::Add(path.clone(), content));
                        content
                    }
                };
                self.handles.insert(*handle, content);
            }
            Event::Open(handle, path) => {
                if let Some(content) = self.now.files.get(path) {
                    self.handles.insert(*handle, *content);
                }
            }
            Event::Write(handle, bytes) => self.pend(*handle, Pending::Append(bytes.clone())),
            Event::SetLength(handle, length) => self.pend(*handle, Pending::Cut(*length as usize)),
            Event::Sync(handle) => {
                if let Some(content) = self.handles.get(handle) {
                    let stored = &mut self.contents[*content];
                    let pending = std::mem::take(&mut stored.pending);
                    pending.iter().for_each(|pending| pending.apply(&mut stored.durable));
                }
            }
            Event::Name(change) => self.change(Applied::Change(change.clone())),
            Event::SyncFolder => {
                // A journal keeps the order: what came before, in any folder, is durable too.
                self.pending.clear();
                self.durable = self.now.clone();
            }
        }
    }

    fn pend(&mut self, handle: HandleId, pending: Pending) {
        if let Some(content) = self.handles.get(&handle) {
            self.contents[*content].pending.push(pending);
        }
    }

    fn cut(mut self, root: &Path, target: &Path, random: &mut Random) -> io::Result<()> {
        let kept = random.below(self.pending.len() + 1);
        for change in &self.pending[..kept] {
            self.durable.apply(change);
        }
        let place = |path: &Path| path.strip_prefix(root).map(|rest| target.join(rest));
        fs::create_dir_all(target)?;
        for folder in &self.durable.folders {
            fs::create_dir_all(place(folder).map_err(io::Error::other)?)?;
        }
        for (path, content) in &self.durable.files {
            let path = place(path).map_err(io::Error::other)?;
            // Its folder's name may have been lost while this one was kept: then it cannot be reached.
            if path.parent().is_some_and(Path::is_dir) {
                fs::write(path, self.contents[*content].survived(random))?;
            }
        }
        Ok(())
    }
}

impl Pending {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Append(more) => bytes.extend_from_slice(more),
            Self::Cut(length) => bytes.resize(*length, 0),
        }
    }
}

impl Stored {
    /// Content found after the power cut: what was durable, and a random part of the pending changes.
    fn survived(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        if self.pending.is_empty() || random.below(3) == 0 {
            return bytes;
        }
        let kept = random.below(self.pending.len() + 1);
        let synced = bytes.len();
        self.pending[..kept].iter().for_each(|pending| pending.apply(&mut bytes));
        match random.below(3) {
            0 => bytes,
            1 => {
                let shortest = synced.min(bytes.len());
                bytes.truncate(shortest + random.below(bytes.len() - shortest + 1));
                bytes
            }
            _ => {
                // The length was written, and of the content only some sectors.
                for sector in (synced / SECTOR)..bytes.len().div_ceil(SECTOR) {
                    let range = (sector * SECTOR).max(synced)..((sector + 1) * SECTOR).min(bytes.len());
                    if random.below(2) == 0 && !range.is_empty() {
                        bytes[range].fill(0);
                    }
                }
                bytes
            }
        }
    }
}

/// Reproducible pseudo-random numbers for tests (SplitMix64), the same for the same seed. Holds the state for the
/// next number.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// A random number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{File, durable, observe};
    use std::io::Write as _;

    /// The possible contents of a file after a power cut at the end, over many seeds; `None` if the file is missing.
    fn outcomes(recorder: &Recorder, name: &str) -> BTreeSet<Option<Vec<u8>>> {
        let space = tempfile::tempdir().unwrap();
        let cut = |seed: u64| {
            let target = space.path().join(seed.to_string());
            recorder.cut(recorder.moments(), seed, &target).unwrap();
            fs::read(target.join(name)).ok()
        };
        (0..200).map(cut).collect()
    }

    #[test]
    fn an_atomic_write_leaves_the_old_or_the_new_content_at_every_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, b"old").unwrap();
        let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
        let guard = observe(folder.path(), recorder.clone());
        durable::atomic_write(&path, b"new").unwrap();
        drop(guard);
        assert_eq!(outcomes(&recorder, "a.json"), BTreeSet::from([Some(b"new".to_vec())]));
        let space = tempfile::tempdir().unwrap();
        let mut found = BTreeSet::new();
        for moment in 0..=recorder.moments() {
            for seed in 0..50 {
                let target = space.path().join(format!("{moment}-{seed}"));
                recorder.cut(moment, seed, &target).unwrap();
                found.insert(fs::read(target.join("a.json")).unwrap());
            }
        }
        assert_eq!(found, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
    }

    #[test]
    fn what_was_not_synced_is_lost_cut_or_torn() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
        let guard = observe(folder.path(), recorder.clone());
        let mut file = File::create(folder.path().join("log")).unwrap();
        crate::sync_dir(folder.path()).unwrap();
        file.write_all(&[1; 1000]).unwrap();
        file.sync_data().unwrap();
        file.write_all(&[2; 2000]).unwrap();
        drop(guard);
        let outcomes = outcomes(&recorder, "log");
        assert!(outcomes.iter().all(|bytes| bytes.as_ref().unwrap()[..1000] == [1; 1000]));
        let lengths: BTreeSet<usize> = outcomes.iter().map(|bytes| bytes.as_ref().unwrap().len()).collect();
        assert!(lengths.contains(&1000) && lengths.contains(&3000) && lengths.len() > 10);
        let torn =
            |bytes: &Vec<u8>| bytes.len() == 3000 && bytes[1000..].contains(&0) && bytes[1000..].contains(&2);
        assert!(outcomes.iter().flatten().any(torn));
    }

    #[test]
    fn a_rename_without_a_sync_of_the_content_can_lose_it() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
        let guard = observe(folder.path(), recorder.clone());
        crate::write(folder.path().join("a.tmp"), b"content").unwrap();
        crate::rename(folder.path().join("a.tmp"), folder.path().join("a")).unwrap();
        crate::sync_dir(folder.path()).unwrap();
        drop(guard);
        let outcomes = outcomes(&recorder, "a");
        assert!(outcomes.contains(&Some(Vec::new())) && outcomes.contains(&Some(b"content".to_vec())));
        assert!(!outcomes.contains(&None));
    }

    #[test]
    fn names_are_lost_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
        let guard = observe(folder.path(), recorder.clone());
        for name in ["a", "b"] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.sync_all().unwrap();
        }
        drop(guard);
        let space = tempfile::tempdir().unwrap();
        let mut found = BTreeSet::new();
        for seed in 0..50 {
            let target = space.path().join(seed.to_string());
            recorder.cut(recorder.moments(), seed, &target).unwrap();
            found.insert((target.join("a").exists(), target.join("b").exists()));
        }
        assert_eq!(found, BTreeSet::from([(false, false), (true, false), (true, true)]));
    }
}
