//! `highlight`: the parts of a hit's fields that match, with the matching words marked.
//!
//! What matches is found by the index ([`sparrow_tantivy_index::query::TextMatcher`]), with the field's own analyzer. Where a
//! hit was found by a sparse clause alone, the words of the text that its tokens come from are marked instead, and
//! fragments are ranked by what those words added to the score.

mod fragments;
mod passages;
mod prepared;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;
use serde_json::Value;
use sparrow_mapping::{FieldType, MOST_TOTAL_FIELDS, Mapping, is_above};
use sparrow_query::{Query, QueryKind};
use sparrow_runtime::work;
use sparrow_tantivy_index::query::{Explanation, MatchedText, TextMatcher};

use self::fragments::{Fragment, Mark};
use super::attribution::Attributor;
use super::error::SearchError;
use super::resolve;
use super::target::{Hit, Target};
use sparrow_catalog::Node;
use sparrow_catalog::texts::values_at;
use sparrow_query::walk;
use sparrow_request::body::stored_tree;
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;
use sparrow_search_body::highlight::{FieldOptions, Highlight, Kind};

pub use self::passages::best_passages;
pub use self::prepared::Prepared;

/// Highest number of hits in one request whose words are traced by running the model.
const MAX_TRACED: usize = 100;
/// A traced word is marked if it adds at least this share of what the best word adds to the score (0 to 1).
const LEAST_SHARE: f32 = 0.1;

/// Whether a mapping asks for the offsets of a field's words to be kept.
fn keeps_offsets(mapping: &Mapping, path: &str) -> bool {
    let is = |parameter: &str, value: &str| mapping.parameter(path, parameter).is_some_and(|it| it == value);
    is("index_options", "offsets") || is("term_vector", "with_positions_offsets")
}

/// Limit of characters to analyse when the index, and with it `index.highlight.max_analyzed_offset`, no
/// longer exists.
const DEFAULT_LIMIT: usize = 1_000_000;

/// The highlighted fields of a hit, each with its fragments.
pub type Highlighted = Vec<(String, Vec<String>)>;

/// Makes the fragments of all hits of one search.
pub struct Highlighter<'a> {
    node: &'a Node,
    targets: &'a [Target],
    fields: Vec<(&'a str, FieldOptions<'a>)>,
    queries: Vec<&'a Query>,
    prepared: &'a mut Prepared,
    cancel: &'a AtomicBool,
    /// For each target, what to highlight in its fields; made when the first hit of the target is seen.
    plans: Vec<Option<Vec<Plan<'a>>>>,
}

/// What to highlight in one field of one index.
struct Plan<'a> {
    path: String,
    source_path: String,
    ignore_above: Option<usize>,
    options: FieldOptions<'a>,
    matcher: Arc<TextMatcher>,
    /// Other fields that hold the same text (`matched_fields`), whose matches are marked as well.
    matched: Vec<(String, Arc<TextMatcher>)>,
    /// Sparse clauses whose words are to be marked.
    sparse: Vec<Query>,
    limit: usize,
    /// Whether the best passages of a `semantic_text` field are shown, rather than marked words.
    passages: bool,
}

impl<'a> Highlighter<'a> {
    /// A highlighter for the hits of one search.
    ///
    /// # Errors
    /// None but those that parsing the request would have found.
    pub fn new(
        node: &'a Node,
        targets: &'a [Target],
        queries: Vec<&'a Query>,
        highlight: &'a Highlight,
        prepared: &'a mut Prepared,
        cancel: &'a AtomicBool,
    ) -> Result<Self, SearchError> {
        Ok(Self {
            node,
            targets,
            fields: highlight.fields()?,
            queries,
            prepared,
            cancel,
            plans: targets.iter().map(|_| None).collect(),
        })
    }

    /// The fragments of a hit, by field; fields without any are absent, and so are all where no source is stored.
    ///
    /// # Errors
    /// When a text is longer than may be analyzed, or the caller went away.
    pub fn highlight(&mut self, hit: &Hit, source: &[u8]) -> Result<Highlighted, EngineError> {
        if source.is_empty() {
            return Ok(Vec::new());
        }
        if self.plans[hit.target].is_none() {
            self.plans[hit.target] = Some(self.plan(hit.target)?);
        }
        let source = stored_tree(source)?;
        let Some(plans) = self.plans[hit.target].take() else { return Ok(Vec::new()) };
        let mut out: Highlighted = Vec::new();
        for plan in &plans {
            work::check()?;
            let fragments = self.field(hit, plan, &source)?;
            if !fragments.is_empty() && !out.iter().any(|(path, _)| *path == plan.path) {
                out.push((plan.path.clone(), fragments));
            }
        }
        self.plans[hit.target] = Some(plans);
        Ok(out)
    }

    /// What to highlight in the fields of one index: each field with the words that the query looks for in
    /// it.
    fn plan(&mut self, number: usize) -> Result<Vec<Plan<'a>>, SearchError> {
        let target = &self.targets[number];
        let handle = self.node.indices.get(&target.shard.index, Right::unlimited()).ok();
        let mapping = target.snapshot.mapping();
        let failed = |source| SearchError::Query { shard: target.shard.clone(), source };
        let mut plans: Vec<Plan<'a>> = Vec::new();
        let mut planned: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (place, (name, options)) in self.fields.iter().enumerate() {
            work::check().map_err(|stopped| failed(stopped.into()))?;
            let mut paths: Vec<&str> = match name.contains('*') {
                false => mapping.field(name).map(|_| *name).into_iter().collect(),
                true => mapping
                    .named_fields()
                    .filter(|(_, field)| {
                        matches!(
                            field,
                            FieldType::Text { .. } | FieldType::Keyword { .. } | FieldType::SemanticText(_)
                        )
                    })
                    .map(|(path, _)| path)
                    .filter(|path| sparrow_wire::glob::matches(name, path))
                    .collect(),
            };
            paths.sort_unstable();
            for path in paths {
                // Each plan reads the query once, and has a pass over every hit.
                work::check().map_err(|stopped| failed(stopped.into()))?;
                if plans.len() >= MOST_TOTAL_FIELDS {
                    return Err(SearchError::illegal(format!(
                        "[highlight] has more than [{MOST_TOTAL_FIELDS}] fields with those that its patterns match in index \
                         [{}], which is not possible on this server",
                        target.shard.index
                    )));
                }
                // A field that is named twice with the same options is highlighted once.
                let same = planned.entry(path).or_default();
                if same.iter().any(|earlier| self.fields[*earlier].1 == *options) {
                    continue;
                }
                same.push(place);
                let ignore_above = match mapping.field(path) {
                    Some(FieldType::Text { .. } | FieldType::SemanticText(_)) => None,
                    Some(FieldType::Keyword { ignore_above, .. }) => *ignore_above,
                    // Numbers, dates and vectors have no words.
                    _ => continue,
                };
                if options.fast_vectors
                    && mapping.parameter(path, "term_vector").and_then(Value::as_str)
                        != Some("with_positions_offsets")
                {
                    return Err(SearchError::illegal(format!(
                        "the field [{path}] should be indexed with term vector with position offsets to be \
                         used with fast vector highlighter"
                    )));
                }
                if let Some(FieldType::SemanticText(_)) = mapping.field(path) {
                    // The other highlighters look for words, which such a field does not index.
                    if !options.kind_given || options.kind == Kind::Semantic {
                        plans.push(semantic_plan(path, options));
                    }
                    continue;
                }
                let queries = options.query.map_or_else(|| self.queries.clone(), |query| vec![query]);
                let mut adapted: Vec<Query> = queries.into_iter().cloned().collect();
                if !target.default_fields.is_empty() {
                    adapted.iter_mut().for_each(|query| {
                        resolve::set_default_fields(query, &target.default_fields);
                    });
                }
                let queries: Vec<&Query> = adapted.iter().collect();
                let matchers = &mut self.prepared.matchers;
                let mut matcher = |path: &str| -> Result<Arc<TextMatcher>, SearchError> {
                    let key = (number, place, path.to_owned());
                    if let Some(matcher) = matchers.get(&key) {
                        return Ok(Arc::clone(matcher));
                    }
                    let any_field = !options.require_field_match;
                    let made = target.snapshot.text_matcher(&queries, path, any_field).map_err(failed)?;
                    Ok(Arc::clone(matchers.entry(key).or_insert(Arc::new(made))))
                };
                let mut matched = Vec::new();
                for other in options.matched_fields.iter().filter(|other| *other != path) {
                    matched.push((other.clone(), matcher(other)?));
                }
                // With other fields given, only those count for fast vectors, as Elasticsearch has it.
                let own_counts = !options.fast_vectors
                    || options.matched_fields.is_empty()
                    || options.matched_fields.iter().any(|field| field == path);
                let own_matcher = if own_counts { matcher(path)? } else { Arc::default() };
                let nothing = own_matcher.is_empty() && matched.iter().all(|(_, matcher)| matcher.is_empty());
                let mut sparse = Vec::new();
                if options.kind == Kind::Semantic || nothing {
                    for query in &queries {
                        sparse_clauses(query, &mut sparse);
                    }
                }
                plans.push(Plan {
                    path: path.to_owned(),
                    source_path: mapping.source_path(path).into_owned(),
                    ignore_above,
                    options: options.clone(),
                    matcher: if options.kind == Kind::Semantic { Arc::default() } else { own_matcher },
                    matched,
                    sparse,
                    limit: match handle.as_ref() {
                        // Where offsets are kept the limit is not for.
                        _ if options.kind != Kind::Plain && keeps_offsets(mapping, path) => usize::MAX,
                        Some(handle) => handle.settings().max_analyzed_offset(),
                        None => DEFAULT_LIMIT,
                    },
                    passages: false,
                });
            }
        }
        Ok(plans)
    }

    /// Texts of the best passages of a `semantic_text` field, ready to be shown.
    fn passages(&self, hit: &Hit, plan: &Plan<'_>, source: &Value) -> Vec<String> {
        let target = &self.targets[hit.target];
        let queries = plan.options.query.map_or_else(|| self.queries.clone(), |query| vec![query]);
        let number = match plan.options.number_of_fragments {
            0 => usize::MAX,
            number => number,
        };
        let payload = passages::payload(target, hit.addr);
        let mapping = target.snapshot.mapping();
        let (payload, by_score) = (payload.as_deref(), plan.options.by_score);
        passages::best(&plan.path, mapping, &queries, payload, source, number, by_score)
            .into_iter()
            .map(|text| encoded(&text, plan.options.html))
            .collect()
    }

    fn field(&mut self, hit: &Hit, plan: &Plan<'_>, source: &Value) -> Result<Vec<String>, EngineError> {
        if plan.passages {
            return Ok(self.passages(hit, plan, source));
        }
        let values: Vec<String> = values_at(source, &plan.source_path)
            .into_iter()
            .filter(|value| !is_above(plan.ignore_above, value))
            .collect();
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let options = &plan.options;
        let mut fragments = Vec::new();
        let mut room = self.room(hit, plan, &values)?;
        if plan.sparse.is_empty() {
            for (number, value) in values.iter().enumerate() {
                let end = floor(value, room);
                room = room.saturating_sub(value.chars().count());
                let matched = self.matches(hit.target, plan, &value[..end])?;
                fragments.extend(cut(number, value, &matched, options));
            }
        } else if let [text] = &values[..] {
            let marks = self.traced(hit, plan, text)?;
            fragments.extend(match is_whole(options) {
                true => fragments::whole(0, text, &marks).into_iter().collect(),
                false => fragments::passages(0, text, &marks, options.scanner, options.fragment_size),
            });
        }
        let number = match options.number_of_fragments {
            0 => usize::MAX,
            number => number,
        };
        let chosen = fragments::choose(fragments, number, options.by_score);
        if chosen.is_empty() && options.no_match_size > 0 {
            let first = &values[0];
            let range = fragments::opening(first, options.no_match_size);
            return Ok(vec![encoded(&first[range], options.html)]);
        }
        Ok(chosen.iter().map(|fragment| marked(&values[fragment.value], fragment, options)).collect())
    }

    /// Number of characters of the values that may be analysed. An error if they have more and the request
    /// does not set `max_analyzed_offset`.
    fn room(&self, hit: &Hit, plan: &Plan<'_>, values: &[String]) -> Result<usize, SearchError> {
        let length: usize = values.iter().map(|value| value.chars().count()).sum();
        match plan.options.max_analyzed_offset {
            Some(limit) => Ok(limit.min(plan.limit)),
            None if length > plan.limit => Err(SearchError::illegal(format!(
                "The length [{length}] of field [{}] in doc[{}]/index[{}] exceeds the \
                 [index.highlight.max_analyzed_offset] limit [{}]. To avoid this error, set the query parameter \
                 [max_analyzed_offset] to a value less than index setting [{}] and this will tolerate long field \
                 values by truncating them.",
                plan.path, hit.addr.doc_id, self.targets[hit.target].shard.index, plan.limit, plan.limit
            ))),
            None => Ok(usize::MAX),
        }
    }

    fn matches(&self, number: usize, plan: &Plan<'_>, text: &str) -> Result<MatchedText, SearchError> {
        let target = &self.targets[number];
        let failed = |source| SearchError::Query { shard: target.shard.clone(), source };
        let mut matched = target.snapshot.match_text(&plan.matcher, &plan.path, text).map_err(failed)?;
        for (field, matcher) in &plan.matched {
            let other = target.snapshot.match_text(matcher, field, text).map_err(failed)?;
            matched.add(other);
        }
        Ok(matched)
    }

    /// The words of a text that made sparse clauses match, with what each adds to the score.
    fn traced(&mut self, hit: &Hit, plan: &Plan<'_>, text: &str) -> Result<Vec<Mark>, EngineError> {
        if self.prepared.traced >= MAX_TRACED {
            return Ok(Vec::new());
        }
        self.prepared.traced += 1;
        let target = &self.targets[hit.target];
        let mut attributor = Attributor::new(self.node, target, hit.addr);
        let mut marks: Vec<Mark> = Vec::new();
        for clause in &plan.sparse {
            let QueryKind::Sparse(sparse) = &clause.kind else { continue };
            let explained = target
                .snapshot
                .explain(clause, &[hit.addr], Some(self.cancel))
                .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
            let mut products = Vec::new();
            explained.iter().for_each(|step| collect(step, &mut products));
            let stored: Vec<(String, f32)> =
                products.iter().map(|(token, stored, _)| (token.clone(), *stored)).collect();
            if stored.is_empty() {
                continue;
            }
            let Some(traced) = attributor.trace(&sparse.field, &stored, self.cancel)? else { continue };
            if traced.input != plan.source_path || traced.text != text {
                continue;
            }
            for (token, _, product) in products {
                let origin = traced.tokens.iter().find(|attribution| *attribution.token == *token);
                // A comma may carry weight, but nobody reads it as what was looked for.
                let word = origin.and_then(|origin| origin.word.clone());
                let Some(range) = word.filter(|word| text[word.clone()].chars().any(char::is_alphanumeric))
                else {
                    continue;
                };
                match marks.iter_mut().find(|mark| mark.range == range) {
                    Some(mark) => mark.weight = mark.weight.map(|weight| weight + product),
                    None => marks.push(Mark {
                        term: text[range.clone()].to_owned(),
                        range,
                        weight: Some(product),
                    }),
                }
            }
        }
        let best = marks.iter().filter_map(|mark| mark.weight).fold(0.0, f32::max);
        marks.retain(|mark| mark.weight.is_some_and(|weight| weight >= best * LEAST_SHARE));
        marks.sort_by_key(|mark| (mark.range.start, mark.range.end));
        marks.dedup_by(|next, last| next.range.start < last.range.end);
        Ok(marks)
    }
}

/// The plan for a `semantic_text` field whose best passages are shown.
fn semantic_plan<'a>(path: &str, options: &FieldOptions<'a>) -> Plan<'a> {
    Plan {
        path: path.to_owned(),
        source_path: path.to_owned(),
        ignore_above: None,
        options: options.clone(),
        matcher: Arc::default(),
        matched: Vec::new(),
        sparse: Vec::new(),
        limit: DEFAULT_LIMIT,
        passages: true,
    }
}

/// Appends, for each token that a sparse clause found, the token, its stored weight, and the product of
/// stored weight and query weight.
fn collect(step: &Explanation, into: &mut Vec<(String, f32, f32)>) {
    for detail in &step.details {
        if let Some((_, token)) = &detail.token {
            into.push((token.clone(), detail.value, step.value));
        }
        collect(detail, into);
    }
}

/// Appends the sparse clauses of a query tree that can contribute to its hits.
fn sparse_clauses(query: &Query, into: &mut Vec<Query>) {
    match &query.kind {
        QueryKind::Sparse(_) => into.push(query.clone()),
        QueryKind::Bool(tree) => {
            tree.must
                .iter()
                .chain(&tree.should)
                .chain(&tree.filter)
                .for_each(|inner| sparse_clauses(inner, into));
        }
        _ => walk::children(&query.kind).into_iter().for_each(|inner| sparse_clauses(inner, into)),
    }
}

fn is_whole(options: &FieldOptions<'_>) -> bool {
    options.number_of_fragments == 0
}

/// Cuts one value of a field into fragments.
fn cut(number: usize, value: &str, matched: &MatchedText, options: &FieldOptions<'_>) -> Vec<Fragment> {
    let marks = |matches: &[sparrow_tantivy_index::query::TextMatch]| -> Vec<Mark> {
        let mark = |matched: &sparrow_tantivy_index::query::TextMatch| Mark {
            range: matched.range.clone(),
            term: matched.term.clone(),
            weight: None,
        };
        matches.iter().map(mark).collect()
    };
    match options.kind {
        Kind::Plain => {
            let words = marks(&matched.words);
            if is_whole(options) || options.fragment_size == 0 {
                return fragments::whole(number, value, &words).into_iter().collect();
            }
            let phrases: Vec<_> = matched.spans.iter().map(|span| span.range.clone()).collect();
            let (size, simple) = (options.fragment_size, options.simple);
            fragments::stretches(number, value, &matched.tokens, &words, &phrases, size, simple)
        }
        Kind::Unified | Kind::Semantic => {
            // Only where fields are told apart are phrases told apart from words.
            let spans = marks(if options.require_field_match { &matched.spans } else { &matched.words });
            match is_whole(options) {
                true => fragments::whole(number, value, &spans).into_iter().collect(),
                false => fragments::passages(number, value, &spans, options.scanner, options.fragment_size),
            }
        }
    }
}

/// The text of a fragment with tags around its marks.
fn marked(value: &str, fragment: &Fragment, options: &FieldOptions<'_>) -> String {
    let mut out = String::with_capacity(fragment.range.len() + 16);
    let mut at = fragment.range.start;
    for mark in &fragment.marks {
        // A mark may begin before the fragment: in the whitespace that is cut off at its start.
        let start = mark.start.max(at);
        if start >= mark.end {
            continue;
        }
        out.push_str(&encoded(&value[at..start], options.html));
        out.push_str(options.pre);
        out.push_str(&encoded(&value[start..mark.end], options.html));
        out.push_str(options.post);
        at = mark.end;
    }
    out.push_str(&encoded(&value[at..fragment.range.end.max(at)], options.html));
    out
}

fn encoded(text: &str, html: bool) -> String {
    if !html {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '"' => out.push_str("&quot;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#x27;"),
            '/' => out.push_str("&#x2F;"),
            other => out.push(other),
        }
    }
    out
}

/// The byte offset of the character number `characters`, or the end of a shorter text.
fn floor(text: &str, characters: usize) -> usize {
    if characters >= text.len() {
        return text.len();
    }
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}
