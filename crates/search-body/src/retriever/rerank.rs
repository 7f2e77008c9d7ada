//! `text_similarity_reranker`: the first hits of a list in the order in which a cross-encoder ranks their
//! texts.

use std::sync::Arc;

use sparrow_mapping::{Chunking, ChunkingError};
use sparrow_models::Models;
use sparrow_query::dsl::{Context, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Location, Member, Node};

use super::super::fusion::Method;
use super::super::rank::window_shape;
use super::super::shape::{Shape, int, named, object, text};
use super::common::{self, Common, each, inner_shape, required};
use super::{Fusion, Input, Retriever, Stage};

/// Name of the retriever in requests.
pub(super) const KIND: &str = "text_similarity_reranker";

pub(super) fn shape() -> Shape {
    object([
        inner_shape(),
        ("field", text().about("whose text is read")),
        ("inference_id", text()),
        ("inference_text", text().about("the question")),
        ("chunk_rescorer", chunks_shape()),
        window_shape(),
    ])
    .and(common::named())
    .needs(&["retriever", "field", "inference_text"])
}

fn chunks_shape() -> Shape {
    let size = int().about("how many parts of a text are read").preset(1);
    object([("size", size), ("chunking_settings", named("ChunkingSettings"))])
}

/// A reranker: a cross-encoder that scores the hits of a list by their texts.
#[derive(Debug, Clone)]
pub struct Rerank {
    /// Id of the inference endpoint; empty for the only one that reranks, until it is known.
    pub inference_id: String,
    /// The query text that documents are compared with.
    pub text: String,
    /// Field whose text is ranked.
    pub field: String,
    /// Which parts of a text are ranked in place of the whole text.
    pub chunks: Option<ChunkRescorer>,
    /// Lowest score of the model that a hit may have.
    pub min_score: Option<f32>,
    /// The node's models, set once the endpoint has been checked.
    pub models: Option<Arc<Models>>,
}

impl PartialEq for Rerank {
    /// Compares what the request says; the models do not matter.
    fn eq(&self, other: &Self) -> bool {
        (&self.inference_id, &self.text, &self.field, &self.chunks, self.min_score)
            == (&other.inference_id, &other.text, &other.field, &other.chunks, other.min_score)
    }
}

/// Parts of a text that a model reads in its place: those whose words are nearest to the question. The best of them counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkRescorer {
    /// How many parts of a text the model reads.
    pub size: usize,
    /// How texts are cut.
    pub chunking: Chunking,
}

/// Most parts of a text that a model reads.
const MOST_CHUNKS: i32 = 10;

impl ChunkRescorer {
    fn read(node: &Node) -> Result<Self, BodyError> {
        const PARSER: &str = "chunk_rescorer";
        let Some(members) = node.as_object() else {
            return Err(BodyError::parsing(node.at, "[chunk_rescorer] must be an object"));
        };
        let (mut size, mut chunking) = (1, None);
        for member in members {
            match &*member.name {
                "size" => size = value::int(&member.value)?,
                "chunking_settings" => {
                    let given = member.value.to_value();
                    let given = given.as_object().ok_or_else(|| {
                        BodyError::parsing(member.value.at, "[chunking_settings] must be an object")
                    })?;
                    let parsed = Chunking::parse(given);
                    chunking = parsed.map_err(|error| match error {
                        ChunkingError::Strategy(reason) | ChunkingError::Invalid(reason) => {
                            BodyError::illegal(reason)
                        }
                    })?;
                }
                _ => return Err(BodyError::unknown_field(PARSER, member, chunks_shape().names())),
            }
        }
        if !(1..=MOST_CHUNKS).contains(&size) {
            return Err(BodyError::illegal(format!(
                "[size] of [{PARSER}] must be from [1] to [{MOST_CHUNKS}], was [{size}]"
            )));
        }
        Ok(Self { size: size as usize, chunking: chunking.unwrap_or_default() })
    }
}

/// Reads a `text_similarity_reranker`, whose own retriever `child` reads, as a fusion of a single list.
pub(super) fn read(
    members: &[Member],
    end: Location,
    context: Context,
    child: &dyn Fn(&Node) -> Result<Retriever, BodyError>,
) -> Result<Fusion, BodyError> {
    let (mut inner, mut least, mut chunks) = (None, None, None);
    let (mut inference_id, mut text, mut field) = (None, None, None);
    let mut common = Common::default();
    each(KIND, members, |member| {
        let node = &member.value;
        match &*member.name {
            "retriever" => inner = Some(child(node)?),
            "inference_id" => {
                let id = value::text(node)?;
                if id.is_empty() {
                    return Err(BodyError::illegal("[inference_id] must not be empty"));
                }
                inference_id = Some(id);
            }
            "inference_text" => text = Some(value::text(node)?),
            "field" => field = Some(value::text(node)?),
            "chunk_rescorer" => chunks = Some(ChunkRescorer::read(node)?),
            // Of the model's scores, which may be negative.
            "min_score" => least = Some(value::float(node)?),
            "rank_window_size" | "filter" | "_name" => {
                common.take(KIND, member, context)?;
            }
            _ => return Err(BodyError::unknown_field(KIND, member, shape().names())),
        }
        Ok(())
    })?;
    let missing =
        [("retriever", inner.is_none()), ("inference_text", text.is_none()), ("field", field.is_none())];
    let (Some(inner), Some(text), Some(field)) = (inner, text, field) else {
        return Err(required(end, &missing));
    };
    if text.is_empty() {
        return Err(BodyError::Validation {
            messages: vec![format!("[{KIND}] [inference_text] cannot be empty")],
        });
    }
    common.set_list(Input::new(inner));
    let mut fusion = common.build(Method::Linear, None, context)?;
    let inference_id = inference_id.unwrap_or_default();
    fusion.stage =
        Some(Stage::Rerank(Rerank { inference_id, text, field, chunks, min_score: least, models: None }));
    Ok(fusion)
}
