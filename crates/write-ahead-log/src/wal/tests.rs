use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn payloads(replay: Replay) -> Vec<Vec<u8>> {
    replay.map(|record| record.unwrap()).collect()
}

fn only_file_with_records(directory: &Path) -> PathBuf {
    let mut files = log_files(directory).unwrap();
    files.retain(|(_, path)| fs::metadata(path).unwrap().len() > FILE_HEADER as u64);
    assert_eq!(files.len(), 1);
    files.pop().unwrap().1
}

#[test]
fn synced_records_come_back_in_order_over_several_openings() {
    let folder = tempfile::tempdir().unwrap();
    for opening in 0..3_u8 {
        let (wal, replay) = Wal::open(folder.path()).unwrap();
        let expected: Vec<Vec<u8>> =
            (0..opening).flat_map(|n| [vec![n; 3], vec![], vec![n; 70_000]]).collect();
        assert_eq!(payloads(replay), expected);
        wal.append(&[opening; 3]).unwrap();
        wal.append(&[]).unwrap();
        let last = wal.append(&vec![opening; 70_000]).unwrap();
        wal.sync(last).unwrap();
    }
}

/// Records the operations on the log's files, in order: kind and file name.
#[derive(Default)]
struct Calls(Mutex<Vec<(sparrow_file_system::Kind, String)>>);

impl sparrow_file_system::Observer for Calls {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        let name = call.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.0.lock().push((call.kind, name));
        sparrow_file_system::Verdict::Allow
    }
}

/// Otherwise a power failure could tear a file that is no longer the last, and the log could not be opened.
#[test]
fn what_a_killed_process_left_unsynced_is_durable_before_a_later_file_begins() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(&vec![7; 2 << 20]).unwrap();
    drop(wal);
    let left = only_file_with_records(folder.path()).file_name().unwrap().to_string_lossy().into_owned();
    let calls = Arc::new(Calls::default());
    let _guard = sparrow_file_system::observe(folder.path(), calls.clone());
    let (_wal, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(payloads(replay).len(), 1);
    let calls = calls.0.lock();
    let at = |wanted: &dyn Fn(&(sparrow_file_system::Kind, String)) -> bool| calls.iter().position(wanted);
    let synced = at(&|(kind, name)| *kind == sparrow_file_system::Kind::Sync && *name == left).unwrap();
    let begun =
        at(&|(kind, name)| *kind == sparrow_file_system::Kind::Create && name.starts_with("wal-")).unwrap();
    assert!(synced < begun, "{calls:?}");
}

#[test]
fn trimming_drops_what_was_appended_before_the_roll() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"covered by the commit").unwrap();
    let generation = wal.roll().unwrap();
    wal.append(b"after it").unwrap();
    wal.sync_all().unwrap();
    let before = wal.size_bytes();
    wal.trim_before(generation).unwrap();
    assert!(wal.size_bytes() < before);
    drop(wal);
    let (_, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(payloads(replay), [b"after it"]);
}

#[test]
fn a_running_log_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"older").unwrap();
    let generation = wal.roll().unwrap();
    wal.append(b"newer").unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [b"older", b"newer"]);
    assert_eq!(payloads(wal.replay_from(generation).unwrap()), [b"newer"]);
}

#[test]
fn a_torn_tail_is_dropped_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"first").unwrap();
    wal.sync_all().unwrap();
    wal.append(b"second").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    let path = only_file_with_records(folder.path());
    let whole = fs::read(&path).unwrap();
    let second = whole.len() - RECORD_HEADER - b"second".len();
    for length in 0..=whole.len() {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join(path.file_name().unwrap()), &whole[..length]).unwrap();
        let (_, replay) = Wal::open(copy.path()).unwrap();
        let expected: &[&[u8]] = match length {
            n if n == whole.len() => &[b"first", b"second"],
            n if n >= second => &[b"first"],
            _ => &[],
        };
        assert_eq!(payloads(replay), expected, "cut at {length}");
        // The repaired log opens again and gives the same.
        let (_, replay) = Wal::open(copy.path()).unwrap();
        assert_eq!(payloads(replay), expected);
    }
}

#[test]
fn damage_before_durable_records_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    for record in [b"first", b"secnd", b"third"] {
        wal.append(record).unwrap();
        wal.sync_all().unwrap();
    }
    drop(wal);
    let path = only_file_with_records(folder.path());
    let whole = fs::read(&path).unwrap();
    let record = RECORD_HEADER + 5;
    // Every byte of the first two records: a flipped bit there loses something acknowledged.
    for at in FILE_HEADER..FILE_HEADER + 2 * record {
        let copy = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(copy.path().join(path.file_name().unwrap()), &bytes).unwrap();
        let opened = Wal::open(copy.path()).map(|_| ());
        assert!(matches!(opened, Err(StorageError::WalCorrupt { .. })), "byte {at}: {opened:?}");
    }
}

#[test]
fn each_changed_bit_and_each_cut_of_a_synced_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    for record in [&b"first"[..], b"", b"the last one, for which no later one vouches"] {
        wal.append(record).unwrap();
        wal.sync_all().unwrap();
    }
    drop(wal);
    let path = only_file_with_records(folder.path());
    let whole = fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(folder.path().join("durable"), copy.path().join("durable")).unwrap();
        let damaged = copy.path().join(path.file_name().unwrap());
        fs::write(&damaged, bytes).unwrap();
        let salvaged = salvage(copy.path()).unwrap();
        assert_eq!(fs::read(&damaged).unwrap(), bytes, "looking at it changes nothing");
        (Wal::open(copy.path()).map(|(_, replay)| payloads(replay)), salvaged)
    };
    let (opened, salvaged) = open(&whole);
    assert_eq!(opened.unwrap(), salvaged.records);
    assert!(salvaged.problems.is_empty() && salvaged.records.len() == 3);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let (opened, salvaged) = open(&bytes);
        assert!(matches!(opened, Err(StorageError::WalCorrupt { .. })), "byte {at}");
        assert_eq!(salvaged.problems.len(), 1, "byte {at}");
        assert!(at < FILE_HEADER || salvaged.records.len() == 2, "byte {at}: the other two are kept");
        assert!(open(&whole[..at]).0.is_err(), "cut at {at}");
    }
}

#[test]
fn a_newer_log_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wal-00000000000000000007.log");
    fs::write(&path, header_of_version(7, 3)).unwrap();
    let opened = Wal::open(folder.path()).map(|_| ());
    assert!(matches!(opened, Err(StorageError::NewerFormat { found: 3, supported: 2, .. })), "{opened:?}");
    assert!(path.exists());
}

#[test]
fn an_older_log_is_read_and_goes_on_in_a_file_of_the_current_version() {
    let folder = tempfile::tempdir().unwrap();
    let mut older = header_of_version(7, 1).to_vec();
    record::frame(&mut older, 0, &[b"before"]);
    fs::write(folder.path().join("wal-00000000000000000007.log"), &older).unwrap();
    let (wal, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(replay.map(Result::unwrap).collect::<Vec<_>>(), [b"before"]);
    wal.append(b"after").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    assert_eq!(fs::read(folder.path().join("wal-00000000000000000007.log")).unwrap(), older);
    assert_eq!(fs::read(folder.path().join("wal-00000000000000000008.log")).unwrap()[7], 2);
    let (_, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(replay.map(Result::unwrap).collect::<Vec<_>>(), [&b"before"[..], b"after"]);
}

/// An intact file header of this version.
fn header_of_version(generation: u64, version: u8) -> [u8; FILE_HEADER] {
    let mut header = record::file_header(generation);
    header[7] = version;
    let checksum = crc32fast::hash(&header[..16]).to_le_bytes();
    header[16..].copy_from_slice(&checksum);
    header
}

#[test]
fn an_unsynced_group_with_a_hole_is_a_torn_tail() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"durable").unwrap();
    wal.sync_all().unwrap();
    // One group: the disk may have written its end and not its beginning when the power went. Nobody said that it was durable.
    wal.append(b"lost-1").unwrap();
    wal.append(b"lost-2").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    let path = only_file_with_records(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let hole = FILE_HEADER + RECORD_HEADER + 7;
    bytes[hole..hole + RECORD_HEADER].fill(0);
    fs::write(&path, bytes).unwrap();
    fs::remove_file(folder.path().join("durable")).unwrap();
    let (_, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(payloads(replay), [b"durable"]);
}

#[test]
fn damage_in_an_older_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"older").unwrap();
    wal.roll().unwrap();
    wal.append(b"newer").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    let oldest = log_files(folder.path()).unwrap()[0].1.clone();
    let bytes = fs::read(&oldest).unwrap();
    fs::write(&oldest, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(Wal::open(folder.path()), Err(StorageError::WalCorrupt { .. })));
}

#[test]
fn waiting_writers_share_syncs_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    let wal = Arc::new(wal);
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            let wal = wal.clone();
            scope.spawn(move || {
                for number in 0..50_u32 {
                    let lsn = wal.append(&(writer * 1000 + number).to_le_bytes()).unwrap();
                    wal.sync(lsn).unwrap();
                    if number % 20 == 0 {
                        wal.roll().unwrap();
                    }
                }
            });
        }
    });
    drop(wal);
    let (_, replay) = Wal::open(folder.path()).unwrap();
    let mut last = [None; 4];
    let records = payloads(replay);
    assert_eq!(records.len(), 200);
    for record in records {
        let value = u32::from_le_bytes(record.try_into().unwrap());
        let (writer, number) = ((value / 1000) as usize, value % 1000);
        assert!(last[writer].is_none_or(|before| before < number), "order within a writer");
        last[writer] = Some(number);
    }
}

#[test]
fn a_failed_write_closes_the_log_for_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    // A file opened for reading only stands in for a disk that refuses.
    let path = wal.state.lock().path.clone();
    wal.state.lock().file = Arc::new(File::open(path).unwrap());
    wal.append(b"refused").unwrap();
    assert!(matches!(wal.sync_all(), Err(StorageError::Io { .. })));
    assert!(matches!(wal.append(b"later"), Err(StorageError::Poisoned { .. })));
    assert!(matches!(wal.sync(1), Err(StorageError::Poisoned { .. })));
    assert!(wal.is_poisoned());
}

/// While switched on, fails writes and syncs of log files.
#[derive(Default)]
struct FullDisk {
    full: std::sync::atomic::AtomicBool,
    /// Bytes of a failed write that still reach the file.
    torn: usize,
}

impl FullDisk {
    /// Switches the failures on or off.
    fn fill(&self, full: bool) {
        self.full.store(full, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A new log on a disk that is not full yet; `torn` bytes of later failed writes reach the file.
fn on_a_disk(torn: usize) -> (tempfile::TempDir, Arc<FullDisk>, sparrow_file_system::Guard, Wal) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk { torn, ..FullDisk::default() });
    let guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let (wal, _) = Wal::open(folder.path()).unwrap();
    (folder, disk, guard, wal)
}

impl sparrow_file_system::Observer for FullDisk {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        use sparrow_file_system::{Kind, Verdict};
        let full = self.full.load(std::sync::atomic::Ordering::SeqCst);
        match call.kind {
            Kind::Write if full => Verdict::Torn(self.torn, std::io::ErrorKind::StorageFull.into()),
            Kind::Sync if full => Verdict::Fail(std::io::ErrorKind::StorageFull.into()),
            _ => Verdict::Allow,
        }
    }
}

#[test]
fn a_log_that_a_full_disk_closed_goes_on_when_there_is_room() {
    for (torn, keep_unsynced) in [(0, false), (7, false), (33, false), (0, true), (7, true), (33, true)] {
        let (folder, disk, _guard, wal) = on_a_disk(torn);
        wal.append(b"durable").unwrap();
        wal.sync_all().unwrap();
        disk.fill(true);
        let refused = wal.append(b"refused").unwrap();
        assert!(wal.sync(refused).is_err());
        for _ in 0..3 {
            assert!(wal.reopen(keep_unsynced).is_err(), "the disk is still full");
            assert!(wal.append(b"later").is_err() && wal.is_poisoned());
        }
        disk.fill(false);
        wal.reopen(keep_unsynced).unwrap();
        assert_eq!(wal.sync(refused).is_ok(), keep_unsynced, "what is lost is never called durable");
        wal.sync_all().unwrap();
        let lsn = wal.append(b"after").unwrap();
        wal.sync(lsn).unwrap();
        assert!(lsn > refused);
        let expected: &[&[u8]] =
            if keep_unsynced { &[b"durable", b"refused", b"after"] } else { &[b"durable", b"after"] };
        assert_eq!(payloads(wal.replay().unwrap()), expected);
        drop(wal);
        assert_eq!(payloads(Wal::open(folder.path()).unwrap().1), expected);
    }
}

#[test]
fn what_each_of_two_failures_took_is_never_called_durable() {
    let (_folder, disk, _guard, wal) = on_a_disk(0);
    let mut lost = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push(wal.append(b"kept").unwrap());
        wal.sync_all().unwrap();
        disk.fill(true);
        lost.push(wal.append(b"lost").unwrap());
        assert!(wal.sync_all().is_err());
        disk.fill(false);
        wal.reopen(false).unwrap();
    }
    wal.append(b"last").unwrap();
    wal.sync_all().unwrap();
    assert!(lost.iter().all(|lsn| wal.sync(*lsn).is_err()));
    assert!(kept.iter().all(|lsn| wal.sync(*lsn).is_ok()));
}

/// An index may be switched to early acknowledgement between two attempts to reopen its log.
#[test]
fn what_an_attempt_gave_up_stays_lost_when_a_later_one_keeps_what_is_unsynced() {
    let (_folder, disk, _guard, wal) = on_a_disk(0);
    wal.append(b"durable").unwrap();
    wal.sync_all().unwrap();
    disk.fill(true);
    let lost = wal.append(b"lost").unwrap();
    assert!(wal.sync(lost).is_err());
    assert!(wal.reopen(false).is_err(), "the disk is still full");
    disk.fill(false);
    wal.reopen(true).unwrap();
    assert!(wal.sync(lost).is_err());
    wal.append(b"after").unwrap();
    wal.sync_all().unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [&b"durable"[..], b"after"]);
}

/// Only records that can be read again are kept; those who wait for the others must not be told that they are
/// durable.
#[test]
fn an_unsynced_record_that_cannot_be_read_any_more_is_lost_when_the_log_is_reopened() {
    let (folder, disk, _guard, wal) = on_a_disk(0);
    let first = wal.append(b"durable").unwrap();
    wal.sync(first).unwrap();
    // Written without a sync, as it is that long.
    let written = wal.append(&vec![7; WRITE_THRESHOLD]).unwrap();
    let file = only_file_with_records(folder.path());
    disk.fill(true);
    assert!(wal.sync(written).is_err());
    disk.fill(false);
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    wal.reopen(true).unwrap();
    assert!(wal.sync(first).is_ok() && wal.sync(written).is_err());
    let after = wal.append(b"after").unwrap();
    wal.sync(after).unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [&b"durable"[..], b"after"]);
}

/// While switched on, blocks all operations of one kind.
struct Stalled {
    kind: sparrow_file_system::Kind,
    stalls: std::sync::atomic::AtomicBool,
    waiting: std::sync::atomic::AtomicBool,
}

impl Stalled {
    fn at(kind: sparrow_file_system::Kind) -> Arc<Self> {
        Arc::new(Self { kind, stalls: Default::default(), waiting: Default::default() })
    }
}

impl sparrow_file_system::Observer for Stalled {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        use std::sync::atomic::Ordering::SeqCst;
        while call.kind == self.kind && self.stalls.load(SeqCst) {
            self.waiting.store(true, SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        sparrow_file_system::Verdict::Allow
    }
}

/// Health checks and periodic tasks query the log on threads that all indices share.
#[test]
fn a_log_whose_disk_has_stalled_still_answers_what_others_ask_and_takes_appends() {
    use std::sync::atomic::Ordering::SeqCst;
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    let disk = Stalled::at(sparrow_file_system::Kind::Write);
    let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let first = wal.append(b"first").unwrap();
    disk.stalls.store(true, SeqCst);
    std::thread::scope(|scope| {
        let synced = scope.spawn(|| wal.sync(first));
        while !disk.waiting.load(SeqCst) {
            std::thread::yield_now();
        }
        assert!(!wal.is_poisoned() && wal.has_unsynced() && wal.size_bytes() > 0);
        assert_eq!(wal.append(b"second").unwrap(), first + 1);
        disk.stalls.store(false, SeqCst);
        synced.join().unwrap().unwrap();
    });
    wal.sync_all().unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [&b"first"[..], b"second"]);
}

#[test]
fn who_waits_for_the_disk_does_not_count_as_busy() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use sparrow_runtime::processors::{self, Busy};
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    let disk = Stalled::at(sparrow_file_system::Kind::Sync);
    let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let record = wal.append(b"record").unwrap();
    let counted = AtomicUsize::new(0);
    disk.stalls.store(true, SeqCst);
    std::thread::scope(|scope| {
        // One of them syncs, the other one waits for it.
        for _ in 0..2 {
            scope.spawn(|| {
                let _busy = Busy::begin();
                counted.fetch_add(usize::from(processors::idle() < processors::available()), SeqCst);
                wal.sync(record).unwrap();
            });
        }
        let all_wait = || {
            let (both, synced) = (counted.load(SeqCst) == 2, disk.waiting.load(SeqCst));
            both && synced && processors::idle() == processors::available()
        };
        let end = Instant::now() + Duration::from_secs(10);
        while !all_wait() && Instant::now() < end {
            std::thread::yield_now();
        }
        let waited = all_wait();
        disk.stalls.store(false, SeqCst);
        assert!(waited, "{} threads counted, and none should any more", counted.load(SeqCst));
    });
}

/// With early acknowledgement nobody waits for the disk, so writers must wait when too much is buffered.
#[test]
fn writers_wait_for_a_disk_that_is_far_behind() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    let disk = Stalled::at(sparrow_file_system::Kind::Write);
    let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let record = vec![b'x'; 1 << 20];
    let all = MOST_BUFFERED / record.len() * 2;
    let appended = AtomicUsize::new(0);
    disk.stalls.store(true, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..all {
                wal.wait_for_room();
                wal.append(&record).unwrap();
                appended.fetch_add(1, SeqCst);
            }
        });
        // The first one writes what it finds in the buffer, so another one has to append on.
        scope.spawn(|| {
            while !disk.waiting.load(SeqCst) {
                std::thread::yield_now();
            }
            for _ in 0..all {
                wal.wait_for_room();
                wal.append(&record).unwrap();
                appended.fetch_add(1, SeqCst);
            }
        });
        let settled = || {
            let before = appended.load(SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(200));
            appended.load(SeqCst) == before
        };
        while !disk.waiting.load(SeqCst) || !settled() {
            std::hint::spin_loop();
        }
        assert!(appended.load(SeqCst) <= all / 2 + 3, "{}", appended.load(SeqCst));
        assert!(wal.size_bytes() > 0, "others are answered");
        disk.stalls.store(false, SeqCst);
    });
    wal.sync_all().unwrap();
    assert_eq!(payloads(wal.replay().unwrap()).len(), 2 * all);
}

/// Such a record is appended although its write fails: it survives a reopening that keeps unsynced records,
/// and only that.
#[test]
fn a_record_whose_append_could_not_be_written_is_told_by_its_sync() {
    for keeps in [false, true] {
        let (folder, disk, _guard, wal) = on_a_disk(100);
        wal.append(b"before").unwrap();
        wal.sync_all().unwrap();
        disk.fill(true);
        let large = vec![b'x'; WRITE_THRESHOLD];
        let position = wal.append(&large).unwrap();
        assert!(wal.is_poisoned() && wal.sync(position).is_err() && wal.append(b"refused").is_err());
        disk.fill(false);
        wal.reopen(keeps).unwrap();
        assert_eq!(wal.sync(position).is_ok(), keeps);
        drop(wal);
        let (_, replay) = Wal::open(folder.path()).unwrap();
        assert_eq!(payloads(replay).len(), if keeps { 2 } else { 1 });
    }
}

/// Panics in the next operation of one kind.
struct Panics(Mutex<Option<sparrow_file_system::Kind>>);

impl sparrow_file_system::Observer for Panics {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        let hit = self.0.lock().take_if(|kind| *kind == call.kind).is_some();
        assert!(!hit, "injected");
        sparrow_file_system::Verdict::Allow
    }
}

#[test]
fn a_panic_while_the_file_is_worked_on_closes_the_log_and_nobody_waits_for_ever() {
    use sparrow_file_system::Kind;
    let folder = tempfile::tempdir().unwrap();
    let panics = Arc::new(Panics(Mutex::new(None)));
    let _guard = sparrow_file_system::observe(folder.path(), panics.clone());
    let (wal, _) = Wal::open(folder.path()).unwrap();
    let panics_in = |kind, work: &dyn Fn()| {
        *panics.0.lock() = Some(kind);
        let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
        assert!(panicked && panics.0.lock().is_none(), "{kind:?} was not met");
        assert!(wal.is_poisoned());
    };
    wal.append(b"durable").unwrap();
    wal.sync_all().unwrap();
    wal.append(b"unsynced").unwrap();
    panics_in(Kind::Sync, &|| drop(wal.sync_all()));
    panics_in(Kind::Create, &|| drop(wal.reopen(true)));
    wal.reopen(true).unwrap();
    panics_in(Kind::Create, &|| drop(wal.roll()));
    wal.reopen(false).unwrap();
    wal.append(b"after").unwrap();
    wal.roll().unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [&b"durable"[..], b"unsynced", b"after"]);
}

#[test]
fn a_log_that_is_opened_on_a_full_disk_is_read_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (wal, _) = Wal::open(folder.path()).unwrap();
        wal.append(b"before").unwrap();
        wal.sync_all().unwrap();
    }
    let disk = Arc::new(FullDisk::default());
    disk.fill(true);
    let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let (wal, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(payloads(replay), [b"before"]);
    assert!(wal.is_poisoned() && wal.append(b"refused").is_err());
    assert!(wal.reopen(true).is_err());
    disk.fill(false);
    wal.reopen(true).unwrap();
    wal.append(b"after").unwrap();
    wal.sync_all().unwrap();
    assert_eq!(payloads(wal.replay().unwrap()), [&b"before"[..], b"after"]);
    drop(wal);
    assert_eq!(payloads(Wal::open(folder.path()).unwrap().1), [&b"before"[..], b"after"]);
}

#[test]
fn a_roll_that_failed_does_not_keep_later_ones_from_succeeding() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk { torn: 5, ..FullDisk::default() });
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"first").unwrap();
    wal.sync_all().unwrap();
    {
        let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
        disk.fill(true);
        for _ in 0..3 {
            assert!(wal.roll().is_err());
        }
    }
    assert!(log_files(folder.path()).unwrap().len() <= 2, "failed attempts leave nothing");
    // One that could not be removed, torn by a crash.
    fs::write(folder.path().join("wal-00000000000000000009.log"), &record::file_header(9)[..3]).unwrap();
    let generation = wal.roll().unwrap();
    assert!(generation > 9);
    wal.append(b"second").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    assert_eq!(payloads(Wal::open(folder.path()).unwrap().1), [&b"first"[..], b"second"]);
}

#[test]
fn a_damaged_header_before_records_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"acknowledged").unwrap();
    wal.sync_all().unwrap();
    drop(wal);
    let path = only_file_with_records(folder.path());
    let whole = fs::read(&path).unwrap();
    for at in 0..FILE_HEADER {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(Wal::open(folder.path()), Err(StorageError::WalCorrupt { .. })), "byte {at}");
    }
}

proptest! {
    #[test]
    fn any_bytes_open_or_fail_cleanly(bytes in proptest::collection::vec(any::<u8>(), 0..300), keep_header in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let mut content = if keep_header { record::file_header(1).to_vec() } else { Vec::new() };
        content.extend(bytes);
        fs::write(folder.path().join("wal-00000000000000000001.log"), content).unwrap();
        if let Ok((_, replay)) = Wal::open(folder.path()) {
            prop_assert_eq!(replay.count(), 0);
        }
    }
}

/// While switched on, lets a new file be created, but neither written nor removed.
#[derive(Default)]
struct KeepsStubs(std::sync::atomic::AtomicBool);

impl sparrow_file_system::Observer for KeepsStubs {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        use sparrow_file_system::{Kind, Verdict};
        let on = self.0.load(std::sync::atomic::Ordering::SeqCst);
        match call.kind {
            Kind::SyncFolder | Kind::Remove if on => Verdict::Fail(std::io::Error::other("injected")),
            _ => Verdict::Allow,
        }
    }
}

#[test]
fn a_torn_tail_in_front_of_a_stub_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(KeepsStubs::default());
    let _guard = sparrow_file_system::observe(folder.path(), disk.clone());
    let (wal, _) = Wal::open(folder.path()).unwrap();
    wal.append(b"durable").unwrap();
    wal.sync_all().unwrap();
    disk.0.store(true, std::sync::atomic::Ordering::SeqCst);
    wal.roll().unwrap_err();
    disk.0.store(false, std::sync::atomic::Ordering::SeqCst);
    let path = wal.state.lock().path.clone();
    assert_eq!(super::files::log_files(folder.path()).unwrap().len(), 2, "the stub is there");
    drop(wal);
    // The power goes in the middle of a later write.
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let mut torn = Vec::new();
    super::record::frame(&mut torn, 0, &[b"never acknowledged"]);
    file.write_all(&torn[..torn.len() - 3]).unwrap();
    assert_eq!(salvage(folder.path()).unwrap().problems.len(), 0);
    let (_, replay) = Wal::open(folder.path()).unwrap();
    assert_eq!(payloads(replay), [b"durable"]);
}
