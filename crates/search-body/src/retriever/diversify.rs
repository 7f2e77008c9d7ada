//! `diversify`: of the hits of a list, those are kept that differ from each other.

use sparrow_query::dsl::{Context, value};
use sparrow_query::{Query, parse_knn_search};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Location, Member, Node};

use super::super::fusion::Method;
use super::super::rank::window_shape;
use super::super::shape::{Shape, int, num, object, one, text};
use super::common::{Common, each, inner_shape, named, required};
use super::{Fusion, Input, Retriever, Stage};
use crate::window::Window;

/// Name of the retriever in requests.
pub(super) const KIND: &str = "diversify";
/// Number of hits that are kept if the request does not say how many.
const DEFAULT_SIZE: usize = 10;

pub(super) fn shape() -> Shape {
    object([
        inner_shape(),
        ("type", one(&["mmr"])),
        ("field", text().about("whose vectors are compared")),
        ("lambda", num().about("how much relevance counts, from 0 to 1")),
        ("size", int().about("how many hits are kept").preset(DEFAULT_SIZE)),
        window_shape(),
    ])
    .and(sparrow_query::vector_members())
    .and(named())
    .needs(&["retriever", "type", "field", "lambda"])
}

/// Diversification by maximal marginal relevance.
#[derive(Debug, Clone, PartialEq)]
pub struct Diversify {
    /// Path of the `dense_vector` or `semantic_text` field whose vectors are compared.
    pub field: String,
    /// A search for neighbours of what the hits are to be relevant to, of which only the vector counts.
    pub query: Option<Box<Query>>,
    /// How much relevance counts, from 0 to 1; the rest is how much hits are to differ.
    pub lambda: f32,
    /// Number of hits that are kept.
    pub size: usize,
}

/// Reads a `diversify` retriever, whose own retriever `child` reads, as a fusion of a single list.
pub(super) fn read(
    members: &[Member],
    end: Location,
    context: Context,
    child: &dyn Fn(&Node) -> Result<Retriever, BodyError>,
) -> Result<Fusion, BodyError> {
    let (mut inner, mut kind, mut field, mut lambda, mut size) = (None, None, None, None, None);
    let mut vectors: Vec<&Member> = Vec::new();
    let mut common = Common::default();
    each(KIND, members, |member| {
        let node = &member.value;
        match &*member.name {
            "retriever" => inner = Some(child(node)?),
            "type" => kind = Some(value::text(node)?),
            "field" => field = Some(value::text(node)?),
            "lambda" => lambda = Some(value::float(node)?),
            "size" => size = Some(value::int(node)?),
            "query_vector" | "query_vector_builder" => vectors.push(member),
            "rank_window_size" | "filter" | "min_score" | "_name" => {
                common.take(KIND, member, context)?;
            }
            _ => return Err(BodyError::unknown_field(KIND, member, shape().names())),
        }
        Ok(())
    })?;
    let missing = [("retriever", inner.is_none()), ("type", kind.is_none()), ("field", field.is_none())];
    let (Some(inner), Some(kind), Some(field)) = (inner, kind, field) else {
        return Err(required(end, &missing));
    };
    if !kind.eq_ignore_ascii_case("mmr") {
        return Err(BodyError::illegal(format!(
            "unknown result diversification type [{kind}], it must be [mmr]"
        )));
    }
    let query = match &vectors[..] {
        [] => None,
        [vector] => Some(Box::new(query(&field, vector, context)?)),
        _ => {
            return Err(refused(
                "can have one of [query_vector] or [query_vector_builder], but not both".to_owned(),
            ));
        }
    };
    common.set_list(Input::new(inner));
    let mut fusion = common.build(Method::Linear, None, context)?;
    // Which hits are kept depends on the whole window, so later pages have no wider window.
    let window = fusion.window.first();
    fusion.window = Window::Given(window);
    let size = match size {
        None => DEFAULT_SIZE.min(window),
        Some(size) => match usize::try_from(size) {
            Ok(1..) if size as usize <= window => size as usize,
            Ok(1..) => {
                let reason =
                    format!("[size] of {size} cannot be greater than the [rank_window_size] of {window}");
                return Err(refused(reason));
            }
            _ => return Err(refused(format!("[size] of {size} must be greater than zero"))),
        },
    };
    let Some(lambda) = lambda.filter(|lambda| (0.0..=1.0).contains(lambda)) else {
        let given = lambda.map_or("null".to_owned(), |lambda| format!("{lambda:?}"));
        return Err(refused(format!(
            "must have a [lambda] between 0.0 and 1.0. The value provided was {given}"
        )));
    };
    fusion.stage = Some(Stage::Diversify(Diversify { field, query, lambda, size }));
    Ok(fusion)
}

fn refused(reason: String) -> BodyError {
    let reason = format!("[{KIND}] MMR result diversification {reason}");
    BodyError::Validation { messages: vec![reason] }
}

/// A search for the one neighbour of a vector, or of what a model makes of a text.
fn query(field: &str, vector: &Member, context: Context) -> Result<Query, BodyError> {
    let (at, end) = (vector.at, vector.value.end);
    let member = |name: &str, json| Member { name: name.into(), at, value: Node { at, end, json } };
    let members = vec![
        member("field", Json::String(field.into())),
        member("k", Json::Number("1".into())),
        member("num_candidates", Json::Number("1".into())),
        vector.clone(),
    ];
    parse_knn_search(&Node { at, end, json: Json::Object(members) }, context).map(|search| search.query)
}
