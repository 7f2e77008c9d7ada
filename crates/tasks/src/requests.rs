//! The requests that are being carried out, which are shown and cancelled as tasks.
//!
//! Every request is noted here, so noting costs next to nothing: a [`Task`] is only made of one when somebody looks.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::Value;

use crate::spec::TaskSpec;
use crate::task::Task;

/// A request that is being carried out.
struct Running {
    action: &'static str,
    /// The index expression of its path.
    index: String,
    opaque_id: Option<String>,
    /// Setting it stops the request; absent if it cannot be stopped by others.
    cancel: Option<Arc<AtomicBool>>,
    started: Instant,
    /// The request as a task, once somebody has looked.
    task: OnceLock<Arc<Task>>,
}

/// All requests that are being carried out, by the numbers of their tasks.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<BTreeMap<u64, Running>>>);

impl Requests {
    /// Notes a request until the returned guard is dropped. Setting `cancel`, if given, stops it.
    pub(crate) fn begin(
        &self,
        number: u64,
        action: &'static str,
        index: &str,
        opaque_id: Option<&String>,
        cancel: Option<&Arc<AtomicBool>>,
    ) -> RequestGuard {
        let running = Running {
            action,
            index: index.to_owned(),
            opaque_id: opaque_id.cloned(),
            cancel: cancel.cloned(),
            started: Instant::now(),
            task: OnceLock::new(),
        };
        self.0.lock().insert(number, running);
        RequestGuard { number, requests: self.clone() }
    }

    /// The requests as tasks, by ascending number.
    pub(crate) fn tasks(&self, node: &str) -> Vec<Arc<Task>> {
        self.0.lock().iter().map(|(number, running)| running.task(*number, node)).collect()
    }

    /// The request of a number as a task.
    pub(crate) fn find(&self, number: u64, node: &str) -> Option<Arc<Task>> {
        self.0.lock().get(&number).map(|running| running.task(number, node))
    }
}

impl Running {
    fn task(&self, number: u64, node: &str) -> Arc<Task> {
        let make = || {
            let description =
                if self.index.is_empty() { String::new() } else { format!("indices[{}]", self.index) };
            let mut spec = TaskSpec::new(self.action, description).opaque_id(self.opaque_id.clone());
            spec.cancellable = self.cancel.is_some();
            let cancel = self.cancel.clone().unwrap_or_default();
            Arc::new(Task::of_request(number, node, spec, self.started, cancel))
        };
        Arc::clone(self.task.get_or_init(make))
    }
}

/// Guard of [`Requests::begin`]: dropping it ends the request's task.
pub struct RequestGuard {
    number: u64,
    requests: Requests,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let ended = self.requests.0.lock().remove(&self.number);
        if let Some(task) = ended.as_ref().and_then(|running| running.task.get()) {
            // Other requests may be waiting for this task to end.
            task.end(task.outcome_of(&Ok(Value::Null)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_is_a_task_until_it_ends() {
        let (requests, cancel) = (Requests::default(), Arc::default());
        let guard =
            requests.begin(7, "indices:data/read/search", "a*", Some(&"mine".to_owned()), Some(&cancel));
        let shown = requests.tasks("n");
        let view = shown[0].view(true);
        assert_eq!((shown.len(), shown[0].id()), (1, "n:7".to_owned()));
        assert_eq!(view["action"], "indices:data/read/search");
        assert_eq!((&view["description"], &view["cancellable"]), (&"indices[a*]".into(), &true.into()));
        assert_eq!(view["headers"]["X-Opaque-Id"], "mine");
        requests.find(7, "n").expect("it runs").cancel();
        assert!(cancel.load(Relaxed));
        assert!(shown[0].wait(Some(Duration::ZERO)).is_none());
        drop(guard);
        assert!(shown[0].wait(Some(Duration::ZERO)).is_some() && requests.find(7, "n").is_none());
    }
}
