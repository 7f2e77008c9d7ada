//! How answers get back to JavaScript.
//!
//! One threadsafe function serves all requests. A promise with a threadsafe function of its own would cost a handle of the event
//! loop for each request, and a wake-up for each answer; here answers that come together wake the loop once.

use std::sync::Arc;

use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Result, Status};
use parking_lot::Mutex;
use sparrow_engine::{EngineError, Named, Reply};

use crate::reply::NativeReply;

/// The result of one request.
pub(crate) struct Answer {
    /// The number that the caller gave the request.
    pub(crate) handle: u32,
    pub(crate) result: std::result::Result<Reply, EngineError>,
    /// Collects the names of the indices that the request used; absent if the caller did not ask for them.
    pub(crate) named: Option<Named>,
}

impl From<Answer> for NativeReply {
    fn from(answer: Answer) -> Self {
        let named = answer.named.map(|named| named.names());
        Self { named, ..NativeReply::new(answer.handle, answer.result) }
    }
}

/// Wakes the event loop. Weak: it does not keep the process alive, which is left to the code that waits for an answer.
type Bell = ThreadsafeFunction<(), (), Vec<NativeReply>, Status, false, true>;

/// Answers that JavaScript has not taken yet.
pub(crate) struct Outbox {
    waiting: Arc<Mutex<Vec<Answer>>>,
    bell: Bell,
}

impl Outbox {
    /// An outbox that hands its answers to `receiver`, on the thread of JavaScript.
    pub(crate) fn new(receiver: &Function<'_, Vec<NativeReply>, ()>) -> Result<Arc<Self>> {
        let waiting = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::clone(&waiting);
        let bell =
            receiver.build_threadsafe_function().callee_handled::<false>().weak::<true>().build_callback(
                move |_| {
                    let answers: Vec<Answer> = std::mem::take(&mut *answers.lock());
                    Ok(answers.into_iter().map(NativeReply::from).collect())
                },
            )?;
        Ok(Arc::new(Self { waiting, bell }))
    }

    /// Whether JavaScript has taken all answers.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// Sends an answer, from any thread.
    pub(crate) fn send(&self, answer: Answer) {
        let first = {
            let mut waiting = self.waiting.lock();
            waiting.push(answer);
            waiting.len() == 1
        };
        // The others go with the first one, which has rung already.
        if first {
            self.bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}
