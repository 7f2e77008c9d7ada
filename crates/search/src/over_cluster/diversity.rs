//! Diversification of a list that a cluster finds: which of its hits are kept is decided here, by the vectors that the cluster has of them.

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_catalog::semantic::over_cluster as stored;
use sparrow_mapping::passages;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

use super::{Index, encoded, parsed, stage};
use crate::execute::chosen;
use crate::service::SearchService;
use sparrow_search_body::retriever::Stage;

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("choose_different", Action::Infer, Lane::Read, choose_different)
        .large()
        .about("Those of some hits from indices that are kept elsewhere that differ from each other.")
        .json()
        .stops()
        .unlisted()];

#[derive(Deserialize)]
struct Asked {
    /// The retriever; whatever stands for its list is not run.
    retriever: Value,
    #[serde(default)]
    indices: Vec<Index>,
    hits: Vec<Candidate>,
}

/// The vectors of a hit.
#[derive(Deserialize)]
struct Candidate {
    #[serde(default)]
    vectors: Vec<Vec<f32>>,
    /// What is stored of its passages, of which those of one slot count.
    payload: Option<String>,
    slot: Option<String>,
}

impl Candidate {
    fn vectors(self) -> Result<Vec<Vec<f32>>, EngineError> {
        let (Some(payload), Some(slot)) = (&self.payload, &self.slot) else { return Ok(self.vectors) };
        let fields = passages::decode(&stored::payload(payload)?).unwrap_or_default();
        let passages = fields.into_iter().filter(|field| field.path == *slot).flat_map(|field| field.chunks);
        Ok(passages.filter_map(|passage| passage.vector.dense().map(<[f32]>::to_vec)).collect())
    }
}

fn choose_different(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Asked = parsed(body)?;
    let Some(Stage::Diversify(mut diversify)) = stage(&asked.retriever)? else {
        return Err(EngineError::illegal_argument("[retriever] is no [diversify]"));
    };
    if let Some(query) = &mut diversify.query {
        let mappings = asked.indices.iter().map(Index::mapping).collect::<Result<Vec<_>, _>>()?;
        encoded(service, &asked.indices, &mappings, &mut [&mut **query], |_| (), cancel)?;
    }
    let vectors = asked.hits.into_iter().map(Candidate::vectors).collect::<Result<Vec<_>, _>>()?;
    let kept = chosen(&diversify, &vectors)??;
    Ok(Reply::ok(&json!({"kept": kept})))
}
