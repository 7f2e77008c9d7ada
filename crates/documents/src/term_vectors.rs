//! `_termvectors` and `_mtermvectors`: the terms of documents, computed from their texts. Without `fields`, the
//! fields shown are those whose mapping has a `term_vector`; for a document supplied in the request, all.

mod request;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sparrow_mapping::{FieldType, Mapping, is_above, values_at};
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::{TermPlace, TermVector};

use self::request::{Filter, TermVectorsRequest};
use super::get::check_version;
use sparrow_catalog::{IndexHandle, StoredDocument};
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_runtime::work::{self, Stopped};
use sparrow_search::SearchService;
use sparrow_search::query_error;
use sparrow_wire::{glob, object};

/// URL parameters of `_termvectors` and `_mtermvectors`: which statistics are shown, and how the document is read.
const VECTORS: &str = "fields field_statistics term_statistics offsets positions payloads realtime routing \
    preference version version_type";

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("term_vectors", Action::TermVectors, Lane::Read, term_vectors)
        .about("The terms of a document.")
        .holds("TermVectorsRequest", request::shape)
        .takes(&[VECTORS])
        .stops(),
    Operation::new("multi_term_vectors", Action::MultiTermVectors, Lane::Read, multi_term_vectors)
        .about("The terms of several documents.")
        .holds("MultiTermVectorsRequest", request::multi_shape)
        .takes(&["ids", VECTORS])
        .stops(),
];

/// Largest number of documents in one request.
const MAX_DOCUMENTS: usize = 1_024;

/// `GET|POST /{index}/_termvectors[/{id}]`
fn term_vectors(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let mut asked = TermVectorsRequest::of_params(&request.params())?;
    if let Some(id) = request.path.get("id") {
        asked.id = Some(id.clone());
    }
    if !blank(body) {
        asked.read(&parse_json(body)?)?;
    }
    asked.check()?;
    let handle = open(service, request, request.part("index"), &mut asked)?;
    Ok(Reply::ok(&vectors(service, &handle, &asked, start, cancel.flag())?))
}

/// `GET|POST [/{index}]/_mtermvectors`
fn multi_term_vectors(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    let common = TermVectorsRequest::of_params(&params)?;
    let mut wanted = Vec::new();
    let ids = params.get("ids").into_iter().flat_map(|list| list.split(',')).map(str::to_owned);
    wanted.extend(ids.map(|id| TermVectorsRequest { id: Some(id), ..common.clone() }));
    if !blank(body) {
        wanted.extend(request::of_body(&parse_json(body)?, &common)?);
    }
    if wanted.is_empty() {
        return Err(EngineError::invalid("multi term vectors: no documents requested"));
    }
    if wanted.len() > MAX_DOCUMENTS {
        return Err(EngineError::illegal_argument(format!(
            "[_mtermvectors] takes at most [{MAX_DOCUMENTS}] documents, found [{}]",
            wanted.len()
        )));
    }
    let mut docs = Vec::with_capacity(wanted.len());
    let mut refused = false;
    for asked in &mut wanted {
        let index = asked.index.clone().unwrap_or_else(|| request.part("index").to_owned());
        asked.check()?;
        let resolved = open(service, request, &index, asked)
            .and_then(|handle| vectors(service, &handle, asked, start, cancel.flag()));
        docs.push(match resolved {
            Err(EngineError::Cancelled) => return Err(EngineError::Cancelled),
            Err(error) => {
                refused |= error.is_forbidden();
                let error = error.body();
                json!({"_index": index, "_id": asked.id, "error": error["error"]})
            }
            Ok(vectors) => vectors,
        });
    }
    Ok(Reply::ok(&object([("docs", docs.into())])).with_refused_parts(refused))
}

/// The index that a request names, if it asks for nothing that the filter of an alias hides, and has the routing that the index
/// requires.
fn open(
    service: &SearchService,
    request: &Request,
    name: &str,
    asked: &mut TermVectorsRequest,
) -> Result<Arc<IndexHandle>, EngineError> {
    let handle = service.indices.get(name, request.right())?;
    if let (None, Some(id)) = (&asked.doc, &asked.id) {
        service.indices.check_routing(&handle, name, id, asked.routing.clone())?;
    }
    if service.indices.is_filtered(name)? {
        asked.without_statistics(name)?;
    }
    Ok(handle)
}

fn blank(body: &[u8]) -> bool {
    body.iter().all(u8::is_ascii_whitespace)
}

fn vectors(
    service: &SearchService,
    handle: &IndexHandle,
    asked: &TermVectorsRequest,
    start: Instant,
    cancel: &Arc<AtomicBool>,
) -> Result<Value, EngineError> {
    let took = || start.elapsed().as_millis() as u64;
    let mut answer = json!({"_index": handle.name});
    let source: Value = match (&asked.doc, &asked.id) {
        (Some(doc), _) => {
            answer["_version"] = json!(0);
            doc.clone()
        }
        (None, id) => {
            let id = id.as_deref().unwrap_or_default();
            let document = if asked.realtime { handle.get(id)? } else { handle.get_searchable(id)? };
            check_version(handle, id, document.as_ref(), asked.version)?;
            answer["_id"] = id.into();
            let Some(StoredDocument { version, source, .. }) = document else {
                answer["_version"] = json!(0);
                answer["found"] = json!(false);
                answer["took"] = took().into();
                return Ok(answer);
            };
            answer["_version"] = version.into();
            serde_json::from_slice(&source).unwrap_or_default()
        }
    };
    answer["found"] = json!(true);
    let snapshot = handle.snapshot();
    let refused = |source| query_error(service, handle, source);
    let mut shown = Map::new();
    for path in fields(snapshot.mapping(), asked)? {
        work::check()?;
        let values = texts(snapshot.mapping(), &source, &path);
        let analyzer = asked.analyzers.get(&path).map(String::as_str);
        match snapshot.term_vector(&path, &values, analyzer).map_err(refused)? {
            Some(vector) if !vector.is_empty() => {
                let field = Field { snapshot: &snapshot, path: &path, asked, cancel };
                shown.insert(path.clone(), field.show(vector).map_err(refused)?);
            }
            _ => {}
        }
    }
    answer["took"] = took().into();
    answer["term_vectors"] = Value::Object(shown);
    Ok(answer)
}

/// Sorted paths of the requested fields that have terms.
fn fields(mapping: &Mapping, asked: &TermVectorsRequest) -> Result<Vec<String>, Stopped> {
    let wanted = |path: &str| match &asked.fields {
        Some(patterns) => patterns.iter().any(|wanted| glob::matches(wanted, path)),
        // Under its own name alone.
        None if mapping.concrete(path) != path => false,
        None if asked.doc.is_some() => true,
        None => kept(mapping, path).is_some(),
    };
    let has_terms =
        |field_type: &FieldType| matches!(field_type, FieldType::Text { .. } | FieldType::Keyword { .. });
    let indexed = |path: &str| mapping.parameter(path, "index") != Some(&Value::Bool(false));
    let mut fields = Vec::new();
    for (path, field_type) in mapping.named_fields() {
        work::check()?;
        if has_terms(field_type) && indexed(path) && wanted(path) {
            fields.push(path.to_owned());
        }
    }
    fields.sort_unstable();
    Ok(fields)
}

/// The `term_vector` of a field, if its mapping has one.
fn kept<'a>(mapping: &'a Mapping, path: &str) -> Option<&'a str> {
    mapping.parameter(path, "term_vector").and_then(Value::as_str).filter(|kind| *kind != "no")
}

/// The texts of a field from which its terms are computed.
fn texts(mapping: &Mapping, source: &Value, path: &str) -> Vec<String> {
    let ignore_above = match mapping.field(path) {
        Some(FieldType::Keyword { ignore_above, .. }) => *ignore_above,
        _ => None,
    };
    let mut values = Vec::new();
    values_at(source, &mapping.source_path(path), &mut values);
    let texts = values.into_iter().filter_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    });
    texts.filter(|text| !is_above(ignore_above, text)).collect()
}

/// A field whose terms are requested, with the context for computing them.
struct Field<'a> {
    snapshot: &'a Snapshot,
    path: &'a str,
    asked: &'a TermVectorsRequest,
    cancel: &'a AtomicBool,
}

impl Field<'_> {
    fn show(&self, vector: TermVector) -> Result<Value, sparrow_tantivy_index::query::QueryError> {
        let asked = self.asked;
        let mut shown = Map::new();
        let field_statistics = asked.field_statistics.unwrap_or(true);
        let statistics = match field_statistics || asked.filter.is_some() {
            true => self.snapshot.terms_of_field(self.path, self.cancel)?,
            false => None,
        };
        if let (true, Some(of_field)) = (field_statistics, statistics) {
            shown.insert(
                "field_statistics".to_owned(),
                json!({"sum_doc_freq": of_field.doc_freqs, "doc_count": of_field.docs, "sum_ttf": of_field.tokens}),
            );
        }
        let scores = match &asked.filter {
            None => None,
            Some(filter) => {
                Some(self.best(&vector, filter, statistics.map_or(0, |of_field| of_field.docs))?)
            }
        };
        // Stored vectors show what they store, others all there is.
        let kind = match (&asked.doc, asked.analyzers.contains_key(self.path)) {
            (None, false) => kept(self.snapshot.mapping(), self.path).unwrap_or("with_positions_offsets"),
            _ => "with_positions_offsets",
        };
        let positions = asked.positions && kind.contains("positions");
        let offsets = asked.offsets && kind.contains("offsets");
        let mut terms = Map::new();
        for (term, places) in vector {
            let score = match &scores {
                None => None,
                Some(scores) => match scores.get(&term) {
                    Some(score) => Some(*score),
                    None => continue,
                },
            };
            let frequency = match asked.term_statistics {
                true => Some(self.snapshot.term_frequency(self.path, &term)?),
                false => None,
            };
            // A document that no search sees yet has terms that are in no other.
            let frequency = frequency.filter(|frequency| frequency.docs > 0);
            let tokens = || {
                let token = |place| work::check().map(|()| json!(TokenView::of(place, positions, offsets)));
                places.iter().map(token).collect::<Result<Vec<Value>, Stopped>>()
            };
            let mut shown = Map::new();
            let mut show = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    shown.insert(name.to_owned(), value);
                }
            };
            show("doc_freq", frequency.as_ref().map(|frequency| frequency.docs.into()));
            // The number of occurrences in all documents.
            show("ttf", frequency.as_ref().map(|frequency| frequency.total.into()));
            show("term_freq", Some(places.len().into()));
            show("tokens", (positions || offsets).then(tokens).transpose()?.map(Value::Array));
            show("score", score.map(Value::from));
            terms.insert(term, Value::Object(shown));
        }
        shown.insert("terms".to_owned(), Value::Object(terms));
        Ok(Value::Object(shown))
    }

    /// The terms with the highest tf · idf among those that the filter accepts, with that score.
    fn best(
        &self,
        vector: &TermVector,
        filter: &Filter,
        docs: u64,
    ) -> Result<std::collections::BTreeMap<String, f32>, sparrow_tantivy_index::query::QueryError> {
        let mut terms = Vec::new();
        for (term, places) in vector {
            if !filter.takes(term, places.len() as u64) {
                continue;
            }
            let doc_freq = self.snapshot.doc_freq(self.path, term)?;
            if doc_freq == 0 || doc_freq < filter.min_doc_freq || doc_freq > filter.max_doc_freq {
                continue;
            }
            let idf = ((docs + 1) as f64 / (doc_freq + 1) as f64).ln() + 1.0;
            terms.push((term.clone(), places.len() as f32 * idf as f32));
        }
        terms.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        terms.truncate(filter.max_num_terms);
        Ok(terms.into_iter().collect())
    }
}

/// JSON form of one occurrence of a term, with members in response order.
#[derive(Serialize)]
struct TokenView {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_offset: Option<usize>,
}

impl TokenView {
    fn of(place: &TermPlace, positions: bool, offsets: bool) -> Self {
        Self {
            position: positions.then_some(place.position),
            start_offset: offsets.then_some(place.start),
            end_offset: offsets.then_some(place.end),
        }
    }
}
