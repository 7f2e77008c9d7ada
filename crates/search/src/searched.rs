//! The indices that a request names, and the part of each that is visible to it.

use std::borrow::Borrow;
use std::sync::Arc;

use serde_json::Value;
use sparrow_catalog::slow_log::SlowSearches;
use sparrow_catalog::{IndexHandle, ResolveOptions, Resolved, Settings};
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;
use sparrow_request::rights::Right;
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::QueryError;

use super::error::{SearchError, Shard};
use super::target::Target;
use crate::service::SearchService;

/// The error of a search whose query an index refuses.
pub fn query_error(service: &SearchService, handle: &IndexHandle, source: QueryError) -> EngineError {
    SearchError::Query { shard: shard(service, handle), source }.into()
}

/// What errors and hits show of an index.
pub fn shard(service: &SearchService, handle: &IndexHandle) -> Box<Shard> {
    Box::new(Shard {
        index: handle.name.clone(),
        uuid: handle.uuid.clone(),
        node: service.node.id().to_owned(),
    })
}

/// The part of an index that is visible through the filter of an alias.
///
/// # Errors
/// When the filter does not fit the index any more.
pub fn restrict(
    service: &SearchService,
    handle: &IndexHandle,
    snapshot: &Arc<Snapshot>,
    filter: Option<&Value>,
) -> Result<Arc<Snapshot>, EngineError> {
    let Some(filter) = filter else { return Ok(Arc::clone(snapshot)) };
    // It was checked when it was stored, by a request that may have spoken another version than this one.
    let _usual = sparrow_wire::version::enter(None);
    let query = sparrow_query::dsl::parse_value(filter)?;
    snapshot.restricted(&query).map(Arc::new).map_err(|source| query_error(service, handle, source))
}

/// Fields for query strings that name none; empty for all.
pub fn default_fields(settings: &Settings) -> Vec<String> {
    match settings.default_field() {
        None | Some("*") => Vec::new(),
        Some(fields) => fields.split(',').map(|field| field.trim().to_owned()).collect(),
    }
}

/// The index as it is now, for one search.
pub fn target(service: &SearchService, searched: &Searched) -> Target {
    let handle = &searched.handle;
    let settings = handle.settings();
    let default_fields = default_fields(&settings);
    Target {
        shard: shard(service, handle),
        snapshot: searched.restricted.clone().unwrap_or_else(|| handle.snapshot()),
        limits: settings.search_limits(),
        default_fields,
        excludes_vectors: settings.excludes_vectors(),
        counters: Arc::clone(&handle.counters),
        slow: SlowSearches::read(&settings),
    }
}

/// An index to search, with the part of it that is visible.
pub struct Searched {
    /// The index.
    pub handle: Arc<IndexHandle>,
    /// The part that the filters of aliases leave visible; none if all of the index is.
    pub restricted: Option<Arc<Snapshot>>,
}

impl Borrow<IndexHandle> for Searched {
    fn borrow(&self) -> &IndexHandle {
        &self.handle
    }
}

/// Resolves the indices that a search request names.
pub fn resolve_indices(
    service: &SearchService,
    request: &Request,
    right: Right<'_>,
) -> Result<Vec<Searched>, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let found = service.indices.resolve_filtered(request.part("index"), &options, right)?;
    let searched = |Resolved { handle, filter, .. }: Resolved| {
        let restricted = match filter {
            None => None,
            Some(filter) => Some(restrict(service, &handle, &handle.snapshot(), Some(&filter))?),
        };
        Ok(Searched { handle, restricted })
    };
    found.into_iter().map(searched).collect()
}
