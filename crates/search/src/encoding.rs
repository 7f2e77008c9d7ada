//! The texts of a search, encoded before it runs.

use std::borrow::Borrow;
use std::sync::atomic::AtomicBool;

use sparrow_call::error::EngineError;
use sparrow_call::rights::Caller;
use sparrow_encoder::Timings;
use sparrow_indices::IndexHandle;
use sparrow_query::Query;

use super::body::SearchBody;
use super::target::{Target, mappings};
use super::{calibrate, encode, retriever, semantic};
use crate::service::SearchService;

/// How long the models took, by id.
pub type ModelTimings = Vec<(String, Timings)>;

/// Encodes the texts of all queries of a search, by the mappings of the indices it searches. Gives the models' times if the search
/// is profiled.
pub fn encode_body(
    service: &SearchService,
    handles: &[impl Borrow<IndexHandle>],
    targets: &[Target],
    body: &mut SearchBody,
    caller: &Caller,
    cancel: &AtomicBool,
) -> Result<ModelTimings, EngineError> {
    let mut timings = body.profile.then(Vec::new);
    let size = body.from + body.size;
    let mappings = mappings(targets);
    if let Some(fusion) = &mut body.fusion {
        retriever::expand(fusion, &mappings)?;
        retriever::bind_rerankers(fusion, &service.models)?;
    }
    let mut queries: Vec<&mut Query> = body.queries_mut().collect();
    semantic::bind(service, &mappings, &mut queries, size, cancel, timings.as_mut())?;
    if let Some(fusion) = &mut body.fusion {
        fusion.fit(size);
        calibrate::note_models(fusion);
    }
    let mut queries: Vec<&mut Query> = body.queries_mut().collect();
    encode(service, handles, &mappings, &mut queries, caller, cancel, timings.as_mut())?;
    calibrate::bind(service, targets, body)?;
    Ok(timings.unwrap_or_default())
}
