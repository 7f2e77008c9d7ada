//! Parses the `retriever` section of a search into a tree.

use super::super::body::SearchBody;
use super::super::fusion::{Method, Normalizer};
use super::super::window::Window;
use super::super::{rank, rescore};
use super::simplified::{self, Simplified};
use super::{
    DEFAULT_WINDOW, Form, Fusion, Input, Knn, MAX_LISTS, Retriever, Standard, diversify, filtered,
    not_supported_inside, pinned, rerank as reranker,
};
use sparrow_query::dsl::{self, Context, value};
use sparrow_query::{Query, parse_knn_search};
use sparrow_wire::json::{Json, Location, Member, Node};
use sparrow_wire::suggest::suggestions;
use sparrow_wire::{BodyError, glob};

/// Deepest nesting of retrievers, in levels.
const MAX_DEPTH: usize = 10;
/// Retrievers of Elasticsearch that this server does not support.
const REFUSED: &[&str] = &["rule", "random_reranker"];
const KNOWN: &[&str] =
    &["standard", "knn", "rrf", "linear", "rescorer", "text_similarity_reranker", "pinned", "diversify"];
const STANDARD_KEYS: &[&str] =
    &["query", "filter", "min_score", "sort", "search_after", "terminate_after", "collapse", "_name"];
const KNN_KEYS: &[&str] = &[
    "field",
    "query_vector",
    "query_vector_builder",
    "k",
    "num_candidates",
    "similarity",
    "rescore_vector",
    "filter",
    "min_score",
    "_name",
];

/// Reads a retriever: an object whose single key names it.
///
/// # Errors
/// When it is malformed, or of a kind that this server does not support.
pub fn parse(node: &Node, context: Context) -> Result<Retriever, BodyError> {
    let tree = retriever(node, context, 0)?;
    check_lists(tree.queries().len())?;
    Ok(tree)
}

/// Checks the number of lists in a search.
///
/// # Errors
/// When there are more than [`MAX_LISTS`].
pub(super) fn check_lists(lists: usize) -> Result<(), BodyError> {
    if lists > MAX_LISTS {
        return Err(BodyError::illegal(format!(
            "[retriever] takes at most [{MAX_LISTS}] result sets, but was [{lists}]"
        )));
    }
    Ok(())
}

fn retriever(node: &Node, context: Context, depth: usize) -> Result<Retriever, BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(node.at, "retriever malformed, must start with [START_OBJECT]"));
    };
    let Some(first) = members.first() else {
        return Err(BodyError::parsing(node.end, "retriever malformed, empty clause found"));
    };
    if let Some(second) = members.get(1) {
        return Err(BodyError::parsing(
            second.at,
            format!("[{}] malformed retriever, expected [END_OBJECT] but found [FIELD_NAME]", first.name),
        ));
    }
    named(first, context, depth)
}

/// Reads the retriever that `member` names and describes.
fn named(member: &Member, context: Context, depth: usize) -> Result<Retriever, BodyError> {
    let (name, body) = (&*member.name, &member.value);
    if depth > MAX_DEPTH {
        return Err(BodyError::illegal(format!(
            "the nested depth of the [{name}] retriever exceeds the maximum nested depth [{MAX_DEPTH}] for \
             retrievers"
        )));
    }
    let Some(members) = body.as_object() else {
        return Err(BodyError::parsing(
            body.at,
            format!("[{name}] retriever malformed, no [START_OBJECT] after retriever name"),
        ));
    };
    match name {
        "standard" => standard(members, context).map(Retriever::Standard),
        "knn" => knn(body, members, context).map(Retriever::Knn),
        "rrf" => rrf(members, context, depth).map(Retriever::Fused),
        "linear" => linear(members, context, depth).map(Retriever::Fused),
        "rescorer" => rescorer(members, body.end, context, depth).map(Retriever::Fused),
        reranker::KIND => reranker::read(members, body.end, context, depth).map(Retriever::Fused),
        pinned::KIND => pinned::read(members, body.end, context, depth).map(Retriever::Fused),
        diversify::KIND => diversify::read(members, body.end, context, depth).map(Retriever::Fused),
        _ if REFUSED.contains(&name) => {
            Err(BodyError::parsing(body.at, format!("retriever [{name}] is not supported by this server")))
        }
        _ => Err(BodyError::UnknownName {
            what: "retriever",
            name: name.to_owned(),
            suggestions: suggestions(name, KNOWN),
            at: body.at,
        }),
    }
}

fn standard(members: &[Member], context: Context) -> Result<Standard, BodyError> {
    const PARSER: &str = "standard";
    let (mut query, mut filters) = (None, Vec::new());
    let mut standard = Standard::new(Query::match_all());
    each(PARSER, members, |member| {
        match &*member.name {
            "query" => query = Some(dsl::parse_query(&member.value, context)?),
            "filter" => filters = queries(&member.value, context)?,
            "min_score" => standard.min_score = Some(value::float(&member.value)?),
            "_name" => standard.name = value::name(&member.value)?,
            "sort" | "search_after" | "terminate_after" | "collapse" => {
                standard.sections.push(member.clone());
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, STANDARD_KEYS)),
        }
        Ok(())
    })?;
    standard.query = filtered(query, filters);
    if standard.name.is_some() {
        standard.query.name.clone_from(&standard.name);
    }
    Ok(standard)
}

fn knn(body: &Node, members: &[Member], context: Context) -> Result<Knn, BodyError> {
    const PARSER: &str = "knn";
    let (mut min_score, mut name) = (None, None);
    let mut clause = Vec::with_capacity(members.len());
    for member in members {
        match &*member.name {
            "min_score" => {
                let score = value::float(&member.value);
                min_score = Some(score.map_err(|error| within(error, PARSER, member))?);
            }
            "_name" => {
                let text = value::name(&member.value);
                name = text.map_err(|error| within(error, PARSER, member))?;
                clause.push(member.clone());
            }
            known if KNN_KEYS.contains(&known) => clause.push(member.clone()),
            _ => return Err(BodyError::unknown_field(PARSER, member, KNN_KEYS)),
        }
    }
    let clause = Node { at: body.at, end: body.end, json: Json::Object(clause) };
    Ok(Knn { search: parse_knn_search(&clause, context)?, min_score, name })
}

/// Parameters that `rrf` and `linear` share.
#[derive(Default)]
pub(super) struct Common {
    inputs: Option<Vec<Input>>,
    simplified: Simplified,
    /// Whether the request sets a `rank_constant`.
    names_constant: bool,
    window: Option<usize>,
    filters: Vec<Query>,
    min_score: Option<f32>,
    name: Option<String>,
}

impl Common {
    /// Reads `member` if it is a shared parameter; returns whether it is.
    pub(super) fn take(
        &mut self,
        parser: &'static str,
        member: &Member,
        context: Context,
    ) -> Result<bool, BodyError> {
        let node = &member.value;
        match &*member.name {
            "query" => self.simplified.query = Some(value::text(node)?),
            "fields" => self.simplified.fields = Some(glob::distinct("fields", value::texts(node)?)?),
            "rank_window_size" => self.window = Some(rank::window(parser, value::int(node)?)?),
            "filter" => self.filters = queries(node, context)?,
            "min_score" => self.min_score = Some(least(value::float(node)?)?),
            "_name" => self.name = value::name(node)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the single list of a retriever that has just one.
    pub(super) fn set_list(&mut self, input: Input) {
        self.inputs = Some(vec![input]);
    }

    pub(super) fn build(
        self,
        method: Method,
        normalizer: Option<Normalizer>,
        context: Context,
    ) -> Result<Fusion, BodyError> {
        let mut fusion = Fusion {
            method,
            inputs: self.inputs.unwrap_or_default(),
            window: match self.window {
                Some(window) => Window::Given(window),
                None => Window::Default(DEFAULT_WINDOW.max(context.size)),
            },
            min_score: self.min_score,
            name: self.name,
            form: Form::Retriever,
            stage: None,
        };
        let messages = self.simplified.problems(&fusion, normalizer);
        if !messages.is_empty() {
            return Err(BodyError::Validation { messages });
        }
        let constant = self.names_constant;
        let by_default = method == Method::Linear && normalizer.is_none();
        if let Some(standard) =
            simplified::list(fusion.kind(), &self.simplified, constant, by_default, context)?
        {
            let standard = Retriever::Standard(standard);
            // Ranks need none.
            let least = if by_default { SHORT_FORM } else { Normalizer::None };
            fusion.inputs = vec![Input { normalizer: normalizer.unwrap_or(least), ..Input::new(standard) }];
        }
        fusion.inputs.iter_mut().for_each(|input| input.retriever.restrict(&self.filters));
        Ok(fusion)
    }
}

fn rrf(members: &[Member], context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "rrf";
    const KEYS: &[&str] = &[
        "retrievers",
        "fields",
        "query",
        "rank_window_size",
        "rank_constant",
        "filter",
        "min_score",
        "_name",
    ];
    let mut common = Common::default();
    let mut rank_constant = rank::DEFAULT_RANK_CONSTANT;
    each(PARSER, members, |member| {
        match &*member.name {
            "retrievers" => {
                common.inputs = Some(inputs(&member.value, |item| rrf_input(item, context, depth))?);
            }
            "rank_constant" => {
                rank_constant = rank::rank_constant(value::int(&member.value)?)?;
                common.names_constant = true;
            }
            _ if common.take(PARSER, member, context)? => {}
            _ => return Err(BodyError::unknown_field(PARSER, member, KEYS)),
        }
        Ok(())
    })?;
    common.build(Method::Rrf { rank_constant }, None, context)
}

/// Normalizer of the short form of `linear` where the request names none: the one that ranks best in `docs/hybrid-search.md`.
/// Elasticsearch refuses such a request.
const SHORT_FORM: Normalizer = Normalizer::ZScore;

fn linear(members: &[Member], context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "linear";
    const KEYS: &[&str] =
        &["retrievers", "fields", "query", "normalizer", "rank_window_size", "filter", "min_score", "_name"];
    let mut common = Common::default();
    let mut of_all = None;
    each(PARSER, members, |member| {
        match &*member.name {
            "retrievers" => {
                common.inputs = Some(inputs(&member.value, |item| linear_input(item, context, depth))?);
            }
            "normalizer" => of_all = Some(normalizer(&member.value)?),
            _ if common.take(PARSER, member, context)? => {}
            _ => return Err(BodyError::unknown_field(PARSER, member, KEYS)),
        }
        Ok(())
    })?;
    common.build(Method::Linear, of_all, context)
}

fn inputs(node: &Node, read: impl Fn(&Node) -> Result<Input, BodyError>) -> Result<Vec<Input>, BodyError> {
    let items = match &node.json {
        Json::Array(items) => &items[..],
        // One stands for a list of one.
        Json::Object(_) => std::slice::from_ref(node),
        _ => {
            return Err(BodyError::parsing(
                node.at,
                format!("Expected [START_ARRAY] but found [{}]", node.token()),
            ));
        }
    };
    items.iter().map(read).collect()
}

/// Reads one of the `retrievers` of `rrf`: `{"standard": …}` or `{"retriever": {"standard": …}, "weight":
/// 2}`.
fn rrf_input(node: &Node, context: Context, depth: usize) -> Result<Input, BodyError> {
    let members = node.as_object().unwrap_or_default();
    if !members.iter().any(|member| matches!(&*member.name, "retriever" | "weight")) {
        return child(retriever(node, context, depth + 1)?, context).map(Input::new);
    }
    component("rrf_component", &["retriever", "weight"], node, context, depth)
}

/// Reads one of the `retrievers` of `linear`: `{"retriever": {"standard": …}, "weight": 2, "normalizer":
/// "minmax"}`.
fn linear_input(node: &Node, context: Context, depth: usize) -> Result<Input, BodyError> {
    component("retriever-component", &["retriever", "weight", "normalizer"], node, context, depth)
}

fn component(
    parser: &'static str,
    keys: &'static [&'static str],
    node: &Node,
    context: Context,
    depth: usize,
) -> Result<Input, BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("[{parser}] Expected START_OBJECT but was: {}", node.token()),
        ));
    };
    let (mut child, mut weight, mut normalized) = (None, 1.0, Normalizer::None);
    each(parser, members, |member| {
        match &*member.name {
            "retriever" => child = Some(child_of(&member.value, context, depth)?),
            "weight" => weight = value::float(&member.value)?,
            "normalizer" if keys.contains(&"normalizer") => normalized = normalizer(&member.value)?,
            _ => return Err(BodyError::unknown_field(parser, member, keys)),
        }
        Ok(())
    })?;
    let Some(retriever) = child else {
        return Err(BodyError::Required { field: "retriever" });
    };
    if weight < 0.0 {
        return Err(BodyError::Build {
            parser,
            reason: format!("[weight] must be non-negative, found [{weight:?}]"),
            at: node.end,
        });
    }
    Ok(Input { weight, normalizer: normalized, ..Input::new(retriever) })
}

/// Reads a retriever inside another.
pub(super) fn child_of(node: &Node, context: Context, depth: usize) -> Result<Retriever, BodyError> {
    child(retriever(node, context, depth + 1)?, context)
}

/// Prepares a retriever inside another, and rejects sections that apply to the search as a whole.
fn child(mut retriever: Retriever, context: Context) -> Result<Retriever, BodyError> {
    if let Retriever::Standard(standard) = &mut retriever
        && !standard.sections.is_empty()
    {
        // Its scores count, whatever its order.
        let mut search = SearchBody { track_scores: true, ..SearchBody::default() };
        for member in std::mem::take(&mut standard.sections) {
            if matches!(&*member.name, "search_after" | "terminate_after") {
                return Err(not_supported_inside(&member));
            }
            search.section(&member, context)?;
        }
        search.validate()?;
        standard.search = Some(Box::new(search));
    }
    Ok(retriever)
}

/// Reads `{"retriever": …, "rescore": …}`, which rescores the first hits of a list: a fusion of that one
/// list.
fn rescorer(members: &[Member], end: Location, context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "rescorer";
    const KEYS: &[&str] = &["retriever", "rescore", "filter", "min_score", "_name"];
    let (mut child, mut passes) = (None, Vec::new());
    let mut common = Common::default();
    each(PARSER, members, |member| {
        match &*member.name {
            "retriever" => child = Some(child_of(&member.value, context, depth)?),
            "rescore" => passes = rescore::parse(&member.value, context)?,
            "filter" | "min_score" | "_name" => {
                common.take(PARSER, member, context)?;
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, KEYS)),
        }
        Ok(())
    })?;
    let missing = match (&child, passes.is_empty()) {
        (None, _) => "retriever",
        (_, true) => "rescore",
        (Some(_), false) => "",
    };
    let Some(retriever) = child.filter(|_| missing.is_empty()) else {
        return Err(BodyError::parsing(end, format!("Required [{missing}]")));
    };
    // Behind the narrowest pass hits would be scored by other means than those before.
    common.window = passes.iter().map(|pass| pass.window).min();
    common.inputs = Some(vec![Input { rescore: passes, ..Input::new(retriever) }]);
    common.build(Method::Linear, None, context)
}

fn normalizer(node: &Node) -> Result<Normalizer, BodyError> {
    let name = value::text(node)?;
    Normalizer::named(&name).ok_or_else(|| {
        let names = Normalizer::ALL.map(Normalizer::name).join(", ");
        BodyError::illegal(format!("Unknown normalizer [{name}], must be one of [{names}]"))
    })
}

/// Reads one query, or an array of queries.
fn queries(node: &Node, context: Context) -> Result<Vec<Query>, BodyError> {
    match node.as_array() {
        Some(items) => items.iter().map(|item| dsl::parse_query(item, context)).collect(),
        None => Ok(vec![dsl::parse_query(node, context)?]),
    }
}

fn least(score: f32) -> Result<f32, BodyError> {
    if score < 0.0 {
        return Err(BodyError::illegal(format!(
            "[min_score] must be greater than or equal to 0, was: [{score:?}]"
        )));
    }
    Ok(score)
}

/// Reads every member of a retriever. Errors name the member in which they occurred.
pub(super) fn each<'m>(
    parser: &'static str,
    members: &'m [Member],
    mut read: impl FnMut(&'m Member) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    members.iter().try_for_each(|member| read(member).map_err(|error| within(error, parser, member)))
}

/// The error for parameters that are required and not given; `parameters` are names with whether each is missing.
pub(super) fn required(end: Location, parameters: &[(&str, bool)]) -> BodyError {
    let missing: Vec<&str> =
        parameters.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
    BodyError::parsing(end, format!("Required [{}]", missing.join(", ")))
}

/// Wraps an error in the name of the field it occurred in, unless it is about the field itself or about the
/// whole retriever.
fn within(error: BodyError, parser: &'static str, member: &Member) -> BodyError {
    match error {
        BodyError::UnknownField { parser: of, .. } if of == parser => error,
        BodyError::Validation { .. } => error,
        other => other.within(parser, &member.name, member.value.at),
    }
}
