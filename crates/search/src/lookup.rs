//! Reads the documents that queries refer to before the search: for `terms` queries with the values of another document, so that
//! every index gets the same values, and for the examples of `more_like_this`.

use std::sync::Arc;

use serde_json::Value;
use sparrow_mapping::values_at;
use sparrow_query::walk::change;
use sparrow_query::{LikeExample, MoreLikeThisQuery, Query, QueryKind, TermsLookupQuery};

use super::error::SearchError;
use crate::service::SearchService;
use sparrow_call::error::EngineError;
use sparrow_call::rights::{Action, Caller, Right};
use sparrow_indices::IndexHandle;

/// Most values that are read from a document.
const MAX_VALUES: usize = 65_536;

/// Replaces all `terms` lookups by the values that they refer to, and adds sources to the examples of `more_like_this`; those that
/// name no index are read from each of `searched`. A document that does not exist has no values.
///
/// # Errors
/// When the caller may not read a document, the index of a `terms` lookup does not exist, or a value is not a scalar.
pub fn look_up(
    service: &SearchService,
    searched: &[&IndexHandle],
    queries: &mut [&mut Query],
    caller: &Caller,
) -> Result<(), EngineError> {
    for query in queries {
        change::<EngineError>(query, &mut |kind| {
            match kind {
                QueryKind::TermsLookup(lookup) => {
                    let values = values(service, lookup, caller.to(Action::Get))?;
                    *kind = QueryKind::Terms { field: std::mem::take(&mut lookup.field), values };
                }
                QueryKind::MoreLikeThis(query) => {
                    read_examples(service, searched, query, caller.to(Action::Get))?
                }
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn read_examples(
    service: &SearchService,
    searched: &[&IndexHandle],
    query: &mut MoreLikeThisQuery,
    right: Right<'_>,
) -> Result<(), EngineError> {
    for example in query.like.iter_mut().chain(&mut query.unlike) {
        let LikeExample::Document(document) = example else { continue };
        let (None, Some(id)) = (&document.sources, &document.id) else { continue };
        let mut sources = Vec::new();
        match &document.index {
            // As in Elasticsearch, an example that is not there says nothing.
            Some(index) => match service.indices.get(index, right) {
                Ok(handle) => sources.extend(source(&handle, id)?.map(|source| (None, Arc::new(source)))),
                Err(error) if error.status() == 403 => return Err(error),
                Err(_) => {}
            },
            None => {
                for handle in searched {
                    if let Some(source) = source(handle, id)? {
                        sources.push((Some(handle.name.clone()), Arc::new(source)));
                    }
                }
            }
        }
        document.sources = Some(sources);
    }
    Ok(())
}

/// The source of a document; none where there is no document, or its index keeps no sources.
fn source(handle: &IndexHandle, id: &str) -> Result<Option<Value>, EngineError> {
    let Some(document) = handle.get(id)?.filter(|document| !document.source.is_empty()) else {
        return Ok(None);
    };
    serde_json::from_slice(&document.source)
        .map(Some)
        .map_err(|error| EngineError::internal(format!("stored document is not JSON: {error}")))
}

fn values(
    service: &SearchService,
    lookup: &TermsLookupQuery,
    right: Right<'_>,
) -> Result<Vec<Value>, EngineError> {
    let handle = service.indices.get(&lookup.index, right)?;
    let Some(source) = source(&handle, &lookup.id)? else { return Ok(Vec::new()) };
    let mut at_path = Vec::new();
    values_at(&source, &lookup.path, &mut at_path);
    let values: Vec<Value> = at_path.into_iter().filter(|value| !value.is_null()).cloned().collect();
    if values.len() > MAX_VALUES {
        return Err(SearchError::illegal(format!(
            "The number of terms [{}] of the document [{}] is over the limit of [{MAX_VALUES}]",
            values.len(),
            lookup.id
        ))
        .into());
    }
    if values.iter().any(|value| value.is_object()) {
        return Err(SearchError::illegal(format!(
            "[terms] lookup of [{}] in document [{}] found an object where a value was expected",
            lookup.path, lookup.id
        ))
        .into());
    }
    Ok(values)
}
