use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use sparrow_write_ahead_log::{DataDir, StorageError};

use super::{MOST_RUNNING, MOST_WAITING, TaskSpec, Tasks};
use crate::store::KEPT_RESULTS;
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;
use sparrow_request::waits::{Worker, work_for};

fn open(folder: &tempfile::TempDir) -> Tasks {
    // The thread of a task that has just ended may hold the directory, and with it the lock, for a moment longer.
    for _ in 0..500 {
        match DataDir::open(folder.path()) {
            Ok(data) => return Tasks::open(Arc::new(data)).unwrap(),
            Err(StorageError::Locked { .. }) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the directory stays locked")
}

#[test]
fn who_waits_for_a_task_goes_when_nobody_waits_for_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let task = tasks.enter(TaskSpec::new("a", "")).unwrap();
    let running = tasks.running().remove(0);
    let unwanted = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| running.wait_unless(None, &|| unwanted.load(Ordering::SeqCst)).is_none());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waits.is_finished());
        unwanted.store(true, Ordering::SeqCst);
        assert!(waits.join().unwrap());
    });
    drop(task);
    assert!(running.wait_unless(None, &|| false).is_some());
}

/// Records whether the thread needs a core.
struct CoreUse(mpsc::Sender<bool>);

impl Worker for CoreUse {
    fn needs_core(&self, needs: bool) {
        self.0.send(needs).unwrap();
    }
}

#[test]
fn who_waits_for_a_task_needs_no_core_until_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let task = tasks.enter(TaskSpec::new("a", "")).unwrap();
    let running = tasks.running().remove(0);
    let (sender, needs_core) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            work_for(Arc::new(CoreUse(sender)));
            running.wait(None)
        });
        assert!(!needs_core.recv().unwrap());
        assert!(needs_core.recv_timeout(Duration::from_millis(100)).is_err(), "the task has not ended");
        drop(task);
        assert!(needs_core.recv().unwrap());
    });
}

#[test]
fn listings_and_those_who_wait_keep_no_job_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let _listings: Vec<_> = (0..200).map(|_| tasks.enter(TaskSpec::listing()).unwrap()).collect();
    let _jobs: Vec<_> = (0..MOST_RUNNING).map(|_| tasks.enter(TaskSpec::new("a", "")).unwrap()).collect();
    assert_eq!(tasks.enter(TaskSpec::new("a", "")).err().unwrap().status(), 429);
    let anybody = Request::default();
    let waiting: Vec<_> = (0..MOST_WAITING).map(|_| tasks.waiting(&anybody).unwrap()).collect();
    assert_eq!(tasks.waiting(&anybody).err().unwrap().status(), 429);
    drop(waiting);
    assert!(tasks.waiting(&anybody).is_ok());
}

#[test]
fn a_key_leaves_places_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let of = |key: &str| {
        let rights = json!({"key": key, "user": "u", "grants": {}}).to_string();
        let caller = serde_json::from_str(&rights).unwrap();
        Request { caller, ..Request::default() }
    };
    let (one, two, anybody) = (of("one"), of("two"), Request::default());
    // As many as there are free, and then half of what is left, each time.
    let enter = |request: &Request| tasks.enter(TaskSpec::new("a", "").of(request));
    let fill = |request: &Request| -> Vec<_> { std::iter::from_fn(|| enter(request).ok()).collect() };
    let held = [fill(&one), fill(&two), fill(&anybody)];
    assert_eq!(held.each_ref().map(Vec::len), [32, 16, 16]);
    assert_eq!(enter(&one).err().unwrap().status(), 429);
    drop(held);
    let wait = |request: &Request| -> Vec<_> { std::iter::from_fn(|| tasks.waiting(request).ok()).collect() };
    let held = [wait(&one), wait(&two), wait(&anybody)];
    assert_eq!(held.each_ref().map(Vec::len), [32, 16, 16]);
    drop(held);
    assert_eq!(wait(&two).len(), 32);
    // What ran before a restart goes on.
    let _held = fill(&one);
    let again = TaskSpec::new("a", "").of(&one);
    assert!(tasks.restart(1000, again, |_| Ok(json!({}))).is_ok());
}

#[test]
fn results_survive_a_restart_and_numbers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let number = {
        let tasks = open(&folder);
        let spec =
            TaskSpec::new("a:b/c", "what it does").cancellable().persistent().opaque_id(Some("me".into()));
        let handle = tasks.spawn(spec, |context| {
            context.set_status(json!({"done": 7}));
            Ok(json!({"total": 7}))
        });
        let handle = handle.unwrap();
        let id = handle.id();
        assert_eq!(handle.wait(&|| false).unwrap(), json!({"total": 7}));
        let failing = tasks
            .spawn(TaskSpec::new("x", "").persistent(), |_| {
                Err(EngineError::IndexNotFound { name: "i".into() })
            })
            .unwrap();
        assert!(failing.wait(&|| false).is_err());
        id.rsplit_once(':').unwrap().1.parse::<u64>().unwrap()
    };
    let tasks = open(&folder);
    let record = tasks.kept(number).unwrap().unwrap();
    assert_eq!(record["response"], json!({"total": 7}));
    assert_eq!(record["task"]["action"], "a:b/c");
    assert_eq!(record["task"]["description"], "what it does");
    assert_eq!(record["task"]["status"], json!({"done": 7}));
    assert_eq!(record["task"]["headers"], json!({"X-Opaque-Id": "me"}));
    assert_eq!(record["task"]["cancelled"], json!(false));
    let failed = tasks.kept(number + 1).unwrap().unwrap();
    assert_eq!(failed["error"]["type"], "index_not_found_exception");
    assert_eq!(failed.get("response"), None);
    let next = tasks.spawn(TaskSpec::new("y", ""), |_| Ok(Value::Null)).unwrap();
    assert!(next.id().ends_with(&format!(":{}", number + 2)));
    next.wait(&|| false).unwrap();
    assert!(tasks.unfinished().is_empty());
}

#[test]
fn results_of_other_tasks_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let handle = tasks.spawn(TaskSpec::new("x", ""), |_| Ok(json!(1))).unwrap();
    let number: u64 = handle.id().rsplit_once(':').unwrap().1.parse().unwrap();
    handle.wait(&|| false).unwrap();
    assert_eq!(tasks.kept(number).unwrap(), None);
}

#[test]
fn a_running_task_shows_itself_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let (started, ready) = mpsc::channel();
    let handle = tasks
        .spawn(TaskSpec::new("x", "").cancellable(), move |context| {
            context.set_status(json!({"n": 1}));
            started.send(()).unwrap();
            while !context.is_cancelled() {
                std::thread::yield_now();
            }
            Err(EngineError::Cancelled)
        })
        .unwrap();
    ready.recv().unwrap();
    let running = tasks.running();
    assert_eq!(running.len(), 1);
    let view = running[0].view(true);
    assert_eq!(view["status"], json!({"n": 1}));
    assert_eq!(view["cancellable"], json!(true));
    assert_eq!(running[0].view(false).get("status"), None);
    assert!(running[0].wait(Some(Duration::from_millis(5))).is_none());
    running[0].cancel();
    assert!(matches!(handle.wait(&|| false), Err(EngineError::Cancelled)));
    while !tasks.running().is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_task_that_was_running_is_found_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let number = {
        let tasks = open(&folder);
        let spec = TaskSpec::new("x", "d").cancellable().persistent().resumable(json!({"at": 0}));
        let handle = tasks
            .spawn(spec, |context| {
                context.checkpoint(json!({"at": 5}))?;
                while !context.is_cancelled() {
                    std::thread::yield_now();
                }
                assert!(context.is_closing());
                Err(EngineError::Cancelled)
            })
            .unwrap();
        while tasks.unfinished().first().is_none_or(|(_, record)| record["resume"]["at"] != json!(5)) {
            std::thread::yield_now();
        }
        tasks.close();
        let id = handle.id();
        assert!(handle.wait(&|| false).is_err());
        assert!(
            tasks.spawn(TaskSpec::new("y", ""), |_| Ok(Value::Null)).is_err(),
            "a closed server starts nothing"
        );
        id.rsplit_once(':').unwrap().1.parse::<u64>().unwrap()
    };
    let tasks = open(&folder);
    let unfinished = tasks.unfinished();
    assert_eq!(unfinished.len(), 1);
    assert_eq!(unfinished[0].0, number);
    assert_eq!(unfinished[0].1["resume"], json!({"at": 5}));
    tasks.give_up(number, &unfinished[0].1);
    assert!(tasks.unfinished().is_empty());
    assert_eq!(tasks.kept(number).unwrap().unwrap()["error"]["type"], "node_closed_exception");
}

#[test]
fn that_a_task_was_cancelled_is_not_forgotten_over_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let spec = || TaskSpec::new("x", "d").cancellable().persistent();
    {
        let tasks = open(&folder);
        let me = spec().opaque_id(Some("me".into())).resumable(json!({"at": 0}));
        let handle = tasks
            .spawn(me, |context| {
                // Nobody waits for it to end before the server does.
                while !context.is_closing() {
                    std::thread::yield_now();
                }
                context.checkpoint(json!({"at": 5}))?;
                Err(EngineError::Cancelled)
            })
            .unwrap();
        assert_eq!(tasks.unfinished()[0].1.get("cancelled_by_user"), None);
        tasks.cancel(&tasks.running());
        assert_eq!(tasks.unfinished()[0].1["cancelled_by_user"], true);
        tasks.close();
        assert!(handle.wait(&|| false).is_err());
    }
    let tasks = open(&folder);
    let (number, record) = tasks.unfinished().remove(0);
    assert_eq!(record["resume"], json!({"at": 5}));
    let handle = tasks.restart(number, spec().recorded(&record), |context| {
        assert_eq!(context.opaque_id().as_deref(), Some("me"));
        Ok(json!({"was_cancelled": context.is_cancelled(), "is_closing": context.is_closing()}))
    });
    let result = handle.unwrap().wait(&|| false).unwrap();
    assert_eq!(result, json!({"was_cancelled": true, "is_closing": false}));
    let kept = tasks.kept(number).unwrap().unwrap();
    assert_eq!((&kept["task"]["cancelled"], &kept["state"]), (&json!(true), &json!("completed")));
    // Nothing is written over a result.
    tasks.cancel(&[Arc::new(crate::task::Task::new(number, "n", spec()))]);
    assert_eq!(tasks.kept(number).unwrap().unwrap(), kept);
}

#[test]
fn a_panic_is_an_error_of_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let handle = tasks.spawn(TaskSpec::new("x", "").persistent(), |_| panic!("on purpose")).unwrap();
    assert_eq!(handle.wait(&|| false).unwrap_err().status(), 500);
}

#[test]
fn old_results_go() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = open(&folder);
    let surplus = 5;
    for number in 1..=KEPT_RESULTS as u64 + surplus {
        tasks.store.write(number, || json!({"state": "completed"})).unwrap();
    }
    tasks.store.trim(&|number| number == 2);
    let store = &tasks.store;
    assert_eq!(store.numbers().len(), KEPT_RESULTS);
    assert!(store.has(2) && !store.has(6) && store.has(7));
}
