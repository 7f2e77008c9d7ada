//! Parses the `retriever` section of a search into a tree.

use super::super::body::SearchBody;
use super::super::fusion::{Method, Normalizer};
use super::super::{rank, rescore};
use super::common::{Common, each, queries, within};
use super::{
    Fusion, Input, Knn, Retriever, Standard, check_lists, diversify, filtered, not_supported_inside, pinned,
    rerank as reranker,
};
use sparrow_query::dsl::{self, Context, value};
use sparrow_query::{Query, parse_knn_search};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Location, Member, Node};
use sparrow_wire::suggest::suggestions;

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
    let child = |node: &Node| child_of(node, context, depth);
    match name {
        "standard" => standard(members, context).map(Retriever::Standard),
        "knn" => knn(body, members, context).map(Retriever::Knn),
        "rrf" => rrf(members, context, depth).map(Retriever::Fused),
        "linear" => linear(members, context, depth).map(Retriever::Fused),
        "rescorer" => rescorer(members, body.end, context, depth).map(Retriever::Fused),
        reranker::KIND => reranker::read(members, body.end, context, &child).map(Retriever::Fused),
        pinned::KIND => pinned::read(members, body.end, context, &child).map(Retriever::Fused),
        diversify::KIND => diversify::read(members, body.end, context, &child).map(Retriever::Fused),
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
fn child_of(node: &Node, context: Context, depth: usize) -> Result<Retriever, BodyError> {
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
