//! The body of a search: its sections, read and checked.

use std::time::Duration;

use sparrow_index::query::{Query, TotalHits};

use super::aggs::{self, Aggregations};
use super::dsl::{self, Context, KnnSearch, value};
use super::error::SearchError;
use super::json::{self, Json, Member, Node};
use super::rank::{self, RankFusion};
use super::sort::{self, Sort};
use super::source_filter::SourceSelection;
use crate::params::parse_duration;

/// Hits of a search that asks for no number.
pub const DEFAULT_SIZE: usize = 10;
/// Hits are counted up to here unless the request says otherwise.
const DEFAULT_TRACKED_HITS: u64 = 10_000;

/// What a search asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchBody {
    /// `query`.
    pub query: Option<Query>,
    /// `knn`, one or several.
    pub knn: Vec<KnnSearch>,
    /// `sub_searches`.
    pub sub_searches: Vec<Query>,
    /// `rank`.
    pub rank: Option<RankFusion>,
    /// `aggs`, also known as `aggregations`.
    pub aggs: Option<Aggregations>,
    /// `post_filter`.
    pub post_filter: Option<Query>,
    /// Hits passed over.
    pub from: usize,
    /// Hits returned.
    pub size: usize,
    /// Lowest score of a hit.
    pub min_score: Option<f32>,
    /// What is shown of the sources.
    pub source: SourceSelection,
    /// How far hits are counted; `None` unless the request says it.
    pub track_total_hits: Option<TotalHits>,
    /// Time after which the search ends with what it has.
    pub timeout: Option<Duration>,
    /// Order of the hits.
    pub sort: Sort,
    /// Scores are shown although hits are sorted by something else.
    pub track_scores: bool,
    /// Hits show their version.
    pub version: bool,
    /// Hits show sequence number and primary term.
    pub seq_no_primary_term: bool,
}

impl Default for SearchBody {
    fn default() -> Self {
        Self {
            query: None,
            knn: Vec::new(),
            sub_searches: Vec::new(),
            rank: None,
            aggs: None,
            post_filter: None,
            from: 0,
            size: DEFAULT_SIZE,
            min_score: None,
            source: SourceSelection::Whole,
            track_total_hits: None,
            timeout: None,
            sort: Sort::Score,
            track_scores: false,
            version: false,
            seq_no_primary_term: false,
        }
    }
}

impl SearchBody {
    /// Reads the body of a search; no bytes are an empty one. `size` is that of the address, which wins
    /// over the body's.
    ///
    /// # Errors
    /// On malformed JSON and on keys and values that a search does not take.
    pub fn parse(bytes: &[u8], size: Option<usize>) -> Result<Self, SearchError> {
        let mut body = SearchBody { size: size.unwrap_or(DEFAULT_SIZE), ..Self::default() };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(body);
        }
        let node = read_object(bytes)?;
        let members = node.as_object().unwrap_or_default();
        if size.is_none()
            && let Some(member) = members.iter().find(|member| &*member.name == "size")
        {
            // A kNN clause further up takes its `k` from it.
            body.size = value::unsigned(&member.value, "size")?;
        }
        let context = Context::new(body.size);
        for member in members {
            body.section(member, context)?;
        }
        Ok(body)
    }

    fn section(&mut self, member: &Member, context: Context) -> Result<(), SearchError> {
        let node = &member.value;
        match (&*member.name, &node.json) {
            ("query", Json::Object(_)) => self.query = Some(dsl::parse_query(node, context)?),
            ("post_filter", Json::Object(_)) => {
                self.post_filter = Some(dsl::parse_query(node, context)?);
            }
            ("knn", Json::Object(_)) => self.knn.push(dsl::parse_knn_search(node, context)?),
            ("knn", Json::Array(items)) => {
                for item in items {
                    self.knn.push(dsl::parse_knn_search(item, context)?);
                }
            }
            ("sub_searches", Json::Array(items)) => {
                for item in items {
                    self.sub_searches.push(sub_search(item, context)?);
                }
            }
            ("rank", Json::Object(_)) => self.rank = Some(rank::parse(node)?),
            ("aggs" | "aggregations", Json::Object(_)) => self.aggs = Some(aggs::parse(node, context)?),
            ("retriever", Json::Object(_)) => self.retriever(node, context)?,
            // The size is known already.
            ("size", Json::Number(_) | Json::String(_)) => {
                value::unsigned(node, "size")?;
            }
            ("from", Json::Number(_) | Json::String(_)) => {
                let from = value::int(node)?;
                self.from = usize::try_from(from).map_err(|_| {
                    SearchError::illegal(format!("[from] parameter cannot be negative but was [{from}]"))
                })?;
            }
            ("min_score", Json::Number(_) | Json::String(_)) => {
                self.min_score = Some(value::float(node)?);
            }
            ("track_total_hits", Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
                self.track_total_hits = Some(track_total_hits(&value::text(node)?)?);
            }
            ("track_scores", Json::Bool(_) | Json::String(_)) => {
                self.track_scores = value::boolean(node)?;
            }
            ("version", Json::Bool(_) | Json::String(_)) => self.version = value::boolean(node)?,
            ("seq_no_primary_term", Json::Bool(_) | Json::String(_)) => {
                self.seq_no_primary_term = value::boolean(node)?;
            }
            ("timeout", Json::String(text)) => self.timeout = timeout(text)?,
            ("_source", _) => self.source = source_selection(node)?,
            ("sort", Json::String(_) | Json::Array(_) | Json::Object(_)) => {
                self.sort = sort::parse(node)?;
            }
            // Groups of statistics that are not kept.
            ("stats", Json::Array(_)) => {
                value::texts(node)?;
            }
            ("explain" | "profile", Json::Bool(false)) => {}
            ("terminate_after", Json::Number(text)) if &**text == "0" => {}
            (name, _) if LATER.contains(&name) => {
                return Err(SearchError::parsing(
                    node.at,
                    format!("[{name}] is not supported by this server"),
                ));
            }
            (name, _) => {
                return Err(SearchError::parsing(
                    node.at,
                    format!("Unknown key for a {} in [{name}].", node.token()),
                ));
            }
        }
        Ok(())
    }

    /// `retriever`: a standard or kNN one stands for the section of the same meaning.
    fn retriever(&mut self, node: &Node, context: Context) -> Result<(), SearchError> {
        let Some([method]) = node.as_object() else {
            return Err(SearchError::parsing(node.at, "[retriever] takes exactly one retriever"));
        };
        match &*method.name {
            "standard" => {
                let members = method.value.as_object().unwrap_or_default();
                for member in members {
                    match &*member.name {
                        "query" => self.query = Some(dsl::parse_query(&member.value, context)?),
                        "filter" => {
                            return Err(SearchError::parsing(
                                member.value.at,
                                "[filter] of a [standard] retriever is not supported by this server",
                            ));
                        }
                        "min_score" => self.min_score = Some(value::float(&member.value)?),
                        _ => {
                            return Err(SearchError::UnknownField {
                                parser: "standard",
                                field: member.name.to_string(),
                                suggestions: super::suggest::suggestions(
                                    &member.name,
                                    &["query", "min_score"],
                                ),
                                at: member.at,
                            });
                        }
                    }
                }
            }
            "knn" => self.knn.push(dsl::parse_knn_search(&method.value, context)?),
            name => {
                return Err(SearchError::UnknownName {
                    what: "retriever",
                    name: name.to_owned(),
                    suggestions: super::suggest::suggestions(name, &["standard", "knn"]),
                    at: method.value.at,
                });
            }
        }
        Ok(())
    }

    /// Checks what needs the whole request.
    ///
    /// # Errors
    /// When sections contradict each other.
    pub fn validate(&self) -> Result<(), SearchError> {
        if self.query.is_some() && !self.sub_searches.is_empty() {
            return Err(SearchError::illegal("cannot specify field [query] and field [sub_searches]"));
        }
        let scored = self.min_score.is_some() || self.track_scores || !self.knn.is_empty();
        if self.sort == Sort::SeqNo && scored {
            return Err(SearchError::illegal(
                "[sort] by [_doc] or [_seq_no] cannot be combined with [min_score], [track_scores] or \
                 [knn] on this server",
            ));
        }
        let mut messages = Vec::new();
        if self.sub_searches.len() >= 2 && self.rank.is_none() {
            messages.push("[sub_searches] requires [rank]".to_owned());
        }
        if let Some(rank) = &self.rank {
            let lists = usize::from(self.query.is_some()) + self.sub_searches.len() + self.knn.len();
            if self.size == 0 {
                messages.push("[rank] requires [size] greater than [0]".to_owned());
            }
            let window = rank.window_for(self.from + self.size);
            if window < self.size {
                messages.push(format!(
                    "[rank] requires [rank_window_size: {window}] be greater than or equal to \
                     [size: {}]",
                    self.size
                ));
            }
            if lists < 2 {
                messages.push(
                    "[rank] requires a minimum of [2] result sets using a combination of sub \
                     searches and/or knn searches"
                        .to_owned(),
                );
            }
            if self.sort != Sort::Score {
                messages.push("[rank] cannot be used with [sort]".to_owned());
            }
        }
        match messages.is_empty() {
            true => Ok(()),
            false => Err(SearchError::Validation { messages }),
        }
    }

    /// How far hits are counted.
    pub fn tracked_hits(&self) -> TotalHits {
        self.track_total_hits.unwrap_or(TotalHits::UpTo(DEFAULT_TRACKED_HITS))
    }
}

/// Sections of a search that Elasticsearch has and this server does not have yet.
const LATER: &[&str] = &[
    "collapse",
    "docvalue_fields",
    "explain",
    "ext",
    "fields",
    "highlight",
    "indices_boost",
    "pit",
    "profile",
    "rescore",
    "runtime_mappings",
    "script_fields",
    "search_after",
    "slice",
    "stored_fields",
    "suggest",
    "terminate_after",
];

/// Reads the body of a count, which takes a `query` only.
///
/// # Errors
/// As [`SearchBody::parse`].
pub fn parse_count(bytes: &[u8]) -> Result<Option<Query>, SearchError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let node = read_object(bytes)?;
    let mut query = None;
    for member in node.as_object().unwrap_or_default() {
        if &*member.name != "query" {
            return Err(SearchError::parsing(
                member.at,
                format!("request does not support [{}]", member.name),
            ));
        }
        query = Some(dsl::parse_query(&member.value, Context::new(DEFAULT_SIZE))?);
    }
    Ok(query)
}

/// `true`, `false`, or the number of hits to count exactly.
pub fn track_total_hits(text: &str) -> Result<TotalHits, SearchError> {
    match text {
        "true" | "" => return Ok(TotalHits::Exact),
        "false" => return Ok(TotalHits::Off),
        _ => {}
    }
    let number: i64 = text.parse().map_err(|_| SearchError::NumberFormat { input: text.to_owned() })?;
    match number {
        -1 => Ok(TotalHits::Off),
        2_147_483_647.. => Ok(TotalHits::Exact),
        number => u64::try_from(number).map(TotalHits::UpTo).map_err(|_| {
            SearchError::illegal(format!(
                "[track_total_hits] parameter must be positive or equals to -1, got {number}"
            ))
        }),
    }
}

/// A time after which a search ends with what it has; `None` for no limit.
pub fn timeout(text: &str) -> Result<Option<Duration>, SearchError> {
    parse_duration("timeout", text).map_err(|error| SearchError::illegal(error.reason()))
}

fn sub_search(node: &Node, context: Context) -> Result<Query, SearchError> {
    let Some(members) = node.as_object() else {
        return Err(SearchError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let mut query = None;
    for member in members {
        match &*member.name {
            "query" => query = Some(dsl::parse_query(&member.value, context)?),
            _ => {
                return Err(SearchError::UnknownField {
                    parser: "sub_searches",
                    field: member.name.to_string(),
                    suggestions: super::suggest::suggestions(&member.name, &["query"]),
                    at: member.at,
                });
            }
        }
    }
    query.ok_or(SearchError::Required { field: "query" })
}

/// Reads what is shown of sources.
pub(super) fn source_selection(node: &Node) -> Result<SourceSelection, SearchError> {
    let (mut includes, mut excludes) = (Vec::new(), Vec::new());
    match &node.json {
        Json::Bool(true) => return Ok(SourceSelection::Whole),
        Json::Bool(false) => return Ok(SourceSelection::Nothing),
        Json::String(_) => includes = value::texts(node)?,
        Json::Array(items) => {
            for item in items {
                let Json::String(path) = &item.json else {
                    return Err(SearchError::parsing(
                        item.at,
                        format!("Unknown key for a {} in [_source].", item.token()),
                    ));
                };
                includes.push(path.to_string());
            }
        }
        Json::Object(members) => {
            for member in members {
                let list = match &*member.name {
                    "includes" | "include" => &mut includes,
                    "excludes" | "exclude" => &mut excludes,
                    name => {
                        return Err(SearchError::parsing(
                            member.value.at,
                            format!("Unknown key for a {} in [{name}].", member.value.token()),
                        ));
                    }
                };
                *list = value::texts(&member.value)?;
            }
        }
        Json::Null | Json::Number(_) => {
            return Err(SearchError::parsing(
                node.at,
                format!(
                    "Expected one of [VALUE_BOOLEAN, VALUE_STRING, START_ARRAY, START_OBJECT] but \
                     found [{}]",
                    node.token()
                ),
            ));
        }
    }
    Ok(SourceSelection::fields(includes, excludes))
}

fn read_object(bytes: &[u8]) -> Result<Node, SearchError> {
    let (node, trailing) = json::read(bytes)?;
    if node.as_object().is_none() {
        return Err(SearchError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    }
    match trailing {
        Some(second) => Err(SearchError::parsing(
            second.at,
            format!("Unexpected token [{}] found after the main object.", second.token),
        )),
        None => Ok(node),
    }
}
