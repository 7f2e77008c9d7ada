//! What pipelines and their processors have done since they were stored, or since the start.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::Pipelines;
use super::chain::{Action, Node};

/// Documents that went through a pipeline or a processor.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    count: AtomicU64,
    failed: AtomicU64,
    current: AtomicU64,
    nanos: AtomicU64,
}

/// Some documents on their way.
pub(super) struct Running<'c> {
    counters: &'c Counters,
    documents: u64,
    started: Instant,
}

impl Counters {
    /// Some documents enter.
    pub(super) fn enter(&self, documents: usize) -> Running<'_> {
        let documents = documents as u64;
        self.current.fetch_add(documents, Relaxed);
        Running { counters: self, documents, started: Instant::now() }
    }

    fn add_to(&self, sum: &mut [u64; 4]) {
        let own = [&self.count, &self.failed, &self.current, &self.nanos];
        for (sum, own) in sum.iter_mut().zip(own) {
            *sum += own.load(Relaxed);
        }
    }

    fn shown(&self) -> Value {
        let mut sum = [0; 4];
        self.add_to(&mut sum);
        shown(sum)
    }
}

impl Running<'_> {
    /// They leave, some of them failed.
    pub(super) fn leave(self, failed: usize) {
        let Counters { count, failed: failures, current, nanos } = self.counters;
        count.fetch_add(self.documents, Relaxed);
        failures.fetch_add(failed as u64, Relaxed);
        nanos.fetch_add(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        current.fetch_sub(self.documents, Relaxed);
    }
}

impl Pipelines {
    /// The `ingest` section of the statistics of a node.
    pub fn stats(&self) -> Value {
        let pipelines: Map<String, Value> = self
            .all()
            .iter()
            .map(|(id, pipeline)| {
                let mut stats = pipeline.counters.shown();
                stats["processors"] = pipeline.processors.iter().map(Node::stats).collect();
                (id.clone(), stats)
            })
            .collect();
        json!({"total": self.total.shown(), "pipelines": pipelines})
    }

    /// What all processors of a type have done together, by type.
    pub fn processor_stats(&self) -> Value {
        let mut sums: std::collections::BTreeMap<&str, [u64; 4]> = std::collections::BTreeMap::new();
        let pipelines = self.all();
        for pipeline in pipelines.values() {
            for node in &pipeline.processors {
                node.counters.add_to(sums.entry(&node.kind).or_default());
            }
        }
        sums.into_iter().map(|(kind, sum)| (kind.to_owned(), shown(sum))).collect::<Map<_, _>>().into()
    }
}

impl Node {
    fn stats(&self) -> Value {
        let kind = match &self.action {
            Action::Pipeline(call) => format!("{}:{}", self.kind, call.written()),
            _ => self.kind.clone(),
        };
        let name = self.tag.as_ref().map_or_else(|| kind.clone(), |tag| format!("{}:{tag}", self.kind));
        json!({name: {"type": self.kind, "stats": self.counters.shown()}})
    }
}

fn shown([count, failed, current, nanos]: [u64; 4]) -> Value {
    json!({"count": count, "time_in_millis": nanos / 1_000_000, "current": current, "failed": failed})
}
