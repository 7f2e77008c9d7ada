//! `knn`: the documents with the nearest dense vectors, as a query and as a section of a search.

use std::fmt;

use super::dsl::{Common, Context, members, one_or_many, value};
use super::shape::{
    Named, Shape, clause, either, int, list, named, num, object, open, several, sub_query, text,
};
use crate::neighbours::{MAX_CANDIDATES, candidates_of_hits, default_candidates, default_k};
use crate::{Clause, Query, QueryKind, TextToEncode};
use sparrow_mapping::query_vector;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// The `k` nearest vectors of the whole index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnnQuery {
    /// Path of a `dense_vector` field.
    pub field: String,
    /// The query vector.
    pub vector: Vec<f32>,
    /// Number of neighbours over all segments.
    pub k: usize,
    /// Number of candidates examined in each segment, unless all vectors are: more candidates find more of the true neighbours.
    pub num_candidates: usize,
    /// `rescore_vector.oversample`: as a multiple of `k`, the number of candidates that are found by codes and then compared
    /// exactly where they can be hits, if that is more than `num_candidates`. Scores are exact in any case.
    pub oversample: Option<f32>,
    /// Only documents that match all of these are candidates.
    pub filter: Vec<Query>,
    /// Lowest raw similarity of a neighbour.
    pub similarity: Option<f32>,
    /// How `k` is derived if the request does not give it.
    pub default_k: Option<DefaultK>,
    /// The `inner_hits` as they were sent, for a field inside a nested one: which of the nearest objects are shown with a document.
    pub inner_hits: Option<Box<Node>>,
}

/// How the `k` of a kNN clause that does not give it is derived from the number of hits wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultK {
    /// As many neighbours as hits: for a `knn` section or a retriever.
    Hits {
        /// Whether the request gives the number of candidates, which `k` then does not exceed.
        candidates_given: bool,
    },
    /// Every candidate is a neighbour, as in Elasticsearch: for a `knn` query.
    Candidates,
}

/// A text that the encoder turns into a kNN clause before the search.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnBuilderQuery {
    /// Id of a model or an inference endpoint.
    pub model_id: String,
    /// The text to encode.
    pub model_text: String,
    /// The kNN clause, whose vector is empty until then.
    pub knn: KnnQuery,
}

/// A `knn` section: its clause, whose `k` counts over all indices of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct KnnSearch {
    /// A [`QueryKind::Knn`] or [`QueryKind::KnnBuilder`].
    pub query: Query,
    /// Number of neighbours over all indices.
    pub k: usize,
}

/// What a search for neighbours holds beside the vector and filters, as a query and as a retriever.
pub fn knn_members() -> [Named; 5] {
    let candidates =
        "candidates that are looked at; if nothing is said, half as many again as `k`, but at least 100";
    let oversample =
        "candidates that quantised vectors choose, as a multiple of `k`; the best by exact scores are hits";
    [
        ("field", text().about("a `dense_vector`, or a `semantic_text` with dense vectors")),
        ("k", int().about("neighbours that are found; in a query all candidates if nothing is said, in a section `size`")),
        ("num_candidates", int().about(candidates)),
        ("similarity", num().about("least similarity of a neighbour")),
        ("rescore_vector", object([("oversample", num().about(oversample))]).needs(&["oversample"])),
    ]
}

/// What neighbours are looked for of: a vector, or what makes one.
pub fn vector_members() -> [Named; 2] {
    let vector = either([list(num()), text().about("hexadecimal bytes")]);
    [("query_vector", vector), ("query_vector_builder", named("QueryVectorBuilder"))]
}

/// What the body of a `knn` query holds.
pub(super) fn knn_shape() -> Shape {
    let inner_hits = open().about("which of the nearest objects are shown, for a field inside a nested one");
    clause(knn_members())
        .and(vector_members())
        .and([("filter", several(sub_query())), ("inner_hits", inner_hits)])
        .needs(&["field"])
}

/// What makes the vector of a search of a text.
pub(super) fn builder_shape() -> Shape {
    let text_embedding = object([
        ("model_id", text().about("model or endpoint; that of the field if nothing is said")),
        ("model_text", text().about("text that becomes the vector")),
    ])
    .needs(&["model_text"]);
    object([("text_embedding", text_embedding)]).needs(&["text_embedding"])
}

/// Reads a `knn` query.
pub(super) fn query(body: &Node, context: Context) -> Result<Query, BodyError> {
    let mut parsed = parse(body, context)?;
    if !parsed.k_given {
        // As in Elasticsearch every candidate is a neighbour, unlike in the section.
        parsed.knn.k = parsed.candidates_given.unwrap_or(candidates_of_hits(context.size)).max(1);
        parsed.knn.default_k = parsed.candidates_given.is_none().then_some(DefaultK::Candidates);
    }
    check(parsed.knn.k, parsed.knn.num_candidates)
        .and_then(|()| parsed.into_query())
        .map_err(|reason| BodyError::Build { parser: "knn", reason, at: body.end })
}

/// One `knn` section of a search.
pub fn parse_knn_search(body: &Node, context: Context) -> Result<KnnSearch, BodyError> {
    let mut parsed = parse(body, context)?;
    if !parsed.k_given {
        parsed.knn.default_k = Some(DefaultK::Hits { candidates_given: parsed.candidates_given.is_some() });
    }
    let k = parsed.knn.k;
    check(k, parsed.knn.num_candidates)
        .and_then(|()| parsed.into_query())
        .map(|query| KnnSearch { query, k })
        .map_err(|reason| BodyError::IllegalArgument { reason })
}

struct Parsed {
    common: Common,
    knn: KnnQuery,
    k_given: bool,
    candidates_given: Option<usize>,
    vector: Option<Vec<f32>>,
    builder: Option<(String, String)>,
}

impl Parsed {
    fn into_query(self) -> Result<Query, String> {
        let Parsed { common, mut knn, vector, builder, .. } = self;
        match (vector, builder) {
            (Some(vector), None) => {
                knn.vector = vector;
                Ok(common.query(QueryKind::Knn(knn)))
            }
            (None, Some((model_id, model_text))) => {
                Ok(common.query(QueryKind::KnnBuilder(KnnBuilderQuery { model_id, model_text, knn })))
            }
            (Some(_), Some(_)) => {
                Err("cannot provide both [query_vector_builder] and [query_vector]".to_owned())
            }
            (None, None) => {
                Err("either [query_vector_builder] or [query_vector] must be provided".to_owned())
            }
        }
    }
}

fn check(k: usize, num_candidates: usize) -> Result<(), String> {
    if k == 0 {
        return Err("[k] must be greater than 0".to_owned());
    }
    if num_candidates < k {
        return Err("[num_candidates] cannot be less than [k]".to_owned());
    }
    if num_candidates > MAX_CANDIDATES {
        return Err(format!("[num_candidates] cannot exceed [{MAX_CANDIDATES}]"));
    }
    Ok(())
}

fn parse(body: &Node, context: Context) -> Result<Parsed, BodyError> {
    const PARSER: &str = "knn";
    let mut parsed = Parsed {
        common: Common::default(),
        knn: KnnQuery::default(),
        k_given: false,
        candidates_given: None,
        vector: None,
        builder: None,
    };
    let (mut field, mut k, mut num_candidates) = (None, None, None);
    for member in members(body, PARSER)? {
        let node = &member.value;
        let mut read = || -> Result<(), BodyError> {
            match &*member.name {
                "field" => field = Some(value::text(node)?),
                "query_vector" => parsed.vector = Some(vector(node)?),
                "query_vector_builder" => parsed.builder = Some(vector_builder(node)?),
                "k" => k = Some(value::int(node)?.max(0) as usize),
                "num_candidates" => num_candidates = Some(value::int(node)?.max(0) as usize),
                "filter" => parsed.knn.filter = one_or_many(node, context.nested()?)?,
                "similarity" => parsed.knn.similarity = Some(value::float(node)?),
                "rescore_vector" => parsed.knn.oversample = Some(rescore_vector(node)?),
                "inner_hits" if node.as_object().is_some() => {
                    parsed.knn.inner_hits = Some(Box::new(node.clone()));
                }
                _ if parsed.common.take(PARSER, member)? => {}
                _ => return Err(BodyError::unknown_field(PARSER, member, knn_shape().names())),
            }
            Ok(())
        };
        read().map_err(|error| match error {
            BodyError::UnknownField { parser: PARSER, .. } => error,
            other => other.within(PARSER, &member.name, node.at),
        })?;
    }
    let Some(field) = field else {
        return Err(BodyError::Required { field: "field" });
    };
    parsed.knn.field = field;
    let k_given = k.is_some();
    let k = k.unwrap_or(default_k(context.size));
    parsed.knn.k = k;
    parsed.k_given = k_given;
    parsed.candidates_given = num_candidates;
    parsed.knn.num_candidates = num_candidates.unwrap_or_else(|| default_candidates(k));
    Ok(parsed)
}

/// Reads a query vector: an array of numbers, a single number, or a text ([`query_vector`]).
fn vector(node: &Node) -> Result<Vec<f32>, BodyError> {
    match &node.json {
        Json::Array(items) => items.iter().map(value::float).collect(),
        Json::Number(_) => Ok(vec![value::float(node)?]),
        Json::String(text) => query_vector(text).map_err(|reason| BodyError::IllegalArgument { reason }),
        _ => Err(BodyError::ValueType {
            parser: "knn",
            field: "query_vector".to_owned(),
            token: node.token(),
            at: node.at,
        }),
    }
}

/// Reads `{"text_embedding": {"model_id": …, "model_text": …}}`; gives the id of the model, empty for the field's own, and the
/// text.
fn vector_builder(node: &Node) -> Result<(String, String), BodyError> {
    const PARSER: &str = "text_embedding";
    let [builder] = members(node, "query_vector_builder")? else {
        return Err(BodyError::parsing(node.at, "[query_vector_builder] must hold exactly one builder"));
    };
    if &*builder.name != PARSER {
        return Err(BodyError::parsing(
            builder.value.at,
            format!("unknown query vector builder [{}]", builder.name),
        ));
    }
    let (mut model_id, mut model_text) = (None, None);
    for member in members(&builder.value, PARSER)? {
        match &*member.name {
            "model_id" => model_id = Some(value::text(&member.value)?),
            "model_text" => model_text = Some(value::text(&member.value)?),
            _ => return Err(BodyError::unknown_field(PARSER, member, &["model_id", "model_text"])),
        }
    }
    match (model_id, model_text) {
        (Some(model_id), Some(model_text)) => Ok((model_id, model_text)),
        // The field's own endpoint, if it has one.
        (None, Some(model_text)) => Ok((String::new(), model_text)),
        (_, None) => Err(BodyError::Required { field: "model_text" }),
    }
}

/// Reads the factor of `{"oversample": 2.0}`: from 1 to below 10, or 0 to examine no more than `num_candidates`. Scores are exact
/// in any case.
fn rescore_vector(node: &Node) -> Result<f32, BodyError> {
    const PARSER: &str = "rescore_vector";
    let mut oversample = None;
    for member in members(node, PARSER)? {
        match &*member.name {
            "oversample" => oversample = Some(value::float(&member.value)?),
            _ => return Err(BodyError::unknown_field(PARSER, member, &["oversample"])),
        }
    }
    match oversample {
        Some(factor) if factor == 0.0 || (1.0..10.0).contains(&factor) => Ok(factor),
        Some(_) => Err(BodyError::illegal("[oversample] must be >= 1.0 and < 10.0, or 0")),
        None => Err(BodyError::Required { field: "oversample" }),
    }
}

impl Clause for KnnQuery {
    fn lucene_name(&self) -> &'static str {
        "KnnVectorQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KnnFloatVectorQuery:{}[{} dims][k={}]", self.field, self.vector.len(), self.k)
    }

    fn children(&self) -> Vec<&Query> {
        self.filter.iter().collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        self.filter.iter_mut().collect()
    }

    fn fit(&mut self, hits: usize) {
        match self.default_k {
            None => {}
            Some(DefaultK::Hits { candidates_given: true }) => {
                self.k = default_k(hits).min(self.num_candidates);
            }
            Some(DefaultK::Hits { candidates_given: false }) => {
                self.k = default_k(hits);
                self.num_candidates = default_candidates(self.k);
            }
            Some(DefaultK::Candidates) => {
                self.k = candidates_of_hits(hits);
                self.num_candidates = default_candidates(default_k(hits)).max(self.k);
            }
        }
    }
}

impl Clause for KnnBuilderQuery {
    fn lucene_name(&self) -> &'static str {
        "KnnBuilderQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.knn.print(out)
    }

    fn children(&self) -> Vec<&Query> {
        self.knn.children()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        self.knn.children_mut()
    }

    fn text_to_encode(&self) -> Option<TextToEncode<'_>> {
        Some(TextToEncode { field: &self.knn.field, model_id: &self.model_id, text: &self.model_text })
    }

    fn fit(&mut self, hits: usize) {
        self.knn.fit(hits);
    }
}
