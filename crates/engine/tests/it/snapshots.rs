//! Repositories that another program has changed, and snapshots of contents that are hard to keep.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{Node, options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sparrow_engine::Engine;
use sparrow_file_system::{Call, Kind, Observer, Verdict};

const WAIT: &str = "wait_for_completion=true";

/// A node, and the temporary folder that holds its data and its snapshot repositories.
struct Fixture {
    node: Node,
    folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::start_with(|options| options.repo_path = Some(folder.path().join("repositories")));
    Fixture { node, folder }
}

fn definition(location: &str) -> String {
    json!({"type": "fs", "settings": {"location": location}}).to_string()
}

impl Fixture {
    fn repositories(&self) -> PathBuf {
        self.folder.path().join("repositories")
    }

    fn register(&self, name: &str) {
        self.node.ok("put_repository", &format!("repository={name}"), "", &definition(name));
    }

    /// An index `books` of five documents.
    fn index(&self) {
        for id in 0..5 {
            self.node.ok("index_doc", &format!("index=books&id={id}"), "", &json!({"n": id}).to_string());
        }
        self.node.ok("flush", "index=books", "", "");
    }

    fn snapshot(&self, name: &str, body: &Value) -> Value {
        let path = format!("repository=r&snapshot={name}");
        let made = self.node.ok("create_snapshot", &path, WAIT, &body.to_string());
        assert_eq!(made["snapshot"]["state"], "SUCCESS", "{made}");
        made
    }

    fn restore(&self, name: &str, body: &Value) -> (u16, Value) {
        let path = format!("repository=r&snapshot={name}");
        self.node.call("restore_snapshot", &path, WAIT, &body.to_string())
    }

    /// Tries to register a repository that has to be refused; gives the reason from Elasticsearch's error body.
    fn refused(&self, name: &str, location: &str) -> String {
        let (status, body) =
            self.node.call("put_repository", &format!("repository={name}"), "", &definition(location));
        assert_eq!(
            (status, &body["error"]["type"]),
            (500, &json!("repository_exception")),
            "{location}: {body}"
        );
        assert_eq!(body["error"]["reason"], format!("[{name}] failed to create repository"));
        body["error"]["caused_by"]["reason"].as_str().expect("a cause").to_owned()
    }

    /// The largest blob of the repository `r`.
    fn blob(&self) -> PathBuf {
        let mut blobs = Vec::new();
        for folder in fs::read_dir(self.repositories().join("r/blobs")).expect("blobs").flatten() {
            blobs.extend(fs::read_dir(folder.path()).expect("blobs").flatten().map(|blob| blob.path()));
        }
        blobs.sort_by_key(|blob| fs::metadata(blob).expect("a blob").len());
        blobs.pop().expect("a blob")
    }

    /// Changes the content of the only snapshot file and gives it a correct checksum.
    fn forge(&self, change: impl Fn(&mut Value)) {
        let folder = self.repositories().join("r/snapshots");
        let path = fs::read_dir(folder).expect("snapshots").flatten().next().expect("one").path();
        let text = fs::read_to_string(&path).expect("text");
        let (first, second) = text.split_once('\n').expect("two lines");
        let mut line: Value = serde_json::from_str(second).expect("JSON");
        change(&mut line["value"]);
        let value = line["value"].to_string();
        let sha256: String = Sha256::digest(&value).iter().map(|byte| format!("{byte:02x}")).collect();
        let forged = format!("{first}\n{{\"format\":1,\"sha256\":\"{sha256}\",\"value\":{value}}}\n");
        fs::write(path, forged).expect("written");
    }
}

/// A JSON object nested this many levels deep.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[test]
fn whatever_was_acknowledged_comes_back_however_deep_it_is() {
    let it = fixture();
    it.index();
    it.register("r");
    // The deepest of each that the server takes.
    let deepest = |op: &str, path: &str, body: &dyn Fn(Value) -> Value| {
        let taken = (100..128)
            .rev()
            .find(|levels| it.node.call(op, path, "", &body(nested(*levels)).to_string()).0 == 200);
        assert!(taken.is_some_and(|levels| levels > 110), "{op}: {taken:?}");
    };
    deepest("put_mapping", "index=books", &|value| json!({"_meta": value}));
    deepest("put_pipeline", "pipeline=p", &|value| json!({"processors": [], "_meta": value}));
    deepest("put_index_template", "name=t", &|value| json!({"index_patterns": ["t-*"], "_meta": value}));
    deepest("put_component_template", "name=c", &|value| json!({"template": {}, "_meta": value}));
    it.snapshot("one", &json!({}));
    let shown = |op: &str, path: &str| it.node.call_raw(op, path, "", "");
    let before = [shown("get_mapping", "index=books"), shown("get_pipeline", "pipeline=p")];
    it.node.ok("delete_index", "index=books", "", "");
    it.node.ok("delete_pipeline", "pipeline=p", "", "");
    let (status, body) = it.restore("one", &json!({"include_global_state": true}));
    assert_eq!(status, 200, "{body}");
    assert_eq!(it.node.count("books"), 5);
    assert_eq!([shown("get_mapping", "index=books"), shown("get_pipeline", "pipeline=p")], before);
}

#[cfg(unix)]
#[test]
fn a_repository_that_leads_elsewhere_by_a_link_is_refused() {
    use std::os::unix::fs::symlink;

    let it = fixture();
    it.index();
    it.register("r");
    it.snapshot("one", &json!({}));
    let root = it.repositories().join("r");
    let victim = it.folder.path().join("victim");
    fs::create_dir(&victim).expect("made");
    let kept = victim.join("a".repeat(64));
    fs::write(&kept, "not of the repository").expect("written");
    for name in ["temporary", "blobs", "snapshots", "lock", "unfinished", "repository.json", "blobs/aa"] {
        let (place, aside) = (root.join(name), it.folder.path().join("aside"));
        let was_there = place.exists();
        if was_there {
            fs::rename(&place, &aside).expect("moved");
        }
        match name.contains('.') || matches!(name, "lock" | "unfinished") {
            true => symlink(&kept, &place).expect("linked"),
            false => symlink(&victim, &place).expect("linked"),
        }
        let (status, kind, reason) = it.node.error("cleanup_repository", "repository=r", "", "");
        assert_eq!((status, kind.as_str()), (500, "repository_exception"), "{name}: {reason}");
        assert!(reason.contains(&format!("[{name}]")), "{reason}");
        assert_eq!(fs::read_to_string(&kept).expect("it is there"), "not of the repository", "{name}");
        if !name.contains('/') {
            let (status, _, reason) = it.node.error("create_snapshot", "repository=r&snapshot=x", WAIT, "{}");
            assert!(status == 500 && reason.contains(&format!("[{name}]")), "{reason}");
        }
        fs::remove_file(&place).expect("removed");
        if was_there {
            fs::rename(&aside, &place).expect("moved");
        }
    }
    it.node.ok("cleanup_repository", "repository=r", "", "");
}

#[test]
fn a_rotten_blob_is_written_again_by_the_next_snapshot() {
    let it = fixture();
    it.index();
    it.register("r");
    it.snapshot("one", &json!({"indices": "books"}));
    let rename = json!({"indices": "books", "rename_pattern": "books", "rename_replacement": "again"});
    // No snapshot names it any more, but it is there: as after a crash.
    let blob = it.blob();
    let whole = fs::read(&blob).expect("a blob");
    let mut rotten = whole.clone();
    rotten[whole.len() / 2] ^= 1;
    it.node.ok("delete_snapshot", "repository=r&snapshot=one", "", "");
    fs::create_dir_all(blob.parent().expect("a folder")).expect("made");
    fs::write(&blob, &rotten).expect("written");
    it.snapshot("two", &json!({"indices": "books"}));
    assert!(fs::read(&blob).expect("a blob") == whole, "what lies there is compared");
    // A snapshot names it, and does not read it.
    for wrong in [rotten.as_slice(), &whole[..whole.len() - 1]] {
        fs::write(&blob, wrong).expect("written");
        for problem in ["is damaged: it", "is damaged and was set aside"] {
            let (status, body) = it.restore("two", &rename);
            let reason = body["error"]["reason"].as_str().unwrap_or_default();
            assert!(status == 500 && reason.contains(problem), "{reason}");
        }
        it.snapshot("three", &json!({"indices": "books"}));
        assert!(fs::read(&blob).expect("a blob") == whole, "it was written again");
        let (status, body) = it.restore("two", &rename);
        assert_eq!(status, 200, "{body}");
        it.node.ok("delete_index", "index=again", "", "");
        it.node.ok("delete_snapshot", "repository=r&snapshot=three", "", "");
    }
    assert!(!blob.with_extension("damaged").exists(), "it is no longer needed");
}

/// A disk that does not let blobs be read while the switch is on.
struct Unreadable(AtomicBool);

impl Observer for Unreadable {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_blob = call.path.to_string_lossy().contains("/blobs/");
        match is_blob && matches!(call.kind, Kind::Open | Kind::Read) && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::ErrorKind::PermissionDenied.into()),
            false => Verdict::Allow,
        }
    }
}

/// A blob that cannot be read may still be undamaged: a network share that is away for a moment, or missing permissions.
#[test]
fn a_blob_that_cannot_be_read_is_not_set_aside() {
    let it = fixture();
    let disk = Arc::new(Unreadable(AtomicBool::new(false)));
    let _guard = sparrow_file_system::observe(it.folder.path(), disk.clone());
    it.index();
    it.register("r");
    it.snapshot("one", &json!({"indices": "books"}));
    let rename = json!({"indices": "books", "rename_pattern": "books", "rename_replacement": "again"});
    disk.0.store(true, SeqCst);
    for _ in 0..2 {
        let (status, body) = it.restore("one", &rename);
        let reason = body["error"]["reason"].as_str().unwrap_or_default();
        assert!(status == 500 && reason.contains("cannot be read"), "{body}");
    }
    disk.0.store(false, SeqCst);
    let (status, body) = it.restore("one", &rename);
    assert_eq!(status, 200, "{body}");
}

#[test]
fn a_restore_from_a_readonly_repository_changes_nothing_in_it() {
    let it = fixture();
    it.index();
    it.register("r");
    it.snapshot("one", &json!({"indices": "books"}));
    let body = json!({"type": "fs", "settings": {"location": "r", "readonly": true}}).to_string();
    it.node.ok("put_repository", "repository=r", "", &body);
    let blob = it.blob();
    fs::write(&blob, "rotten").expect("written");
    let rename = json!({"indices": "books", "rename_pattern": "books", "rename_replacement": "again"});
    assert_eq!(it.restore("one", &rename).0, 500);
    assert_eq!(fs::read_to_string(&blob).expect("it is there"), "rotten");
}

#[test]
fn repositories_and_the_data_directory_keep_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    for inside in [data.clone(), data.join("snapshots"), data.join("a").join("..").join("indices")] {
        let mut with = options(&data);
        with.repo_path = Some(inside.clone());
        let refused = Engine::open(with).map(|_| ()).expect_err("it must not start").to_string();
        assert!(refused.contains("data directory"), "{}: {refused}", inside.display());
    }
    let it = Fixture {
        node: Node::open(tempfile::tempdir().expect("a folder"), |options| {
            options.repo_path = options.data.parent().map(Path::to_path_buf);
        }),
        folder,
    };
    let data = it.node.folder.path();
    let name = data.file_name().expect("a name").to_string_lossy().into_owned();
    let inside = data.join("backups").display().to_string();
    for location in [".", name.as_str(), &format!("{name}/indices/x"), &inside] {
        let reason = it.refused("bad", location);
        assert!(reason.contains("data directory"), "{location}: {reason}");
    }
    assert!(!data.join("blobs").exists() && !data.join("backups").exists());
}

#[test]
fn a_repository_does_not_lie_in_another_one() {
    let it = fixture();
    it.register("r");
    it.node.ok("put_repository", "repository=deep", "", &definition("folder/deep"));
    for (location, other) in [("r/inner", "r"), ("r/temporary", "r"), ("folder", "deep"), (".", "")] {
        let reason = it.refused("bad", location);
        assert!(reason.contains("another repository") && reason.contains(other), "{location}: {reason}");
    }
    // Also of those that are not registered any more.
    it.node.ok("delete_repository", "repository=r", "", "");
    assert!(it.refused("bad", "r/inner").contains("another repository"));
    // The same folder under a second name is no nesting, nor is it to register one again.
    it.node.ok("put_repository", "repository=twin", "", &definition("folder/deep"));
    it.register("r");
    it.node.ok("put_repository", "repository=r2", "", &definition("r2"));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_named_and_nobody_waits_for_it() {
    let it = fixture();
    it.index();
    it.register("r");
    it.snapshot("one", &json!({}));
    let pipe = |path: PathBuf| sparrow_fuzzing::make_pipe(&path).expect("made");
    let root = it.repositories().join("r");
    let blob = it.blob();
    fs::remove_file(&blob).expect("removed");
    pipe(blob);
    pipe(root.join("snapshots").join(format!("{}.json", "A".repeat(22))));
    let node = &it.node;
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let listed =
                node.call("get_snapshot", "repository=r&snapshot=_all", "ignore_unavailable=true", "");
            assert_eq!(listed.1["snapshots"].as_array().map(Vec::len), Some(1), "{}", listed.1);
            let (_, _, reason) = node.error("get_snapshot", "repository=r&snapshot=_all", "", "");
            assert!(reason.contains("is not a regular file"), "{reason}");
            let (status, body) = node.call(
                "restore_snapshot",
                "repository=r&snapshot=one",
                WAIT,
                r#"{"rename_pattern":"books","rename_replacement":"again"}"#,
            );
            assert!(
                status == 500 && body["error"]["reason"].to_string().contains("is not a regular file"),
                "{body}"
            );
            pipe(root.join("lock2"));
            fs::rename(root.join("lock2"), root.join("lock")).expect("moved");
            let (_, _, reason) = node.error("cleanup_repository", "repository=r", "", "");
            assert!(reason.contains("[lock]"), "{reason}");
            done.send(()).expect("somebody waits");
        });
        let waited = ended.recv_timeout(std::time::Duration::from_secs(60));
        if waited == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // It waits for a pipe. The thread cannot be ended, so the test is.
            std::process::exit(1);
        }
    });
}

#[test]
fn what_cannot_be_used_is_found_before_anything_is_restored() {
    let forgeries: [fn(&mut Value); 4] = [
        |content| content["global"]["settings"] = json!({"search.max_buckets": "abc"}),
        |content| content["global"]["pipelines"] = json!({"p": {"processors": [{"nothing": {}}]}}),
        |content| content["models"] = json!([{"id": "m", "config": {"task": "x"}, "files": []}]),
        |content| content["models"] = json!([{"id": "../m", "config": {}, "files": []}]),
    ];
    for forgery in forgeries {
        let it = fixture();
        it.index();
        it.register("r");
        it.snapshot("one", &json!({}));
        it.forge(forgery);
        it.node.ok("delete_index", "index=books", "", "");
        let (status, body) =
            it.restore("one", &json!({"include_global_state": true, "include_models": true}));
        assert!(status >= 400, "{body}");
        assert_eq!(it.node.call("get_mapping", "index=books", "", "").0, 404, "{body}");
    }
}

#[test]
fn a_restore_that_fails_late_says_what_is_there() {
    let it = fixture();
    it.index();
    it.node.ok("put_pipeline", "pipeline=p", "", r#"{"processors":[]}"#);
    it.register("r");
    it.snapshot("one", &json!({}));
    it.node.ok("delete_index", "index=books", "", "");
    // Nothing can be put in the place of a folder.
    let store = it.node.folder.path().join("store/pipelines.json");
    fs::remove_file(&store).expect("removed");
    fs::create_dir(&store).expect("made");
    let (status, body) = it.restore("one", &json!({"include_global_state": true}));
    assert_eq!(status, 500);
    let reason = body["error"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("restored before it failed: index [books]"), "{reason}");
    assert!(body["error"]["caused_by"]["reason"].is_string(), "{body}");
    assert_eq!(it.node.count("books"), 5);
}
