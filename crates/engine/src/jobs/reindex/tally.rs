//! Counters of a reindex: what the status shows, what the response says, and where it can go on.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::jobs::task::Progress;
use crate::jobs::throttle::Throttle;

/// How far a reindex has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progressed {
    pub total: Option<u64>,
    pub updated: u64,
    pub created: u64,
    pub batches: u64,
    pub version_conflicts: u64,
    pub noops: u64,
    /// Index and sequence number of the last document that is done.
    pub after: Option<(String, u64)>,
    /// Sequence number that the next write into the destination had when this was set down: a document of the next
    /// chunk that has this or a later one was written just before a crash.
    pub destination_seq_no: Option<u64>,
    /// Documents of the unfinished batch that are done.
    pub in_batch: u64,
    /// Time spent before a restart.
    pub took_millis: u64,
}

impl Progressed {
    /// Documents that count towards `max_docs`.
    pub fn successful(&self) -> u64 {
        self.updated + self.created + self.noops
    }
}

/// Counters and pace of a running reindex.
#[derive(Debug)]
pub(super) struct Tally {
    progressed: Mutex<Progressed>,
    pub throttle: Throttle,
    began: Instant,
    earlier: Duration,
}

impl Tally {
    pub fn new(progressed: Progressed, throttle: Throttle) -> Self {
        let earlier = Duration::from_millis(progressed.took_millis);
        Self { progressed: Mutex::new(progressed), throttle, began: Instant::now(), earlier }
    }

    /// Changes the counters.
    pub fn update<T>(&self, change: impl FnOnce(&mut Progressed) -> T) -> T {
        change(&mut self.progressed.lock())
    }

    /// The counters, with the time spent.
    pub fn progressed(&self) -> Progressed {
        let mut progressed = self.progressed.lock().clone();
        progressed.took_millis = millis(self.took());
        progressed
    }

    fn took(&self) -> Duration {
        self.earlier + self.began.elapsed()
    }

    /// The response. As part of a stored task it says times in words too, as Elasticsearch does.
    pub fn response(&self, failures: Vec<Value>, cancelled: bool, stored: bool) -> Value {
        let mut response = Map::new();
        response.insert("took".into(), millis(self.took()).into());
        response.insert("timed_out".into(), false.into());
        self.counters(&mut response, cancelled, stored);
        response.insert("failures".into(), Value::Array(failures));
        Value::Object(response)
    }

    /// The counters between `timed_out` and `failures`, which are also the status of the task.
    pub fn counters(&self, into: &mut Map<String, Value>, cancelled: bool, in_words: bool) {
        let progressed = self.progressed.lock().clone();
        for (name, count) in [
            ("total", progressed.total.unwrap_or_default()),
            ("updated", progressed.updated),
            ("created", progressed.created),
            ("deleted", 0),
            ("batches", progressed.batches),
            ("version_conflicts", progressed.version_conflicts),
            ("noops", progressed.noops),
        ] {
            into.insert(name.into(), count.into());
        }
        // Nothing is retried: encoding waits for its turn, and reading and writing happen in this process.
        into.insert("retries".into(), json!({"bulk": 0, "search": 0}));
        let throttled = self.throttle.throttled_millis();
        if in_words {
            into.insert("throttled".into(), time_in_words(throttled).into());
        }
        into.insert("throttled_millis".into(), whole(throttled).into());
        let pace = self.throttle.requests_per_second();
        into.insert("requests_per_second".into(), json!(if pace.is_finite() { pace } else { -1.0 }));
        if cancelled {
            into.insert("canceled".into(), "by user request".into());
        }
        let until = self.throttle.throttled_until_millis();
        if in_words {
            into.insert("throttled_until".into(), time_in_words(until).into());
        }
        into.insert("throttled_until_millis".into(), whole(until).into());
    }
}

impl Progress for Tally {
    fn status(&self, cancelled: bool) -> Value {
        let mut status = Map::new();
        self.counters(&mut status, cancelled, false);
        Value::Object(status)
    }

    fn rethrottle(&self, requests_per_second: f64) -> bool {
        self.throttle.change(requests_per_second);
        true
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are positive and far from 2^53"
)]
fn whole(millis: f64) -> u64 {
    millis as u64
}

/// `0s`, `799.9ms`, `1.5s`, `2.1m`: one digit after the point, cut and not rounded.
fn time_in_words(millis: f64) -> String {
    if millis <= 0.0 {
        return "0s".into();
    }
    let (unit, size) = [("d", 86_400_000.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1000.0)]
        .into_iter()
        .find(|(_, size)| millis >= *size)
        .unwrap_or(("ms", 1.0));
    let tenths = whole(millis / size * 10.0);
    if tenths.is_multiple_of(10) {
        format!("{}{unit}", tenths / 10)
    } else {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Progressed, Tally, time_in_words};
    use crate::jobs::throttle::Throttle;

    #[test]
    fn times_are_cut_to_one_digit() {
        for (millis, text) in
            [(0.0, "0s"), (799.99, "799.9ms"), (28.0, "28ms"), (1500.0, "1.5s"), (126_000.0, "2.1m")]
        {
            assert_eq!(time_in_words(millis), text);
        }
    }

    #[test]
    fn the_response_has_the_documented_members_in_order() {
        let progressed =
            Progressed { total: Some(5), created: 3, noops: 2, batches: 1, ..Progressed::default() };
        let tally = Tally::new(progressed, Throttle::new(f64::INFINITY));
        let response = tally.response(Vec::new(), false, false);
        let names: Vec<&String> = response.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "took",
                "timed_out",
                "total",
                "updated",
                "created",
                "deleted",
                "batches",
                "version_conflicts",
                "noops",
                "retries",
                "throttled_millis",
                "requests_per_second",
                "throttled_until_millis",
                "failures"
            ]
        );
        assert_eq!(response["requests_per_second"].to_string(), "-1.0");
        assert_eq!(response["total"], json!(5));
        let stored = tally.response(Vec::new(), true, true);
        assert_eq!(stored["throttled"], json!("0s"));
        assert_eq!(stored["canceled"], json!("by user request"));
    }
}
