//! `_reindex`: copies documents from one index to another, through a pipeline if asked.
//!
//! Documents are read in the order of their sequence numbers, so that a position is enough to go on after a crash.
//! Several chunks are under way at once: while one is being written, the next ones are read, parsed and encoded on
//! threads of their own. Encoding waits for room in the queue of the model, so it never fails for being too fast.

mod plan;
mod run;
mod spec;
mod tally;

use std::sync::Arc;

use serde_json::{Value, json};

use self::run::Run;
use self::spec::ReindexSpec;
pub(super) use self::spec::requests_per_second;
use self::tally::{Progressed, Tally};
use super::tasks::TaskSpec;
use super::throttle::Throttle;
use crate::Engine;
use crate::error::EngineError;
use crate::request::{CancelFlag, Reply, Request};

/// Action of the task.
const ACTION: &str = "indices:data/write/reindex";

/// `POST /_reindex`
pub(crate) fn reindex(
    engine: &Arc<Engine>,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let spec = ReindexSpec::parse(body, request)?;
    spec.check_not_into_itself(engine)?;
    let tally = Arc::new(Tally::new(Progressed::default(), Throttle::new(spec.requests_per_second)));
    let mut task = TaskSpec::new(ACTION, spec.description())
        .cancellable()
        .opaque_id(request.opaque_id.clone())
        .progress(tally.clone());
    if !wait {
        task = task.persistent().resumable(spec.to_resume(&Progressed::default()));
    }
    let own = Arc::clone(engine);
    let handle = engine.tasks.spawn(task, move |context| Run::new(&own, context, spec, tally).run())?;
    if !wait {
        return Ok(Reply::ok(&json!({"task": handle.id()})));
    }
    let body = handle.wait()?;
    Ok(Reply::json(status(&body), &body))
}

/// Goes on with what ran when the server ended; jobs that cannot go on are set down as interrupted.
pub(crate) fn resume(engine: &Arc<Engine>) {
    for (number, record) in engine.tasks.unfinished() {
        let resumed = record
            .get("resume")
            .filter(|_| record["task"]["action"] == ACTION)
            .ok_or_else(|| EngineError::internal("the job cannot be resumed"))
            .and_then(|saved| restart(engine, number, saved, &record));
        if let Err(error) = resumed {
            tracing::warn!(number, %error, "a task that was running is not resumed");
            engine.tasks.give_up(number, &record);
        }
    }
}

fn restart(engine: &Arc<Engine>, number: u64, saved: &Value, record: &Value) -> Result<(), EngineError> {
    let (spec, progressed) = ReindexSpec::from_resume(saved)?;
    let tally = Arc::new(Tally::new(progressed, Throttle::new(spec.requests_per_second)));
    let opaque_id = record["task"]["headers"]["X-Opaque-Id"].as_str().map(str::to_owned);
    let task = TaskSpec::new(ACTION, spec.description())
        .cancellable()
        .persistent()
        .opaque_id(opaque_id)
        .progress(tally.clone())
        .started_at(record["task"]["start_time_in_millis"].as_u64());
    let own = Arc::clone(engine);
    tracing::info!(number, description = spec.description(), "reindex goes on where it stopped");
    engine.tasks.restart(number, task, move |context| Run::new(&own, context, spec, tally).run())?;
    Ok(())
}

/// HTTP status of a reindex that was waited for: the worst of its failures.
fn status(body: &Value) -> u16 {
    body["failures"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|failure| failure["status"].as_u64().and_then(|status| u16::try_from(status).ok()))
        .max()
        .unwrap_or(200)
}
