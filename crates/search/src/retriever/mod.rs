//! Retrievers: a tree whose leaves find ranked lists and whose inner nodes fuse them.
//!
//! `rank` with `query`, `sub_searches` and `knn` is a tree of one level, so that there is one way to fuse.

mod expand;
mod parse;
mod rerank;
mod simplified;

use sparrow_query::{BoolQuery, KnnBuilderQuery, Query, QueryKind, walk};

use super::body::SearchBody;
use super::calibration::Map;
use super::fusion::{Method, Normalizer};
use super::rescore::Rescore;
use super::window::{Window, windows};
use sparrow_query::dsl::KnnSearch;
use sparrow_wire::BodyError;
use sparrow_wire::json::Member;

pub use expand::{ShortForm, expand};
pub use parse::parse;
pub use rerank::{Rerank, bind_rerankers};

/// Most lists of a search: each is held in memory.
pub const MAX_LISTS: usize = 100;
/// Window of a retriever that names none, unless more hits are asked for.
pub const DEFAULT_WINDOW: usize = 10;

/// Something that finds a ranked list.
#[derive(Debug, Clone, PartialEq)]
pub enum Retriever {
    /// A query.
    Standard(Standard),
    /// The nearest neighbours of a vector.
    Knn(Knn),
    /// Other lists, fused.
    Fused(Fusion),
}

/// `standard`.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    /// The query together with the filters.
    pub query: Query,
    /// Lowest score of a hit.
    pub min_score: Option<f32>,
    /// `_name`.
    pub name: Option<String>,
    /// `sort`, `search_after`, `terminate_after` and `collapse`, which the search that the retriever stands for
    /// reads. None of a retriever below another.
    pub sections: Vec<Member>,
    /// A list in another order than by score, or of the first hits of groups: the search that finds it, without its
    /// query.
    pub search: Option<Box<SearchBody>>,
    /// The query is the words of a short form, which may come to more lists.
    pub short: Option<ShortForm>,
}

impl Standard {
    /// A query as it is.
    pub fn new(query: Query) -> Self {
        Self { query, min_score: None, name: None, sections: Vec::new(), search: None, short: None }
    }
}

/// `knn`.
#[derive(Debug, Clone, PartialEq)]
pub struct Knn {
    /// The clause.
    pub search: KnnSearch,
    /// Lowest score of a hit.
    pub min_score: Option<f32>,
    /// `_name`.
    pub name: Option<String>,
}

/// `rrf` and `linear`, the `rank` section, and what scores the hits of one list anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Fusion {
    /// How scores become one.
    pub method: Method,
    /// The lists.
    pub inputs: Vec<Input>,
    /// Hits taken from each list, and most hits of the fused one.
    pub window: Window,
    /// Lowest fused score of a hit.
    pub min_score: Option<f32>,
    /// `_name`.
    pub name: Option<String>,
    /// What of it a response shows.
    pub form: Form,
    /// What scores the hits of its one list anew.
    pub rerank: Option<Rerank>,
}

/// A list of a fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// What finds it.
    pub retriever: Retriever,
    /// How much it counts.
    pub weight: f32,
    /// How a linear fusion normalizes its scores.
    pub normalizer: Normalizer,
    /// Passes that score its first hits again.
    pub rescore: Vec<Rescore>,
    /// Model that the clause names whose scores are calibrated, from before its text became a vector.
    pub model: Option<String>,
    /// Maps of its scores by index, once they are calibrated.
    pub maps: Vec<Option<Map>>,
}

impl Input {
    /// A list that counts like any other.
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

    /// The map of its scores for an index. An index in which the list can find nothing has that of another, for the sake of
    /// what is absent; none if the list can find nothing anywhere.
    pub fn map(&self, target: usize) -> Option<Map> {
        self.maps.get(target).copied().flatten().or_else(|| self.maps.iter().copied().flatten().next())
    }
}

/// The two forms in which a request asks for a fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The `rank` section: hits show `_rank`, and there is no `max_score`.
    Rank,
    /// A retriever: a hit shows its fused score only.
    Retriever,
}

impl Retriever {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Retriever::Standard(_) => "standard",
            Retriever::Knn(_) => "knn",
            Retriever::Fused(fusion) => fusion.kind(),
        }
    }

    /// The queries of its leaves, from left to right.
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

    /// Lets only documents through that match all of `filters`.
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
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self.method {
            _ if self.rerank.is_some() => rerank::KIND,
            // One list whose scores stay as they are, but for the passes.
            Method::Linear if self.inputs.iter().any(|input| !input.rescore.is_empty()) => "rescorer",
            Method::Rrf { .. } => "rrf",
            Method::Linear => "linear",
        }
    }

    /// The lowest score of its hits, be it of the fused score or of a model's.
    pub fn least(&self) -> Option<f32> {
        self.min_score.or(self.rerank.as_ref().and_then(|rerank| rerank.min_score))
    }

    /// Whether it makes probabilities of the scores of its lists.
    pub fn is_calibrated(&self) -> bool {
        self.inputs.first().is_some_and(|input| input.normalizer == Normalizer::Calibrated)
    }

    /// The queries of all leaves, from left to right.
    pub fn queries(&self) -> Vec<&Query> {
        self.inputs.iter().flat_map(|input| input.retriever.queries()).collect()
    }

    /// Every query of the tree, those of rescoring passes too, to be changed.
    pub fn queries_mut(&mut self) -> Vec<&mut Query> {
        let mut queries = Vec::new();
        for input in &mut self.inputs {
            queries.extend(input.retriever.queries_mut());
            queries.extend(input.rescore.iter_mut().map(|rescore| &mut rescore.query));
        }
        queries
    }

    /// Lets clauses about neighbours that do not say how many they find, find as many as their list is read. `wanted` is
    /// how many hits the search, or the list above, reads.
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

    /// A query for the documents that any of the leaves finds.
    pub fn any(&self) -> Query {
        let should: Vec<Query> = self.queries().into_iter().cloned().collect();
        QueryKind::Bool(BoolQuery { should, ..Default::default() }).into()
    }

    /// Checks windows against the number of hits asked for and against each other.
    ///
    /// # Errors
    /// Messages of a validation are added to `messages`.
    pub fn validate(&self, size: usize, messages: &mut Vec<String>) {
        if let Window::Given(window) = self.window
            && window < size
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

/// A query that only finds what passes the filters, which do not score.
fn filtered(query: Option<Query>, filter: Vec<Query>) -> Query {
    if filter.is_empty() {
        return query.unwrap_or_else(Query::match_all);
    }
    QueryKind::Bool(BoolQuery { must: query.into_iter().collect(), filter, ..Default::default() }).into()
}

/// The error of a section that only the retriever at the top may have, as it is about the whole search.
pub fn not_supported_inside(member: &Member) -> BodyError {
    BodyError::illegal(format!("[{}] cannot be used in children of compound retrievers", member.name))
}
