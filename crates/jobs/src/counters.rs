//! The counters of a job: those of its status, those of its response, and the position from which it can be resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::spec::Kind;
use sparrow_tasks::Progress;
use sparrow_tasks::throttle::Throttle;

/// The progress of a job, or of one slice of it, as a checkpoint stores it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progressed {
    /// Documents that it will handle, as far as is known.
    pub total: Option<u64>,
    /// Number of documents that matched at the start, including those beyond `max_docs`.
    pub found: Option<u64>,
    pub updated: u64,
    pub created: u64,
    pub deleted: u64,
    pub batches: u64,
    pub version_conflicts: u64,
    pub noops: u64,
    /// Texts of which a model has read only the first tokens.
    pub truncated_texts: u64,
    /// Index and sequence number of the last document that is done.
    pub after: Option<(String, u64)>,
    /// Documents up to that one.
    pub done: u64,
    /// Sequence number of the next write into the destination at the time of this checkpoint: after a crash, a document of the next chunk
    /// with this number or a higher one has already been copied.
    pub destination_seq_no: Option<u64>,
    /// Documents of the unfinished batch that are done.
    pub in_batch: u64,
    /// The failures so far, as the response shows them.
    pub failures: Vec<Value>,
    /// Whether all documents are done.
    pub ended: bool,
    /// Time that earlier runs took before a restart, in milliseconds.
    pub took_millis: u64,
}

impl Progressed {
    /// Documents that count towards `max_docs`.
    pub fn successful(&self) -> u64 {
        self.updated + self.created + self.deleted + self.noops
    }
}

/// Which counters are shown, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub kind: Kind,
    /// Whether the counters are part of a stored task's response, which shows all of them and gives times also in words, as Elasticsearch
    /// does.
    pub stored: bool,
    pub cancelled: bool,
}

/// The counters and the throttle of a job or slice at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    progressed: Progressed,
    slice: Option<u32>,
    throttled: f64,
    until: f64,
    pace: f64,
}

impl Figures {
    /// Adds up the counters of several slices.
    pub fn sum(slices: &[Figures]) -> Self {
        let mut sum = Self::default();
        for slice in slices {
            let (to, from) = (&mut sum.progressed, &slice.progressed);
            to.total = Some(to.total.unwrap_or_default() + from.total.unwrap_or_default());
            to.updated += from.updated;
            to.created += from.created;
            to.deleted += from.deleted;
            to.batches += from.batches;
            to.version_conflicts += from.version_conflicts;
            to.noops += from.noops;
            to.truncated_texts += from.truncated_texts;
            sum.throttled += slice.throttled;
            sum.pace += slice.pace;
            let sooner = sum.until.abs() < f64::EPSILON || slice.until < sum.until;
            sum.until = if sooner { slice.until } else { sum.until };
        }
        sum
    }

    /// The counters as a status or a response has them.
    fn shown(&self, form: Form) -> ShownCounters {
        let Progressed {
            total,
            updated,
            created,
            deleted,
            batches,
            version_conflicts,
            noops,
            truncated_texts,
            ..
        } = self.progressed;
        ShownCounters {
            slice_id: self.slice,
            total: total.unwrap_or_default(),
            updated: (form.stored || form.kind != Kind::DeleteByQuery).then_some(updated),
            created: (form.stored || form.kind == Kind::Reindex).then_some(created),
            deleted,
            batches,
            version_conflicts,
            noops,
            truncated_texts: (truncated_texts > 0).then_some(truncated_texts),
            retries: Retries::default(),
            throttled: form.stored.then(|| time_in_words(self.throttled)),
            throttled_millis: whole(self.throttled),
            requests_per_second: if self.pace.is_finite() { self.pace } else { -1.0 },
            canceled: form.cancelled.then_some("by user request"),
            throttled_until: form.stored.then(|| time_in_words(self.until)),
            throttled_until_millis: whole(self.until),
            slices: None,
        }
    }
}

/// The counters between `timed_out` and `failures` of a response, which are also the status of a task, in the order of their
/// members.
#[derive(Serialize)]
struct ShownCounters {
    #[serde(skip_serializing_if = "Option::is_none")]
    slice_id: Option<u32>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
    deleted: u64,
    batches: u64,
    version_conflicts: u64,
    noops: u64,
    /// Number of texts that were truncated; not a counter of Elasticsearch, and shown only if it is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_texts: Option<u64>,
    retries: Retries,
    #[serde(skip_serializing_if = "Option::is_none")]
    throttled: Option<String>,
    throttled_millis: u64,
    requests_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throttled_until: Option<String>,
    throttled_until_millis: u64,
    /// The counters of each slice, in a job that is divided into slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<Vec<Self>>,
}

/// The numbers of retries, which are always 0: encoding waits for its turn, and reading and writing happen in this process.
#[derive(Serialize, Default)]
struct Retries {
    bulk: u64,
    search: u64,
}

/// The response of a whole job, in the order of its members.
#[derive(Serialize)]
struct JobResponse {
    took: u64,
    timed_out: bool,
    #[serde(flatten)]
    counters: Option<ShownCounters>,
    failures: Vec<Value>,
}

/// Counters and pace of a running job, or of one slice of it.
#[derive(Debug)]
pub(super) struct JobCounters {
    progressed: Mutex<Progressed>,
    pub throttle: Throttle,
    slice: Option<u32>,
    began: Instant,
    earlier: Duration,
}

impl JobCounters {
    pub fn new(progressed: Progressed, throttle: Throttle, slice: Option<u32>) -> Self {
        let earlier = Duration::from_millis(progressed.took_millis);
        Self { progressed: Mutex::new(progressed), throttle, slice, began: Instant::now(), earlier }
    }

    /// Changes the counters under their lock.
    pub fn update<T>(&self, change: impl FnOnce(&mut Progressed) -> T) -> T {
        change(&mut self.progressed.lock())
    }

    /// Whether all documents are done.
    pub fn has_ended(&self) -> bool {
        self.progressed.lock().ended
    }

    /// The counters, including the time taken so far.
    pub fn progressed(&self) -> Progressed {
        let mut progressed = self.progressed.lock().clone();
        progressed.took_millis = millis(self.took());
        progressed
    }

    /// The counters and the throttle at this moment.
    pub fn figures(&self) -> Figures {
        Figures {
            progressed: self.progressed.lock().clone(),
            slice: self.slice,
            throttled: self.throttle.throttled_millis(),
            until: self.throttle.throttled_until_millis(),
            pace: self.throttle.requests_per_second(),
        }
    }

    fn took(&self) -> Duration {
        self.earlier + self.began.elapsed()
    }
}

impl Progress for JobCounters {
    fn status(&self, cancelled: bool) -> Value {
        // The status of a running task has all counters, and no words.
        json!(self.figures().shown(Form { kind: Kind::Reindex, stored: false, cancelled }))
    }

    fn rethrottle(&self, requests_per_second: f64) -> bool {
        self.throttle.change(requests_per_second);
        true
    }
}

/// The counters of a job's slices; a job that is not divided has a single one.
#[derive(Debug)]
pub(super) struct Slices {
    counters_of_slices: Mutex<Vec<Arc<JobCounters>>>,
    /// Whether the job is divided, which shows in its status.
    divided: AtomicBool,
    /// Throttle of the whole job in documents per second, of which new slices get a share; infinite for none.
    pace: Mutex<f64>,
}

impl Slices {
    /// A job that is not divided, with the counters `first` and their throttle.
    pub fn new(first: Arc<JobCounters>) -> Self {
        let pace = Mutex::new(first.throttle.requests_per_second());
        Self { counters_of_slices: Mutex::new(vec![first]), divided: false.into(), pace }
    }

    /// Divides the job into slices: creates the counters of each, starting from `progressed` and with an equal share of the throttle.
    pub fn divide(&self, progressed: Vec<Progressed>) -> Vec<Arc<JobCounters>> {
        let pace = self.pace.lock();
        let mut counters_of_slices = self.counters_of_slices.lock();
        let unfinished = progressed.iter().filter(|slice| !slice.ended).count().max(1);
        #[expect(clippy::cast_precision_loss, reason = "slices are few")]
        let part = *pace / unfinished as f64;
        *counters_of_slices = (0..)
            .zip(progressed)
            .map(|(number, progressed)| {
                Arc::new(JobCounters::new(progressed, Throttle::new(part), Some(number)))
            })
            .collect();
        self.divided.store(true, Ordering::Relaxed);
        counters_of_slices.clone()
    }

    /// Documents per second of the whole; infinite for no throttle.
    pub fn pace(&self) -> f64 {
        *self.pace.lock()
    }

    /// The counters of each slice.
    pub fn counters_of_slices(&self) -> Vec<Arc<JobCounters>> {
        self.counters_of_slices.lock().clone()
    }

    fn is_divided(&self) -> bool {
        self.divided.load(Ordering::Relaxed)
    }

    /// The counters of the whole job; none before it has any.
    fn shown(&self, form: Form) -> Option<ShownCounters> {
        let counters_of_slices = self.counters_of_slices();
        if !self.is_divided() {
            return counters_of_slices.first().map(|only| only.figures().shown(form));
        }
        let figures: Vec<Figures> = counters_of_slices.iter().map(|counters| counters.figures()).collect();
        let slices = figures.iter().map(|slice| slice.shown(form)).collect();
        Some(ShownCounters { slices: Some(slices), ..Figures::sum(&figures).shown(form) })
    }

    /// The response of the whole job.
    pub fn response(&self, form: Form) -> Value {
        let counters_of_slices = self.counters_of_slices();
        let took = counters_of_slices.iter().map(|counters| counters.took()).max().unwrap_or_default();
        let failures =
            counters_of_slices.iter().flat_map(|counters| counters.progressed().failures).collect();
        json!(JobResponse { took: millis(took), timed_out: false, counters: self.shown(form), failures })
    }
}

impl Progress for Slices {
    fn status(&self, cancelled: bool) -> Value {
        self.shown(Form { kind: Kind::Reindex, stored: false, cancelled })
            .map_or_else(|| json!({}), |shown| json!(shown))
    }

    /// Shares a new throttle equally between the slices that still run.
    fn rethrottle(&self, requests_per_second: f64) -> bool {
        *self.pace.lock() = requests_per_second;
        let mut running = self.counters_of_slices();
        running.retain(|counters| !counters.has_ended());
        #[expect(clippy::cast_precision_loss, reason = "slices are few")]
        let part = requests_per_second / running.len().max(1) as f64;
        for counters in running {
            counters.throttle.change(part);
        }
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

/// A time in Elasticsearch's words: `0s`, `799.9ms`, `1.5s`, `2.1m`, with one decimal that is truncated and not rounded.
pub(super) fn time_in_words(millis: f64) -> String {
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
    use std::sync::Arc;

    use serde_json::json;

    use super::{Form, JobCounters, Kind, Progressed, Slices, time_in_words};
    use sparrow_tasks::Progress;
    use sparrow_tasks::throttle::Throttle;

    #[test]
    fn times_are_cut_to_one_digit() {
        for (millis, text) in
            [(0.0, "0s"), (799.99, "799.9ms"), (28.0, "28ms"), (1500.0, "1.5s"), (126_000.0, "2.1m")]
        {
            assert_eq!(time_in_words(millis), text);
        }
    }

    fn slices(progressed: Progressed) -> Slices {
        Slices::new(Arc::new(JobCounters::new(progressed, Throttle::new(f64::INFINITY), None)))
    }

    #[test]
    fn the_response_has_the_documented_members_in_order() {
        let progressed =
            Progressed { total: Some(5), created: 3, noops: 2, batches: 1, ..Progressed::default() };
        let counters = slices(progressed);
        let form = |kind, stored| Form { kind, stored, cancelled: stored };
        let response = counters.response(form(Kind::Reindex, false));
        let names: Vec<&String> = response.as_object().unwrap().keys().collect();
        let expected = [
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
            "failures",
        ];
        assert_eq!(names, expected);
        assert_eq!(response["requests_per_second"].to_string(), "-1.0");
        assert_eq!(response["total"], json!(5));
        let stored = counters.response(form(Kind::DeleteByQuery, true));
        assert_eq!(stored["throttled"], json!("0s"));
        assert_eq!(stored["canceled"], json!("by user request"));
        assert_eq!(stored["created"], json!(3));
        let deleting = counters.response(form(Kind::DeleteByQuery, false));
        assert_eq!((deleting.get("updated"), deleting.get("created")), (None, None));
        let updating = counters.response(form(Kind::UpdateByQuery, false));
        assert_eq!((updating.get("updated"), updating.get("created")), (Some(&json!(0)), None));
    }

    #[test]
    fn slices_add_up_and_share_the_pace() {
        let whole = slices(Progressed::default());
        whole.rethrottle(12.0);
        let part =
            |total, ended| Progressed { total: Some(total), updated: 1, ended, ..Progressed::default() };
        let counters_of_slices = whole.divide(vec![part(3, false), part(4, false), part(5, true)]);
        assert!((counters_of_slices[0].throttle.requests_per_second() - 6.0).abs() < f64::EPSILON);
        let status = whole.status(false);
        assert_eq!((&status["total"], &status["updated"]), (&json!(12), &json!(3)));
        assert_eq!(status["slices"].as_array().map(Vec::len), Some(3));
        assert_eq!((&status["slices"][1]["slice_id"], &status["slices"][1]["total"]), (&json!(1), &json!(4)));
        counters_of_slices[0].update(|slice| slice.ended = true);
        whole.rethrottle(5.0);
        assert!((counters_of_slices[1].throttle.requests_per_second() - 5.0).abs() < f64::EPSILON);
        whole.rethrottle(f64::INFINITY);
        assert_eq!(whole.status(true)["canceled"], json!("by user request"));
    }
}
