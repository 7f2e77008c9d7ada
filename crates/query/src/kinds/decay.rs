//! Decay functions of `function_score`: the nearer a number, a date or a point is to an origin, the higher the score.

use serde_json::Value;

use super::dsl::{members, value};
use super::shape::{Shape, any, num, object, one, scalar};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// A function that falls from 1 with the distance from an origin. `origin`, `scale` and `offset` are numbers or,
/// for a date field, dates and durations, and for a `geo_point` field a point and distances.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayFunction {
    /// Shape of the curve.
    pub curve: DecayCurve,
    /// Path of the numeric, date or `geo_point` field.
    pub field: String,
    /// Value at which the result is 1; by default the current time, for date fields.
    pub origin: Option<Value>,
    /// Distance at which the result is `decay`.
    pub scale: Option<Value>,
    /// Distance from the origin up to which the result stays 1.
    pub offset: Option<Value>,
    /// Result at the distance `scale`, between 0 and 1.
    pub decay: f64,
    /// Which value of a field with several values counts.
    pub multi_value: MultiValue,
}

/// Shape of a decay function's curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecayCurve {
    Gauss,
    Exp,
    Linear,
}

impl DecayCurve {
    /// Name of the curve in requests.
    pub fn name(self) -> &'static str {
        match self {
            DecayCurve::Gauss => "gauss",
            DecayCurve::Exp => "exp",
            DecayCurve::Linear => "linear",
        }
    }
}

/// Which distance counts if a field has several values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiValue {
    #[default]
    Min,
    Max,
    Avg,
    Sum,
}

/// What a decay function holds.
pub(super) fn decay_shape(about: &str) -> Shape {
    object([("multi_value_mode", one(&["min", "max", "avg", "sum"]))])
        .by_field(object([
            ("origin", any()),
            ("scale", scalar()),
            ("offset", scalar()),
            ("decay", num().preset(0.5)),
        ]))
        .about(about)
}

pub(super) fn decay(curve: DecayCurve, node: &Node) -> Result<DecayFunction, BodyError> {
    let name = curve.name();
    let mut function = DecayFunction {
        curve,
        field: String::new(),
        origin: None,
        scale: None,
        offset: None,
        decay: 0.5,
        multi_value: MultiValue::Min,
    };
    let mut found = false;
    for member in members(node, name)? {
        let node = &member.value;
        match (&*member.name, &node.json) {
            (field, Json::Object(options)) => {
                if found {
                    return Err(BodyError::parsing(
                        node.at,
                        format!("malformed score function score parameters: [{name}] takes one field"),
                    ));
                }
                found = true;
                field.clone_into(&mut function.field);
                for option in options {
                    let node = &option.value;
                    let slot = match &*option.name {
                        "origin" => &mut function.origin,
                        "scale" => &mut function.scale,
                        "offset" => &mut function.offset,
                        "decay" => {
                            function.decay = value::double(node)?;
                            continue;
                        }
                        other => {
                            return Err(BodyError::Parse {
                                reason: format!("parameter [{other}] not supported!"),
                            });
                        }
                    };
                    *slot = (node.json != Json::Null).then(|| node.to_value());
                }
            }
            ("multi_value_mode", _) => {
                let mode = value::text(node)?;
                function.multi_value = match mode.to_ascii_lowercase().as_str() {
                    "min" => MultiValue::Min,
                    "max" => MultiValue::Max,
                    "avg" => MultiValue::Avg,
                    "sum" => MultiValue::Sum,
                    _ => return Err(BodyError::illegal(format!("Illegal sort mode: {mode}"))),
                };
            }
            _ => {
                return Err(BodyError::parsing(
                    node.at,
                    format!(
                        "malformed score function score parameters: [{name}] does not support [{}]",
                        member.name
                    ),
                ));
            }
        }
    }
    if !found {
        return Err(BodyError::parsing(node.end, "malformed score function score parameters."));
    }
    Ok(function)
}
