use std::path::Path;

use super::*;
use crate::manifest::FileEntry;
use crate::pace::Pace;

fn info(name: &str) -> Info {
    Info {
        snapshot: name.to_owned(),
        uuid: sparrow_catalog::new_uuid(),
        server: "0".to_owned(),
        include_global_state: false,
        has_keys: false,
        metadata: None,
        start: 1,
        end: 2,
        indices: Default::default(),
        failures: Default::default(),
    }
}

fn content(files: Vec<FileEntry>) -> Content {
    let index = super::super::manifest::IndexContent {
        name: "books".to_owned(),
        uuid: "u".to_owned(),
        folder: "segments-1".to_owned(),
        metadata: serde_json::json!({}),
        aliases: Default::default(),
        files,
    };
    Content { indices: vec![index], ..Content::default() }
}

struct Fixture {
    folder: tempfile::TempDir,
    layout: Layout,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new("r", folder.path().join("repository"));
    Fixture { folder, layout }
}

impl Fixture {
    fn put(&self, held: &Exclusive, number: u64, bytes: &[u8]) -> (FileEntry, bool) {
        let source = self.folder.path().join(format!("source-{number}"));
        fs::write(&source, bytes).unwrap();
        let (sha256, _, is_new) =
            self.layout.put_blob(held, &source, number, &mut Pace::new(None, &|| false)).unwrap();
        (FileEntry { name: format!("file.{number}"), length: bytes.len() as u64, sha256 }, is_new)
    }

    fn fetch(&self, entry: &FileEntry) -> Result<Vec<u8>, EngineError> {
        let target = self.folder.path().join("fetched");
        let _ = fs::remove_file(&target);
        self.layout.fetch("one", entry, &target, &mut Pace::new(None, &|| false))?;
        Ok(fs::read(target).unwrap())
    }
}

#[test]
fn a_content_is_stored_once_and_removed_with_its_last_snapshot() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (shared, first) = it.put(&held, 1, b"shared");
    let (same, again) = it.put(&held, 2, b"shared");
    let (own, _) = it.put(&held, 3, b"own");
    assert_eq!((first, again, &shared.sha256), (true, false, &same.sha256));
    let (one, two) = (info("one"), info("two"));
    it.layout.put_snapshot(&held, &one, &content(vec![shared.clone(), own.clone()])).unwrap();
    it.layout.put_snapshot(&held, &two, &content(vec![same])).unwrap();
    assert_eq!(it.layout.sweep(&held).unwrap(), Swept::default());
    it.layout.remove_snapshot(&held, &one.uuid).unwrap();
    assert_eq!(it.layout.sweep(&held).unwrap(), Swept { blobs: 1, bytes: 3 });
    assert_eq!(it.fetch(&shared).unwrap(), b"shared");
    assert!(it.fetch(&own).unwrap_err().reason().contains("is missing"));
    let names: Vec<String> = it.layout.list().unwrap().infos.into_iter().map(|info| info.snapshot).collect();
    assert_eq!(names, ["two"]);
}

#[test]
fn a_damaged_blob_is_named_and_a_short_one_is_written_again() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (entry, _) = it.put(&held, 1, b"content");
    let path = it.layout.blob(&entry.sha256);
    fs::write(&path, b"CONTENT").unwrap();
    let reason = it.fetch(&entry).unwrap_err().reason();
    assert!(reason.starts_with("[r:one] file [file.1] cannot be restored: blob [blobs/"), "{reason}");
    fs::write(&path, b"con").unwrap();
    assert!(it.fetch(&entry).unwrap_err().reason().contains("3 bytes instead of 7"));
    assert!(it.put(&held, 1, b"content").1);
    assert_eq!(it.fetch(&entry).unwrap(), b"content");
}

#[test]
fn a_damaged_or_newer_snapshot_is_named_and_keeps_every_blob() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (entry, _) = it.put(&held, 1, b"content");
    let (one, two) = (info("one"), info("two"));
    for info in [&one, &two] {
        it.layout.put_snapshot(&held, info, &content(vec![entry.clone()])).unwrap();
    }
    let path = it.layout.root.join(file_of(&two.uuid));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"two\"", "\"tow\"", 1)).unwrap();
    let listing = it.layout.list().unwrap();
    assert_eq!((listing.infos.len(), listing.unreadable.len()), (1, 1));
    assert!(listing.unreadable[0].contains("checksum"), "{}", listing.unreadable[0]);
    // The second line alone.
    fs::write(&path, text.replacen("\"file.1\"", "\"file.2\"", 1)).unwrap();
    assert_eq!(it.layout.list().unwrap().infos.len(), 2);
    assert!(it.layout.sweep(&held).unwrap_err().reason().contains("checksum"));
    assert!(it.layout.content(&two.uuid).is_err());
    fs::write(&path, r#"{"format":7,"else":true}"#).unwrap();
    assert!(it.layout.list().unwrap().unreadable[0].contains("format version 7"));
    it.layout.remove_snapshot(&held, &one.uuid).unwrap();
    assert!(it.layout.sweep(&held).is_err());
    assert_eq!(it.fetch(&entry).unwrap(), b"content");
}

#[test]
fn a_file_without_an_end_is_named_and_not_read() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (one, two) = (info("one"), info("two"));
    for info in [&one, &two] {
        it.layout.put_snapshot(&held, info, &content(Vec::new())).unwrap();
    }
    let path = it.layout.root.join(file_of(&two.uuid));
    sparrow_file_system::File::append(&path).unwrap().set_len(20 << 30).unwrap();
    assert_eq!(it.layout.list().unwrap().infos.len(), 2, "the first line is whole");
    for reason in [
        it.layout.content(&two.uuid).unwrap_err().reason(),
        it.layout.read_snapshot(&two.uuid).2.unwrap_err().unwrap_or_default(),
        it.layout.sweep(&held).unwrap_err().reason(),
    ] {
        assert!(reason.contains("it is longer than 256 MiB"), "{reason}");
    }
    fs::write(&path, "").unwrap();
    sparrow_file_system::File::append(&path).unwrap().set_len(20 << 30).unwrap();
    let listing = it.layout.list().unwrap();
    assert_eq!(listing.infos.len(), 1);
    assert!(listing.unreadable[0].contains(&two.uuid), "{}", listing.unreadable[0]);
    assert!(listing.unreadable[0].contains("first line is longer than 16 MiB"), "{}", listing.unreadable[0]);
    let identity = it.layout.root.join("repository.json");
    sparrow_file_system::File::append(&identity).unwrap().set_len(20 << 30).unwrap();
    assert!(
        it.layout.identity().unwrap_err().reason().contains("[repository.json] is damaged: it is longer")
    );
}

#[test]
fn file_names_that_lead_elsewhere_are_refused() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (entry, _) = it.put(&held, 1, b"content");
    for name in ["../x", "/etc/x", "", "..", "a\0b"] {
        let info = info("one");
        let entry = FileEntry { name: name.to_owned(), ..entry.clone() };
        it.layout.put_snapshot(&held, &info, &content(vec![entry])).unwrap();
        assert!(it.layout.content(&info.uuid).is_err(), "{name:?}");
        it.layout.remove_snapshot(&held, &info.uuid).unwrap();
    }
}

#[test]
fn a_change_that_was_cut_short_is_noticed_and_others_wait_for_one() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    assert!(!held.crashed);
    assert!(it.layout.begin().unwrap_err().reason().contains("another process"));
    fs::write(it.layout.root.join(TEMPORARY).join("1"), b"half").unwrap();
    drop(held);
    let held = it.layout.begin().unwrap();
    assert!(held.crashed);
    assert_eq!(durable::list_dir(&it.layout.root.join(TEMPORARY)).unwrap(), Vec::<String>::new());
    it.layout.end(&held).unwrap();
    drop(held);
    assert!(!it.layout.begin().unwrap().crashed);
    it.layout.verify(true).unwrap();
}

#[test]
fn what_could_not_be_read_again_is_never_put_in_place() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let nested = |levels| (1..levels).fold(serde_json::json!({}), |inner, _| serde_json::json!({"a": inner}));
    // As deep as a store can be.
    let (deep, deeper) = (info("deep"), info("deeper"));
    let mut content = content(Vec::new());
    content.indices[0].metadata = nested(127);
    it.layout.put_snapshot(&held, &deep, &content).unwrap();
    assert_eq!(it.layout.content(&deep.uuid).unwrap().indices[0].metadata, nested(127));
    content.indices[0].metadata = nested(128);
    assert!(
        it.layout.put_snapshot(&held, &deeper, &content).unwrap_err().reason().contains("recursion limit")
    );
    let names: Vec<String> = it.layout.list().unwrap().infos.into_iter().map(|info| info.snapshot).collect();
    assert_eq!(names, ["deep"]);
}

#[test]
fn a_listing_reads_one_line() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let one = info("one");
    it.layout.put_snapshot(&held, &one, &content(Vec::new())).unwrap();
    let path = it.layout.root.join(file_of(&one.uuid));
    let whole = fs::read_to_string(&path).unwrap();
    let first = lines::read(&path, true).ok().unwrap();
    assert_eq!(Some(first.as_slice()), whole.split_inclusive('\n').next().map(str::as_bytes));
    assert!(lines::read(&path, false).ok().unwrap() == whole.as_bytes());
    let is_damaged = |path: &Path| matches!(lines::read(path, true), Err(Unusable::Damaged(_)));
    assert!(is_damaged(it.layout.root.as_path()), "a folder is no file");
}

#[test]
fn a_blob_is_set_aside_only_when_it_is_damaged_and_nobody_changes_the_repository() {
    let it = fixture();
    let held = it.layout.begin().unwrap();
    let (entry, _) = it.put(&held, 1, b"content");
    let path = it.layout.blob(&entry.sha256);
    let aside = || it.layout.set_aside_if_damaged(&entry, &Pace::new(None, &|| false));
    assert!(aside().unwrap_err().reason().contains("another process"));
    drop(held);
    assert!(!aside().unwrap());
    fs::write(&path, b"CONTENT").unwrap();
    assert!(aside().unwrap());
    assert!(!path.exists() && !aside().unwrap());
    let held = it.layout.begin().unwrap();
    it.layout.put_snapshot(&held, &info("one"), &content(vec![entry.clone()])).unwrap();
    assert_eq!(it.layout.sweep(&held).unwrap(), Swept::default(), "it is all that there is");
    assert!(it.put(&held, 1, b"content").1);
    assert_eq!(it.layout.sweep(&held).unwrap(), Swept { blobs: 1, bytes: 7 });
    assert_eq!(it.fetch(&entry).unwrap(), b"content");
}
