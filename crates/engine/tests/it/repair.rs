//! Checking a damaged data directory, and building another one from what it still has.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Node, options};
use serde_json::json;
use sparrow_engine::Engine;
use sparrow_engine::check::{Repair, check, repair};

/// Two flushed segments of twenty documents, one of them deleted, and five documents in the log; another index beside it.
fn build() -> tempfile::TempDir {
    let node = Node::start();
    for index in ["a", "other"] {
        node.ok("create_index", &format!("index={index}"), "", r#"{"settings":{"refresh_interval":"-1"}}"#);
        for part in 0..2 {
            for id in part * 20..part * 20 + 20 {
                let body = json!({"n": id, "text": format!("house {id}")}).to_string();
                node.ok("index_doc", &format!("index={index}&id={id}"), "", &body);
            }
            node.ok("flush", &format!("index={index}"), "", "");
        }
        node.ok("delete_doc", &format!("index={index}&id=3"), "", "");
        node.ok("flush", &format!("index={index}"), "", "");
        for id in 40..45 {
            node.ok("index_doc", &format!("index={index}&id={id}"), "", &json!({"n": id}).to_string());
        }
    }
    let copy = node.copy_data();
    node.engine.close();
    copy
}

/// Files of index `a` whose names end with `end`, sorted by length.
fn files(data: &Path, end: &str) -> Vec<PathBuf> {
    let engine = json!(
        fs::read_dir(data.join("store"))
            .expect("stores")
            .flatten()
            .map(|entry| {
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                (entry.file_name().to_string_lossy().into_owned(), text.contains("\"name\":\"a\""))
            })
            .collect::<Vec<_>>()
    );
    let store =
        engine.as_array().and_then(|all| all.iter().find(|pair| pair[1] == json!(true))).expect("index a");
    let uuid =
        store[0].as_str().expect("a name").trim_start_matches("index-").trim_end_matches(".json").to_owned();
    let mut found = Vec::new();
    for folder in ["segments-1", "wal"] {
        for entry in fs::read_dir(data.join("indices").join(&uuid).join(folder)).expect("files").flatten() {
            if entry.file_name().to_string_lossy().ends_with(end) {
                found.push(entry.path());
            }
        }
    }
    found.sort_by_key(|path| fs::metadata(path).expect("a file").len());
    found
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let at = bytes.len() / 2;
    bytes[at] ^= 4;
    fs::write(path, bytes).expect("written");
}

fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            all.extend(tree(&entry.path()));
        } else {
            all.push((entry.path(), fs::read(entry.path()).expect("a file")));
        }
    }
    all.sort();
    all
}

/// Repairs a data directory and opens the result. Checks that the damaged directory stays as it was.
fn repaired(data: &Path) -> (Repair, Node) {
    let before = tree(data);
    let folder = tempfile::tempdir().expect("a folder");
    let repaired = repair(data, folder.path(), &[]).expect("repaired");
    assert!(tree(data) == before, "the damaged directory is as it was");
    assert!(check(folder.path()).expect("checked").problems.is_empty());
    (repaired, Node::new(Engine::open(options(folder.path())).expect("it opens"), folder))
}

fn count(node: &Node, index: &str) -> u64 {
    node.ok("refresh", &format!("index={index}"), "", "");
    node.count(index)
}

#[test]
fn a_whole_directory_has_no_problems_and_is_copied() {
    let data = build();
    let report = check(data.path()).expect("checked");
    assert!(report.problems.is_empty(), "{report:?}");
    assert_eq!(report.indices.len(), 2);
    let (repair, node) = repaired(data.path());
    assert!(repair.indices.iter().all(|index| index.whole && index.lost == Some(0)));
    assert_eq!((count(&node, "a"), count(&node, "other")), (44, 44));
}

#[test]
fn a_damaged_column_costs_no_document() {
    let data = build();
    let file = files(data.path(), ".fast").pop().expect("a file");
    flip(&file);
    let report = check(data.path()).expect("checked");
    assert_eq!(report.problems.len(), 1);
    assert!(file.ends_with(&report.problems[0].file), "{report:?}");
    assert_eq!(report.problems[0].affected, "index [a]");
    let (repair, node) = repaired(data.path());
    let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
    assert_eq!((own.whole, own.kept, own.lost), (false, 44, Some(0)), "{own:?}");
    assert_eq!((count(&node, "a"), count(&node, "other")), (44, 44));
    assert_eq!(node.call("get_doc", "index=a&id=3", "", "").0, 404);
    for id in [0, 19, 20, 39, 44] {
        let document = node.ok("get_doc", &format!("index=a&id={id}"), "", "");
        assert_eq!(document["_source"]["n"], json!(id));
    }
    assert_eq!(node.hits("a", r#"{"size":50,"query":{"match":{"text":"house"}}}"#).len(), 39);
}

#[test]
fn damaged_documents_are_counted_as_lost_and_the_others_are_kept() {
    let data = build();
    flip(&files(data.path(), ".store").pop().expect("a file"));
    let (repair, node) = repaired(data.path());
    let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
    let lost = own.lost.expect("a number");
    assert!(lost == 19 || lost == 20 || lost == 39, "{own:?}");
    assert_eq!(own.kept, 44 - lost);
    assert_eq!((count(&node, "a"), count(&node, "other")), (44 - lost, 44));
}

#[test]
fn a_damaged_log_costs_the_damaged_write_only() {
    let data = build();
    flip(&files(data.path(), ".log").pop().expect("a file"));
    let (repair, node) = repaired(data.path());
    let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
    assert_eq!((own.kept, own.lost), (43, None), "{own:?}");
    assert_eq!(count(&node, "a"), 43);
}

#[test]
fn documents_that_the_mapping_no_longer_takes_are_kept() {
    let node = Node::start();
    let body = r#"{"settings":{"refresh_interval":"-1"},"mappings":{"dynamic":false,"properties":{"n":{"type":"long"}}}}"#;
    node.ok("create_index", "index=a", "", body);
    for id in 0..20 {
        node.ok("index_doc", &format!("index=a&id={id}"), "", &json!({"n": id, "x": "abc"}).to_string());
    }
    node.ok("flush", "index=a", "", "");
    node.ok("index_doc", "index=a&id=other", "", r#"{"n":20,"x":"def"}"#);
    node.ok("put_mapping", "index=a", "", r#"{"properties":{"x":{"type":"integer"}}}"#);
    node.ok("index_doc", "index=a&id=fits", "", r#"{"n":21,"x":7}"#);
    let data = node.copy_data();
    node.engine.close();
    flip(&files(data.path(), ".fast").pop().expect("a file"));
    let (repair, node) = repaired(data.path());
    let own = &repair.indices[0];
    assert_eq!((own.kept, own.lost, own.lost_ids.len()), (22, Some(0), 0), "{own:?}");
    assert!(own.notes.iter().any(|note| note.starts_with("20 documents have fields")), "{own:?}");
    assert_eq!(count(&node, "a"), 22);
    for (id, x) in [("3", json!("abc")), ("other", json!("def")), ("fits", json!(7))] {
        assert_eq!(node.ok("get_doc", &format!("index=a&id={id}"), "", "")["_source"]["x"], x);
    }
    let found = |field: &str, least: u64| {
        node.hits("a", &json!({"size": 50, "query": {"range": {field: {"gte": least}}}}).to_string()).len()
    };
    assert_eq!((found("x", 0), found("n", 0)), (1, 22), "what the mapping takes is searchable");
}

/// The folder of an index's segments.
fn segments(data: &Path) -> PathBuf {
    files(data, "meta.json").pop().expect("a commit").parent().expect("its folder").to_path_buf()
}

#[test]
fn an_index_without_a_readable_commit_costs_no_other_index() {
    let damages: [fn(&Path); 4] = [
        |segments| flip(&segments.join("meta.json")),
        |segments| fs::remove_file(segments.join("meta.json")).expect("removed"),
        |segments| fs::remove_dir_all(segments).expect("removed"),
        |segments| {
            fs::remove_dir_all(segments).expect("removed");
            fs::write(segments, "no folder").expect("written");
        },
    ];
    for damage in damages {
        let data = build();
        damage(&segments(data.path()));
        let (repair, node) = repaired(data.path());
        let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
        assert_eq!((own.whole, own.kept, own.lost), (false, 5, None), "{own:?}");
        assert!(own.notes.iter().any(|note| note.contains("only its log")), "{own:?}");
        assert_eq!((count(&node, "a"), count(&node, "other")), (5, 44));
    }
}

#[test]
fn an_index_whose_log_cannot_be_listed_keeps_its_segments() {
    let data = build();
    let log = segments(data.path()).with_file_name("wal");
    fs::remove_dir_all(&log).expect("removed");
    fs::write(&log, "no folder").expect("written");
    assert!(
        check(data.path()).expect("checked").problems.iter().any(|problem| problem.affected == "index [a]")
    );
    let (repair, node) = repaired(data.path());
    let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
    assert_eq!((own.whole, own.kept, own.lost), (false, 39, None), "{own:?}");
    assert_eq!((count(&node, "a"), count(&node, "other")), (39, 44));
}

#[test]
fn metadata_under_the_name_of_another_index_is_named() {
    let data = build();
    let segments = segments(data.path());
    let uuid = segments.parent().and_then(Path::file_name).expect("a uuid").to_string_lossy().into_owned();
    let store = data.path().join("store").join(format!("index-{uuid}.json"));
    let wrong = "index-AAAAAAAAAAAAAAAAAAAAAA.json";
    fs::rename(store, data.path().join("store").join(wrong)).expect("renamed");
    let report = check(data.path()).expect("checked");
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert_eq!(report.problems[0].file, format!("store/{wrong}"));
    assert!(report.problems[0].reason.contains(&uuid), "{report:?}");
    let (repair, node) = repaired(data.path());
    let own = repair.indices.iter().find(|index| index.name == "a").expect("it");
    assert_eq!((own.whole, own.kept, own.lost), (false, 0, None), "{own:?}");
    assert_eq!(repair.left_out, [format!("store/{wrong}")]);
    assert_eq!(count(&node, "other"), 44);
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_what_is_made() {
    use std::os::unix::fs::PermissionsExt;

    let data = build();
    fs::write(data.path().join("owner.key"), "a secret").expect("written");
    flip(&files(data.path(), ".fast").pop().expect("a file"));
    let folder = tempfile::tempdir().expect("a folder");
    let opened = folder.path().join("open");
    fs::create_dir(&opened).expect("made");
    fs::set_permissions(&opened, fs::Permissions::from_mode(0o755)).expect("set");
    for into in [opened, folder.path().join("new").join("deep")] {
        repair(data.path(), &into, &[]).expect("repaired");
        let mut folders = vec![into];
        while let Some(folder) = folders.pop() {
            let rights = |path: &Path| fs::metadata(path).expect("it").permissions().mode() & 0o777;
            assert_eq!(rights(&folder), 0o700, "{}", folder.display());
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => assert_eq!(rights(&entry.path()), 0o600, "{}", entry.path().display()),
                }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn links_to_folders_and_what_is_no_file_are_left_out_by_name() {
    let data = build();
    std::os::unix::fs::symlink(data.path(), data.path().join("loop")).expect("linked");
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::write(elsewhere.path().join("private"), "not of the data directory").expect("written");
    std::os::unix::fs::symlink(elsewhere.path(), segments(data.path()).join("linked")).expect("linked");
    sparrow_fuzzing::make_pipe(&data.path().join("pipe")).expect("made");
    let folder = tempfile::tempdir().expect("a folder");
    let repaired = repair(data.path(), folder.path(), &[]).expect("repaired");
    let mut left_out = repaired.left_out;
    left_out.sort();
    let linked = segments(data.path()).join("linked");
    let linked = linked.strip_prefix(data.path()).expect("below").display().to_string();
    assert_eq!(left_out, [linked.clone(), "loop".to_owned(), "pipe".to_owned()]);
    for absent in [linked.as_str(), "loop", "pipe"] {
        assert!(!folder.path().join(absent).exists(), "{absent}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_does_not_hide_that_the_new_directory_is_in_the_damaged_one() {
    let data = build();
    let beside = tempfile::tempdir().expect("a folder");
    let link = beside.path().join("link");
    std::os::unix::fs::symlink(data.path(), &link).expect("linked");
    assert!(repair(data.path(), &link.join("repaired"), &[]).is_err());
    assert!(repair(&link, &data.path().join("deep").join("repaired"), &[]).is_err());
    assert!(!data.path().join("repaired").exists() && !data.path().join("deep").exists());
}

#[test]
fn nothing_is_written_over() {
    let data = build();
    let inside = data.path().join("repaired");
    assert!(repair(data.path(), &inside, &[]).is_err());
    assert!(repair(data.path(), data.path(), &[]).is_err());
    let node = Node::open(data, |_| {});
    let refused = check(node.folder.path()).expect_err("it is in use").to_string();
    assert!(refused.contains("in use"), "{refused}");
    node.engine.close();
}

#[test]
fn objects_of_nested_fields_are_made_again_with_their_documents() {
    let node = Node::start();
    let mapping = json!({"mappings": {"properties": {"o": {"type": "nested"}}}, "settings": {"refresh_interval": "-1"}});
    node.ok("create_index", "index=a", "", &mapping.to_string());
    for id in 0..20 {
        let body = json!({"o": [{"n": id, "k": "x"}, {"n": id + 1, "k": "y"}]}).to_string();
        node.ok("index_doc", &format!("index=a&id={id}"), "", &body);
    }
    node.ok("flush", "index=a", "", "");
    node.ok("delete_doc", "index=a&id=3", "", "");
    node.ok("flush", "index=a", "", "");
    let data = node.copy_data();
    node.engine.close();
    let both = r#"{"size":50,"query":{"nested":{"path":"o","query":{"bool":{"must":[{"term":{"o.n":7}},{"match":{"o.k":"y"}}]}}}}}"#;
    for damaged in [None, Some(".fast")] {
        if let Some(end) = damaged {
            flip(&files(data.path(), end).pop().expect("a file"));
        }
        let (repair, node) = repaired(data.path());
        let own = &repair.indices[0];
        assert_eq!((own.whole, own.kept, own.lost), (damaged.is_none(), 19, Some(0)), "{own:?}");
        assert_eq!(count(&node, "a"), 19);
        assert_eq!(node.hits("a", both).len(), 1);
    }
}
