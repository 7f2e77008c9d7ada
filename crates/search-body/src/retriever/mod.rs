//! Retrievers: a tree whose leaves find ranked lists and whose inner nodes fuse them.
//!
//! `rank` with `query`, `sub_searches` and `knn` is a tree of one level, so that there is one way to fuse.

mod common;
mod diversify;
mod expand;
mod parse;
mod pinned;
mod rerank;
mod simplified;

use super::body::SearchBody;
use super::calibration::{Map, map_for};
use super::fusion::{Method, Normalizer};
use super::rescore::Rescore;
use super::window::{Window, windows};
use sparrow_query::{BoolQuery, KnnBuilderQuery, KnnSearch, Query, QueryKind, walk};
use sparrow_wire::BodyError;
use sparrow_wire::json::Member;

pub use diversify::Diversify;
pub use expand::{ShortForm, expand};
pub use parse::{kinds, parse, shape};
pub use rerank::{ChunkRescorer, Rerank};

/// Highest number of lists in a search: each is held in memory.
pub const MAX_LISTS: usize = 100;
/// Default window of a retriever, in hits, unless more hits are asked for.
pub const DEFAULT_WINDOW: usize = 10;

/// A retriever: it finds a ranked list of hits.
#[derive(Debug, Clone, PartialEq)]
pub enum Retriever {
    /// Hits of a query.
    Standard(Standard),
    /// Nearest neighbours of a vector.
    Knn(Knn),
    /// Several lists fused into one.
    Fused(Fusion),
}

/// The `standard` retriever: a query with filters.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    /// The query, joined with the filters.
    pub query: Query,
    /// Lowest score that a hit may have.
    pub min_score: Option<f32>,
    /// Name of the retriever (`_name`).
    pub name: Option<String>,
    /// The `sort`, `search_after`, `terminate_after` and `collapse` sections, which are applied to the whole
    /// search. Empty for a retriever inside another.
    pub sections: Vec<Member>,
    /// The search that finds the list, without its query, where hits are sorted by something else than the
    /// score or are collapsed.
    pub search: Option<Box<SearchBody>>,
    /// The short form whose full-text query this is; it may expand to further lists.
    pub short: Option<ShortForm>,
}

impl Standard {
    /// A retriever for a query alone.
    pub fn new(query: Query) -> Self {
        Self { query, min_score: None, name: None, sections: Vec::new(), search: None, short: None }
    }
}

/// The `knn` retriever.
#[derive(Debug, Clone, PartialEq)]
pub struct Knn {
    /// The nearest-neighbour search.
    pub search: KnnSearch,
    /// Lowest score that a hit may have.
    pub min_score: Option<f32>,
    /// Name of the retriever (`_name`).
    pub name: Option<String>,
}

/// A fusion of lists: an `rrf` or `linear` retriever, a `rank` section, or a retriever that rescores or
/// reranks the hits of a single list.
#[derive(Debug, Clone, PartialEq)]
pub struct Fusion {
    /// How the ranks or scores of the lists are combined.
    pub method: Method,
    /// The lists to fuse.
    pub inputs: Vec<Input>,
    /// Number of hits read from each list, which is also the most that the fused list has.
    pub window: Window,
    /// Lowest fused score that a hit may have.
    pub min_score: Option<f32>,
    /// Name of the retriever (`_name`).
    pub name: Option<String>,
    /// Which form of fusion the request used; responses differ.
    pub form: Form,
    /// What the retriever does beside fusing lists.
    pub stage: Option<Stage>,
}

/// What a retriever does with its lists beside fusing them.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// `text_similarity_reranker`: the hits of the single list are scored again by a model.
    Rerank(Rerank),
    /// `diversify`: of the hits of the single list, those are kept that differ.
    Diversify(Diversify),
    /// `pinned`: the first list holds chosen documents, with scores that are above all others.
    Pin,
}

/// One of the lists of a fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The retriever that finds the list.
    pub retriever: Retriever,
    /// Weight of the list in the fused score.
    pub weight: f32,
    /// How a linear fusion normalizes the list's scores.
    pub normalizer: Normalizer,
    /// Rescoring passes over the first hits of the list.
    pub rescore: Vec<Rescore>,
    /// Id of the model that the clause names, if the list's scores are to be calibrated; kept because the
    /// clause loses it when its text becomes a vector.
    pub model: Option<String>,
    /// Calibration map of the list's scores for each index; empty until they are looked up.
    pub maps: Vec<Option<Map>>,
}

impl Input {
    /// A list with weight 1 and no rescoring.
    pub fn new(retriever: Retriever) -> Self {
        Self {
            retriever,
            weight: 1.0,
            normalizer: Normalizer::None,
            rescore: Vec::new(),
            model: None,
            maps: Vec::new(),
        }
    }

    /// The calibration map of the list's scores for an index. An index in which the list can find nothing
    /// borrows the map of another, so that absent documents can be scored; `None` if the list can find
    /// nothing in any index.
    pub fn map(&self, target: usize) -> Option<Map> {
        map_for(&self.maps, target)
    }
}

/// The two forms in which a request asks for a fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The `rank` section: hits show `_rank`, and there is no `max_score`.
    Rank,
    /// A retriever: hits show only their fused score.
    Retriever,
}

impl Retriever {
    /// The kind of the retriever, as the request spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            Retriever::Standard(_) => "standard",
            Retriever::Knn(_) => "knn",
            Retriever::Fused(fusion) => fusion.kind(),
        }
    }

    /// Queries of the tree's leaves, from left to right. What only compares hits finds none.
    pub fn queries(&self) -> Vec<&Query> {
        match self {
            Retriever::Standard(standard) => vec![&standard.query],
            Retriever::Knn(knn) => vec![&knn.search.query],
            Retriever::Fused(fusion) => fusion.queries(),
        }
    }

    fn queries_mut(&mut self) -> Vec<&mut Query> {
        match self {
            Retriever::Standard(standard) => vec![&mut standard.query],
            Retriever::Knn(knn) => vec![&mut knn.search.query],
            Retriever::Fused(fusion) => fusion.queries_mut(),
        }
    }

    /// The filters that every hit of a leaf passes; none of a fusion.
    pub fn filters(&self) -> &[Query] {
        let query = match self {
            Retriever::Standard(standard) => &standard.query,
            Retriever::Knn(knn) => &knn.search.query,
            Retriever::Fused(_) => return &[],
        };
        match &query.kind {
            QueryKind::Bool(tree) => &tree.filter,
            QueryKind::Knn(clause) => &clause.filter,
            _ => &[],
        }
    }

    /// Restricts the hits to documents that match every one of `filters`.
    fn restrict(&mut self, filters: &[Query]) {
        match self {
            _ if filters.is_empty() => {}
            Retriever::Standard(standard) => {
                let query = std::mem::replace(&mut standard.query, Query::match_all());
                standard.query = filtered(Some(query), filters.to_vec());
            }
            Retriever::Knn(knn) => match &mut knn.search.query.kind {
                QueryKind::Knn(clause) => clause.filter.extend_from_slice(filters),
                QueryKind::KnnBuilder(clause) => clause.knn.filter.extend_from_slice(filters),
                _ => {}
            },
            Retriever::Fused(fusion) => {
                fusion.inputs.iter_mut().for_each(|input| input.retriever.restrict(filters));
            }
        }
    }
}

impl Fusion {
    /// The kind of the fusion, as the request spells it.
    pub fn kind(&self) -> &'static str {
        match (&self.stage, self.method) {
            (Some(Stage::Rerank(_)), _) => rerank::KIND,
            (Some(Stage::Diversify(_)), _) => diversify::KIND,
            (Some(Stage::Pin), _) => pinned::KIND,
            // One list whose scores stay as they are, but for the passes.
            (None, Method::Linear) if self.inputs.iter().any(|input| !input.rescore.is_empty()) => "rescorer",
            (None, Method::Rrf { .. }) => "rrf",
            (None, Method::Linear) => "linear",
        }
    }

    /// Lowest score that a hit may have: a fused score or, for a reranker, the model's.
    pub fn least(&self) -> Option<f32> {
        self.min_score.or(self.rerank().and_then(|rerank| rerank.min_score))
    }

    /// The reranker of the hits, if the retriever is one.
    pub fn rerank(&self) -> Option<&Rerank> {
        match &self.stage {
            Some(Stage::Rerank(rerank)) => Some(rerank),
            _ => None,
        }
    }

    /// Whether a model reads the texts of the hits, of this list or of one below it.
    pub fn has_reranker(&self) -> bool {
        let below =
            |input: &Input| matches!(&input.retriever, Retriever::Fused(inner) if inner.has_reranker());
        self.rerank().is_some() || self.inputs.iter().any(below)
    }

    /// Whether the scores of the lists are calibrated into probabilities.
    pub fn is_calibrated(&self) -> bool {
        self.inputs.first().is_some_and(|input| input.normalizer == Normalizer::Calibrated)
    }

    /// The queries of all leaves, from left to right.
    pub fn queries(&self) -> Vec<&Query> {
        self.inputs.iter().flat_map(|input| input.retriever.queries()).collect()
    }

    /// Every query of the tree for modification, including those of rescoring passes and the one that hits are compared with.
    pub fn queries_mut(&mut self) -> Vec<&mut Query> {
        let mut queries = Vec::new();
        for input in &mut self.inputs {
            queries.extend(input.retriever.queries_mut());
            queries.extend(input.rescore.iter_mut().map(|rescore| &mut rescore.query));
        }
        if let Some(Stage::Diversify(diversify)) = &mut self.stage {
            queries.extend(diversify.query.as_deref_mut());
        }
        queries
    }

    /// Sets the number of neighbours of clauses that do not name one to the number of hits their list is read
    /// to. `wanted` is how many hits the search, or the list above, reads.
    pub fn fit(&mut self, wanted: usize) {
        let Some(depth) = windows(self.window, wanted).pop() else { return };
        let fit = |query: &mut Query| walk::change_all(query, &mut |kind| kind.fit(depth));
        for input in &mut self.inputs {
            input.rescore.iter_mut().for_each(|rescore| fit(&mut rescore.query));
            match &mut input.retriever {
                Retriever::Standard(standard) => fit(&mut standard.query),
                Retriever::Fused(inner) => inner.fit(depth),
                // A `knn` section beside `rank` finds `size` neighbours, as Elasticsearch documents.
                Retriever::Knn(_) if self.form == Form::Rank => {}
                Retriever::Knn(knn) => {
                    fit(&mut knn.search.query);
                    if let QueryKind::Knn(clause)
                    | QueryKind::KnnBuilder(KnnBuilderQuery { knn: clause, .. }) = &knn.search.query.kind
                    {
                        knn.search.k = clause.k;
                    }
                }
            }
        }
    }

    /// A query that matches the documents which any of the leaves finds.
    pub fn any(&self) -> Query {
        let should: Vec<Query> = self.queries().into_iter().cloned().collect();
        QueryKind::Bool(BoolQuery { should, ..Default::default() }).into()
    }

    /// Checks windows against the number of hits asked for (`size`) and against each other. Validation errors
    /// are appended to `messages`.
    pub fn validate(&self, size: usize, messages: &mut Vec<String>) {
        // A `diversify` retriever returns only a part of its window, so the page may be larger than the window.
        let keeps_some = matches!(self.stage, Some(Stage::Diversify(_)));
        if let Window::Given(window) = self.window
            && window < size
            && !keeps_some
        {
            messages.push(format!(
                "[{}] requires [rank_window_size: {window}] be greater than or equal to [size: {size}]",
                self.kind()
            ));
        }
        for input in &self.inputs {
            let Retriever::Fused(inner) = &input.retriever else { continue };
            if let (Window::Given(window), Window::Given(narrower)) = (self.window, inner.window)
                && window > narrower
            {
                messages.push(format!(
                    "[{}] requires [rank_window_size: {window}] to be smaller than or equal to its sub \
                     retriever's {} [rank_window_size: {narrower}]",
                    self.kind(),
                    inner.kind()
                ));
            }
            inner.validate(0, messages);
        }
    }
}

/// Checks the number of lists in a search.
///
/// # Errors
/// When there are more than [`MAX_LISTS`].
fn check_lists(lists: usize) -> Result<(), BodyError> {
    if lists > MAX_LISTS {
        return Err(BodyError::illegal(format!(
            "[retriever] takes at most [{MAX_LISTS}] result sets, but was [{lists}]"
        )));
    }
    Ok(())
}

/// A query restricted to documents that pass `filter`, which does not affect scores; without a query every
/// such document matches.
pub fn filtered(query: Option<Query>, filter: Vec<Query>) -> Query {
    if filter.is_empty() {
        return query.unwrap_or_else(Query::match_all);
    }
    QueryKind::Bool(BoolQuery { must: query.into_iter().collect(), filter, ..Default::default() }).into()
}

/// The error for a section that only the top-level retriever may have, because it applies to the whole
/// search.
pub fn not_supported_inside(member: &Member) -> BodyError {
    BodyError::illegal(format!("[{}] cannot be used in children of compound retrievers", member.name))
}
