//! The texts of a search, encoded before it runs.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_catalog::IndexHandle;
use sparrow_encoder::Timings;
use sparrow_mapping::Mapping;
use sparrow_query::Query;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_request::rights::Caller;

use super::error::SearchError;
use super::rerankers::bind_rerankers;
use super::searched::shard;
use super::target::{Target, mappings};
use super::{calibrate, lookup, resolve, semantic};
use crate::service::SearchService;
use sparrow_search_body::body::{self, SearchBody};
use sparrow_search_body::retriever;

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
        bind_rerankers(fusion, &service.models)?;
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

/// Encodes the texts of a query, for jobs that select documents by a query. `mappings` are those of the snapshots of the indices.
///
/// # Errors
/// As for a search with this query.
pub fn encode_query(
    service: &SearchService,
    handles: &[impl Borrow<IndexHandle>],
    mappings: &[Arc<Mapping>],
    query: &mut Query,
    caller: &Caller,
    cancel: &CancelFlag,
) -> Result<(), EngineError> {
    encode(service, handles, mappings, &mut [query], caller, cancel.flag(), None)
}

/// Reads the documents that queries refer to, and encodes the texts of queries, after checking that the fields hold vectors of the
/// same models. `mappings` has the mapping by which each index is searched: the model of a field may change at any moment.
pub fn encode(
    service: &SearchService,
    handles: &[impl Borrow<IndexHandle>],
    mappings: &[Arc<Mapping>],
    queries: &mut [&mut Query],
    caller: &Caller,
    cancel: &AtomicBool,
    mut timed: Option<&mut Vec<(String, Timings)>>,
) -> Result<(), EngineError> {
    let searched: Vec<&IndexHandle> = handles.iter().map(Borrow::borrow).collect();
    lookup::look_up(service, &searched, queries, caller)?;
    semantic::bind(service, mappings, queries, body::DEFAULT_SIZE, cancel, timed.as_deref_mut())?;
    resolve::name_parts(&service.models, queries);
    for (handle, mapping) in searched.iter().zip(mappings) {
        for used in resolve::own_models(queries, mapping) {
            if let Some(stored) = resolve::other_model(&service.models, mapping, &used) {
                let (shard, field, model) = (shard(service, handle), used.field, used.model_id);
                return Err(
                    SearchError::ModelMismatch { shard, field, model, stored, changeable: true }.into()
                );
            }
        }
    }
    for used in resolve::model_uses(queries) {
        for (handle, mapping) in searched.iter().zip(mappings) {
            match handle.field_model(&used.field) {
                Some(stored) if service.models.compares_with(&used.model_id, &stored) == Some(false) => {
                    return Err(SearchError::ModelMismatch {
                        shard: shard(service, handle),
                        field: used.field,
                        model: used.model_id,
                        stored: service.models.name_of(&stored).unwrap_or(stored),
                        changeable: false,
                    }
                    .into());
                }
                _ => {}
            }
            if let Some(stored) = resolve::other_model(&service.models, mapping, &used) {
                let (shard, field, model) = (shard(service, handle), used.field, used.model_id);
                return Err(
                    SearchError::ModelMismatch { shard, field, model, stored, changeable: true }.into()
                );
            }
        }
    }
    resolve::resolve(&*service.models, queries, cancel, timed)
}
