//! Checking a snapshot repository: each file that is damaged or missing is named, with the snapshots that need it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Node;
use serde_json::{Value, json};
use sparrow_engine::check::{RepositoryReport, check_repository};
use sparrow_file_system::power::Random;

const WAIT: &str = "wait_for_completion=true";

/// A repository with two snapshots of one index and one of another.
struct Fixture {
    node: Node,
    folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repositories");
    let node = Node::start_with(|options| options.repo_path = Some(root));
    node.ok("put_repository", "repository=r", "", r#"{"type":"fs","settings":{"location":"r"}}"#);
    let it = Fixture { node, folder };
    it.write("books", 0..30);
    it.snapshot("monday", "books");
    it.write("books", 30..60);
    it.snapshot("tuesday", "books");
    it.write("films", 0..10);
    it.snapshot("wednesday", "films");
    it
}

impl Fixture {
    fn write(&self, index: &str, ids: std::ops::Range<u32>) {
        for id in ids {
            let body = json!({"n": id, "text": format!("house {id}")}).to_string();
            self.node.ok("index_doc", &format!("index={index}&id={id}"), "", &body);
        }
        self.node.ok("flush", &format!("index={index}"), "", "");
    }

    fn snapshot(&self, name: &str, index: &str) {
        let path = format!("repository=r&snapshot={name}");
        let made = self.node.ok("create_snapshot", &path, WAIT, &json!({"indices": index}).to_string());
        assert_eq!(made["snapshot"]["state"], "SUCCESS", "{made}");
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repositories/r")
    }

    fn check(&self) -> RepositoryReport {
        check_repository(&self.path()).unwrap()
    }

    /// Name of each snapshot → whether it can be restored.
    fn restorable(&self) -> BTreeMap<String, bool> {
        ["monday", "tuesday", "wednesday"]
            .map(|name| {
                let rename = json!({"rename_pattern": "(.+)", "rename_replacement": "check-$1"});
                let path = format!("repository=r&snapshot={name}");
                let (status, _) = self.node.call("restore_snapshot", &path, WAIT, &rename.to_string());
                for index in ["check-books", "check-films"] {
                    self.node.call("delete_index", &format!("index={index}"), "", "");
                }
                (name.to_owned(), status == 200)
            })
            .into()
    }
}

/// Relative paths of all files below a folder.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path().strip_prefix(root).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_whole_repository_has_no_problems_and_is_not_written_to() {
    let it = fixture();
    let before = files(&it.path());
    let report = it.check();
    assert_eq!(report.problems, []);
    let names: Vec<(&str, bool)> =
        report.snapshots.iter().map(|one| (one.snapshot.as_str(), one.damaged)).collect();
    assert_eq!(names, [("monday", false), ("tuesday", false), ("wednesday", false)]);
    let blobs: Vec<&String> = before.iter().filter(|file| file.starts_with("blobs/")).collect();
    assert_eq!((report.blobs, report.unneeded), (blobs.len() as u64, 0));
    let bytes: u64 = blobs.iter().map(|blob| fs::metadata(it.path().join(blob)).unwrap().len()).sum();
    assert_eq!(report.bytes, bytes);
    assert_eq!(files(&it.path()), before);
}

/// What the check reports for each kind of damage agrees with what a restore then does.
#[test]
fn every_damaged_or_missing_file_is_named_with_the_snapshots_that_need_it() {
    let it = fixture();
    let definition = r#"{"type":"fs","settings":{"location":"r","readonly":true}}"#;
    it.node.ok("put_repository", "repository=r", "", definition);
    let mut random = Random(7);
    let mut seen = BTreeMap::<usize, usize>::new();
    for file in files(&it.path()) {
        if matches!(file.as_str(), "lock" | "unfinished") {
            continue;
        }
        let path = it.path().join(&file);
        let whole = fs::read(&path).unwrap();
        for damage in 0..3 {
            let mut bytes = whole.clone();
            match damage {
                0 => fs::remove_file(&path).unwrap(),
                1 => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                    fs::write(&path, bytes).unwrap();
                }
                _ => {
                    bytes.truncate(random.below(bytes.len()));
                    fs::write(&path, bytes).unwrap();
                }
            }
            let report = it.check();
            let is_snapshot = file.starts_with("snapshots/");
            if is_snapshot && damage == 0 {
                // What is not there at all was never made, or was deleted.
                assert_eq!((report.snapshots.len(), report.problems.as_slice()), (2, &[][..]));
                assert!(report.unneeded > 0, "its blobs belong to nothing");
                fs::write(&path, &whole).unwrap();
                continue;
            }
            let context = format!("{file}, damage {damage}: {:?}", report.problems);
            assert_eq!(report.problems.len(), 1, "{context}");
            let problem = &report.problems[0];
            assert_eq!(problem.file, file, "{context}");
            let restorable = it.restorable();
            let lost: Vec<&String> =
                restorable.iter().filter(|(_, works)| !**works).map(|(name, _)| name).collect();
            if is_snapshot && problem.snapshots.is_empty() {
                // The damaged line is the one with the name.
                assert_eq!((report.snapshots.len(), lost.len()), (2, 1), "{context}");
            } else {
                assert_eq!(problem.snapshots.iter().collect::<Vec<_>>(), lost, "{context}");
                for one in &report.snapshots {
                    assert_eq!(one.damaged, lost.contains(&&one.snapshot), "{context}");
                }
            }
            *seen.entry(lost.len()).or_default() += 1;
            fs::write(&path, &whole).unwrap();
        }
    }
    assert!(seen.contains_key(&2) && seen.contains_key(&1), "blobs of one and of two snapshots: {seen:?}");
    assert_eq!(it.check().problems, []);
}

#[test]
fn what_a_restore_set_aside_is_missing_and_blobs_of_nothing_are_counted() {
    let it = fixture();
    let blob = files(&it.path()).into_iter().find(|file| file.starts_with("blobs/")).unwrap();
    let path = it.path().join(&blob);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, "rotten").unwrap();
    assert!(it.restorable().values().any(|works| !works));
    let problems = it.check().problems;
    let problem = problems.iter().find(|problem| problem.file == blob).unwrap();
    assert!(problem.reason.contains("a restore found it damaged"), "{problem:?}");
    assert!(problem.parts.iter().all(|part| part.starts_with("index [")), "{problem:?}");
    fs::write(&path, whole).unwrap();
    let nobodys = it.path().join("blobs/aa").join("aa".repeat(32));
    fs::create_dir_all(nobodys.parent().unwrap()).unwrap();
    fs::write(&nobodys, "not what its name says").unwrap();
    let report = it.check();
    assert_eq!((report.unneeded, report.problems.len()), (1, 1));
    assert_eq!(report.problems[0].snapshots, Vec::<String>::new());
    assert!(report.snapshots.iter().all(|one| !one.damaged));
}

#[test]
fn a_folder_that_is_no_repository_and_one_with_links_are_refused() {
    let it = fixture();
    let empty = tempfile::tempdir().unwrap();
    let refused = check_repository(empty.path()).unwrap_err().to_string();
    assert!(refused.contains("is not a snapshot repository"), "{refused}");
    assert!(check_repository(&empty.path().join("none")).is_err());
    assert_eq!(files(empty.path()), Vec::<String>::new());
    #[cfg(unix)]
    {
        fs::rename(it.path().join("blobs"), it.folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(it.folder.path().join("elsewhere"), it.path().join("blobs")).unwrap();
        let refused = check_repository(&it.path()).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
    }
    let report: Value = json!(fixture().check());
    assert_eq!(report["snapshots"][0]["state"], "SUCCESS");
}
