//! Decay functions of a `function_score`: the nearer a number, date or point is to the origin, the higher the score.

use serde_json::Value;

use crate::query::compile::Compiler;
use crate::query::kinds::term::scalar_text;
use sparrow_mapping::{FieldType, GeoPoint, geo};
use sparrow_query::{DecayCurve, DecayFunction, MultiValue};
use sparrow_scoring::columns::{NumericColumns, Reading};
use sparrow_scoring::dates::DateRequest;
use sparrow_scoring::error::QueryError;

/// A decay function with its parameters converted to numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decay {
    pub(crate) path: String,
    /// How the stored numbers become values: as they are, as milliseconds, or as distances in meters from a point.
    pub(crate) reading: Reading,
    curve: DecayCurve,
    origin: f64,
    offset: f64,
    /// Parameter of the curve: the divisor of Gauss and linear decay, the factor of exponential decay.
    scale: f64,
    multi_value: MultiValue,
}

impl Decay {
    /// The decay factor for a document, from 0 to 1; 1 if it has no value.
    pub(crate) fn of(&self, numbers: &NumericColumns, doc: tantivy::DocId) -> f64 {
        let mut count = 0.0;
        let mut joined: f64 = 0.0;
        numbers.each(doc, |value| {
            let distance = ((value - self.origin).abs() - self.offset).max(0.0);
            joined = match self.multi_value {
                _ if count == 0.0 => distance,
                MultiValue::Min => joined.min(distance),
                MultiValue::Max => joined.max(distance),
                MultiValue::Avg | MultiValue::Sum => joined + distance,
            };
            count += 1.0;
        });
        if self.multi_value == MultiValue::Avg && count > 0.0 {
            joined /= count;
        }
        self.at(joined)
    }

    fn at(&self, distance: f64) -> f64 {
        match self.curve {
            DecayCurve::Gauss => (0.5 * distance * distance / self.scale).exp(),
            DecayCurve::Exp => (self.scale * distance).exp(),
            DecayCurve::Linear => ((self.scale - distance) / self.scale).max(0.0),
        }
    }
}

impl Compiler<'_> {
    /// Converts the numbers or dates of a decay function.
    ///
    /// # Errors
    /// When the field is neither numeric nor a date, or a value is malformed or out of bounds.
    pub(crate) fn decay(&self, function: &DecayFunction) -> Result<Decay, QueryError> {
        let DecayFunction { curve, field, origin, scale, offset, decay, multi_value } = function;
        let invalid = |reason: String| QueryError::Invalid { reason };
        let mut reading = Reading::of(self.snapshot.mapping().field(field));
        let (origin, scale, offset) = match self.snapshot.mapping().field(field) {
            Some(FieldType::GeoPoint) => {
                let Some(origin) = origin else {
                    return Err(invalid(
                        "both [scale] and [origin] must be set for geo fields: [origin] is missing"
                            .to_owned(),
                    ));
                };
                reading = Reading::Meters(GeoPoint::on_earth(origin, "[origin]").map_err(invalid)?);
                let meters = |value: &Value| geo::meters(&scalar_text(field, value)?, "m").map_err(invalid);
                let scale = scale.as_ref().map(meters).transpose()?;
                // The values are distances already.
                (0.0, scale, offset.as_ref().map_or(Ok(0.0), meters)?)
            }
            Some(FieldType::Date { formats } | FieldType::DateNanos { formats }) => {
                let request = DateRequest::new(formats, self.now, None)?;
                let origin = match origin {
                    None => self.now,
                    Some(origin) => request.parse(&scalar_text(field, origin)?, false, false)?,
                };
                let span = |name: &str, value: &Value| -> Result<f64, QueryError> {
                    let text = scalar_text(field, value)?;
                    Ok(span_millis(&text).ok_or_else(|| QueryError::TimeValue {
                        setting: format!("DecayFunctionParser.{name}"),
                        value: text,
                    })? as f64)
                };
                let scale = scale.as_ref().map(|scale| span("scale", scale)).transpose()?;
                let offset = offset.as_ref().map_or(Ok(0.0), |offset| span("offset", offset))?;
                (origin as f64, scale, offset)
            }
            Some(other) if other.is_integer() || other.is_float() => {
                let number = |value: &Value| -> Result<f64, QueryError> {
                    let text = scalar_text(field, value)?;
                    let parsed = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                    parsed.ok_or(QueryError::NumberFormat { input: text })
                };
                let missing = |name: &str| {
                    invalid(format!(
                        "both [scale] and [origin] must be set for numeric fields: [{name}] is missing"
                    ))
                };
                let origin = number(origin.as_ref().ok_or_else(|| missing("origin"))?)?;
                let scale = scale.as_ref().map(number).transpose()?;
                (origin, scale, offset.as_ref().map_or(Ok(0.0), number)?)
            }
            None => return Err(QueryError::NoFunctionField { field: field.clone() }),
            Some(other) => {
                return Err(invalid(format!(
                    "field [{field}] is of type [{}], but only numeric, date and geo_point types are supported.",
                    other.name()
                )));
            }
        };
        let of = if matches!(reading, Reading::Meters(_)) { "geo" } else { "date" };
        let scale = scale.ok_or_else(|| invalid(format!("[scale] must be set for {of} fields.")))?;
        if scale <= 0.0 {
            return Err(invalid("[decay] function: scale must be > 0.0.".replace("decay", curve.name())));
        }
        if !(*decay > 0.0 && *decay < 1.0) {
            return Err(invalid(format!("[{}] function: decay must be in the range [0..1].", curve.name())));
        }
        if offset < 0.0 {
            return Err(invalid(format!("[{}] function: offset must be > 0.0", curve.name())));
        }
        let scale = match curve {
            DecayCurve::Gauss => 0.5 * scale * scale / decay.ln(),
            DecayCurve::Exp => decay.ln() / scale,
            DecayCurve::Linear => scale / (1.0 - decay),
        };
        Ok(Decay {
            path: self.snapshot.mapping().concrete(field).into_owned(),
            reading,
            curve: *curve,
            origin,
            offset,
            scale,
            multi_value: *multi_value,
        })
    }
}

/// Parses a time span such as `10d` or `1.5h`, in units from `nanos` to `d`; milliseconds, rounded towards 0.
pub(crate) fn span_millis(text: &str) -> Option<i64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let millis = match unit {
        "nanos" => 1e-6,
        "micros" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    let value = number.parse::<f64>().ok()? * millis;
    (value.is_finite() && value < 9e18).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_reach_the_decay_at_the_scale() {
        for curve in [DecayCurve::Gauss, DecayCurve::Exp, DecayCurve::Linear] {
            for decay in [0.2_f64, 0.5, 0.9] {
                let scale = match curve {
                    DecayCurve::Gauss => 0.5 * 100.0 / decay.ln(),
                    DecayCurve::Exp => decay.ln() / 10.0,
                    DecayCurve::Linear => 10.0 / (1.0 - decay),
                };
                let function = Decay {
                    path: String::new(),
                    reading: Reading::Numbers,
                    curve,
                    origin: 0.0,
                    offset: 0.0,
                    scale,
                    multi_value: MultiValue::Min,
                };
                assert!((function.at(10.0) - decay).abs() < 1e-9, "{curve:?}");
                assert_eq!(function.at(0.0), 1.0);
                assert!(function.at(1e9) >= 0.0 && function.at(1e9) < 1e-3);
            }
        }
    }

    #[test]
    fn spans() {
        for (text, millis) in [
            ("10d", Some(864_000_000)),
            ("1.5s", Some(1500)),
            ("2h", Some(7_200_000)),
            ("7ms", Some(7)),
            ("10", None),
            ("d", None),
            ("1w", None),
            ("-1d", None),
        ] {
            assert_eq!(span_millis(text), millis, "{text}");
        }
    }
}
