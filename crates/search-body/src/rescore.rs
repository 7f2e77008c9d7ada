//! `rescore`: scores the first hits again by another query.

use crate::shape::{Shape, int, num, object, one, query};
use sparrow_query::Query;
use sparrow_tantivy_index::query::Explanation;

use sparrow_query::dsl::{self, Context, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::suggest::suggestions;

/// Default number of hits that are scored again.
const DEFAULT_WINDOW: usize = 10;

/// How the scores of both queries become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ScoreMode {
    #[default]
    Total,
    Multiply,
    Avg,
    Max,
    Min,
}

/// One pass over the first hits.
#[derive(Debug, Clone, PartialEq)]
pub struct Rescore {
    /// Number of hits of each index that are scored again.
    pub window: usize,
    /// The query they are scored by.
    pub query: Query,
    query_weight: f32,
    rescore_weight: f32,
    mode: ScoreMode,
}

impl Rescore {
    /// The new score of a hit from its previous score and that of the second query, if it matches.
    pub fn combine(&self, first: f32, second: Option<f32>) -> f32 {
        let first = weighted(first, self.query_weight);
        let Some(second) = second.map(|second| weighted(second, self.rescore_weight)) else { return first };
        match self.mode {
            ScoreMode::Total => first + second,
            ScoreMode::Multiply => first * second,
            ScoreMode::Avg => (first + second) / 2.0,
            ScoreMode::Max => first.max(second),
            ScoreMode::Min => first.min(second),
        }
    }

    /// Explains the score of a hit after this pass, from the explanations of its previous score and of the second query.
    pub fn explain(&self, first: Explanation, second: Option<Explanation>) -> Explanation {
        let product = |inner: Explanation, weight: f32, name: &str| {
            let value = weighted(inner.value, weight);
            Explanation::of(value, "product of:", vec![inner, Explanation::new(weight, name)])
        };
        let value = self.combine(first.value, second.as_ref().map(|second| second.value));
        let first = product(first, self.query_weight, "primaryWeight");
        let Some(second) = second else { return first };
        let second = product(second, self.rescore_weight, "secondaryWeight");
        let description = match self.mode {
            ScoreMode::Total => "sum of:",
            ScoreMode::Multiply => "product of:",
            ScoreMode::Avg => "avg of:",
            ScoreMode::Max => "max of:",
            ScoreMode::Min => "min of:",
        };
        Explanation::of(value, description, vec![first, second])
    }

    /// The new score of a hit after the window, which is not scored again.
    pub fn behind(&self, first: f32) -> f32 {
        weighted(first, self.query_weight)
    }
}

/// A score times its weight, finite even where the score is too large for a float: infinity times 0 would be no number.
fn weighted(score: f32, weight: f32) -> f32 {
    (score.clamp(f32::MIN, f32::MAX) * weight).clamp(f32::MIN, f32::MAX)
}

pub(crate) fn shape() -> Shape {
    object([("window_size", int().preset(DEFAULT_WINDOW)), ("query", query_shape())]).needs(&["query"])
}

fn query_shape() -> Shape {
    object([
        ("rescore_query", query()),
        ("query_weight", num().preset(1)),
        ("rescore_query_weight", num().preset(1)),
        ("score_mode", one(&["total", "multiply", "avg", "max", "min"]).preset("total")),
    ])
    .needs(&["rescore_query"])
}

/// Parses the `rescore` section: one pass or several.
///
/// # Errors
/// On unknown keys and rescorers, missing queries, and windows that are too large.
pub fn parse(node: &Node, context: Context) -> Result<Vec<Rescore>, BodyError> {
    match &node.json {
        Json::Array(items) => items.iter().map(|item| pass(item, context)).collect(),
        _ => Ok(vec![pass(node, context)?]),
    }
}

fn pass(node: &Node, context: Context) -> Result<Rescore, BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let mut window = DEFAULT_WINDOW;
    let mut rescore = None;
    for member in members {
        match (&*member.name, &member.value.json) {
            ("window_size", Json::Number(_) | Json::String(_)) => {
                window = value::unsigned(&member.value, "window_size")?;
            }
            ("query", Json::Object(_)) => rescore = Some(by_query(&member.value, context)?),
            (name, Json::Object(_)) => {
                return Err(BodyError::UnknownName {
                    what: "rescorer",
                    name: name.to_owned(),
                    suggestions: suggestions(name, &["query"]),
                    at: member.value.at,
                });
            }
            (name, _) => {
                return Err(BodyError::parsing(member.at, format!("rescore doesn't support [{name}]")));
            }
        }
    }
    let rescore = rescore.ok_or_else(|| BodyError::parsing(node.end, "missing rescore type"))?;
    Ok(Rescore { window, ..rescore })
}

fn by_query(node: &Node, context: Context) -> Result<Rescore, BodyError> {
    let mut query = None;
    let (mut query_weight, mut rescore_weight, mut mode) = (1.0, 1.0, ScoreMode::Total);
    for member in node.as_object().unwrap_or_default() {
        let within = |error: BodyError| error.within("query", &member.name, member.value.at);
        match &*member.name {
            "rescore_query" => query = Some(dsl::parse_query(&member.value, context).map_err(within)?),
            "query_weight" => query_weight = value::float(&member.value).map_err(within)?,
            "rescore_query_weight" => rescore_weight = value::float(&member.value).map_err(within)?,
            "score_mode" => {
                let text = value::text(&member.value).map_err(within)?;
                mode = match text.to_ascii_lowercase().as_str() {
                    "total" => ScoreMode::Total,
                    "multiply" => ScoreMode::Multiply,
                    "avg" => ScoreMode::Avg,
                    "max" => ScoreMode::Max,
                    "min" => ScoreMode::Min,
                    _ => {
                        return Err(within(BodyError::illegal(format!("illegal score_mode [{text}]"))));
                    }
                };
            }
            _ => return Err(BodyError::unknown_field("query", member, query_shape().names())),
        }
    }
    let query = query.ok_or(BodyError::Required { field: "rescore_query" })?;
    Ok(Rescore { window: DEFAULT_WINDOW, query, query_weight, rescore_weight, mode })
}
