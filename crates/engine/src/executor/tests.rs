//! How the lanes order operations, refuse them, and let short ones past long ones.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sparrow_request::request::Request;
use sparrow_request::waits::waiting;

use super::queue::IDLE;
use super::state::{LANE_BYTES, PATIENCE, SHORT};
use super::*;

#[test]
fn a_panic_becomes_an_error_and_the_worker_lives_on() {
    let executor = Executor::new(1, None);
    for lane in
        [Lane::Read, Lane::Infer, Lane::Write, Lane::Look, Lane::Trial, Lane::Watch, Lane::Health, Lane::Long]
    {
        for _ in 0..20 {
            let (sender, receiver) = mpsc::channel();
            executor.run(
                lane,
                Load::default(),
                &CancelFlag::default(),
                || panic!("expected by the test"),
                Box::new(move |result| sender.send(result).unwrap()),
            );
            let error = receiver.recv().unwrap().unwrap_err();
            assert_eq!(error.status(), 500);
            assert!(error.reason().contains("expected by the test"));
        }
    }
    executor.close();
    let (sender, receiver) = mpsc::channel();
    executor.run(
        Lane::Read,
        Load::default(),
        &CancelFlag::default(),
        || Ok(Reply::acknowledged()),
        Box::new(move |result| sender.send(result).unwrap()),
    );
    assert!(receiver.recv().unwrap().is_err());
}

/// Keeps `workers` workers of a lane busy until the returned sender is dropped.
fn busy(executor: &Executor, lane: Lane, workers: usize) -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    let (begun, begins) = mpsc::channel();
    for _ in 0..workers {
        let (receiver, begun) = (receiver.clone(), begun.clone());
        let wait = move || {
            begun.send(()).unwrap();
            let _ = receiver.lock().recv();
            Ok(Reply::acknowledged())
        };
        executor.run(lane, Load::default(), &CancelFlag::default(), wait, Box::new(|_| {}));
    }
    // One that is refused begins nothing.
    drop(begun);
    assert_eq!(begins.iter().take(workers).count(), workers);
    sender
}

fn refused(executor: &Executor, lane: Lane, bytes: usize) -> bool {
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result: Result<Reply, EngineError>| {
        let _ = sender.send(result.is_err());
    });
    executor.run(
        lane,
        Load { bytes, ..Load::default() },
        &CancelFlag::default(),
        || Ok(Reply::acknowledged()),
        done,
    );
    receiver.recv_timeout(Duration::from_millis(20)).unwrap_or(false)
}

#[test]
fn what_waits_is_bounded_in_bytes_and_in_time() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Write, 8);
    // The largest body waits if nothing else does.
    assert!(!refused(&executor, Lane::Write, LANE_BYTES * 2));
    assert!(refused(&executor, Lane::Write, 1));
    drop(held);
    let held = busy(&executor, Lane::Read, 16);
    assert!(!refused(&executor, Lane::Read, 1));
    assert!(!refused(&executor, Lane::Read, 1));
    thread::sleep(*PATIENCE.start());
    assert!(refused(&executor, Lane::Read, 1));
    // Health is asked meanwhile.
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result: Result<Reply, EngineError>| sender.send(result).unwrap());
    executor.run(Lane::Health, Load::default(), &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
    assert!(receiver.recv_timeout(Duration::from_secs(60)).unwrap().is_ok());
    drop(held);
}

#[test]
fn reads_run_as_the_cores_allow_and_get_past_those_that_wait_or_take_long() {
    let executor = Executor::new(1, None);
    // What takes long holds the only core for a short time only.
    let begun = Instant::now();
    let held = busy(&executor, Lane::Read, 1);
    assert!(is_answered(&executor, Lane::Read));
    assert!(begun.elapsed() >= SHORT, "one after the other");
    // What waits for the encoder holds none.
    let (sender, receiver) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let wait = move || {
        waiting(|| {
            begins.send(()).unwrap();
            let _ = receiver.recv();
        });
        Ok(Reply::acknowledged())
    };
    executor.run(Lane::Read, Load::default(), &CancelFlag::default(), wait, Box::new(|_| {}));
    begun.recv().unwrap();
    // A worker has sent its answer before it counts as idle.
    let working = || executor.read.state.lock().begun.iter().flatten().count();
    until("only the long one needs a core", || working() == 1);
    assert!(is_answered(&executor, Lane::Read));
    drop((held, sender));
}

#[test]
fn a_key_that_sends_very_much_keeps_nobody_else_waiting_and_has_nobody_else_refused() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Write, 8);
    let (begins, begun) = mpsc::channel();
    let send = |key: &'static str| {
        let (begins, (answers, answered)) = (begins.clone(), mpsc::channel());
        let load = Load { owner: Some(Holder::new(key, "{}")), ..Load::default() };
        let work = move || {
            begins.send(key).unwrap();
            Ok(Reply::acknowledged())
        };
        let done = move |result: Result<Reply, EngineError>| {
            let _ = answers.send(result.is_err());
        };
        executor.run(Lane::Write, load, &CancelFlag::default(), work, Box::new(done));
        answered.recv_timeout(Duration::from_millis(20)).unwrap_or(false)
    };
    // Each has a thread by now, so that the rest waits.
    let relieved = ["many", "few", "another"].map(|key| relieved(&executor, Lane::Write, key));
    assert!((0..20).all(|_| !send("many")));
    assert!(!send("few"));
    thread::sleep(*PATIENCE.start());
    assert!(send("many"), "its first is late");
    assert!(!send("another"), "it has none that waits");
    drop(held);
    let order: Vec<&str> = begun.iter().take(22).collect();
    drop(relieved);
    // The eight workers may tell in another order than the one in which they took them.
    let places = |key: &str| order.iter().position(|one| *one == key).expect("it has begun");
    assert!(places("few") < 12 && places("another") < 12, "{order:?}");
}

#[test]
fn a_key_leaves_workers_to_others() {
    let executor = Executor::new(1, None);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (begins, begun) = mpsc::channel();
    for _ in 0..20 {
        let (begins, held) = (begins.clone(), held.clone());
        let work = move || {
            waiting(|| {
                begins.send(()).unwrap();
                let _ = held.lock().recv();
            });
            Ok(Reply::acknowledged())
        };
        let load = Load { owner: Some(Holder::new("many", "{}")), ..Load::default() };
        executor.run(Lane::Read, load, &CancelFlag::default(), work, Box::new(|_| {}));
    }
    assert_eq!(begun.iter().take(12).count(), 12);
    assert!(is_answered(&executor, Lane::Read), "of another");
    assert!(begun.try_recv().is_err(), "it has as many as it may have");
    drop(release);
    assert_eq!(begun.iter().take(8).count(), 8, "the rest follows");
}

/// Has an operation of this key begin, which goes on until the returned sender is dropped.
fn relieved(executor: &Executor, lane: Lane, key: &str) -> mpsc::Sender<()> {
    let (sender, held) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let work = move || {
        waiting(|| {
            begins.send(()).unwrap();
            let _ = held.recv();
        });
        Ok(Reply::acknowledged())
    };
    let load = Load { owner: Some(Holder::new(key, "{}")), ..Load::default() };
    executor.run(lane, load, &CancelFlag::default(), work, Box::new(|_| {}));
    begun.recv_timeout(Duration::from_secs(60)).expect("it begins");
    sender
}

/// Even if other keys hold all workers, each key can run one operation at a time, and some workers are left to callers without
/// restrictions.
#[test]
fn several_keys_together_keep_nobody_out() {
    let executor = Executor::new(1, None);
    let keys: Vec<String> = (0..40).map(|number| format!("key{number}")).collect();
    let mut held: Vec<_> = (0..16).map(|_| relieved(&executor, Lane::Read, "first")).take(12).collect();
    held.extend((0..2).map(|_| relieved(&executor, Lane::Read, "second")));
    let workers = |executor: &Executor| executor.read.stats().workers - executor.read.stats().active;
    // Each operation says that it has begun before its worker is counted as one.
    until("two workers are left to callers without restrictions", || workers(&executor) == 2);
    held.extend(keys.iter().map(|key| relieved(&executor, Lane::Read, key)));
    // So it is where callers without restrictions have all workers.
    let all = busy(&executor, Lane::Read, 2);
    held.push(relieved(&executor, Lane::Read, "last"));
    assert!(executor.read.state.lock().waiting.is_empty());
    drop((held, all));
    until("those that helped out are gone", || executor.read.stats().active == 0);
    // What waits of a key that has a worker is taken when that one is done.
    let all = busy(&executor, Lane::Read, 16);
    let first = relieved(&executor, Lane::Read, "first");
    let (begins, begun) = mpsc::channel();
    for _ in 0..3 {
        let begins = begins.clone();
        let work = move || {
            begins.send(()).unwrap();
            Ok(Reply::acknowledged())
        };
        let load = Load { owner: Some(Holder::new("first", "{}")), ..Load::default() };
        executor.run(Lane::Read, load, &CancelFlag::default(), work, Box::new(|_| {}));
    }
    assert!(begun.recv_timeout(Duration::from_millis(50)).is_err());
    drop(first);
    assert_eq!((0..3).filter(|_| begun.recv_timeout(Duration::from_secs(60)).is_ok()).count(), 3);
    drop(all);
    executor.close();
}

#[test]
fn a_key_with_little_that_waits_is_let_in_where_others_have_filled_the_queue() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Write, 8);
    let few = relieved(&executor, Lane::Write, "few");
    assert!(!refused(&executor, Lane::Write, LANE_BYTES));
    assert!(refused(&executor, Lane::Write, 1), "of the same caller");
    let refused = |bytes| {
        let load = Load { owner: Some(Holder::new("few", "{}")), bytes };
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |result: Result<Reply, EngineError>| {
            let _ = sender.send(result.is_err());
        });
        executor.run(Lane::Write, load, &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
        receiver.recv_timeout(Duration::from_millis(20)).unwrap_or(false)
    };
    assert!(refused(8 << 20), "that is much");
    assert!(!refused(1 << 20));
    assert!((0..14).all(|_| !refused(1)) && !refused(1));
    assert!(refused(1), "these are many");
    drop((held, few));
}

#[test]
fn no_search_waits_for_those_that_wait_for_a_model() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Infer, 16);
    assert!(is_answered(&executor, Lane::Read));
    drop(held);
}

#[test]
fn overload_makes_the_queue_short_until_it_is_over() {
    let executor = Executor::new(2, None);
    let held = busy(&executor, Lane::Read, 16);
    let cancel = CancelFlag::default();
    for _ in 0..10 {
        executor.run(Lane::Read, Load::default(), &cancel, || Ok(Reply::acknowledged()), Box::new(|_| {}));
    }
    assert!(!refused(&executor, Lane::Read, 1), "as many as come");
    thread::sleep(*PATIENCE.start());
    assert!(refused(&executor, Lane::Read, 1), "the first is late");
    executor.read.state.lock().waiting.iter().for_each(|one| one.cancel.cancel());
    assert!(!refused(&executor, Lane::Read, 1));
    assert!(!refused(&executor, Lane::Read, 1));
    assert!(refused(&executor, Lane::Read, 1), "only as many as are worked on at once");
    drop(held);
}

#[test]
fn what_nobody_waits_for_any_longer_keeps_nobody_out() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Write, 8);
    let cancel = CancelFlag::default();
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result: Result<Reply, EngineError>| drop(sender.send(result)));
    let load = Load { bytes: LANE_BYTES * 2, ..Load::default() };
    executor.run(Lane::Write, load, &cancel, || Err(EngineError::Cancelled), done);
    assert!(refused(&executor, Lane::Write, 1));
    cancel.cancel();
    assert!(!refused(&executor, Lane::Write, 1));
    assert!(matches!(receiver.recv().unwrap(), Err(EngineError::Cancelled)));
    drop(held);
}

#[test]
fn long_operations_are_bounded_and_can_be_seen_and_ended_all_the_same() {
    let executor = Executor::new(1, None);
    let held = busy(&executor, Lane::Long, LONG_CAPACITY);
    assert!(refused(&executor, Lane::Long, 0));
    for op in ["list_tasks", "get_task", "cancel_task", "cancel_tasks", "instruments"] {
        assert!(is_answered(&executor, lane(op, "")), "{op}");
    }
    assert_eq!(lane("get_task", "true"), Lane::Long, "who waits is one of them");
    drop(held);
}

#[test]
fn a_key_leaves_long_operations_for_others() {
    let executor = Executor::new(1, None);
    let (held, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let began = |key: Option<&str>| {
        let (sender, receiver) = mpsc::channel();
        let refused = sender.clone();
        let wait = Arc::clone(&wait);
        let work = move || {
            let _ = sender.send(true);
            let _ = wait.lock().recv();
            Ok(Reply::acknowledged())
        };
        let done = Box::new(move |result: Result<Reply, EngineError>| {
            let _ = refused.send(result.is_ok());
        });
        let load = Load { owner: key.map(|key| Holder::new(key, "{}")), ..Load::default() };
        executor.run(Lane::Long, load, &CancelFlag::default(), work, done);
        receiver.recv().unwrap()
    };
    let count = |key: Option<&str>| (0..=LONG_CAPACITY).take_while(|_| began(key)).count();
    assert_eq!(count(Some("one")), LONG_CAPACITY / 2);
    assert_eq!(count(Some("other")), LONG_CAPACITY / 4);
    assert_eq!(count(None), LONG_CAPACITY / 4);
    drop(held);
}

#[test]
fn what_writes_nothing_keeps_no_write_waiting() {
    let executor = Executor::new(1, None);
    let held: Vec<_> = ["simulate_pipeline", "analyze", "cat_indices", "index_stats", "get_mapping"]
        .map(|op| {
            let lane = lane(op, "");
            assert_ne!(lane, Lane::Write, "{op}");
            lane
        })
        .into_iter()
        .take(1)
        .map(|lane| busy(&executor, lane, 2))
        .collect();
    assert!(is_answered(&executor, lane("index_doc", "")));
    assert!(is_answered(&executor, lane("get_mapping", "")), "and no look at the metadata");
    drop(held);
}

fn lane(op: &str, wait: &str) -> Lane {
    let mut request = Request { op: op.to_owned(), ..Request::default() };
    if !wait.is_empty() {
        request.query.insert("wait_for_completion".to_owned(), wait.to_owned());
    }
    crate::operations::find(&request).unwrap().declaration.lane_of(&request)
}

/// Whether a new operation on a lane succeeds within 20 seconds.
fn is_answered(executor: &Executor, lane: Lane) -> bool {
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result: Result<Reply, EngineError>| {
        let _ = sender.send(result.is_ok());
    });
    executor.run(lane, Load::default(), &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or(false)
}

#[test]
fn a_worker_that_becomes_idle_while_something_waits_looks_when_it_may_begin() {
    let queue = Queue::start("test", 3, 1, || (), None);
    let cancel = CancelFlag::default();
    let (begun, begins) = mpsc::channel();
    // One after the other gets past those that take long, until all workers are at work.
    let mut held: Vec<_> = (0..3)
        .map(|number| {
            let (sender, receiver) = mpsc::channel::<()>();
            let begun = begun.clone();
            let job = Box::new(move || {
                begun.send(number).unwrap();
                let _ = receiver.recv();
            });
            queue.send(job, Load::default(), &cancel).expect("taken");
            assert_eq!(begins.recv_timeout(Duration::from_secs(20)), Ok(number));
            sender
        })
        .collect();
    queue.send(Box::new(move || begun.send(3).unwrap()), Load::default(), &cancel).expect("waits");
    // The worker of the first may begin nothing yet: the third has only just begun.
    drop(held.remove(0));
    assert_eq!(begins.recv_timeout(Duration::from_secs(20)), Ok(3), "when the third takes long");
    queue.close();
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::yield_now();
    }
}

/// How often an idle worker has called its `rest` function.
static RESTS: AtomicUsize = AtomicUsize::new(0);

fn rest(_: bool) {
    RESTS.fetch_add(1, SeqCst);
    std::thread::sleep(IDLE);
}

#[test]
fn a_worker_rests_once_when_it_has_become_idle_and_works_on_what_comes_meanwhile() {
    let queue = Queue::start("test", 1, 1, || (), Some(rest));
    let mut rests = 1;
    for _ in 0..3 {
        until("it rests", || RESTS.load(SeqCst) == rests);
        let (worked, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for number in 0..2 {
            let (worked_of_job, seen) = (worked.clone(), seen.clone());
            // If the second comes late, it has rested in between.
            let job = Box::new(move || {
                seen.store(RESTS.load(SeqCst), SeqCst);
                worked_of_job.fetch_add(1, SeqCst);
            });
            queue.send(job, Load::default(), &CancelFlag::default()).expect("taken");
            until("it works", || worked.load(SeqCst) == number + 1);
        }
        rests = seen.load(SeqCst) + 1;
    }
    until("it rests", || RESTS.load(SeqCst) == rests);
    std::thread::sleep(IDLE * 4);
    assert_eq!(RESTS.load(SeqCst), rests, "once after each time that it worked");
    queue.close();
}

#[test]
fn operations_that_follow_each_other_are_all_carried_out() {
    let executor = Executor::new(2, None);
    for _ in 0..2_000 {
        let (sender, receiver) = mpsc::channel();
        executor.run(
            Lane::Read,
            Load::default(),
            &CancelFlag::default(),
            || Ok(Reply::acknowledged()),
            Box::new(move |result| sender.send(result).unwrap()),
        );
        assert!(receiver.recv_timeout(Duration::from_secs(60)).unwrap().is_ok());
    }
    executor.close();
}

/// An executor whose reads are known to be short.
#[cfg(target_os = "linux")]
fn warm() -> Executor {
    let executor = Executor::new(2, None);
    for _ in 0..100 {
        assert!(read(&executor).is_ok());
    }
    executor
}

#[cfg(target_os = "linux")]
fn read(executor: &Executor) -> Result<Reply, EngineError> {
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |result| sender.send(result).unwrap());
    executor.run(Lane::Read, Load::default(), &CancelFlag::default(), || Ok(Reply::acknowledged()), done);
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// Attempts until one is not given up: another thread may need the core, for so long that a long pause follows.
#[cfg(target_os = "linux")]
fn attempts(executor: &Executor) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if executor.attempt(Lane::Read, |_| Ok(Reply::acknowledged())).is_some() {
            return true;
        }
        assert!(read(executor).is_ok());
    }
    false
}

#[cfg(target_os = "linux")]
fn work_until_stopped(stop: &CancelFlag) {
    let begun = Instant::now();
    while !stop.is_cancelled() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody stops it");
        std::hint::spin_loop();
    }
}

/// Makes an attempt that is given up. Until it is made, it may be refused: a worker has sent an answer before it rests.
#[cfg(target_os = "linux")]
fn give_up(executor: &Executor, work: impl Fn(&CancelFlag)) {
    let (made, begun) = (Cell::new(false), Instant::now());
    while !made.get() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no attempt is made");
        assert!(read(executor).is_ok());
        let given_up = executor.attempt(Lane::Read, |stop| {
            made.set(true);
            work(stop);
            Ok(Reply::acknowledged())
        });
        assert!(given_up.is_none(), "its answer came too late");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_attempt_that_takes_too_long_is_stopped_and_others_follow_when_reads_are_short_again() {
    let executor = warm();
    assert!(attempts(&executor));
    give_up(&executor, work_until_stopped);
    assert!(
        executor.attempt(Lane::Read, |_| Ok(Reply::acknowledged())).is_none(),
        "reads are not known to be short"
    );
    assert!(attempts(&executor));
    executor.close();
    assert!(executor.attempt(Lane::Read, |_| Ok(Reply::acknowledged())).is_none());
}

#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_stopped_in_time_keeps_attempts_off_for_much_longer() {
    let took = Duration::from_millis(12);
    let executor = warm();
    let begun = Cell::new(Instant::now());
    give_up(&executor, |stop| {
        work_until_stopped(stop);
        begun.set(Instant::now());
        thread::sleep(took);
    });
    loop {
        assert!(read(&executor).is_ok());
        let made = executor.attempt(Lane::Read, |_| Ok(Reply::acknowledged())).is_some();
        // Looked at last: the time passes too while this thread has to wait for its core.
        if begun.get().elapsed() > took * 40 {
            break;
        }
        assert!(!made);
    }
    assert!(attempts(&executor));
}

#[test]
#[cfg(target_os = "linux")]
fn an_attempt_that_has_to_wait_is_given_up_before_it_waits() {
    let executor = warm();
    let stopped = Cell::new(false);
    give_up(&executor, |stop| waiting(|| stopped.set(stop.is_cancelled())));
    assert!(stopped.get());
}

#[test]
#[cfg(target_os = "linux")]
fn no_attempt_is_made_while_a_worker_is_busy() {
    let executor = warm();
    assert!(attempts(&executor));
    let held = busy(&executor, Lane::Read, 1);
    for _ in 0..100 {
        assert!(executor.attempt(Lane::Read, |_| Ok(Reply::acknowledged())).is_none());
    }
    drop(held);
    assert!(attempts(&executor));
}
