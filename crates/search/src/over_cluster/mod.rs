//! Searches of indices that are kept elsewhere, by a cluster: what their clauses on `semantic_text` fields come to, which lists the short
//! form of a fusion stands for, and the best passages of hits. The answers to these are those of a search here.

pub(crate) mod calibration;
pub(crate) mod diversity;
pub(crate) mod reranking;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sparrow_catalog::semantic::over_cluster;
use sparrow_mapping::Mapping;
use sparrow_query::dsl::{self, Context};
use sparrow_query::{Operator, Query, QueryKind, VectorKind};
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_tantivy_index::query::answering;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Node, read};

use crate::error::{SearchError, Shard};
use crate::highlight::best_passages;
use crate::service::SearchService;
use crate::{resolve, semantic};
use sparrow_search_body::body;
use sparrow_search_body::fusion::Method;
use sparrow_search_body::highlight::Highlight;
use sparrow_search_body::retriever::{self, Retriever, Stage, Standard};
use sparrow_search_body::window::Window;

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("bind_semantic", Action::Infer, Lane::Read, bind_semantic)
        .about("What clauses on `semantic_text` fields come to in indices that are kept elsewhere.")
        .json()
        .stops()
        .unlisted(),
    Operation::new("best_passages", Action::Infer, Lane::Read, best_passages_of_hits)
        .large()
        .about("The best passages of hits from an index that is kept elsewhere.")
        .json()
        .stops()
        .unlisted(),
];

/// An index that is kept elsewhere.
#[derive(Deserialize)]
pub(super) struct Index {
    index: String,
    /// The part of the index's mapping that concerns `semantic_text`; `state` is what a mapping does not show of these fields.
    mapping: Value,
    #[serde(default)]
    state: Value,
}

impl Index {
    pub(super) fn mapping(&self) -> Result<Arc<Mapping>, EngineError> {
        Ok(Arc::new(Mapping::stored(&self.mapping)?.with_slots(&self.state)?))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Sparse,
    Dense,
}

/// A clause of a search, without its filters.
#[derive(Deserialize)]
pub(super) struct Clause {
    query: Value,
    /// The one kind of vectors that it searches.
    part: Option<Part>,
    /// Hits that the list around it wants.
    hits: usize,
}

/// Reads clauses and encodes their texts, for indices with the given mappings. `seen` is shown the clauses before that.
pub(super) fn bound(
    service: &SearchService,
    indices: &[Index],
    mappings: &[Arc<Mapping>],
    clauses: &[Clause],
    seen: impl FnOnce(&[&mut Query]),
    cancel: &CancelFlag,
) -> Result<Vec<Query>, EngineError> {
    let mut queries = Vec::with_capacity(clauses.len());
    for clause in clauses {
        let mut query = dsl::parse_query(&node(&clause.query)?, Context::new(clause.hits))?;
        if let QueryKind::Semantic(semantic) = &mut query.kind {
            semantic.part = clause.part.map(|part| match part {
                Part::Sparse => VectorKind::Sparse,
                Part::Dense => VectorKind::Dense,
            });
        }
        queries.push(query);
    }
    let mut changed: Vec<&mut Query> = queries.iter_mut().collect();
    encoded(service, indices, mappings, &mut changed, seen, cancel)?;
    for (query, clause) in changed.iter_mut().zip(clauses) {
        query.kind.fit(clause.hits);
    }
    Ok(queries)
}

/// Encodes the texts of clauses, for indices with the given mappings. `seen` is shown the clauses before that.
pub(super) fn encoded(
    service: &SearchService,
    indices: &[Index],
    mappings: &[Arc<Mapping>],
    changed: &mut [&mut Query],
    seen: impl FnOnce(&[&mut Query]),
    cancel: &CancelFlag,
) -> Result<(), EngineError> {
    semantic::bind(service, mappings, changed, body::DEFAULT_SIZE, cancel.flag(), None)?;
    seen(changed);
    resolve::name_parts(&service.models, changed);
    let named = resolve::model_uses(changed);
    for (index, mapping) in indices.iter().zip(mappings) {
        for used in resolve::own_models(changed, mapping).into_iter().chain(named.iter().cloned()) {
            if let Some(stored) = resolve::other_model(&service.models, mapping, &used) {
                let shard = Box::new(Shard {
                    index: index.index.clone(),
                    uuid: "_na_".to_owned(),
                    node: service.node.id().to_owned(),
                });
                let (field, model) = (used.field, used.model_id);
                return Err(
                    SearchError::ModelMismatch { shard, field, model, stored, changeable: false }.into()
                );
            }
        }
    }
    resolve::resolve(&*service.models, changed, cancel.flag(), None)
}

#[derive(Deserialize)]
struct Asked {
    indices: Vec<Index>,
    clauses: Vec<Clause>,
}

fn bind_semantic(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Asked = parsed(body)?;
    let mappings = asked.indices.iter().map(Index::mapping).collect::<Result<Vec<_>, _>>()?;
    let queries = bound(service, &asked.indices, &mappings, &asked.clauses, |_| (), cancel)?;
    let shown = queries
        .iter()
        .map(|query| {
            let each = mappings.iter().map(|mapping| match &query.kind {
                QueryKind::Semantic(clause) => Ok(shown(&answering(clause, mapping)?)),
                other => Ok(shown(other)),
            });
            let each = each.collect::<Result<Vec<Value>, sparrow_tantivy_index::query::QueryError>>();
            let each = each.map_err(|error| EngineError::illegal_argument(error.to_string()))?;
            Ok(json!({"boost": query.boost, "name": query.name, "indices": each}))
        })
        .collect::<Result<Vec<Value>, EngineError>>()?;
    Ok(Reply::ok(&json!({"clauses": shown})))
}

/// A clause as JSON for the cluster. Its `kind` is `sparse` or `dense` for a clause on vectors, `any` for several with a boost each, `none`
/// where nothing matches, and `other` for a clause that is not on a `semantic_text` field.
fn shown(kind: &QueryKind) -> Value {
    match kind {
        QueryKind::Sparse(clause) => {
            let tokens: Map<String, Value> =
                clause.tokens.iter().map(|(token, weight)| (token.to_string(), json!(weight))).collect();
            json!({"kind": "sparse", "field": clause.field, "tokens": tokens})
        }
        QueryKind::Knn(clause) => json!({
            "kind": "dense", "field": clause.field, "vector": clause.vector, "k": clause.k,
            "candidates": clause.num_candidates, "similarity": clause.similarity,
        }),
        QueryKind::Bool(clause) => {
            let parts: Vec<Value> = clause
                .should
                .iter()
                .map(|part| json!({"boost": part.boost, "clause": shown(&part.kind)}))
                .collect();
            json!({"kind": "any", "parts": parts})
        }
        QueryKind::MatchNone => json!({"kind": "none"}),
        _ => json!({"kind": "other"}),
    }
}

#[derive(Deserialize)]
struct Highlighted {
    indices: Vec<Index>,
    clauses: Vec<Clause>,
    /// The `highlight` section of the search.
    highlight: Value,
    hits: Vec<Found>,
}

/// A hit with the payload that is stored with it.
#[derive(Deserialize)]
struct Found {
    /// Which of the indices it is from.
    index: usize,
    source: Value,
    payload: Option<String>,
}

fn best_passages_of_hits(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Highlighted = parsed(body)?;
    let mappings = asked.indices.iter().map(Index::mapping).collect::<Result<Vec<_>, _>>()?;
    let queries = bound(service, &asked.indices, &mappings, &asked.clauses, |_| (), cancel)?;
    let queries: Vec<&Query> = queries.iter().collect();
    let highlight = Highlight::parse(&node(&asked.highlight)?, Context::new(body::DEFAULT_SIZE))?;
    let mut hits = Vec::with_capacity(asked.hits.len());
    for found in asked.hits {
        let payload = found.payload.as_deref().map(over_cluster::payload).transpose()?;
        let mut texts = Map::new();
        if let Some(mapping) = mappings.get(found.index) {
            for (path, passages) in
                best_passages(mapping, &highlight, &queries, payload.as_deref(), &found.source)?
            {
                texts.insert(path, passages.into());
            }
        }
        hits.push(texts);
    }
    Ok(Reply::ok(&json!({"hits": hits})))
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, EngineError> {
    serde_json::from_value(parse_json(body)?)
        .map_err(|error| EngineError::illegal_argument(format!("failed to parse: {error}")))
}

/// What a retriever does with the hits of its list, which is not looked at.
pub(super) fn stage(retriever: &Value) -> Result<Option<Stage>, EngineError> {
    Ok(match retriever::parse(&node(retriever)?, Context::new(body::DEFAULT_SIZE))? {
        Retriever::Fused(fusion) => fusion.stage,
        _ => None,
    })
}

/// A value as the parsers of searches read it.
pub(super) fn node(value: &Value) -> Result<Node, BodyError> {
    Ok(read(value.to_string().as_bytes())?.0)
}

/// The lists that the short form of a fusion stands for, as JSON. `given` holds the `retriever`, without filters, and the `indices`.
///
/// # Errors
/// The body of the error that a search here would answer, with its status.
pub fn expanded(given: &str) -> Result<String, (u16, String)> {
    expand(given).map_err(|error| (error.status(), error.body().to_string()))
}

fn expand(given: &str) -> Result<String, EngineError> {
    #[derive(Deserialize)]
    struct Short {
        retriever: Value,
        indices: Vec<Index>,
    }
    let short: Short = parsed(given.as_bytes())?;
    let mappings = short.indices.iter().map(Index::mapping).collect::<Result<Vec<_>, _>>()?;
    let context = Context::new(body::DEFAULT_SIZE);
    let Retriever::Fused(mut fusion) = retriever::parse(&node(&short.retriever)?, context)? else {
        return Err(EngineError::illegal_argument("[retriever] is no fusion of lists"));
    };
    retriever::expand(&mut fusion, &mappings)?;
    let lists: Vec<Value> = fusion
        .inputs
        .iter()
        .map(|input| {
            let query = match &input.retriever {
                Retriever::Standard(Standard { query, .. }) => list(&query.kind),
                Retriever::Knn(_) | Retriever::Fused(_) => Value::Null,
            };
            json!({"weight": input.weight, "normalizer": input.normalizer.name(), "list": query})
        })
        .collect();
    let (window, named) = match fusion.window {
        Window::Given(size) => (size, true),
        Window::Default(size) | Window::Capped { first: size, .. } => (size, false),
    };
    let constant = match fusion.method {
        Method::Rrf { rank_constant } => Some(rank_constant),
        Method::Linear => None,
    };
    let shown =
        json!({"rank_constant": constant, "window": {"size": window, "given": named}, "lists": lists});
    Ok(shown.to_string())
}

/// A list of the short form: words in fields, all of them where none are named, or one kind of vectors of a field.
fn list(kind: &QueryKind) -> Value {
    match kind {
        QueryKind::MultiMatch(clause) => {
            json!({"fields": clause.fields, "all": clause.template.operator == Operator::And})
        }
        QueryKind::Semantic(clause) => {
            let part = if clause.part == Some(VectorKind::Dense) { "dense" } else { "sparse" };
            json!({"field": clause.field, "part": part})
        }
        _ => Value::Null,
    }
}
