//! `function_score`: a query whose scores are changed by functions of the document.

use std::fmt;

use super::decay::{DecayCurve, DecayFunction, decay, decay_shape};
use super::dsl::{Common, Context, members, parse_query, unknown_token, value};
use super::script_score::script_shape;
use super::shape::{Shape, clause, count, list, num, object, one, sub_query, text};
use crate::script::{QueryScript, ScriptUse};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Location, Member, Node};

/// A `function_score` query.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionScoreQuery {
    /// The query that hits have to match.
    pub query: Box<Query>,
    /// The functions; without any, hits keep the query's score.
    pub functions: Vec<ScoreFunction>,
    /// How the results of several functions are combined.
    pub score_mode: ScoreMode,
    /// How the functions' result is combined with the score of the query.
    pub boost_mode: BoostMode,
    /// Upper limit of the functions' combined result.
    pub max_boost: f32,
    /// Lowest score that a hit may have.
    pub min_score: Option<f32>,
}

/// One function of a `function_score`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreFunction {
    /// Query that selects the documents to which the function applies; all if absent.
    pub filter: Option<Query>,
    /// Factor by which the result is multiplied.
    pub weight: f32,
    /// What the function computes.
    pub kind: FunctionKind,
}

/// What a function of a `function_score` computes.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionKind {
    /// The constant 1.
    Weight,
    /// A numeric field of the document, after a factor and a modifier.
    FieldValueFactor {
        /// Path of the numeric field.
        field: String,
        /// Factor by which the field's value is multiplied.
        factor: f32,
        /// Function that is applied to the product of value and factor.
        modifier: Modifier,
        /// Value for documents that have none; without it they are an error.
        missing: Option<f64>,
    },
    /// A pseudo-random number from 0 to 1, the same for equal seeds and field values.
    Random {
        /// Seed of the random numbers.
        seed: u64,
        /// Path of the field; `None` or `_seq_no` for the document's sequence number.
        field: Option<String>,
    },
    /// A function that falls with the distance of a number or date from an origin.
    Decay(Box<DecayFunction>),
    /// A script.
    Script(QueryScript),
}

/// How a `field_value_factor` changes its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Modifier {
    #[default]
    None,
    Log,
    Log1p,
    Log2p,
    Ln,
    Ln1p,
    Ln2p,
    Square,
    Sqrt,
    Reciprocal,
}

/// How the results of several functions are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScoreMode {
    #[default]
    Multiply,
    Sum,
    Avg,
    First,
    Max,
    Min,
}

/// How the result of the functions is combined with the score of the query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoostMode {
    #[default]
    Multiply,
    Replace,
    Sum,
    Avg,
    Max,
    Min,
}

const CLAUSE: &str = "function_score";

/// What the body of a `function_score` query holds.
pub(super) fn function_score_shape() -> Shape {
    let modifiers = ["none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal"];
    let functions = || {
        [
            ("weight", num()),
            (
                "field_value_factor",
                object([
                    ("field", text()),
                    ("factor", num().preset(1)),
                    ("modifier", one(&modifiers).preset("none")),
                    ("missing", num()),
                ])
                .needs(&["field"]),
            ),
            ("random_score", object([("seed", count()), ("field", text())])),
            ("script_score", object([("script", script_shape())]).needs(&["script"])),
            ("gauss", decay_shape("a bell around an origin")),
            ("exp", decay_shape("falls exponentially away from an origin")),
            ("linear", decay_shape("falls in a straight line away from an origin")),
        ]
    };
    clause(functions().into_iter().chain([
        ("query", sub_query()),
        ("functions", list(object([("filter", sub_query())].into_iter().chain(functions())))),
        ("score_mode", one(&["multiply", "sum", "avg", "first", "max", "min"]).preset("multiply")),
        ("boost_mode", one(&["multiply", "replace", "sum", "avg", "max", "min"]).preset("multiply")),
        ("max_boost", num()),
        ("min_score", num()),
    ]))
}

/// Reads a `function_score` query.
pub(super) fn function_score(body: &Node, context: Context) -> Result<Query, BodyError> {
    let context = context.nested()?;
    let mut common = Common::default();
    let mut query = FunctionScoreQuery {
        query: Box::new(Query::match_all()),
        functions: Vec::new(),
        score_mode: ScoreMode::default(),
        boost_mode: BoostMode::default(),
        max_boost: f32::MAX,
        min_score: None,
    };
    // What gave a function so far: one by itself and a list exclude each other.
    let mut found: Option<&str> = None;
    let (mut single, mut weight) = (None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" if node.as_object().is_some() => *query.query = parse_query(node, context)?,
            "score_mode" => query.score_mode = score_mode(&value::text(node)?)?,
            "boost_mode" => query.boost_mode = boost_mode(&value::text(node)?)?,
            "max_boost" => query.max_boost = value::float(node)?,
            "min_score" => query.min_score = Some(value::float(node)?),
            "functions" => {
                let Some(items) = node.as_array() else { return Err(unknown_token(CLAUSE, member)) };
                if let Some(other) = found.replace("functions") {
                    return Err(both(node.at, other, "functions"));
                }
                for item in items {
                    query.functions.push(function(item, context)?);
                }
            }
            "weight" if node.is_scalar() => {
                if found == Some("functions") {
                    return Err(both(node.at, "functions", "weight"));
                }
                weight = Some(value::float(node)?);
            }
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            name if node.as_object().is_some() => {
                let kind = function_kind(member)?;
                if let Some(other) = found {
                    return Err(both(node.at, other, name));
                }
                found = Some("function");
                single = Some(kind);
            }
            _ => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("field [{}] is not allowed in [{CLAUSE}]", member.name),
                ));
            }
        }
    }
    if weight.is_some() && found == Some("functions") {
        return Err(both(body.end, "functions", "weight"));
    }
    if single.is_some() || weight.is_some() {
        let kind = single.unwrap_or(FunctionKind::Weight);
        query.functions.push(ScoreFunction { filter: None, weight: checked_weight(weight)?, kind });
    }
    Ok(common.query(QueryKind::FunctionScore(query)))
}

fn both(at: Location, first: &str, second: &str) -> BodyError {
    BodyError::parsing(
        at,
        format!(
            "failed to parse [{CLAUSE}] query. already found [{first}], now encountering [{second}]. did you mean to \
             define a [functions] array?"
        ),
    )
}

fn checked_weight(weight: Option<f32>) -> Result<f32, BodyError> {
    match weight {
        Some(weight) if weight < 0.0 => {
            Err(BodyError::illegal("[weight] cannot be negative for a filtering function"))
        }
        weight => Ok(weight.unwrap_or(1.0)),
    }
}

/// Reads one element of the `functions` array.
fn function(node: &Node, context: Context) -> Result<ScoreFunction, BodyError> {
    let Some(options) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!(
                "failed to parse [{CLAUSE}]. malformed query, expected a [START_OBJECT] while parsing functions but got \
                 a [{}] instead",
                node.token()
            ),
        ));
    };
    let (mut filter, mut weight, mut kind) = (None, None, None);
    for member in options {
        match &*member.name {
            "filter" => filter = Some(parse_query(&member.value, context)?),
            "weight" => weight = Some(value::float(&member.value)?),
            _ if member.value.as_object().is_none() => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("failed to parse [{CLAUSE}] query. field [{}] is not supported", member.name),
                ));
            }
            _ if kind.is_some() => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!(
                        "failed to parse function_score functions. already found a function, now encountering [{}].",
                        member.name
                    ),
                ));
            }
            _ => kind = Some(function_kind(member)?),
        }
    }
    let kind = match (kind, weight) {
        (Some(kind), _) => kind,
        (None, Some(_)) => FunctionKind::Weight,
        (None, None) => {
            return Err(BodyError::parsing(node.end, "an entry in functions list is missing a function."));
        }
    };
    Ok(ScoreFunction { filter, weight: checked_weight(weight)?, kind })
}

fn function_kind(member: &Member) -> Result<FunctionKind, BodyError> {
    match &*member.name {
        "field_value_factor" => field_value_factor(&member.value),
        "random_score" => random_score(&member.value),
        "gauss" => of_decay(DecayCurve::Gauss, &member.value),
        "exp" => of_decay(DecayCurve::Exp, &member.value),
        "linear" => of_decay(DecayCurve::Linear, &member.value),
        "script_score" => {
            let mut script = None;
            for part in members(&member.value, "script_score")? {
                match &*part.name {
                    "script" => script = Some(QueryScript::read(&part.value, ScriptUse::Score)?),
                    _ => {
                        return Err(BodyError::parsing(
                            part.value.at,
                            format!("script_score query does not support [{}]", part.name),
                        ));
                    }
                }
            }
            let missing = || BodyError::parsing(member.value.end, "script_score requires 'script' field");
            Ok(FunctionKind::Script(script.ok_or_else(missing)?))
        }
        name => Err(BodyError::UnknownName {
            what: "function",
            name: name.to_owned(),
            suggestions: super::suggestions(
                name,
                &["exp", "field_value_factor", "gauss", "linear", "random_score", "script_score"],
            ),
            at: member.value.at,
        }),
    }
}

fn of_decay(curve: DecayCurve, node: &Node) -> Result<FunctionKind, BodyError> {
    Ok(FunctionKind::Decay(Box::new(decay(curve, node)?)))
}

fn field_value_factor(node: &Node) -> Result<FunctionKind, BodyError> {
    let (mut field, mut factor, mut modifier, mut missing) = (None, 1.0, Modifier::None, None);
    for member in members(node, "field_value_factor")? {
        let node = &member.value;
        match &*member.name {
            _ if !node.is_scalar() => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("[field_value_factor] field [{}] does not support lists or objects", member.name),
                ));
            }
            "field" => field = Some(value::text(node)?),
            "factor" => factor = value::float(node)?,
            "modifier" => modifier = modifier_named(&value::text(node)?)?,
            "missing" => missing = Some(value::double(node)?),
            _ => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("field_value_factor query does not support [{}]", member.name),
                ));
            }
        }
    }
    let field = field
        .ok_or_else(|| BodyError::parsing(node.end, "[field_value_factor] required field 'field' missing"))?;
    Ok(FunctionKind::FieldValueFactor { field, factor, modifier, missing })
}

/// The error for an unknown name, which quotes the Java enumeration that does not have it.
fn no_constant(class: &str, name: &str) -> BodyError {
    BodyError::illegal(format!(
        "No enum constant org.elasticsearch.common.lucene.search.function.{class}.{}",
        name.to_uppercase()
    ))
}

fn modifier_named(name: &str) -> Result<Modifier, BodyError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "none" => Modifier::None,
        "log" => Modifier::Log,
        "log1p" => Modifier::Log1p,
        "log2p" => Modifier::Log2p,
        "ln" => Modifier::Ln,
        "ln1p" => Modifier::Ln1p,
        "ln2p" => Modifier::Ln2p,
        "square" => Modifier::Square,
        "sqrt" => Modifier::Sqrt,
        "reciprocal" => Modifier::Reciprocal,
        _ => return Err(no_constant("FieldValueFactorFunction.Modifier", name)),
    })
}

fn score_mode(name: &str) -> Result<ScoreMode, BodyError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "multiply" => ScoreMode::Multiply,
        "sum" => ScoreMode::Sum,
        "avg" => ScoreMode::Avg,
        "first" => ScoreMode::First,
        "max" => ScoreMode::Max,
        "min" => ScoreMode::Min,
        _ => return Err(no_constant("FunctionScoreQuery.ScoreMode", name)),
    })
}

fn boost_mode(name: &str) -> Result<BoostMode, BodyError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "multiply" => BoostMode::Multiply,
        "replace" => BoostMode::Replace,
        "sum" => BoostMode::Sum,
        "avg" => BoostMode::Avg,
        "max" => BoostMode::Max,
        "min" => BoostMode::Min,
        _ => return Err(no_constant("CombineFunction", name)),
    })
}

fn random_score(node: &Node) -> Result<FunctionKind, BodyError> {
    let (mut seed, mut field) = (None, None);
    for member in members(node, "random_score")? {
        let node = &member.value;
        match (&*member.name, &node.json) {
            ("seed", Json::Number(text)) => {
                let whole: i64 = text.parse().map_err(|_| {
                    BodyError::parsing(
                        node.at,
                        "random_score seed must be an int, long or string, not a decimal number",
                    )
                })?;
                seed = Some(whole as u64);
            }
            // A text of digits is that number; any other is spread over the numbers.
            ("seed", Json::String(text)) => {
                let spread = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
                });
                seed = Some(text.parse::<i64>().map_or(spread, |number| number as u64));
            }
            ("seed", _) => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("random_score seed must be an int/long or string, not '{}'", node.token()),
                ));
            }
            ("field", _) if node.is_scalar() => field = value::optional_text(node)?,
            (name, _) => {
                return Err(BodyError::parsing(
                    node.at,
                    format!("random_score query does not support [{name}]"),
                ));
            }
        }
    }
    let seed = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    });
    Ok(FunctionKind::Random { seed, field })
}

impl Clause for FunctionScoreQuery {
    fn lucene_name(&self) -> &'static str {
        "FunctionScoreQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "function score ({})", self.query)
    }

    fn children(&self) -> Vec<&Query> {
        let filters = self.functions.iter().filter_map(|function| function.filter.as_ref());
        std::iter::once(&*self.query).chain(filters).collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Query> {
        let filters = self.functions.iter_mut().filter_map(|function| function.filter.as_mut());
        std::iter::once(&mut *self.query).chain(filters).collect()
    }
}
