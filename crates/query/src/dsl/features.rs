//! Queries that score by features of documents: `rank_feature`, `distance_feature`.

use crate::{DistanceFeatureQuery, Query, QueryKind, RankFeatureQuery, RankFunction};

use super::{Common, members, unknown_field, unknown_token, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};

/// Reads a `rank_feature` query.
pub fn rank_feature(body: &Node) -> Result<Query, BodyError> {
    const CLAUSE: &str = "rank_feature";
    const KEYS: &[&str] = &["field", "saturation", "log", "sigmoid", "linear", "boost", "_name"];
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
            _ => return Err(unknown_field(CLAUSE, member, KEYS)),
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
            None => return Err(unknown_field(name, option, keys)),
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

/// Reads a `distance_feature` query.
pub fn distance_feature(body: &Node) -> Result<Query, BodyError> {
    const CLAUSE: &str = "distance_feature";
    let mut common = Common::default();
    let (mut field, mut origin, mut pivot) = (None, None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "field" => field = Some(value::text(node)?),
            "origin" if node.is_scalar() => origin = Some(node.to_value()),
            "origin" => {
                return Err(BodyError::parsing(
                    node.at,
                    "[distance_feature] on geo_point fields is not supported by Sparrow",
                ));
            }
            "pivot" => pivot = Some(value::text(node)?),
            _ if !node.is_scalar() => return Err(unknown_token(CLAUSE, member)),
            _ if common.take(CLAUSE, member)? => {}
            _ => {
                return Err(unknown_field(CLAUSE, member, &["field", "origin", "pivot", "boost", "_name"]));
            }
        }
    }
    Ok(common.query(QueryKind::DistanceFeature(DistanceFeatureQuery {
        field: field.ok_or(BodyError::Required { field: "field" })?,
        origin: origin.ok_or(BodyError::Required { field: "origin" })?,
        pivot: pivot.ok_or(BodyError::Required { field: "pivot" })?,
    })))
}
