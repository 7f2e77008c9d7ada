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
    op: String,
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
        op: &str,
        index: &str,
        opaque_id: Option<&String>,
        cancel: Option<&Arc<AtomicBool>>,
    ) -> RequestGuard {
        let running = Running {
            op: op.to_owned(),
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
            let mut spec = TaskSpec::new(action_of(&self.op), description).opaque_id(self.opaque_id.clone());
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

/// The action of an operation, as Elasticsearch names it in tasks.
fn action_of(op: &str) -> String {
    let action = match op {
        "search" | "count" | "knn_search" | "cat_count" => "indices:data/read/search",
        "msearch" => "indices:data/read/msearch",
        "scroll" => "indices:data/read/scroll",
        "open_point_in_time" => "indices:data/read/open_point_in_time",
        "explain" => "indices:data/read/explain",
        "field_caps" => "indices:data/read/field_caps",
        "rank_eval" => "indices:data/read/rank_eval",
        "get_doc" | "exists_doc" | "get_source" => "indices:data/read/get",
        "mget" => "indices:data/read/mget",
        "term_vectors" => "indices:data/read/tv",
        "multi_term_vectors" => "indices:data/read/mtv",
        "bulk" => "indices:data/write/bulk",
        "index_doc" | "create_doc" => "indices:data/write/index",
        "update_doc" => "indices:data/write/update",
        "delete_doc" => "indices:data/write/delete",
        "terms_enum" => "indices:data/read/xpack/termsenum/list",
        "validate_query" => "indices:admin/validate/query",
        "analyze" => "indices:admin/analyze",
        "refresh" => "indices:admin/refresh",
        "flush" => "indices:admin/flush",
        "simulate_pipeline" => "cluster:admin/ingest/pipeline/simulate",
        "infer" | "infer_stream" => "cluster:monitor/xpack/inference",
        "infer_trained_model" => "cluster:monitor/xpack/ml/inference/infer",
        other => return format!("internal:{other}"),
    };
    action.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_is_a_task_until_it_ends() {
        let (requests, cancel) = (Requests::default(), Arc::default());
        let guard = requests.begin(7, "search", "a*", Some(&"mine".to_owned()), Some(&cancel));
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
