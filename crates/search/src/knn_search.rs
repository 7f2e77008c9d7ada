//! `_knn_search`: the deprecated form of a search with a `knn` section.

use serde_json::{Map, Value};

use super::error::SearchError;
use super::search::search;
use crate::service::SearchService;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search_body::body::read_object;
use sparrow_wire::shape::{Shape, alike, either, int, list, named, num, object, several, text};
use sparrow_wire::{BodyError, deprecation};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("knn_search", Action::Search, Lane::Read, knn_search)
        .about("The older form of a search for neighbours.")
        .holds("KnnSearchRequest", shape)
        .takes(&["routing"])
        .stops()
        .shed()];

const PARSER: &str = "knn-search";
const KNN_KEYS: [&str; 4] = ["field", "query_vector", "k", "num_candidates"];

/// What a request holds.
fn shape() -> Shape {
    object([("knn", knn_shape()), ("filter", several(named("Query"))), ("_source", named("SourceSelection"))])
        .and(alike("fields docvalue_fields", named("FieldRequests")))
        .and([("stored_fields", several(text()))])
        .needs(&["knn"])
}

fn knn_shape() -> Shape {
    object([("field", text()), ("query_vector", either([list(num()), text()]))])
        .and(alike("k num_candidates", int()))
        .needs(&KNN_KEYS)
}

/// Handles `GET|POST /{index}/_knn_search`.
fn knn_search(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    deprecation::warn("The kNN search API has been replaced by the `knn` option in the search API.");
    let body = search_body(bytes)?;
    search(service, request, body.to_string().as_bytes(), cancel)
}

/// Translates the body of a kNN search into the body of a search.
fn search_body(bytes: &[u8]) -> Result<Value, SearchError> {
    let mut search = Map::new();
    let mut filter = None;
    for member in read_object(bytes)?.as_object().unwrap_or_default() {
        let value = member.value.to_value();
        match &*member.name {
            "filter" => filter = Some(value),
            "knn" => {
                let knn = member.value.as_object().unwrap_or_default();
                if let Some(other) = knn.iter().find(|option| !KNN_KEYS.contains(&&*option.name)) {
                    return Err(BodyError::unknown_field("knn", other, &KNN_KEYS).into());
                }
                for name in KNN_KEYS {
                    if !knn.iter().any(|option| *option.name == *name) {
                        return Err(BodyError::Required { field: name }.into());
                    }
                }
                search.insert("knn".to_owned(), value);
            }
            name if shape().names().contains(&name) => {
                search.insert(name.to_owned(), value);
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, shape().names()).into()),
        }
    }
    let Some(Value::Object(knn)) = search.get_mut("knn") else {
        return Err(SearchError::illegal("missing required [knn] section in search body"));
    };
    if let Some(filter) = filter {
        knn.insert("filter".to_owned(), filter);
    }
    // Every neighbour is a hit.
    let size = knn.get("k").cloned().unwrap_or_default();
    search.insert("size".to_owned(), size);
    Ok(Value::Object(search))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::search_body;
    use sparrow_request::error::EngineError;

    fn rewritten(body: &Value) -> Result<Value, String> {
        search_body(body.to_string().as_bytes()).map_err(|error| EngineError::from(error).reason().to_owned())
    }

    #[test]
    fn it_is_a_search_with_as_many_hits_as_neighbours() {
        let knn = json!({"field": "v", "query_vector": [1], "k": 2, "num_candidates": 5});
        let filter = json!([{"term": {"tag": "a"}}]);
        let search = rewritten(&json!({"knn": knn, "filter": filter, "_source": false, "fields": ["tag"]}));
        let mut expected = json!({"knn": knn, "size": 2, "_source": false, "fields": ["tag"]});
        expected["knn"]["filter"] = filter;
        assert_eq!(search, Ok(expected));
    }

    #[test]
    fn what_it_does_not_take_is_named() {
        let knn = json!({"field": "v", "query_vector": [1], "k": 2});
        for (body, reason) in [
            (json!({}), "missing required [knn] section in search body"),
            (json!({"knn": knn}), "Required [num_candidates]"),
            (json!({"knn": {"similarity": 1}}), "[1:9] [knn] unknown field [similarity]"),
            (json!({"query": {}}), "[1:2] [knn-search] unknown field [query]"),
        ] {
            assert_eq!(rewritten(&body), Err(reason.to_owned()), "{body}");
        }
    }
}
