//! Requests that wait for the cluster to be as they want it, without a thread each.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use super::health::{PATIENCE, look};
use sparrow_catalog::Node;
use sparrow_request::caught;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};

/// Requests that may wait.
const CAPACITY: usize = 1000;

type Done = Box<dyn FnOnce(Result<Reply, EngineError>) + Send>;

/// A waiting request, with the moment when it began to wait and the callback for its response.
struct Waiting {
    request: Request,
    cancel: CancelFlag,
    since: Instant,
    done: Done,
}

/// The waiting requests. One thread checks all of them, and ends when none is left.
#[derive(Default)]
pub struct Waits {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    has_thread: bool,
}

impl Waits {
    /// Answers a health request as soon as its conditions are met or its time is up; an error if it is cancelled.
    pub fn answer(&self, node: &Arc<Node>, request: Request, cancel: CancelFlag, done: Done) {
        let since = Instant::now();
        match looked(node, &request, since).transpose() {
            Some(result) => done(result),
            None => self.add(node, Waiting { request, cancel, since, done }),
        }
    }

    fn add(&self, node: &Arc<Node>, waiting: Waiting) {
        let mut state = self.state.lock();
        if state.waiting.len() >= CAPACITY {
            drop(state);
            (waiting.done)(Err(EngineError::Rejected { queue: "health", capacity: CAPACITY }));
            return;
        }
        state.waiting.push(waiting);
        if state.has_thread {
            return;
        }
        let (node, shared) = (Arc::downgrade(node), Arc::clone(&self.state));
        match thread::Builder::new().name("sparrow-waits".into()).spawn(move || watch(&node, &shared)) {
            Ok(_) => state.has_thread = true,
            Err(error) => {
                let refused = state.waiting.pop();
                drop(state);
                if let Some(waiting) = refused {
                    (waiting.done)(Err(EngineError::internal(format!("no thread: {error}"))));
                }
            }
        }
    }
}

/// The loop of the thread: checks all requests at intervals, until none is waiting.
fn watch(node: &Weak<Node>, state: &Mutex<State>) {
    let mut pause = PATIENCE;
    loop {
        thread::sleep(pause);
        let begun = Instant::now();
        let waiting = std::mem::take(&mut state.lock().waiting);
        let mut left = Vec::with_capacity(waiting.len());
        for one in waiting {
            let Some(node) = node.upgrade() else {
                (one.done)(Err(EngineError::Cancelled));
                continue;
            };
            if one.cancel.is_cancelled() {
                (one.done)(Err(EngineError::Cancelled));
                continue;
            }
            match looked(&node, &one.request, one.since).transpose() {
                Some(result) => (one.done)(result),
                None => left.push(one),
            }
        }
        // However many wait, looking takes no more than a fifth of a core.
        pause = PATIENCE.max(begun.elapsed() * 4);
        let mut state = state.lock();
        state.waiting.append(&mut left);
        if state.waiting.is_empty() {
            state.has_thread = false;
            return;
        }
    }
}

/// Checks a request; a panic, which would be a bug, becomes status 500 for it and does not affect the others.
fn looked(node: &Node, request: &Request, since: Instant) -> Result<Option<Reply>, EngineError> {
    caught(|| look(node, request, since)).unwrap_or_else(|message| {
        tracing::error!(message, "a look at the cluster panicked");
        Err(EngineError::internal(format!("internal error: {message}")))
    })
}
