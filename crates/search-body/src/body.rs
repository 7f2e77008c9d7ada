//! Parses and checks the body of a search.

use std::time::Duration;

use super::aggs::{self, Aggregations};
use super::collapse::{self, Collapse};
use super::fields::{self, FieldRequest, StoredFields};
use super::highlight::Highlight;
use super::paging::{self, PointInTime, SliceOf};
use super::rank::{self, RankFusion};
use super::rescore::{self, Rescore};
use super::retriever::{self, Form, Fusion, Input, Retriever};
use super::script_fields::{self, ScriptField};
use super::sections::{search_shape, source_filter_shape};
use super::shape::{self, Shape};
use super::sort::{self, Position, Sort};
use sparrow_mapping::SourceSelection;
use sparrow_query::dsl::{Context, value};
use sparrow_query::{KnnSearch, Query, dsl, parse_knn_search};
use sparrow_request::params::parse_duration;
use sparrow_suggest::Suggester;
use sparrow_tantivy_index::query::TotalHits;
use sparrow_wire::json::{self, Json, Member, Node};
use sparrow_wire::{BodyError, deprecation};

/// Most groups of statistics that one search may name: each is looked up in each index.
const MOST_STATS_GROUPS: usize = 64;

/// Number of hits that a search returns by default.
pub use sparrow_query::dsl::DEFAULT_SIZE;
/// Number of hits up to which they are counted by default.
const DEFAULT_TRACKED_HITS: u64 = 10_000;

/// A parsed search request.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchBody {
    /// The section `query`.
    pub query: Option<Query>,
    /// The section `knn`: one or several searches for neighbours.
    pub knn: Vec<KnnSearch>,
    /// The section `sub_searches`: further queries whose results `rank` fuses.
    pub sub_searches: Vec<Query>,
    /// The section `rank`: how the results of several queries are fused.
    pub rank: Option<RankFusion>,
    /// The section `aggs`, also known as `aggregations`.
    pub aggs: Option<Aggregations>,
    /// The lists to fuse: from a compound `retriever`, or made of `rank` by [`SearchBody::fuse`].
    pub fusion: Option<Fusion>,
    /// The section `post_filter`, which filters hits but not aggregations.
    pub post_filter: Option<Query>,
    /// Number of hits to skip.
    pub from: usize,
    /// Number of hits to return.
    pub size: usize,
    /// Lowest score that a hit may have.
    pub min_score: Option<f32>,
    /// Which parts of the hits' sources are returned.
    pub source: SourceSelection,
    /// Whether the sources are returned without their vectors; `None` for what each index says.
    pub excludes_vectors: Option<bool>,
    /// Up to which number hits are counted; `None` for the default.
    pub track_total_hits: Option<TotalHits>,
    /// Time after which the search ends with the hits that it has found so far.
    pub timeout: Option<Duration>,
    /// Whether the response says how long each part of the search took.
    pub profile: bool,
    /// The section `highlight`: which passages of matching fields are returned.
    pub highlight: Option<Highlight>,
    /// The section `suggest`: similar terms for the words of given texts.
    pub suggest: Option<Vec<Suggester>>,
    /// Whether hits explain their scores.
    pub explain: bool,
    /// Order of the hits.
    pub sort: Sort,
    /// Sort values of a hit: only hits after it are returned.
    pub search_after: Option<Vec<serde_json::Value>>,
    /// Sort values after which the next page of a scroll begins; not part of a request.
    pub position: Option<Position>,
    /// Time for which a scroll is kept open; none for a search without a scroll.
    pub scroll: Option<Duration>,
    /// Whether the request asks for a cached response. There is no such cache.
    pub request_cache: bool,
    /// The slice of the documents to search.
    pub slice: Option<SliceOf>,
    /// The point in time that is searched.
    pub pit: Option<PointInTime>,
    /// The field of whose values only the first hit each is returned.
    pub collapse: Option<Collapse>,
    /// Passes that score the first hits again, one after the other.
    pub rescore: Vec<Rescore>,
    /// Number of hits after which the search of an index ends; 0 for no limit.
    pub terminate_after: u64,
    /// Index expressions, each with a factor for the scores of its indices.
    pub indices_boost: Vec<(String, f32)>,
    /// Fields whose values are returned as the mapping reads them from the source.
    pub fields: Vec<FieldRequest>,
    /// Fields whose values are returned from their columns.
    pub docvalue_fields: Vec<FieldRequest>,
    /// Values that scripts compute for each hit.
    pub script_fields: Vec<ScriptField>,
    /// Which stored fields are returned.
    pub stored_fields: Option<StoredFields>,
    /// Whether the request contains `_source`.
    pub source_given: bool,
    /// Whether matching named clauses are returned with their scores.
    pub named_scores: bool,
    /// Whether the hits are those of an aggregation's bucket; not part of a request.
    pub of_bucket: bool,
    /// Whether a [retriever] stands for its sections.
    pub of_retriever: bool,
    /// Scores are shown although hits are sorted by something else.
    pub track_scores: bool,
    /// Groups of statistics that count the search, each once.
    pub stats: Vec<String>,
    /// Whether hits contain the version of their document.
    pub version: bool,
    /// Whether hits contain the sequence number and primary term of their document.
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
            fusion: None,
            post_filter: None,
            from: 0,
            size: DEFAULT_SIZE,
            min_score: None,
            source: SourceSelection::Whole,
            excludes_vectors: None,
            track_total_hits: None,
            timeout: None,
            profile: false,
            suggest: None,
            explain: false,
            highlight: None,
            sort: Sort::Score,
            search_after: None,
            position: None,
            scroll: None,
            request_cache: false,
            slice: None,
            pit: None,
            collapse: None,
            rescore: Vec::new(),
            terminate_after: 0,
            indices_boost: Vec::new(),
            fields: Vec::new(),
            docvalue_fields: Vec::new(),
            script_fields: Vec::new(),
            stored_fields: None,
            source_given: false,
            named_scores: false,
            of_bucket: false,
            of_retriever: false,
            track_scores: false,
            stats: Vec::new(),
            version: false,
            seq_no_primary_term: false,
        }
    }
}

impl SearchBody {
    /// Parses the body of a search; empty bytes are an empty search. `size` is the URL parameter, which overrides the body's.
    ///
    /// # Errors
    /// On malformed JSON and on keys and values that a search does not have.
    pub fn parse(bytes: &[u8], size: Option<usize>) -> Result<Self, BodyError> {
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
        if members.iter().any(|member| &*member.name == "retriever") {
            beside_retriever(members)?;
        }
        let is_empty = |node: &Node| matches!(&node.json, Json::Array(items) if items.is_empty());
        if members.iter().any(|member| &*member.name == "sort" && !is_empty(&member.value)) {
            body.order_of_pit();
        }
        Ok(body)
    }

    /// Parses one section of the body.
    ///
    /// # Errors
    /// As [`SearchBody::parse`].
    pub fn section(&mut self, member: &Member, context: Context) -> Result<(), BodyError> {
        let node = &member.value;
        match (&*member.name, &node.json) {
            ("query", Json::Object(_)) => self.query = Some(dsl::parse_query(node, context)?),
            ("post_filter", Json::Object(_)) => {
                self.post_filter = Some(dsl::parse_query(node, context)?);
            }
            ("knn", Json::Object(_)) => self.knn.push(parse_knn_search(node, context)?),
            ("knn", Json::Array(items)) => {
                for item in items {
                    self.knn.push(parse_knn_search(item, context)?);
                }
            }
            ("sub_searches", Json::Array(items)) => {
                deprecation::warn("Deprecated field [sub_searches] used, replaced by [retriever]");
                for item in items {
                    self.sub_searches.push(sub_search(item, context)?);
                }
            }
            ("rank", Json::Object(_)) => {
                deprecation::warn("Deprecated field [rank] used, replaced by [retriever]");
                self.rank = Some(rank::parse(node)?);
            }
            ("aggs" | "aggregations", Json::Object(_)) => self.aggs = Some(aggs::parse(node, context)?),
            ("retriever", Json::Object(_)) => self.retriever(node, context)?,
            // The size is known already.
            ("size", Json::Number(_) | Json::String(_)) => {
                value::unsigned(node, "size")?;
            }
            ("from", Json::Number(_) | Json::String(_)) => {
                let from = value::int(node)?;
                self.from = usize::try_from(from).map_err(|_| {
                    BodyError::illegal(format!("[from] parameter cannot be negative but was [{from}]"))
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
            ("highlight", Json::Object(_)) => self.highlight = Some(Highlight::parse(node, context)?),
            ("suggest", Json::Object(_)) => self.suggest = Some(sparrow_suggest::parse(node)?),
            ("explain", Json::Bool(_) | Json::String(_)) => self.explain = value::boolean(node)?,
            ("version", Json::Bool(_) | Json::String(_)) => self.version = value::boolean(node)?,
            ("seq_no_primary_term", Json::Bool(_) | Json::String(_)) => {
                self.seq_no_primary_term = value::boolean(node)?;
            }
            ("timeout", Json::String(text)) => self.timeout = timeout(text)?,
            ("_source", _) => {
                let mut excludes_vectors = None;
                self.source = source_selection(node, &mut excludes_vectors)?;
                self.excludes_vectors = excludes_vectors.or(self.excludes_vectors);
                self.source_given = true;
            }
            ("sort", Json::String(_) | Json::Array(_) | Json::Object(_)) => {
                self.sort = sort::parse(node)?;
            }
            ("search_after", Json::Array(items)) => self.search_after = Some(sort::parse_after(items)?),
            ("slice", Json::Object(_)) => self.slice = Some(paging::parse_slice(node)?),
            ("pit", Json::Object(_)) => self.pit = Some(paging::parse_pit(node)?),
            ("collapse", Json::Object(_)) => self.collapse = Some(collapse::parse(node, context)?),
            ("rescore", Json::Object(_) | Json::Array(_)) => self.rescore = rescore::parse(node, context)?,
            ("indices_boost", _) => self.indices_boost = paging::parse_indices_boost(node)?,
            ("fields", Json::Array(_)) => self.fields = fields::parse(node, "fields")?,
            ("docvalue_fields", Json::Array(_)) => {
                self.docvalue_fields = fields::parse(node, "docvalue_fields")?;
            }
            ("script_fields", Json::Object(_)) => self.script_fields = script_fields::parse(node)?,
            ("stored_fields", Json::String(_) | Json::Array(_)) => {
                self.stored_fields = Some(fields::stored(value::texts(node)?)?);
            }
            ("terminate_after", Json::Number(_) | Json::String(_)) => {
                self.terminate_after = terminate_after(i64::from(value::int(node)?))?;
            }
            ("stats", Json::Array(_)) => self.stats = stats_groups(value::texts(node)?)?,
            ("profile", Json::Bool(_) | Json::String(_)) => self.profile = value::boolean(node)?,
            (name, _) if LATER.contains(&name) => {
                return Err(BodyError::parsing(node.at, format!("[{name}] is not supported by this server")));
            }
            (name, _) => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("Unknown key for a {} in [{name}].{}", node.token(), search_shape().near(name)),
                ));
            }
        }
        Ok(())
    }

    /// Parses the section `retriever`; a standard or kNN retriever is turned into the sections that mean the same.
    fn retriever(&mut self, node: &Node, context: Context) -> Result<(), BodyError> {
        self.of_retriever = true;
        match retriever::parse(node, context)? {
            Retriever::Standard(standard) => {
                self.query = Some(standard.query);
                self.min_score = standard.min_score;
                for member in &standard.sections {
                    self.section(member, context)?;
                }
            }
            Retriever::Knn(knn) => {
                self.knn.push(knn.search);
                self.min_score = knn.min_score;
            }
            Retriever::Fused(fusion) => self.fusion = Some(fusion),
        }
        Ok(())
    }

    /// Turns the queries that `rank` fuses into a [`Fusion`]. The sections that they come from are empty afterwards.
    pub fn fuse(&mut self) {
        let Some(rank) = self.rank else { return };
        let queries = self.query.take().into_iter().chain(std::mem::take(&mut self.sub_searches));
        let standard = |query| Retriever::Standard(retriever::Standard::new(query));
        let knn = |search| Retriever::Knn(retriever::Knn { search, min_score: None, name: None });
        let retrievers = queries.map(standard).chain(std::mem::take(&mut self.knn).into_iter().map(knn));
        self.fusion = Some(Fusion {
            method: rank.method(),
            inputs: retrievers.map(Input::new).collect(),
            window: rank.window(),
            min_score: None,
            name: None,
            form: Form::Rank,
            stage: None,
        });
    }

    /// All queries that select or score hits; those in aggregations and `highlight` are not among them.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        let fused = self.fusion.iter().flat_map(Fusion::queries);
        let queries = self.query.iter().chain(&self.sub_searches).chain(&self.post_filter);
        let rescored = self.rescore.iter().map(|rescore| &rescore.query);
        queries.chain(self.knn.iter().map(|knn| &knn.query)).chain(fused).chain(rescored)
    }

    /// The queries that found the hits, without those that only filter or rescore.
    pub fn matching_queries(&self) -> Vec<&Query> {
        match &self.fusion {
            Some(fusion) => fusion.queries(),
            None => {
                let queries = self.query.iter().chain(&self.sub_searches);
                queries.chain(self.knn.iter().map(|knn| &knn.query)).collect()
            }
        }
    }

    /// All queries of the body, including those in aggregations and `highlight`.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        let fused = self.fusion.iter_mut().flat_map(Fusion::queries_mut);
        let queries = self.query.iter_mut().chain(&mut self.sub_searches).chain(&mut self.post_filter);
        let rescored = self.rescore.iter_mut().map(|rescore| &mut rescore.query);
        let highlight = self.highlight.iter_mut().flat_map(Highlight::queries_mut);
        let aggregated = self.aggs.iter_mut().flat_map(Aggregations::queries_mut);
        queries
            .chain(self.knn.iter_mut().map(|knn| &mut knn.query))
            .chain(fused)
            .chain(rescored)
            .chain(highlight)
            .chain(aggregated)
            .chain(self.sort.queries_mut())
    }

    /// Up to which number hits are counted, with the default.
    pub fn tracked_hits(&self) -> TotalHits {
        self.track_total_hits.unwrap_or(TotalHits::UpTo(DEFAULT_TRACKED_HITS))
    }
}

/// Refuses sections that cannot be used together with a retriever.
fn beside_retriever(members: &[Member]) -> Result<(), BodyError> {
    const SECTIONS: [(&str, &str); 9] = [
        ("query", "query"),
        ("sub_searches", "query"),
        ("knn", "knn"),
        ("search_after", "search_after"),
        ("terminate_after", "terminate_after"),
        ("sort", "sort"),
        ("rescore", "rescore"),
        ("min_score", "min_score"),
        ("rank", "rank"),
    ];
    let given = |name| members.iter().any(|member| &*member.name == name);
    let forbidden: Vec<&str> =
        SECTIONS.iter().filter(|(name, _)| given(*name)).map(|(_, shown)| *shown).collect();
    match forbidden.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("cannot specify [retriever] and [{}]", forbidden.join(", "));
            Err(BodyError::Validation { messages: vec![message] })
        }
    }
}

/// Checks the groups of statistics that a search names; each is counted once.
///
/// # Errors
/// For too many groups, and for names that are too long: they are kept as long as the index is open.
pub fn stats_groups(mut names: Vec<String>) -> Result<Vec<String>, BodyError> {
    names.sort();
    names.dedup();
    if names.len() > MOST_STATS_GROUPS {
        return Err(BodyError::illegal(format!(
            "[stats] has [{}] groups, at most [{MOST_STATS_GROUPS}] are possible on this server",
            names.len()
        )));
    }
    for name in &names {
        value::check_length("the name of a group in [stats]", name, sparrow_wire::MOST_REPEATED)?;
    }
    Ok(names)
}

/// Checks a section of the body of a search without running it.
///
/// # Errors
/// Those of a search whose body has only this section.
pub fn check_section(section: &Member) -> Result<(), BodyError> {
    let mut body = SearchBody::default();
    body.section(section, Context::new(body.size))?;
    body.validate()
}

/// Sections that Elasticsearch has and this server does not support.
const LATER: &[&str] = &["ext", "runtime_mappings"];

/// What the body of a count request holds.
pub fn query_shape() -> Shape {
    shape::object([("query", shape::query())])
}

/// Parses the body of a count request.
///
/// # Errors
/// As [`SearchBody::parse`].
pub fn parse_count(bytes: &[u8]) -> Result<Option<Query>, BodyError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let node = read_object(bytes)?;
    let mut query = None;
    for member in node.as_object().unwrap_or_default() {
        if &*member.name != "query" {
            let near = query_shape().near(&member.name);
            let reason = format!("request does not support [{}]{near}", member.name);
            return Err(BodyError::parsing(member.at, reason));
        }
        query = Some(dsl::parse_query(&member.value, Context::new(DEFAULT_SIZE))?);
    }
    Ok(query)
}

/// Reads `true`, `false`, or the number of hits up to which they are counted exactly.
pub fn track_total_hits(text: &str) -> Result<TotalHits, BodyError> {
    match text {
        "true" | "" => return Ok(TotalHits::Exact),
        "false" => return Ok(TotalHits::Off),
        _ => {}
    }
    let number: i64 = text.parse().map_err(|_| BodyError::NumberFormat { input: text.to_owned() })?;
    match number {
        -1 => Ok(TotalHits::Off),
        2_147_483_647.. => Ok(TotalHits::Exact),
        number => u64::try_from(number).map(TotalHits::UpTo).map_err(|_| {
            BodyError::illegal(format!(
                "[track_total_hits] parameter must be positive or equals to -1, got {number}"
            ))
        }),
    }
}

/// Checks the number of hits after which the search of an index ends.
///
/// # Errors
/// When it is negative.
pub fn terminate_after(number: i64) -> Result<u64, BodyError> {
    u64::try_from(number).map_err(|_| BodyError::illegal("terminateAfter must be > 0"))
}

/// Reads the time after which a search ends with the hits that it has found so far; `None` for no limit.
pub fn timeout(text: &str) -> Result<Option<Duration>, BodyError> {
    parse_duration("timeout", text).map_err(|error| BodyError::illegal(error.reason()))
}

fn sub_search(node: &Node, context: Context) -> Result<Query, BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let mut query = None;
    for member in members {
        match &*member.name {
            "query" => query = Some(dsl::parse_query(&member.value, context)?),
            _ => return Err(BodyError::unknown_field("sub_searches", member, &["query"])),
        }
    }
    query.ok_or(BodyError::Required { field: "query" })
}

/// Reads `_source`, which says which parts of the sources are returned, and its `exclude_vectors`, if it has that.
fn source_selection(node: &Node, excludes_vectors: &mut Option<bool>) -> Result<SourceSelection, BodyError> {
    let (mut includes, mut excludes) = (Vec::new(), Vec::new());
    match &node.json {
        Json::Bool(true) => return Ok(SourceSelection::Whole),
        Json::Bool(false) => return Ok(SourceSelection::Nothing),
        Json::String(_) => includes = value::texts(node)?,
        Json::Array(items) => {
            for item in items {
                let Json::String(path) = &item.json else {
                    return Err(BodyError::parsing(
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
                    "exclude_vectors" => {
                        *excludes_vectors = Some(value::boolean(&member.value)?);
                        continue;
                    }
                    "includes" | "include" => &mut includes,
                    "excludes" | "exclude" => &mut excludes,
                    name => {
                        return Err(BodyError::parsing(
                            member.value.at,
                            format!(
                                "Unknown key for a {} in [{name}].{}",
                                member.value.token(),
                                source_filter_shape().near(name)
                            ),
                        ));
                    }
                };
                *list = value::texts(&member.value)?;
            }
        }
        Json::Null | Json::Number(_) => {
            return Err(BodyError::parsing(
                node.at,
                format!(
                    "Expected one of [VALUE_BOOLEAN, VALUE_STRING, START_ARRAY, START_OBJECT] but \
                     found [{}]",
                    node.token()
                ),
            ));
        }
    }
    SourceSelection::fields(includes, excludes)
}

/// Parses a body that has to be a single JSON object.
///
/// # Errors
/// When it is anything else.
pub fn read_object(bytes: &[u8]) -> Result<Node, BodyError> {
    let (node, trailing) = json::read(bytes)?;
    if node.as_object().is_none() {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    }
    match trailing {
        Some(second) => Err(BodyError::parsing(
            second.at,
            format!("Unexpected token [{}] found after the main object.", second.token),
        )),
        None => Ok(node),
    }
}
