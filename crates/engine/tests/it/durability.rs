//! What a second disk failure, a changed mapping, a racing deletion or a full disk must not break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::{Node, by_tier};
use serde_json::json;
use sparrow_engine::{CancelFlag, Request};
use sparrow_file_system::{Call, Kind, Observer, Verdict};

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Documents survive in a copy of the data directory that lacks its stores, and when somebody moves a store away.
#[test]
fn an_index_without_metadata_keeps_its_files_and_comes_back_with_it() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", "");
    node.ok("create_index", "index=deleted", "", "");
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":1}"#);
    node.ok("index_doc", "index=deleted&id=1", "", r#"{"x":1}"#);
    let deleted = uuid_of(&node, "deleted");
    node.ok("delete_index", "index=deleted", "", "");
    let store = format!("store/index-{}.json", uuid_of(&node, "a"));
    let copy = node.copy_data();
    // As if the end of that deletion had been cut off.
    std::fs::create_dir_all(copy.path().join("indices").join(&deleted).join("segments")).unwrap();
    let metadata = std::fs::read(copy.path().join(&store)).unwrap();
    std::fs::remove_file(copy.path().join(&store)).unwrap();
    let report = sparrow_engine::check::check(copy.path()).unwrap();
    let files: Vec<&str> = report.problems.iter().map(|problem| problem.file.as_str()).collect();
    assert_eq!(files, [store.as_str()]);

    let without = Node::open(copy, |_| {});
    assert_eq!(without.call("get_doc", "index=a&id=1", "", "").0, 404);
    assert!(!without.folder.path().join("indices").join(&deleted).exists());
    let copy = without.copy_data();
    without.engine.close();
    std::fs::write(copy.path().join(&store), metadata).unwrap();
    let again = Node::open(copy, |_| {});
    assert_eq!(again.ok("get_doc", "index=a&id=1", "", "")["_source"], json!({"x": 1}));
}

fn uuid_of(node: &Node, index: &str) -> String {
    let settings = node.ok("get_settings", &format!("index={index}"), "", "");
    settings[index]["settings"]["index"]["uuid"].as_str().unwrap().to_owned()
}

#[test]
fn a_narrower_mapping_leaves_logged_documents_readable() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"mappings":{"dynamic":false}}"#);
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":"abc"}"#);
    node.ok("put_mapping", "index=a", "", r#"{"properties":{"x":{"type":"integer"}}}"#);
    node.ok("index_doc", "index=a&id=2", "", r#"{"x":7}"#);
    let node = node.crash();
    assert_eq!(node.ok("get_doc", "index=a&id=1", "", "")["_source"], json!({"x": "abc"}));
    assert_eq!(node.count("a"), 2);
    assert_eq!(node.hits("a", r#"{"query":{"range":{"x":{"gte":7}}}}"#).len(), 1);
}

/// A new mapping was saved but nothing after it, so that the log still holds a document that no longer fits it.
#[test]
fn a_logged_document_that_no_longer_fits_is_kept_and_counted() {
    let node = Node::start();
    node.ok(
        "create_index",
        "index=a",
        "",
        r#"{"mappings":{"dynamic":false,"properties":{"k":{"type":"keyword"}}}}"#,
    );
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":"abc","k":"kept"}"#);
    let before = node.copy_data();
    node.ok("put_mapping", "index=a", "", r#"{"properties":{"x":{"type":"integer"}}}"#);
    // The stores of after with the segments and the log of before.
    for entry in std::fs::read_dir(node.folder.path().join("store")).unwrap().flatten() {
        std::fs::copy(entry.path(), before.path().join("store").join(entry.file_name())).unwrap();
    }
    let node = Node::open(before, |_| {});
    assert_eq!(node.ok("get_doc", "index=a&id=1", "", "")["_source"], json!({"x": "abc", "k": "kept"}));
    assert_eq!(node.hits("a", r#"{"query":{"term":{"k":"kept"}}}"#).len(), 1);
    let recovery = node.ok("recovery", "index=a", "", "");
    assert_eq!(recovery["a"]["shards"][0]["translog"]["recovered_in_part"], json!(1));
}

#[test]
fn a_deleted_index_does_not_come_back() {
    for round in 0..by_tier(8, 30) {
        let node = Node::start();
        node.ok("create_index", "index=a", "", "");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for change in 0..3 {
                let (node, stop) = (&node, &stop);
                scope.spawn(move || {
                    for number in 0.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        let mapping =
                            format!("{{\"properties\":{{\"f{change}_{number}\":{{\"type\":\"long\"}}}}}}");
                        let settings = format!("{{\"index\":{{\"priority\":{number}}}}}");
                        let _ = match change {
                            0 => node.call("put_mapping", "index=a", "", &mapping),
                            1 => node.call("put_settings", "index=a", "", &settings),
                            _ => node.call("add_block", "index=a&block=write", "", ""),
                        };
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(2 + round % 7));
            node.ok("delete_index", "index=a", "", "");
            std::thread::sleep(Duration::from_millis(5));
            stop.store(true, SeqCst);
        });
        let node = node.crash();
        assert_eq!(node.call("exists_index", "index=a", "", "").0, 404, "round {round}");
        assert_eq!(node.ok("cluster_health", "", "", "")["status"], json!("green"));
    }
}

#[test]
fn changes_of_settings_at_once_lose_none() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", "");
    std::thread::scope(|scope| {
        for name in ["priority", "max_result_window", "max_rescore_window"] {
            let node = &node;
            scope.spawn(move || {
                for number in 1..=40 {
                    let body = format!("{{\"index\":{{\"{name}\":{number}}}}}");
                    node.ok("put_settings", "index=a", "", &body);
                    let settings = node.ok("get_settings", "index=a", "", "");
                    assert_eq!(settings["a"]["settings"]["index"][name], json!(number.to_string()));
                }
            });
        }
        let node = &node;
        scope.spawn(move || node.ok("add_block", "index=a&block=write", "", ""));
    });
    let settings = node.ok("get_settings", "index=a", "", "");
    assert_eq!(settings["a"]["settings"]["index"]["blocks"]["write"], json!("true"));
}

#[test]
fn waiting_for_a_refresh_ends_with_the_index() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    std::thread::scope(|scope| {
        let node = &node;
        let waiters: Vec<_> = (0..2)
            .map(|id| {
                scope.spawn(move || {
                    node.call("index_doc", &format!("index=a&id={id}"), "refresh=wait_for", "{}")
                })
            })
            .collect();
        let written = |id: u32| node.call("get_doc", &format!("index=a&id={id}"), "", "").0 == 200;
        until("both are written", || (0..2).all(written));
        std::thread::sleep(Duration::from_millis(300));
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        node.ok("delete_index", "index=a", "", "");
        // They were written, and then deleted with the rest.
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().0, 201);
        }
    });
}

#[test]
fn a_bulk_that_refreshes_is_answered_though_one_of_its_indices_is_deleted() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    node.ok("create_index", "index=b", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    std::thread::scope(|scope| {
        let node = &node;
        let lines = "{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n{\"index\":{\"_index\":\"b\",\"_id\":\"1\"}}\n{}\n";
        let waiter = scope.spawn(move || node.call("bulk", "", "refresh=wait_for", lines));
        let written = |index: &&str| node.call("get_doc", &format!("index={index}&id=1"), "", "").0 == 200;
        until("both are written", || ["a", "b"].iter().all(written));
        std::thread::sleep(Duration::from_millis(300));
        node.ok("delete_index", "index=a", "", "");
        std::thread::sleep(Duration::from_millis(100));
        node.ok("refresh", "index=b", "", "");
        let (status, answer) = waiter.join().unwrap();
        assert_eq!((status, &answer["errors"]), (200, &json!(false)), "{answer}");
    });
    assert_eq!(node.count("b"), 1);
}

#[test]
fn more_waiting_requests_than_threads_are_answered() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    std::thread::scope(|scope| {
        let node = &node;
        let waiters: Vec<_> = (0..8)
            .map(|id| {
                scope.spawn(move || {
                    let path = format!("index=a&id={id}");
                    node.call("index_doc", &path, "refresh=wait_for", "{}").0
                })
            })
            .collect();
        // At most three wait. Which requests one of them refreshes for depends on how far these are, so up to three may be left.
        until("enough waiting requests refresh by themselves", || {
            waiters.iter().filter(|waiter| waiter.is_finished()).count() >= 5
        });
        until("a refresh answers the others", || {
            node.ok("refresh", "index=a", "", "");
            waiters.iter().all(|waiter| waiter.is_finished())
        });
        waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), 201));
    });
}

#[test]
fn a_request_that_went_away_no_longer_waits() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    let flag = Arc::new(AtomicBool::new(false));
    let request = Request {
        op: "index_doc".into(),
        path: [("index", "a"), ("id", "1")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        query: [("refresh".to_owned(), "wait_for".to_owned())].into(),
        ..Request::default()
    };
    std::thread::scope(|scope| {
        let (engine, cancel) = (&node.engine, CancelFlag::from(flag.clone()));
        let waiter = scope.spawn(move || engine.execute(&request, b"{}", &cancel).map(|_| ()));
        until("it is written", || node.call("get_doc", "index=a&id=1", "", "").0 == 200);
        std::thread::sleep(Duration::from_millis(200));
        assert!(!waiter.is_finished());
        flag.store(true, SeqCst);
        until("the wait ends", || waiter.is_finished());
    });
    assert_eq!(node.ok("get_doc", "index=a&id=1", "", "")["found"], json!(true));
}

/// A disk that is full while `full` is set.
#[derive(Default)]
struct Disk {
    full: AtomicBool,
    /// Part of the paths on which there is no space; all paths, if none is named.
    only: Option<&'static str>,
}

impl Observer for Disk {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let takes_space = matches!(call.kind, Kind::Create | Kind::Write | Kind::Sync | Kind::CreateFolder);
        let is_meant = self.only.is_none_or(|folder| call.path.to_string_lossy().contains(folder));
        if takes_space && is_meant && self.full.load(SeqCst) {
            return Verdict::Torn(call.bytes.len() / 2, std::io::ErrorKind::StorageFull.into());
        }
        Verdict::Allow
    }
}

/// Deleting an index frees space, so it must succeed on a full disk, whatever was refused before.
#[test]
fn an_index_is_deleted_on_a_full_disk_also_after_a_change_of_aliases_was_refused() {
    let node = Node::start();
    let disk = Arc::new(Disk::default());
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    for index in ["a", "b"] {
        node.ok("create_index", &format!("index={index}"), "", "");
    }
    disk.full.store(true, SeqCst);
    let body = r#"{"actions":[{"add":{"index":"a","alias":"x"}}]}"#;
    assert_eq!(node.call("update_aliases", "", "", body).0, 429);
    node.ok("delete_index", "index=b", "", "");
    assert_eq!(node.call("exists_index", "index=b", "", "").0, 404);
    disk.full.store(false, SeqCst);
    node.ok("update_aliases", "", "", body);
}

/// A full disk that counts attempts to reopen a log, each of which truncates it to its durable length.
#[derive(Default)]
struct Attempts {
    disk: Disk,
    count: AtomicUsize,
}

impl Observer for Attempts {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if call.kind == Kind::SetLength {
            self.count.fetch_add(1, SeqCst);
        }
        self.disk.before(call)
    }
}

/// Each attempt to reopen a log reads it and begins a file, so writers that wait for one another must not each make one.
#[test]
fn writers_that_come_while_the_log_is_closed_do_not_try_to_open_it_once_more_each() {
    let node = Node::start();
    let attempts = Arc::new(Attempts::default());
    let _guard = sparrow_file_system::observe(node.folder.path(), attempts.clone());
    node.ok("create_index", "index=a", "", "");
    attempts.disk.full.store(true, SeqCst);
    let (refused, end) = (AtomicUsize::new(0), Instant::now() + Duration::from_secs(2));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let (status, answer) = node.call("index_doc", "index=a", "", "{}");
                    // A writer that waits for the log while another finds the disk full is told that the index is read-only.
                    assert!([429, 503].contains(&status), "{status} {answer}");
                    refused.fetch_add(1, SeqCst);
                }
            });
        }
    });
    // Half a second apart, by a writer or in the background.
    let count = attempts.count.load(SeqCst);
    let most = 10 + 2 * end.elapsed().as_secs() as usize;
    assert!((2..=most).contains(&count), "{count} attempts for {} writes", refused.load(SeqCst));
    assert!(refused.load(SeqCst) > 10 * count);
}

/// Panics at file operations of the kind `at` while `on` is set.
struct Panics {
    at: Kind,
    on: AtomicBool,
    happened: AtomicBool,
}

impl Observer for Panics {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if call.kind == self.at && self.on.load(SeqCst) {
            self.happened.store(true, SeqCst);
            panic!("expected by the test");
        }
        Verdict::Allow
    }
}

/// Panics hit an indexing thread that writes a segment, and the refresh itself when it opens the segment.
#[test]
fn a_panic_in_a_refresh_loses_nothing_and_a_later_one_shows_everything() {
    for at in [Kind::Create, Kind::Write, Kind::Map] {
        let node = Node::start();
        let (on, happened) = (AtomicBool::new(false), AtomicBool::new(false));
        let disk = Arc::new(Panics { at, on, happened });
        let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
        node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
        for id in ["old", "changed", "deleted"] {
            node.ok("index_doc", &format!("index=a&id={id}"), "", r#"{"n":1}"#);
        }
        node.ok("refresh", "index=a", "", "");
        node.ok("index_doc", "index=a&id=changed", "", r#"{"n":2}"#);
        node.ok("index_doc", "index=a&id=new", "", r#"{"n":2}"#);
        node.ok("delete_doc", "index=a&id=deleted", "", "");
        disk.on.store(true, SeqCst);
        let refresh = || node.call("refresh", "index=a", "", "").0;
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(refresh));
        disk.on.store(false, SeqCst);
        assert!(disk.happened.load(SeqCst), "{at:?}");
        assert!(outcome.is_err() || matches!(outcome, Ok(500..)), "{at:?}: {outcome:?}");
        assert_eq!(node.ok("get_doc", "index=a&id=changed", "", "")["_source"]["n"], json!(2));
        until("writes are taken", || node.call("index_doc", "index=a&id=later", "", r#"{"n":2}"#).0 < 300);
        until("it is refreshed", || refresh() < 300);
        let seen = |node: &Node| {
            assert_eq!(node.count("a"), 4, "{at:?}");
            assert_eq!(node.hits("a", r#"{"query":{"term":{"n":2}}}"#).len(), 3, "{at:?}");
        };
        seen(&node);
        // Nobody waits for a refresh that never comes.
        node.ok("put_settings", "index=a", "", r#"{"index":{"refresh_interval":"10ms"}}"#);
        node.ok("index_doc", "index=a&id=later", "refresh=wait_for", r#"{"n":2}"#);
        seen(&node.crash());
    }
}

/// Status that `_cluster/health` shows, and the number of indices that take no writes in the figures for `/metrics`.
fn refusing(node: &Node) -> (String, u64) {
    let health = node.ok("cluster_health", "", "", "");
    let figures = node.ok("instruments", "", "", "");
    (
        health["status"].as_str().unwrap_or_default().to_owned(),
        figures["indices"]["refusing_writes"].as_u64().unwrap_or(u64::MAX),
    )
}

#[test]
fn a_full_disk_refuses_writes_and_service_resumes_without_a_restart() {
    let node = Node::start();
    let disk = Arc::new(Disk::default());
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    let body =
        r#"{"settings":{"number_of_replicas":0},"mappings":{"properties":{"v":{"type":"sparse_vector"}}}}"#;
    node.ok("create_index", "index=a", "", body);
    for id in 0..10 {
        node.ok("index_doc", &format!("index=a&id={id}"), "", r#"{"v":{"x":1}}"#);
    }
    node.ok("refresh", "index=a", "", "");
    for round in 0..3 {
        // An attempt in the background that failed is forgotten when the next look finds nothing to do.
        until("nothing is in trouble", || refusing(&node) == ("green".to_owned(), 0));
        disk.full.store(true, SeqCst);
        let refused = node.error("index_doc", "index=a&id=refused", "", r#"{"v":{"x":1}}"#);
        assert_eq!(
            refused,
            (
                429,
                "cluster_block_exception".to_owned(),
                "index [a] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has \
                 read-only-allow-delete block];"
                    .to_owned()
            )
        );
        let bulk = node.ok("bulk", "index=a", "", "{\"index\":{}}\n{\"v\":{\"x\":1}}\n");
        assert_eq!(bulk["items"][0]["index"]["status"], json!(429), "{bulk}");
        assert_eq!(refusing(&node), ("yellow".to_owned(), 1), "health and figures say so");
        // Reads go on.
        assert_eq!(node.hits("a", r#"{"query":{"match_all":{}},"size":100}"#).len(), 10 + round);
        assert_eq!(node.ok("get_doc", "index=a&id=3", "", "")["found"], json!(true));
        let _ = node.call("refresh", "index=a", "", "");
        let _ = node.call("flush", "index=a", "", "");
        disk.full.store(false, SeqCst);
        let mut answer = json!(null);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let path = format!("index=a&id=after-{round}");
            let (status, body) = node.call("index_doc", &path, "refresh=true", r#"{"v":{"x":2}}"#);
            if status < 300 {
                break;
            }
            answer = body;
            assert!(Instant::now() < deadline, "round {round}: writes are not taken again: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(answer);
        assert_eq!(
            node.count("a"),
            11 + round as u64,
            "nothing that was refused is there, and nothing is lost"
        );
    }
    node.ok("flush", "index=a", "", "");
    let node = node.crash();
    assert_eq!(node.count("a"), 13);
    assert_eq!(node.call("get_doc", "index=a&id=refused", "", "").0, 404);
}

/// Syncing the log failed, so its writes were refused: no read may show them, neither while the disk is full nor later.
#[test]
fn what_a_full_disk_refused_is_read_by_nobody() {
    // Without regular refreshes, and with them; and how many documents a search finds as they were at first.
    for (interval, at_first) in [("-1", 2), ("10ms", 1)] {
        let node = Node::start();
        let disk = Arc::new(Disk::default());
        let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
        let settings = format!(r#"{{"settings":{{"refresh_interval":"{interval}"}}}}"#);
        node.ok("create_index", "index=a", "", &settings);
        for id in ["changed", "deleted"] {
            node.ok("index_doc", &format!("index=a&id={id}"), "refresh=true", r#"{"n":1}"#);
        }
        node.ok("index_doc", "index=a&id=changed", "", r#"{"n":2}"#);
        let hits = |n: u32| node.hits("a", &format!(r#"{{"query":{{"term":{{"n":{n}}}}}}}"#)).len();
        until("it is refreshed", || hits(1) == at_first);
        disk.full.store(true, SeqCst);
        for id in ["changed", "new"] {
            assert_eq!(node.call("index_doc", &format!("index=a&id={id}"), "", r#"{"n":3}"#).0, 429);
        }
        assert_eq!(node.call("delete_doc", "index=a&id=deleted", "", "").0, 429);
        let seen = |when: &str| {
            let n = |id: &str| {
                let (status, body) = node.call("get_doc", &format!("index=a&id={id}"), "", "");
                (status, body["_source"]["n"].clone())
            };
            assert_eq!(n("changed"), (200, json!(2)), "{interval}: {when}");
            assert_eq!(n("deleted"), (200, json!(1)), "{interval}: {when}");
            assert_eq!(n("new").0, 404, "{interval}: {when}");
            assert_eq!((hits(3), hits(1)), (0, at_first), "{interval}: {when}");
        };
        seen("while the disk is full");
        for operation in ["refresh", "force_merge"] {
            let (status, kind, _) = node.error(operation, "index=a", "", "");
            assert_eq!((status, kind.as_str()), (429, "cluster_block_exception"), "{operation}");
            seen(operation);
        }
        std::thread::sleep(Duration::from_millis(100));
        seen("when it would have been refreshed");
        disk.full.store(false, SeqCst);
        until("writes are taken", || node.call("index_doc", "index=a&id=new", "", r#"{"n":4}"#).0 < 300);
        node.ok("refresh", "index=a", "", "");
        assert_eq!((hits(1), hits(2), hits(3), hits(4)), (1, 1, 0, 1), "what was acknowledged, and no more");
    }
}

/// A write with `refresh=wait_for` waits for the regular refresh, which does not come while the log is closed.
#[test]
fn who_waits_for_a_refresh_hears_that_the_disk_is_full() {
    let node = Node::start();
    let disk = Arc::new(Disk::default());
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"1h"}}"#);
    node.ok("index_doc", "index=a&id=1", "refresh=true", r#"{"n":1}"#);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| node.call("index_doc", "index=a&id=1", "refresh=wait_for", r#"{"n":2}"#));
        let n = || node.ok("get_doc", "index=a&id=1", "", "")["_source"]["n"].clone();
        until("it is written", || n() == json!(2));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished());
        disk.full.store(true, SeqCst);
        assert_eq!(node.call("index_doc", "index=a&id=2", "", r#"{"n":3}"#).0, 429);
        until("the wait ends", || waiter.is_finished());
        let (status, answer) = waiter.join().unwrap();
        assert_eq!(status, 429, "{answer}");
        assert_eq!(n(), json!(2), "it is in the log all the same");
        disk.full.store(false, SeqCst);
        until("writes are taken", || node.call("index_doc", "index=a&id=2", "refresh=true", "{}").0 < 300);
        assert_eq!(node.hits("a", r#"{"query":{"term":{"n":2}}}"#).len(), 1);
    });
}

/// There is space for the log but none for segments: tantivy only reports that a thread ended, and the answer has to say why.
#[test]
fn a_refresh_for_which_there_is_no_room_says_so() {
    let node = Node::start();
    let disk = Arc::new(Disk { only: Some("segments"), ..Disk::default() });
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"-1"}}"#);
    node.ok("index_doc", "index=a&id=1", "refresh=true", r#"{"n":1}"#);
    node.ok("index_doc", "index=a&id=2", "", r#"{"n":2}"#);
    disk.full.store(true, SeqCst);
    // Also when recoveries have been tried, and failed.
    for operation in ["refresh", "flush", "force_merge", "refresh", "flush", "refresh", "flush"] {
        std::thread::sleep(Duration::from_millis(200));
        let (status, kind, _) = node.error(operation, "index=a", "", "");
        assert_eq!((status, kind.as_str()), (429, "cluster_block_exception"), "{operation}");
    }
    assert_eq!(node.ok("get_doc", "index=a&id=2", "", "")["_source"]["n"], json!(2));
    let watermark = r#"{"transient":{"cluster.routing.allocation.disk.watermark.high":"5%"}}"#;
    disk.full.store(false, SeqCst);
    until("there is room", || node.call("refresh", "index=a", "", "").0 == 200);
    assert_eq!(node.count("a"), 2);
    let all = Arc::new(Disk { full: true.into(), ..Disk::default() });
    let _guard = sparrow_file_system::observe(node.folder.path(), all);
    node.ok("put_cluster_settings", "", "", watermark);
}

/// Adding a field needs a commit, which fails twice: the segments lack what was buffered with it, and have to know it.
#[test]
fn what_was_written_before_a_field_that_could_not_be_added_is_kept() {
    let node = Node::start();
    let disk = Arc::new(Disk { only: Some("segments"), ..Disk::default() });
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"-1"}}"#);
    node.ok("index_doc", "index=a&id=2", "refresh=true", r#"{"n":2}"#);
    disk.full.store(true, SeqCst);
    let body =
        "{\"index\":{\"_id\":\"2\"}}\n{\"n\":22}\n{\"index\":{\"_id\":\"3\"}}\n{\"new\":\"a new field\"}\n";
    let bulk = node.ok("bulk", "index=a", "", body);
    assert_eq!(bulk["items"][0]["index"]["status"], json!(200), "{bulk}");
    assert_eq!(bulk["items"][1]["index"]["status"], json!(429), "{bulk}");
    let n = |node: &Node| node.ok("get_doc", "index=a&id=2", "", "")["_source"]["n"].clone();
    for operation in ["refresh", "flush", "refresh"] {
        assert_eq!(node.error(operation, "index=a", "", "").0, 429, "{operation}");
        assert_eq!(n(&node), json!(22), "{operation}");
    }
    disk.full.store(false, SeqCst);
    until("there is room", || node.call("flush", "index=a", "", "").0 == 200);
    assert_eq!(n(&node), json!(22));
    assert_eq!(node.hits("a", r#"{"query":{"term":{"n":22}}}"#).len(), 1);
    assert_eq!(n(&node.crash()), json!(22));
}

#[test]
fn the_flood_stage_watermark_blocks_writes_and_is_lifted_by_itself() {
    let node = Node::start();
    node.ok("index_doc", "index=a&id=1", "refresh=true", "{}");
    let marks = |flood: &str, high: &str| {
        let prefix = "cluster.routing.allocation.disk.watermark";
        let body = format!("{{\"transient\":{{\"{prefix}.flood_stage\":{flood},\"{prefix}.high\":{high}}}}}");
        node.ok("put_cluster_settings", "", "", &body);
    };
    let writes = || node.call("index_doc", "index=a&id=1", "", "{}").0;
    marks("\"100000tb\"", "\"100000tb\"");
    until("writes are refused", || writes() == 429);
    assert_eq!(node.ok("instruments", "", "", "")["indices"]["flooded"], json!(1));
    let settings = node.ok("get_settings", "index=a", "", "");
    assert_eq!(settings["a"]["settings"]["index"]["blocks"]["read_only_allow_delete"], json!("true"));
    assert_eq!(node.hits("a", "{}").len(), 1, "reads go on");
    node.ok("delete_index", "index=a", "", "");
    node.ok("create_index", "index=a", "", "");
    marks("null", "null");
    until("writes are taken again", || writes() < 300);
    let (status, kind, _) = node.error(
        "put_cluster_settings",
        "",
        "",
        r#"{"transient":{"cluster.routing.allocation.disk.watermark.high":"much"}}"#,
    );
    assert_eq!((status, kind.as_str()), (400, "illegal_argument_exception"));
}

#[test]
#[ignore = "second tier: 1,500 writes, one after another"]
fn small_writes_do_not_fill_the_disk() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"-1"}}"#);
    let text = "word ".repeat(40);
    for round in 0..150 {
        for id in 0..10 {
            let body = format!("{{\"n\":{round},\"t\":\"{text}\"}}");
            node.ok("index_doc", &format!("index=a&id={id}"), "", &body);
        }
        node.ok("refresh", "index=a", "", "");
    }
    let bytes = |path: &std::path::Path| -> u64 {
        std::fs::read_dir(path)
            .unwrap()
            .flatten()
            .map(|entry| entry.metadata().map_or(0, |it| it.len()))
            .sum()
    };
    let indices = node.folder.path().join("indices");
    let root = std::fs::read_dir(indices).unwrap().flatten().next().unwrap().path();
    let segments = bytes(&root.join("segments-1"));
    // 150 refreshes of ten small documents: without removing what no commit names there are more than ten megabytes.
    assert!(segments < 2 << 20, "{segments} bytes of segments for ten documents");
    assert_eq!(node.count("a"), 10);
}

#[test]
fn a_forced_merge_leaves_other_work_alone() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"-1"}}"#);
    for round in 0..6 {
        let lines: String = (0..3000)
            .map(|id| {
                format!("{{\"index\":{{}}}}\n{{\"n\":{round},\"t\":\"some words of document {id}\"}}\n")
            })
            .collect();
        node.ok("bulk", "index=a", "refresh=true", &lines);
    }
    std::thread::scope(|scope| {
        let node = &node;
        let merging = scope.spawn(move || node.ok("force_merge", "index=a", "max_num_segments=1", ""));
        let mut writes = 0;
        while !merging.is_finished() {
            node.ok("index_doc", "index=a", "refresh=true", r#"{"n":100}"#);
            writes += 1;
        }
        assert!(writes > 0);
    });
    assert!(node.count("a") > 18_000);
}

/// Lets renames and removals of an index's metadata file happen, and then reports that they failed.
struct MetadataNames(AtomicBool);

impl Observer for MetadataNames {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let named = call.to.unwrap_or(call.path).to_string_lossy().contains("/store/index-");
        let renames = matches!(call.kind, Kind::Rename | Kind::Remove);
        if named && renames && self.0.load(SeqCst) {
            return Verdict::Torn(0, std::io::Error::other("injected: the disk failed afterwards"));
        }
        Verdict::Allow
    }
}

#[test]
fn an_index_that_could_not_be_made_does_not_take_the_place_of_the_next_of_its_name() {
    let node = Node::start();
    let names = Arc::new(MetadataNames(AtomicBool::new(true)));
    let _guard = sparrow_file_system::observe(node.folder.path(), names.clone());
    node.error("create_index", "index=a", "", "");
    // What may be left cannot be removed for certain either: the name is not given to another.
    node.error("index_doc", "index=a&id=0", "", r#"{"x":0}"#);
    names.0.store(false, SeqCst);
    for id in 0..5 {
        node.ok("index_doc", &format!("index=a&id={id}"), "", &format!("{{\"x\":{id}}}"));
    }
    let stores = std::fs::read_dir(node.folder.path().join("store")).unwrap().flatten();
    let of_indices = stores.filter(|entry| entry.file_name().to_string_lossy().starts_with("index-")).count();
    assert_eq!(of_indices, 1, "only the second one is on the disk");
    assert_eq!(node.crash().count("a"), 5);
}

/// The remains of an index that could not be made are removed as soon as the disk allows it, even if no other index is made.
#[test]
fn what_is_left_of_an_index_that_could_not_be_made_is_removed_by_itself() {
    let node = Node::start();
    let names = Arc::new(MetadataNames(AtomicBool::new(true)));
    let _guard = sparrow_file_system::observe(node.folder.path(), names.clone());
    node.error("create_index", "index=a", "", "");
    let left = || {
        let stores = std::fs::read_dir(node.folder.path().join("store")).unwrap().flatten();
        stores.filter(|entry| entry.file_name().to_string_lossy().starts_with("index-")).count()
    };
    names.0.store(false, SeqCst);
    until("nothing is left", || left() == 0);
}

/// Lets one rename to a file name with this ending happen, and then reports that it failed.
struct FailsAfterRenaming(&'static str, AtomicBool);

impl Observer for FailsAfterRenaming {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let to = call.to.map(|to| to.to_string_lossy().into_owned()).unwrap_or_default();
        if call.kind == Kind::Rename && to.ends_with(self.0) && self.1.swap(false, SeqCst) {
            return Verdict::Torn(0, std::io::Error::other("injected: the disk failed afterwards"));
        }
        Verdict::Allow
    }
}

/// After such a failure it is unknown which commit, or which content of a file, is on the disk: so no file may be replaced, as a
/// new text field requires, and none may be listed.
#[test]
fn a_mapping_that_widens_while_the_disk_fails_leaves_the_index_whole() {
    for name in ["/meta.json", ".fieldnorm"] {
        let node = Node::start();
        let disk = Arc::new(FailsAfterRenaming(name, AtomicBool::new(false)));
        let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
        node.ok("create_index", "index=a", "", r#"{"mappings":{"properties":{"t":{"type":"text"}}}}"#);
        for round in 0..3 {
            let write = |id: &str, body: &str| {
                node.call("index_doc", &format!("index=a&id={id}-{round}"), "", body).0 < 300
            };
            assert!(write("first", r#"{"t":"red fox"}"#));
            disk.1.store(true, SeqCst);
            let _ = node.call("flush", "index=a", "", "");
            let wider = format!("{{\"t\":\"blue\",\"late{round}\":\"a late field\"}}");
            until("documents with new fields are taken", || write("second", &wider));
            assert!(!disk.1.load(SeqCst), "{name}: the disk failed");
            until("the index is flushed again", || node.call("flush", "index=a", "", "").0 < 300);
            assert_eq!(node.count("a"), 2 * round + 2);
        }
        let node = node.crash();
        assert_eq!(node.count("a"), 6);
        assert_eq!(node.hits("a", r#"{"query":{"match":{"late1":"late"}}}"#).len(), 1);
    }
}

#[test]
fn an_index_that_could_not_be_deleted_is_what_it_was() {
    let node = Node::start();
    let names = Arc::new(MetadataNames(AtomicBool::new(false)));
    let _guard = sparrow_file_system::observe(node.folder.path(), names.clone());
    node.ok("create_index", "index=a", "", "");
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":1}"#);
    names.0.store(true, SeqCst);
    // Removed, and then called failed: the metadata is written again as soon as the disk lets it.
    node.error("delete_index", "index=a", "", "");
    names.0.store(false, SeqCst);
    let (status, answer) = node.call("index_doc", "index=a&id=2", "", r#"{"x":2}"#);
    let refused = status >= 300;
    assert!(!refused || status == 404, "{answer}");
    node.ok("delete_index", "index=a", "", "");
    assert_eq!(node.crash().call("exists_index", "index=a", "", "").0, 404);
}

/// The folder of the log is made together with the index; without it nobody knows which writes are missing.
#[test]
fn an_index_whose_log_is_gone_says_so() {
    let node = Node::start();
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":1}"#);
    node.ok("index_doc", "index=b&id=1", "", r#"{"x":1}"#);
    let copy = node.copy_data();
    let uuid = node.ok("get_settings", "index=a", "", "")["a"]["settings"]["index"]["uuid"].clone();
    let log = copy.path().join("indices").join(uuid.as_str().unwrap()).join("wal");
    std::fs::remove_dir_all(&log).unwrap();
    let damaged = Node::open(copy, |_| {});
    let (status, kind, reason) = damaged.error("get_doc", "index=a&id=1", "", "");
    assert_eq!((status, kind.as_str()), (503, "no_shard_available_action_exception"));
    assert!(reason.contains("the folder of the log is missing"), "{reason}");
    assert_eq!(damaged.ok("get_doc", "index=b&id=1", "", "")["found"], json!(true));
}

/// A disk with space for file names but none for content, while the switch is on.
struct NoBytes(AtomicBool);

impl Observer for NoBytes {
    fn before(&self, call: &Call<'_>) -> Verdict {
        match call.kind {
            Kind::Write | Kind::Sync if self.0.load(SeqCst) => {
                Verdict::Fail(std::io::ErrorKind::StorageFull.into())
            }
            _ => Verdict::Allow,
        }
    }
}

#[test]
fn a_start_on_a_full_disk_reads_what_is_there_and_writes_again_when_there_is_room() {
    let node = Node::start();
    node.ok("index_doc", "index=a&id=1", "", r#"{"x":1}"#);
    node.ok("flush", "index=a", "", "");
    for id in 0..20 {
        node.ok("index_doc", &format!("index=replayed&id={id}"), "", r#"{"x":1}"#);
    }
    node.ok("update_aliases", "", "", r#"{"actions":[{"add":{"index":"replayed","alias":"other"}}]}"#);
    let copy = node.copy_data();
    let disk = Arc::new(NoBytes(AtomicBool::new(true)));
    let _guard = sparrow_file_system::observe(copy.path(), disk.clone());
    let node = Node::open(copy, |_| {});
    assert_eq!(node.hits("a", r#"{"query":{"match_all":{}}}"#).len(), 1);
    assert_ne!(node.call("index_doc", "index=a&id=2", "", r#"{"x":2}"#).0, 201);
    assert_eq!(node.call("count", "index=replayed", "", "{}").0, 503);
    disk.0.store(false, SeqCst);
    until("writes are taken again", || node.call("index_doc", "index=a&id=2", "", r#"{"x":2}"#).0 < 300);
    until("the other one opens", || node.call("count", "index=replayed", "", "{}").0 == 200);
    assert_eq!(node.count("other"), 20);
    let node = node.crash();
    assert_eq!((node.count("a"), node.count("other")), (2, 20));
}

/// Refuses to remove the metadata of indices while the switch is on.
struct KeepsMetadata(AtomicBool);

impl Observer for KeepsMetadata {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_metadata = call.path.to_string_lossy().contains("/store/index-");
        match call.kind == Kind::Remove && is_metadata && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::other("injected: the disk keeps it")),
            false => Verdict::Allow,
        }
    }
}

/// The removal was acknowledged although the disk kept the index's metadata: only the list of removed indices says so, and later
/// changes of aliases have to save it again.
#[test]
fn an_index_removed_with_aliases_stays_removed_though_the_disk_kept_it() {
    let node = Node::start();
    let disk = Arc::new(KeepsMetadata(AtomicBool::new(false)));
    let guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    for index in ["gone", "gone-too", "stays"] {
        node.ok("create_index", &format!("index={index}"), "", "");
    }
    disk.0.store(true, SeqCst);
    let removals = r#"{"actions":[{"remove_index":{"index":"gone"}},{"remove_index":{"index":"gone-too"}},
        {"add":{"index":"stays","alias":"x"}}]}"#;
    node.ok("update_aliases", "", "", removals);
    let more = r#"{"actions":[{"add":{"index":"stays","alias":"y"}}]}"#;
    node.ok("update_aliases", "", "", more);
    let indices = |node: &Node| {
        ["gone", "gone-too", "stays"]
            .map(|index| node.call("exists_index", &format!("index={index}"), "", "").0)
    };
    assert_eq!(indices(&node), [404, 404, 200]);
    let node = node.crash();
    assert_eq!(indices(&node), [404, 404, 200]);
    assert_eq!(node.ok("get_alias", "index=stays", "", "")["stays"]["aliases"], json!({"x": {}, "y": {}}));
    drop(guard);
}

/// Makes syncs of the folder of the stores fail: what was renamed into it is there all the same.
#[derive(Default)]
struct LosesNames {
    on: AtomicBool,
    /// Number of syncs that still fail.
    left: AtomicUsize,
}

impl Observer for LosesNames {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_store = call.kind == Kind::SyncFolder && call.path.ends_with("store");
        let fails = is_store
            && self.on.load(SeqCst)
            && self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        if fails { Verdict::Fail(std::io::Error::other("injected: the disk failed")) } else { Verdict::Allow }
    }
}

const REMOVE_AND_SWAP: &str = r#"{"actions":[{"remove_index":{"index":"a"}},
    {"remove":{"index":"b","alias":"now"}},{"add":{"index":"c","alias":"now"}}]}"#;

/// Without writing the previous state back, the next start would carry out the removal that was refused.
#[test]
fn a_removal_that_the_disk_refused_takes_no_acknowledged_write_with_it() {
    // The failure passes at once, or lasts.
    for failures in [1, usize::MAX] {
        let node = Node::start();
        let disk = Arc::new(LosesNames::default());
        let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
        for index in ["a", "b", "c"] {
            let settings = r#"{"settings":{"number_of_replicas":0}}"#;
            node.ok("create_index", &format!("index={index}"), "", settings);
            node.ok("index_doc", &format!("index={index}&id=1"), "", r#"{"x":1}"#);
        }
        node.ok("update_aliases", "", "", r#"{"actions":[{"add":{"index":"b","alias":"now"}}]}"#);
        disk.left.store(failures, SeqCst);
        disk.on.store(true, SeqCst);
        node.error("update_aliases", "", "", REMOVE_AND_SWAP);
        let write = |id: &str| node.call("index_doc", &format!("index=a&id={id}"), "", r#"{"x":2}"#).0;
        let acknowledged = if failures == 1 {
            assert_eq!(write("2"), 201, "all is as before");
            2
        } else {
            assert_eq!(write("2"), 503, "nothing is acknowledged that the next start may remove");
            assert_eq!(node.call("index_doc", "index=b&id=2", "", "{}").0, 201, "others take writes");
            assert_eq!(node.call("get_doc", "index=a&id=1", "", "").0, 200, "reads go on");
            assert_eq!(node.ok("cluster_health", "", "", "")["status"], json!("yellow"));
            disk.on.store(false, SeqCst);
            until("writes are taken again", || write("3") == 201);
            until("it is green", || refusing(&node).0 == "green");
            2
        };
        let node = node.crash();
        assert_eq!(node.count("a"), acknowledged);
        let aliases = node.ok("get_alias", "", "", "");
        assert_eq!(aliases["b"]["aliases"], json!({"now": {}}), "{aliases}");
        assert_eq!(aliases["c"]["aliases"], json!({}), "{aliases}");
    }
}
