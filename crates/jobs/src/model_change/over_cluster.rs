//! Changes of models in indices that are kept elsewhere, by a cluster: each step is taken here as it is for an index of this engine, and
//! what keeps the index keeps what follows from it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_catalog::model_change::{ChangeState, ModelChange};
use sparrow_catalog::model_steps::Steps;
use sparrow_mapping::Mapping;
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_search::SearchService;

use super::compare;
use super::request::ChangeRequest;
use super::view::{self, FillingView};

#[derive(Deserialize)]
struct Asked {
    /// Name of the index, what of its mapping concerns the change, and what of its state a mapping does not show.
    index: String,
    mapping: Value,
    #[serde(default)]
    state: Value,
    /// The change that is under way.
    change: Option<ModelChange>,
    step: Step,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// The body of the request that begins or continues a change, and the documents per second that it allows.
    Begin {
        request: Value,
        requests_per_second: Option<f64>,
    },
    /// Queries for the comparison: those of the change, or the first words of these documents.
    Queries {
        documents: Vec<Value>,
    },
    /// All documents have vectors of both models. Each list is a query with the ids that each of them finds.
    Fill {
        lists: Vec<(String, Vec<String>, Vec<String>)>,
    },
    Stop {
        failure: String,
    },
    Switch,
    RollBack,
    Drop,
    /// Only shows the fields.
    Show {
        filling: Option<FillingView>,
        of_pipelines: Vec<(String, String)>,
    },
}

pub(super) fn step(
    service: &Arc<SearchService>,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let unreadable =
        |error: serde_json::Error| EngineError::illegal_argument(format!("failed to parse: {error}"));
    let Asked { index, mapping, state, mut change, step } =
        serde_json::from_value(parse_json(body)?).map_err(unreadable)?;
    let mapping = Mapping::stored(&mapping)?.with_slots(&state)?;
    let asked = change.as_ref().map(|change| change.compare.clone()).unwrap_or_default();
    let mut steps = Steps { index: &index, mapping: &mapping, change: &mut change };
    let next = match step {
        Step::Begin { request, requests_per_second } => {
            let mut wanted = ChangeRequest::parse(request.to_string().as_bytes())?;
            wanted.field = mapping.concrete(&wanted.field).into_owned();
            match steps.change {
                // What stopped goes on.
                Some(change) if change.state == ChangeState::Filling && wanted.is(change) => {
                    change.failure = None;
                    mapping.clone()
                }
                _ => {
                    let definition = wanted.definition(service, &index, &mapping, cancel)?;
                    let pace = requests_per_second.unwrap_or(f64::INFINITY);
                    steps.begin(wanted.begun(pace), &definition)?
                }
            }
        }
        Step::Queries { documents } => {
            let field = steps.change.as_ref().map(|change| change.field.clone()).unwrap_or_default();
            let fields = mapping.semantic_sources(&field);
            let words = || documents.iter().filter_map(|source| compare::words_of(source, &fields)).collect();
            let queries = compare::given(&asked).unwrap_or_else(words);
            return Ok(Reply::ok(&json!({"queries": queries})));
        }
        Step::Fill { lists } => {
            let with_queries = compare::given(&asked).is_some();
            steps.filled(compare::of_lists(lists, compare::size(&asked), with_queries, cancel)?)?
        }
        Step::Stop { failure } => {
            if let Some(change) = steps.change.as_mut() {
                change.failure = Some(failure);
            }
            mapping.clone()
        }
        Step::Switch => steps.exchange(true)?,
        Step::RollBack => steps.exchange(false)?,
        Step::Drop => steps.end()?,
        Step::Show { filling, of_pipelines } => {
            return Ok(Reply::ok(&view::of(
                service,
                &mapping,
                change.as_ref(),
                filling.as_ref(),
                of_pipelines,
            )));
        }
    };
    Ok(Reply::ok(&json!({"mapping": next.to_json(), "state": next.slots_to_json(), "change": change})))
}
