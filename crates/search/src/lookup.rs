//! Reads the documents that queries refer to before the search: for `terms` queries with the values of another document, so that
//! every index gets the same values, and for the examples of `more_like_this`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use serde_json::Value;

use super::error::SearchError;
use crate::service::SearchService;
use sparrow_catalog::IndexHandle;
use sparrow_mapping::values_at;
use sparrow_query::walk::change;
use sparrow_query::{LikeExample, MoreLikeThisQuery, Query, QueryKind, TermsLookupQuery, TermsQuery};
use sparrow_request::body::stored_tree;
use sparrow_request::error::EngineError;
use sparrow_request::rights::{Action, Caller, Right};
use sparrow_runtime::work;

/// Longest value that is looked up, in bytes: that of a term of tantivy, with its field.
const MAX_TERM: usize = u16::MAX as usize - 5;
/// Most values that are read from a document.
const MAX_VALUES: usize = 65_536;

/// Replaces all `terms` lookups by the values that they refer to, and adds sources to the examples of `more_like_this`; those that
/// name no index are read from each of `searched`. A document that does not exist has no values.
///
/// # Errors
/// When the caller may not read a document, the index of a `terms` lookup does not exist or requires a routing that is not given, or a
/// value is not a scalar.
pub fn look_up(
    service: &SearchService,
    searched: &[&IndexHandle],
    queries: &mut [&mut Query],
    caller: &Caller,
) -> Result<(), EngineError> {
    let mut read = Documents::default();
    for query in queries {
        change::<EngineError>(query, &mut |kind| {
            match kind {
                QueryKind::TermsLookup(lookup) => {
                    let values = values(service, lookup, caller.to(Action::Get), &mut read)?;
                    *kind = QueryKind::Terms(TermsQuery { field: std::mem::take(&mut lookup.field), values });
                }
                QueryKind::MoreLikeThis(query) => {
                    read_examples(service, searched, query, caller.to(Action::Get), &mut read)?
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
    read: &mut Documents,
) -> Result<(), EngineError> {
    for example in query.like.iter_mut().chain(&mut query.unlike) {
        let LikeExample::Document(document) = example else { continue };
        let (None, Some(id)) = (&document.sources, &document.id) else { continue };
        let mut sources = Vec::new();
        match &document.index {
            // As in Elasticsearch, an example that is not there says nothing.
            Some(index) => match service.indices.get(index, right) {
                Ok(handle) => sources.extend(read.source(&handle, id)?.map(|source| (None, source))),
                Err(error) if error.status() == 403 => return Err(error),
                Err(_) => {}
            },
            None => {
                for handle in searched {
                    if let Some(source) = read.source(handle, id)? {
                        sources.push((Some(handle.name.clone()), source));
                    }
                }
            }
        }
        document.sources = Some(sources);
    }
    Ok(())
}

/// The documents that a request refers to, each read once however many of its queries name it.
#[derive(Default)]
struct Documents {
    sources: HashMap<(String, String), Option<Arc<Value>>>,
    /// The values at a path of one of them.
    values: HashMap<(String, String, String), Arc<[Value]>>,
}

impl Documents {
    /// The source of a document; none where there is no document, or its index keeps no sources.
    fn source(&mut self, handle: &IndexHandle, id: &str) -> Result<Option<Arc<Value>>, EngineError> {
        work::check()?;
        match self.sources.entry((handle.uuid.clone(), id.to_owned())) {
            Entry::Occupied(read) => Ok(read.get().clone()),
            Entry::Vacant(place) => {
                let document = handle.get(id)?.filter(|document| !document.source.is_empty());
                let source = document.map(|document| stored_tree(&document.source)).transpose()?;
                Ok(place.insert(source.map(Arc::new)).clone())
            }
        }
    }
}

fn values(
    service: &SearchService,
    lookup: &TermsLookupQuery,
    right: Right<'_>,
    read: &mut Documents,
) -> Result<Arc<[Value]>, EngineError> {
    let handle = service.indices.get(&lookup.index, right)?;
    service.indices.check_routing(&handle, &lookup.index, &lookup.id, lookup.routing.clone())?;
    let place = (handle.uuid.clone(), lookup.id.clone(), lookup.path.clone());
    if let Some(values) = read.values.get(&place) {
        return Ok(Arc::clone(values));
    }
    let Some(source) = read.source(&handle, &lookup.id)? else { return Ok([].into()) };
    let mut at_path = Vec::new();
    values_at(&source, &lookup.path, &mut at_path);
    // No field has a term that is longer than this, so none is found by it.
    let wanted =
        |value: &&Value| !value.is_null() && value.as_str().is_none_or(|text| text.len() <= MAX_TERM);
    let mut values = Vec::new();
    for value in at_path.into_iter().filter(wanted) {
        work::room_for(value.as_str().map_or(0, str::len))?;
        values.push(value.clone());
    }
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
    Ok(Arc::clone(read.values.entry(place).or_insert(values.into())))
}
