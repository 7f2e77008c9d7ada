//! A disk that fails at one file operation.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use sparrow_file_system::{Call, Kind, Observer, Verdict};

/// How the chosen file operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It fails once, with nothing done.
    Error,
    /// It fails once, after half of a write, or after all of any other operation.
    Torn,
    /// It and all later operations that need space fail, until [`Injector::disarm`].
    Full,
}

/// Makes the `kth` file operation fail, counted from 0 over all that change something, or map or open a file.
pub struct Injector {
    kth: u64,
    mode: Mode,
    calls: AtomicU64,
    armed: AtomicBool,
    fired_at: Mutex<Option<Kind>>,
    seen: Mutex<BTreeMap<Kind, u64>>,
}

impl Injector {
    pub fn new(kth: u64, mode: Mode) -> Self {
        Self {
            kth,
            mode,
            calls: AtomicU64::new(0),
            armed: AtomicBool::new(true),
            fired_at: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub fn disarm(&self) {
        self.armed.store(false, SeqCst);
    }

    pub fn has_fired(&self) -> bool {
        self.fired_at.lock().unwrap().is_some()
    }

    pub fn fired_at(&self) -> Option<Kind> {
        *self.fired_at.lock().unwrap()
    }

    pub fn seen(&self) -> BTreeMap<Kind, u64> {
        self.seen.lock().unwrap().clone()
    }
}

impl Observer for Injector {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if !call.kind.changes() && !matches!(call.kind, Kind::Map | Kind::Open) {
            return Verdict::Allow;
        }
        *self.seen.lock().unwrap().entry(call.kind).or_default() += 1;
        let number = self.calls.fetch_add(1, SeqCst);
        if !self.armed.load(SeqCst) || number < self.kth || self.kth == u64::MAX {
            return Verdict::Allow;
        }
        let first = number == self.kth;
        if first {
            *self.fired_at.lock().unwrap() = Some(call.kind);
        }
        // A full disk still lets files be removed, read and cut.
        let takes_space = matches!(
            call.kind,
            Kind::Create
                | Kind::Write
                | Kind::Sync
                | Kind::Rename
                | Kind::Link
                | Kind::CreateFolder
                | Kind::SyncFolder
        );
        match self.mode {
            Mode::Error if first => Verdict::Fail(io::Error::other("injected: the disk failed")),
            Mode::Torn if first => {
                Verdict::Torn(call.bytes.len() / 2, io::Error::other("injected: the disk failed half-way"))
            }
            Mode::Full if takes_space => {
                Verdict::Torn(call.bytes.len() / 3, io::ErrorKind::StorageFull.into())
            }
            _ => Verdict::Allow,
        }
    }
}
