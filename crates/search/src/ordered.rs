//! Selects the documents that match a query, in an order that a request gives: for jobs, which return no hits.

use std::sync::Arc;

use serde_json::Value;
use sparrow_query::Query;
use sparrow_tantivy_index::query::TotalHits;
use sparrow_tantivy_index::{DocAddress, Snapshot};

use super::error::SearchError;
use super::execute;
use super::limits::Bounds;
use super::resolve::set_default_fields;
use super::searched::{default_fields, shard};
use super::target::Target;
use crate::service::SearchService;
use sparrow_catalog::IndexHandle;
use sparrow_catalog::SearchLimits;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::sort::{self, Sort};
use sparrow_wire::json;

/// A query adapted to an index: checked against its limits, and with its default fields for query strings that name none.
///
/// # Errors
/// When it exceeds a limit.
pub fn query_of_index(
    service: &SearchService,
    handle: &IndexHandle,
    query: &Query,
) -> Result<Query, EngineError> {
    let settings = handle.settings();
    settings.search_limits().check_query(query, &shard(service, handle))?;
    let mut query = query.clone();
    let fields = default_fields(&settings);
    if !fields.is_empty() {
        set_default_fields(&mut query, &fields);
    }
    Ok(query)
}

/// An order by fields, as the `sort` of a search.
#[derive(Debug, Clone)]
pub struct Order(Sort);

impl Order {
    /// Reads the URL parameter `sort`.
    ///
    /// # Errors
    /// As for a search.
    pub fn from_text(text: &str) -> Result<Self, EngineError> {
        Ok(Self(sort::from_text(text)?))
    }

    /// Reads a `sort` section.
    ///
    /// # Errors
    /// As a search.
    pub fn parse(given: &Value) -> Result<Self, EngineError> {
        let bytes = given.to_string();
        let (node, _) = json::read(bytes.as_bytes()).map_err(SearchError::from)?;
        Ok(Self(sort::parse(&node)?))
    }

    /// The first `most` documents of several indices in this order: position of the index in `indices`, sequence number, and
    /// address. The texts of the query have to be encoded already.
    ///
    /// # Errors
    /// As for a search.
    pub fn documents(
        &self,
        service: &SearchService,
        indices: &[(Arc<IndexHandle>, Arc<Snapshot>)],
        query: Option<&Query>,
        most: usize,
        cancel: &CancelFlag,
    ) -> Result<Vec<(usize, u64, DocAddress)>, EngineError> {
        let targets: Vec<Target> = indices
            .iter()
            .map(|(handle, snapshot)| Target {
                shard: shard(service, handle),
                snapshot: Arc::clone(snapshot),
                counters: Arc::clone(&handle.counters),
                limits: SearchLimits { result_window: usize::MAX, ..handle.settings().search_limits() },
                default_fields: default_fields(&handle.settings()),
                excludes_vectors: false,
                slow: None,
            })
            .collect();
        let body = SearchBody {
            query: query.cloned(),
            sort: self.0.clone(),
            size: most,
            track_total_hits: Some(TotalHits::Off),
            ..SearchBody::default()
        };
        let mut outcome = execute::execute(&targets, &body, cancel.flag())?;
        if !outcome.failures.is_empty() {
            return Err(outcome.failures.swap_remove(0).into());
        }
        Ok(outcome.hits.into_iter().map(|hit| (hit.target, hit.seq_no, hit.addr)).collect())
    }
}
