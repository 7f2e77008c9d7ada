//! Failures that no client waits for are visible: those of snapshots, and those of background work on indices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::Node;
use serde_json::{Value, json};
use sparrow_file_system::{Call, Kind, Observer, Verdict};

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Refuses to create files whose path contains `part` while `on` is set.
struct Refusing {
    part: &'static str,
    on: AtomicBool,
}

impl Refusing {
    fn new(part: &'static str) -> Arc<Self> {
        Arc::new(Self { part, on: AtomicBool::new(false) })
    }

    fn set(&self, on: bool) {
        self.on.store(on, SeqCst);
    }
}

impl Observer for Refusing {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_meant = call.kind == Kind::Create && call.path.to_string_lossy().contains(self.part);
        match is_meant && self.on.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::other("the disk failed")),
            false => Verdict::Allow,
        }
    }
}

struct Fixture {
    node: Node,
    folder: tempfile::TempDir,
}

/// A node with the repository `r` and an index of one document.
fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("snapshots");
    let node = Node::start_with(|options| options.repo_path = Some(root));
    node.ok("put_repository", "repository=r", "", r#"{"type":"fs","settings":{"location":"r"}}"#);
    node.ok("index_doc", "index=books&id=1", "", r#"{"n":1}"#);
    Fixture { node, folder }
}

fn listed(node: &Node, name: &str) -> Value {
    node.ok("get_snapshot", &format!("repository=r&snapshot={name}"), "", "")["snapshots"][0].clone()
}

/// Waits until a snapshot has ended and gives it as the API shows it.
fn ended(node: &Node, name: &str) -> Value {
    until("the snapshot does not end", || Some(listed(node, name)).filter(|it| it["state"] != "IN_PROGRESS"))
}

fn counted(node: &Node, section: &str, name: &str) -> u64 {
    node.ok("instruments", "", "", "")[section][name].as_u64().unwrap()
}

#[test]
fn a_snapshot_that_nobody_waits_for_and_that_fails_says_why() {
    let it = fixture();
    let disk = Refusing::new("/temporary/");
    let _guard = sparrow_file_system::observe(it.folder.path(), disk.clone());
    disk.set(true);
    let asked = r#"{"indices":"books","metadata":{"why":"nightly"}}"#;
    let accepted = it.node.ok("create_snapshot", "repository=r&snapshot=night", "", asked);
    assert_eq!(accepted, json!({"accepted": true}));
    let failed = ended(&it.node, "night");
    assert_eq!((&failed["state"], &failed["metadata"]["why"]), (&json!("FAILED"), &json!("nightly")));
    assert!(failed["reason"].as_str().unwrap().contains("cannot be written: "), "{failed}");
    assert_eq!(failed["shards"], json!({"total": 1, "failed": 1, "successful": 0}));
    assert_eq!(failed["failures"][0]["index"], "books");
    let status = it.node.ok("snapshot_status", "repository=r&snapshot=night", "", "");
    assert_eq!(status["snapshots"][0]["state"], "FAILED");
    assert_eq!(status["snapshots"][0]["indices"]["books"]["shards"]["0"]["stage"], "FAILURE");
    assert_eq!(counted(&it.node, "snapshots", "failed"), 1);
    let (status, _, reason) = it.node.error("restore_snapshot", "repository=r&snapshot=night", "", "");
    assert!(status == 500 && reason.contains("unsupported snapshot state [FAILED]"), "{reason}");
    let (_, table) = it.node.call_raw("cat_snapshots", "repository=r", "", "");
    assert!(String::from_utf8(table).unwrap().contains("FAILED"));

    // After a restart too.
    let Fixture { node, folder } = it;
    let data = node.copy_data();
    node.engine.close();
    let root = folder.path().join("snapshots");
    let node = Node::open(data, |options| options.repo_path = Some(root));
    assert_eq!(listed(&node, "night")["state"], "FAILED");
    // One that succeeds takes its place, and is what is deleted.
    disk.set(false);
    node.ok("create_snapshot", "repository=r&snapshot=night", "", asked);
    assert_eq!(ended(&node, "night")["state"], "SUCCESS");
    assert_eq!((counted(&node, "snapshots", "made"), counted(&node, "snapshots", "failed")), (1, 0));
    node.ok("delete_snapshot", "repository=r&snapshot=night", "", "");
    assert_eq!(node.call("get_snapshot", "repository=r&snapshot=night", "", "").0, 404);
}

#[test]
fn a_failed_snapshot_is_deleted_by_its_name_and_goes_with_its_repository() {
    let it = fixture();
    let disk = Refusing::new("/temporary/");
    let _guard = sparrow_file_system::observe(it.folder.path(), disk.clone());
    disk.set(true);
    let wait = "wait_for_completion=true";
    for name in ["one", "two"] {
        let path = format!("repository=r&snapshot={name}");
        assert_eq!(it.node.call("create_snapshot", &path, wait, "").0, 500);
        assert_eq!(listed(&it.node, name)["state"], "FAILED");
    }
    it.node.ok("delete_snapshot", "repository=r&snapshot=one", "", "");
    let all = it.node.ok("get_snapshot", "repository=r&snapshot=_all", "", "");
    assert_eq!((&all["total"], &all["snapshots"][0]["snapshot"]), (&json!(1), &json!("two")));
    disk.set(false);
    it.node.ok("delete_repository", "repository=r", "", "");
    it.node.ok("put_repository", "repository=r", "", r#"{"type":"fs","settings":{"location":"r"}}"#);
    let all = it.node.ok("get_snapshot", "repository=r&snapshot=_all", "", "");
    assert_eq!(all["total"], 0, "{all}");
}

/// A snapshot during which the server ended is shown as failed by the next one.
#[test]
fn a_snapshot_that_a_crash_cut_short_has_failed() {
    let it = fixture();
    let slow = r#"{"type":"fs","settings":{"location":"r","max_snapshot_bytes_per_sec":"1b"}}"#;
    it.node.ok("put_repository", "repository=r", "", slow);
    it.node.ok("create_snapshot", "repository=r&snapshot=night", "", "");
    assert_eq!(listed(&it.node, "night")["state"], "IN_PROGRESS");
    let data = it.node.copy_data();
    let root = it.folder.path().join("snapshots");
    let node = Node::open(data, |options| options.repo_path = Some(root));
    let failed = listed(&node, "night");
    assert_eq!(failed["state"], "FAILED", "{failed}");
    assert_eq!(failed["reason"], "the server ended before the snapshot was complete");
    it.node.ok("delete_snapshot", "repository=r&snapshot=night", "", "");
}

/// A task whose result cannot be saved has ended nevertheless, and does not run again after the next start.
#[test]
fn the_result_of_a_task_is_kept_until_the_disk_takes_it() {
    let node = Node::start();
    node.ok("index_doc", "index=books&id=1", "refresh=true", r#"{"n":1}"#);
    let disk = Refusing::new("/store/task-");
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    // Long enough for the disk to fail in the middle of it.
    let body = r#"{"source":{"index":"books"},"dest":{"index":"copy"}}"#;
    for id in 2..6 {
        node.ok("index_doc", &format!("index=books&id={id}"), "refresh=true", r#"{"n":1}"#);
    }
    let query = "wait_for_completion=false&requests_per_second=4&scroll_size=1";
    let task = node.ok("reindex", "", query, body)["task"].as_str().unwrap().to_owned();
    disk.set(true);
    let path = format!("task={task}");
    let ended = until("the task does not end", || {
        Some(node.ok("get_task", &path, "", "")).filter(|it| it["completed"] == true)
    });
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(node.ok("get_task", &path, "", ""), ended);
    disk.set(false);
    let store = node.folder.path().join(format!("store/task-{}.json", task.split_once(':').unwrap().1));
    until("it is not written down", || {
        std::fs::read_to_string(&store).ok().filter(|text| text.contains("\"completed\""))
    });
    let node = node.crash();
    assert_eq!(node.ok("get_task", &path, "", "")["completed"], true);
    assert!(node.ok("list_tasks", "", "actions=*reindex", "")["nodes"].as_object().unwrap().is_empty());
}

/// How often a task failed, and for how many indices it fails.
fn background(node: &Node, task: &str) -> (u64, u64) {
    let figures = node.ok("instruments", "", "", "");
    let all = figures["background"].as_array().unwrap();
    let of = all.iter().find(|it| it["task"] == task).unwrap();
    (of["failures"].as_u64().unwrap(), of["failing"].as_u64().unwrap())
}

/// Waits until every API that shows the health of the index `books` shows this colour.
fn becomes(node: &Node, colour: &str) {
    until(&format!("it does not become {colour}"), || {
        let health = node.ok("cluster_health", "", "", "");
        let text = |op: &str, path: &str, query: &str| {
            String::from_utf8(node.call_raw(op, path, query, "").1).unwrap().trim().to_owned()
        };
        let shown = [text("cat_indices", "index=books", "h=health"), text("cat_health", "", "h=status")];
        (health["status"] == colour && shown.iter().all(|shown| shown == colour)).then_some(())
    });
}

fn index_of_one_replica_less(node: &Node) {
    let body = r#"{"settings":{"number_of_replicas":0,"refresh_interval":"50ms"}}"#;
    node.ok("create_index", "index=books", "", body);
}

#[test]
fn refreshes_that_fail_are_counted_and_make_the_index_yellow_until_one_succeeds() {
    let node = Node::start();
    index_of_one_replica_less(&node);
    let disk = Refusing::new("/segments-");
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    becomes(&node, "green");
    disk.set(true);
    node.ok("index_doc", "index=books&id=1", "", r#"{"n":1}"#);
    until("no refresh failed", || (background(&node, "refresh") >= (2, 1)).then_some(()));
    becomes(&node, "yellow");
    disk.set(false);
    becomes(&node, "green");
    let (failures, failing) = background(&node, "refresh");
    assert!(failures >= 2 && failing == 0, "{failures} {failing}");
    assert_eq!(node.count("books"), 1);
}

/// A merge that fails leaves its segments as they were: without a count nobody would know, and searches would become slower.
#[test]
fn merges_that_fail_are_counted_tried_again_and_make_the_index_yellow() {
    let node = Node::start();
    index_of_one_replica_less(&node);
    let disk = Arc::new(NoMerges(AtomicBool::new(true)));
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    let mut id = 0;
    until("no merge failed", || {
        for _ in 0..3 {
            node.ok("index_doc", &format!("index=books&id={id}"), "refresh=true", r#"{"n":1,"t":"a b c"}"#);
            id += 1;
        }
        (background(&node, "merge") >= (1, 1)).then_some(())
    });
    becomes(&node, "yellow");
    disk.0.store(false, SeqCst);
    becomes(&node, "green");
    assert_eq!(node.count("books"), id);
}

/// Refuses writes by merge threads while the switch is on.
struct NoMerges(AtomicBool);

impl Observer for NoMerges {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let merges = std::thread::current().name().is_some_and(|name| name.starts_with("merge_thread"));
        match merges && call.kind == Kind::Write && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::other("the disk failed")),
            false => Verdict::Allow,
        }
    }
}

/// A change that was refused may be on the disk already. A later request that changes nothing and is acknowledged must hold after a
/// crash all the same.
#[test]
fn what_was_refused_does_not_come_back_behind_what_was_acknowledged() {
    let node = Node::start();
    index_of_one_replica_less(&node);
    node.ok("index_doc", "index=books&id=1", "", r#"{"n":1}"#);
    let add = r#"{"actions":[{"add":{"index":"books","alias":"library"}}]}"#;
    node.ok("update_aliases", "", "", add);
    let disk = Arc::new(NoFolders(AtomicBool::new(false)));
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    disk.0.store(true, SeqCst);
    assert!(node.call("close_index", "index=books", "", "").0 >= 500);
    assert!(node.call("put_pipeline", "pipeline=p", "", r#"{"processors":[]}"#).0 >= 500);
    let remove = r#"{"actions":[{"remove":{"index":"books","alias":"library"}}]}"#;
    assert!(node.call("update_aliases", "", "", remove).0 >= 500);
    disk.0.store(false, SeqCst);
    // It is open, as far as anybody knows.
    node.ok("open_index", "index=books", "", "");
    assert_eq!(node.call("delete_pipeline", "pipeline=p", "", "").0, 404);
    node.ok("update_aliases", "", "", add);
    let node = node.crash();
    assert_eq!(node.count("books"), 1);
    assert_eq!(node.call("get_pipeline", "pipeline=p", "", "").0, 404);
    assert_eq!(node.count("library"), 1);
}

/// Makes syncs of the folder of the stores fail while the switch is on, though the names in it change.
struct NoFolders(AtomicBool);

impl Observer for NoFolders {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_meant = call.kind == Kind::SyncFolder && call.path.ends_with("store");
        match is_meant && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::other("the disk failed")),
            false => Verdict::Allow,
        }
    }
}

/// A mapping may be saved although the segments cannot take it yet. The next change of the mapping has to build on what was saved,
/// whether the disk works again by then or not.
#[test]
fn a_mapping_that_was_saved_is_not_taken_back_by_the_next_change() {
    for works_again in [true, false] {
        let node = Node::start();
        let body =
            r#"{"settings":{"refresh_interval":"-1"},"mappings":{"properties":{"n":{"type":"integer"}}}}"#;
        node.ok("create_index", "index=books", "", body);
        // With something in the log, a change of the mapping would fail before it is saved.
        node.ok("index_doc", "index=books&id=1", "", r#"{"n":1}"#);
        node.ok("flush", "index=books", "", "");
        let disk = Refusing::new("/segments-");
        let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
        disk.set(true);
        let first = r#"{"properties":{"first":{"type":"text"}}}"#;
        assert!(node.call("put_mapping", "index=books", "", first).0 >= 500);
        disk.set(!works_again);
        let change = || match works_again {
            true => {
                node.call("put_mapping", "index=books", "", r#"{"properties":{"second":{"type":"text"}}}"#)
            }
            false => node.call("index_doc", "index=books&id=2", "", r#"{"second":"b"}"#),
        };
        // The segments may tell of the failure once more before they are opened anew.
        let answers: Vec<_> = (0..3).map(|_| change()).collect();
        assert_eq!(answers[2].0 < 300, works_again, "{answers:?}");
        disk.set(false);
        let node = node.crash();
        let mapping = node.ok("get_mapping", "index=books", "", "");
        let fields = mapping["books"]["mappings"]["properties"].as_object().unwrap();
        let expected: &[&str] = if works_again { &["first", "n", "second"] } else { &["first", "n"] };
        assert_eq!(fields.keys().collect::<Vec<_>>(), expected, "{works_again}");
    }
}

/// Takes no byte, and keeps what it has.
struct Full(AtomicBool);

impl Observer for Full {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let takes_room = matches!(call.kind, Kind::Create | Kind::Write | Kind::Sync);
        match takes_room && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::from(std::io::ErrorKind::StorageFull)),
            false => Verdict::Allow,
        }
    }
}

/// Why a change of a model stopped is shown, although the disk that stopped it takes no note of that either.
#[test]
fn a_change_of_a_model_that_a_full_disk_stops_says_why() {
    let node = Node::start_with(|options| {
        options.onnx_runtime = Some(crate::common::workspace::runtime());
        options.models = crate::common::workspace::models();
        options.threads = 2;
    });
    let mappings = json!({"properties": {"body": {"type": "semantic_text"}}});
    node.ok("create_index", "index=books", "", &json!({ "mappings": mappings }).to_string());
    for id in 0..8 {
        node.ok("index_doc", &format!("index=books&id={id}"), "refresh=true", r#"{"body": "a red coin"}"#);
    }
    let disk = Arc::new(Full(AtomicBool::new(false)));
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    let query = "wait_for_completion=false&requests_per_second=4";
    let body = r#"{"field": "body", "inference_id": ".all-minilm-l6-v2-elasticsearch"}"#;
    let task = node.ok("change_model", "index=books", query, body)["task"].as_str().unwrap().to_owned();
    disk.0.store(true, SeqCst);
    let shown =
        || node.ok("get_field_models", "index=books", "", "")["books"]["fields"]["body"]["change"].clone();
    let stopped = until("the change does not stop", || Some(shown()).filter(|it| it["state"] == "stopped"));
    assert!(stopped["failure"].as_str().is_some_and(|failure| !failure.is_empty()), "{stopped}");
    let ended = until("the task does not end", || {
        Some(node.ok("get_task", &format!("task={task}"), "", "")).filter(|it| it["completed"] == true)
    });
    assert!(ended["error"]["reason"].is_string(), "{ended}");
    disk.0.store(false, SeqCst);
}
