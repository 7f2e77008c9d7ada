//! Parses the `retriever` section of a search into a tree.

use std::sync::LazyLock;

use super::super::body::SearchBody;
use super::super::fusion::{Method, Normalizer};
use super::super::shape::{
    self, Named, Shape, any, either, int, list, num, object, one, one_member, query, several,
};
use super::super::{rank, rescore};
use super::common::{self, Common, each, queries, within};
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

/// The retrievers that are answered, and what they hold.
pub fn kinds() -> [Named; 8] {
    [
        ("standard", standard_shape()),
        ("knn", KNN.clone()),
        ("rrf", rrf_shape()),
        ("linear", linear_shape()),
        ("rescorer", rescorer_shape()),
        (reranker::KIND, reranker::shape()),
        (pinned::KIND, pinned::shape()),
        (diversify::KIND, diversify::shape()),
    ]
}

/// What a retriever holds.
pub fn shape() -> Shape {
    let about = "One ranked list: an object with one member, whose name says how it is made.";
    one_member(kinds()).about(about)
}

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
            suggestions: match sparrow_query::is_query(name) {
                true => vec!["standard"],
                false => suggestions(name, &kinds().map(|(kind, _)| kind)),
            },
            at: body.at,
        }),
    }
}

fn standard_shape() -> Shape {
    object([
        ("query", query()),
        ("sort", shape::named("Sort")),
        ("search_after", list(any())),
        ("terminate_after", int()),
        ("collapse", shape::named("Collapse")),
    ])
    .and(common::named())
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
            _ => return Err(BodyError::unknown_field(PARSER, member, standard_shape().names())),
        }
        Ok(())
    })?;
    standard.query = filtered(query, filters);
    if standard.name.is_some() {
        standard.query.name.clone_from(&standard.name);
    }
    Ok(standard)
}

static KNN: LazyLock<Shape> = LazyLock::new(|| {
    object(sparrow_query::knn_members())
        .and(sparrow_query::vector_members())
        .and(common::named())
        .needs(&["field"])
});

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
            known if KNN.names().contains(&known) => clause.push(member.clone()),
            _ => return Err(BodyError::unknown_field(PARSER, member, KNN.names())),
        }
    }
    let clause = Node { at: body.at, end: body.end, json: Json::Object(clause) };
    Ok(Knn { search: parse_knn_search(&clause, context)?, min_score, name })
}

fn rrf_shape() -> Shape {
    let retrievers = several(either([shape::named("Retriever"), rrf_component()]));
    object([("retrievers", retrievers), rank::window_shape(), rank::rank_constant_shape()])
        .and(common::short_form())
        .and(common::named())
}

fn rrf_component() -> Shape {
    object([common::inner_shape(), ("weight", num().preset(1))]).needs(&["retriever"])
}

fn rrf(members: &[Member], context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "rrf";
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
            _ => return Err(BodyError::unknown_field(PARSER, member, rrf_shape().names())),
        }
        Ok(())
    })?;
    common.build(Method::Rrf { rank_constant }, None, context)
}

fn linear_shape() -> Shape {
    object([("retrievers", several(linear_component())), normalizer_shape(), rank::window_shape()])
        .and(common::short_form())
        .and(common::named())
}

fn linear_component() -> Shape {
    rrf_component().and([normalizer_shape()])
}

fn normalizer_shape() -> Named {
    let about =
        "brings the scores of the lists to one scale; `calibrated` makes probabilities of relevance of them";
    ("normalizer", one(&Normalizer::ALL.map(Normalizer::name)).about(about))
}

fn linear(members: &[Member], context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "linear";
    let mut common = Common::default();
    let mut of_all = None;
    each(PARSER, members, |member| {
        match &*member.name {
            "retrievers" => {
                common.inputs = Some(inputs(&member.value, |item| linear_input(item, context, depth))?);
            }
            "normalizer" => of_all = Some(normalizer(&member.value)?),
            _ if common.take(PARSER, member, context)? => {}
            _ => return Err(BodyError::unknown_field(PARSER, member, linear_shape().names())),
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
    component("rrf_component", rrf_component, node, context, depth)
}

/// Reads one of the `retrievers` of `linear`: `{"retriever": {"standard": …}, "weight": 2, "normalizer":
/// "minmax"}`.
fn linear_input(node: &Node, context: Context, depth: usize) -> Result<Input, BodyError> {
    component("retriever-component", linear_component, node, context, depth)
}

fn component(
    parser: &'static str,
    shape: fn() -> Shape,
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
            "normalizer" if shape().names().contains(&"normalizer") => {
                normalized = normalizer(&member.value)?
            }
            // What `rrf` takes directly.
            name if kinds().iter().any(|(kind, _)| *kind == name) => {
                return Err(BodyError::UnknownField {
                    parser,
                    field: name.to_owned(),
                    suggestions: vec!["retriever"],
                    at: member.at,
                });
            }
            _ => return Err(BodyError::unknown_field(parser, member, shape().names())),
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

fn rescorer_shape() -> Shape {
    object([common::inner_shape(), ("rescore", several(shape::named("Rescore")))])
        .and(common::named())
        .needs(&["retriever", "rescore"])
}

/// Reads `{"retriever": …, "rescore": …}`, which rescores the first hits of a list: a fusion of that one
/// list.
fn rescorer(members: &[Member], end: Location, context: Context, depth: usize) -> Result<Fusion, BodyError> {
    const PARSER: &str = "rescorer";
    let (mut child, mut passes) = (None, Vec::new());
    let mut common = Common::default();
    each(PARSER, members, |member| {
        match &*member.name {
            "retriever" => child = Some(child_of(&member.value, context, depth)?),
            "rescore" => passes = rescore::parse(&member.value, context)?,
            "filter" | "min_score" | "_name" => {
                common.take(PARSER, member, context)?;
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, rescorer_shape().names())),
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
