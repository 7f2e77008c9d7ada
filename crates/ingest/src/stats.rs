//! Statistics of pipelines and processors: counters since the pipeline was stored, or since the server started.

use serde_json::{Map, Value, json};

use super::Pipelines;
use super::chain::{Action, Node};
use super::counters::shown;

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

    /// Counters of all processors together, by the type of processor.
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
