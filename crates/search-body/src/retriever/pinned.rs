//! `pinned`: chosen documents are ranked above the hits of a list.

use sparrow_query::dsl::{Context, Pinned};
use sparrow_query::{Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Location, Member, Node};

use super::super::fusion::Method;
use super::super::rank::window_shape;
use super::super::shape::{Shape, list, object, text};
use super::super::sort::Sort;
use super::common::{Common, each, inner_shape, named, required};
use super::{Fusion, Input, Retriever, Stage, Standard};

/// Name of the retriever in requests.
pub(super) const KIND: &str = "pinned";

pub(super) fn shape() -> Shape {
    let document = object([("_index", text()), ("_id", text())]).needs(&["_id"]);
    object([inner_shape(), ("ids", list(text())), ("docs", list(document)), window_shape()])
        .and(named())
        .needs(&["retriever"])
}

/// Reads a `pinned` retriever, whose own retriever `child` reads, as the sum of two lists: the chosen documents have scores beside which those of the other list do
/// not count. Filters are for the other list only, as in Elasticsearch.
pub(super) fn read(
    members: &[Member],
    end: Location,
    context: Context,
    child: &dyn Fn(&Node) -> Result<Retriever, BodyError>,
) -> Result<Fusion, BodyError> {
    let (mut inner, mut pinned) = (None, Pinned::default());
    let mut common = Common::default();
    each(KIND, members, |member| {
        match &*member.name {
            "retriever" => inner = Some(child(&member.value)?),
            "ids" | "docs" => pinned.take(KIND, member)?,
            "rank_window_size" | "filter" | "min_score" | "_name" => {
                common.take(KIND, member, context)?;
            }
            _ => return Err(BodyError::unknown_field(KIND, member, shape().names())),
        }
        Ok(())
    })?;
    let Some(inner) = inner else {
        return Err(required(end, &[("retriever", true)]));
    };
    if let Retriever::Standard(Standard { search: Some(search), .. }) = &inner
        && search.sort != Sort::Score
    {
        return Err(BodyError::illegal(format!("[{KIND}] retriever only supports sorting by score")));
    }
    common.set_list(Input::new(inner));
    let mut fusion = common.build(Method::Linear, None, context)?;
    let chosen = pinned.above(QueryKind::MatchNone.into())?;
    fusion.inputs.insert(0, Input::new(Retriever::Standard(Standard::new(Query::new(chosen)))));
    fusion.stage = Some(Stage::Pin);
    Ok(fusion)
}
