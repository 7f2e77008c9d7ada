//! Queries that score by features of documents: `rank_feature`, `distance_feature`.

use std::fmt;

use serde_json::Value;

use super::dsl::{Common, Context, members, unknown_token, value};
use super::no_children;
use super::shape::{Shape, any, clause, num, object, text};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};

/// A `rank_feature` query.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFeatureQuery {
    /// Path of a `rank_feature` field, or of a `rank_features` field with a feature after a dot.
    pub field: String,
    /// How a feature's value becomes a score.
    pub function: RankFunction,
}

/// How the value `S` of a feature becomes a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankFunction {
    /// `S / (S + pivot)`; the default pivot is approximately the mean of the feature.
    Saturation { pivot: Option<f32> },
    /// `ln(scaling_factor + S)`.
    Log { scaling_factor: f32 },
    /// `S^exponent / (S^exponent + pivot^exponent)`.
    Sigmoid { pivot: f32, exponent: f32 },
    /// `S`.
    Linear,
}

/// A `distance_feature` query on a date or `geo_point` field.
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceFeatureQuery {
    /// Path of a date or `geo_point` field.
    pub field: String,
    /// The date, in which date math is allowed, or the point from which distances are measured.
    pub origin: Value,
    /// Duration such as `7d`, or length such as `1km`: the distance at which the score is half of its maximum.
    pub pivot: String,
}

/// What the body of a `rank_feature` query holds.
pub(super) fn rank_feature_shape() -> Shape {
    clause([
        ("field", text().about("a `rank_feature`, or a feature of a `rank_features`")),
        ("saturation", object([("pivot", num())])),
        ("log", object([("scaling_factor", num())]).needs(&["scaling_factor"])),
        ("sigmoid", object([("pivot", num()), ("exponent", num())]).needs(&["pivot", "exponent"])),
        ("linear", object([])),
    ])
    .needs(&["field"])
}

/// Reads a `rank_feature` query.
pub(super) fn rank_feature(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "rank_feature";
    let mut common = Common::default();
    let (mut field, mut function) = (None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        let at = node.at;
        match &*member.name {
            "field" => field = Some(value::text(node)?),
            "saturation" | "log" | "sigmoid" | "linear" => {
                let found = rank_function(member).map_err(|error| error.within(CLAUSE, &member.name, at))?;
                if function.replace(found).is_some() {
                    return Err(BodyError::Build {
                        parser: CLAUSE,
                        reason: "Can only specify one of [log], [saturation], [sigmoid] and [linear]"
                            .to_owned(),
                        at: body.end,
                    });
                }
            }
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(BodyError::unknown_field(CLAUSE, member, rank_feature_shape().names())),
        }
    }
    let field = field.ok_or(BodyError::Required { field: "field" })?;
    let function = function.unwrap_or(RankFunction::Saturation { pivot: None });
    Ok(common.query(QueryKind::RankFeature(RankFeatureQuery { field, function })))
}

fn rank_function(member: &Member) -> Result<RankFunction, BodyError> {
    let parameters: (&'static str, &[&'static str]) = match &*member.name {
        "saturation" => ("saturation", &["pivot"]),
        "log" => ("log", &["scaling_factor"]),
        "sigmoid" => ("sigmoid", &["pivot", "exponent"]),
        _ => ("linear", &[]),
    };
    let (name, keys) = parameters;
    let mut values: [Option<f32>; 2] = [None; 2];
    for option in members(&member.value, name)? {
        match keys.iter().position(|key| *key == &*option.name) {
            Some(place) => values[place] = Some(value::float(&option.value)?),
            None => return Err(BodyError::unknown_field(name, option, keys)),
        }
    }
    let required = |place: usize| values[place].ok_or(BodyError::Required { field: keys[place] });
    let positive = |what: &str, value: f32| {
        if value > 0.0 {
            Ok(value)
        } else {
            Err(BodyError::illegal(format!("{what} must be > 0, got: {value:?}")))
        }
    };
    Ok(match name {
        "saturation" => {
            RankFunction::Saturation { pivot: values[0].map(|pivot| positive("pivot", pivot)).transpose()? }
        }
        "log" => {
            let scaling_factor = required(0)?;
            if scaling_factor < 1.0 {
                return Err(BodyError::illegal(format!(
                    "scalingFactor must be >= 1, got: {scaling_factor:?}"
                )));
            }
            RankFunction::Log { scaling_factor }
        }
        "sigmoid" => RankFunction::Sigmoid {
            pivot: positive("pivot", required(0)?)?,
            exponent: positive("exp", required(1)?)?,
        },
        _ => RankFunction::Linear,
    })
}

/// What the body of a `distance_feature` query holds.
pub(super) fn distance_feature_shape() -> Shape {
    clause([("field", text()), ("origin", any()), ("pivot", text())]).needs(&["field", "origin", "pivot"])
}

/// Reads a `distance_feature` query.
pub(super) fn distance_feature(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "distance_feature";
    let mut common = Common::default();
    let (mut field, mut origin, mut pivot) = (None, None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "field" => field = Some(value::text(node)?),
            "origin" => origin = Some(node.to_value()),
            "pivot" => pivot = Some(value::text(node)?),
            _ if !node.is_scalar() => return Err(unknown_token(CLAUSE, member)),
            _ if common.take(CLAUSE, member)? => {}
            _ => {
                return Err(BodyError::unknown_field(
                    CLAUSE,
                    member,
                    &["field", "origin", "pivot", "boost", "_name"],
                ));
            }
        }
    }
    Ok(common.query(QueryKind::DistanceFeature(DistanceFeatureQuery {
        field: field.ok_or(BodyError::Required { field: "field" })?,
        origin: origin.ok_or(BodyError::Required { field: "origin" })?,
        pivot: pivot.ok_or(BodyError::Required { field: "pivot" })?,
    })))
}

impl Clause for RankFeatureQuery {
    fn lucene_name(&self) -> &'static str {
        "RankFeatureQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FeatureQuery(field={})", self.field)
    }

    no_children!();
}

impl Clause for DistanceFeatureQuery {
    fn lucene_name(&self) -> &'static str {
        "DistanceFeatureQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LongDistanceFeatureQuery(field={})", self.field)
    }

    no_children!();
}
