//! `moving_fn`: a function over the numbers of the buckets in a window that moves with each bucket.

use serde_json::{Map, Value};

use super::ast_pipeline::{MovingFunction, MovingWindow};

impl MovingFunction {
    /// The function that a script calls, `MovingFunctions.max(values)` or the like; none for any other script.
    pub fn called(source: &str, params: Option<&Map<String, Value>>) -> Option<Self> {
        let text: String = source.chars().filter(|letter| !letter.is_whitespace()).collect();
        let text = text.strip_suffix(';').unwrap_or(&text);
        let text = text.strip_prefix("return").unwrap_or(text);
        let (name, rest) = text.strip_prefix("MovingFunctions.")?.split_once('(')?;
        let arguments = rest.strip_suffix(')')?;
        let second = arguments.strip_prefix("values,");
        let number = |text: &str| match text.strip_prefix("params.") {
            Some(name) => params?.get(name)?.as_f64(),
            None => text.parse().ok(),
        };
        let function = match (name, second) {
            ("max", None) => Self::Max,
            ("min", None) => Self::Min,
            ("sum", None) => Self::Sum,
            ("unweightedAvg", None) => Self::Average,
            ("linearWeightedAvg", None) => Self::LinearAverage,
            ("stdDev", Some("MovingFunctions.unweightedAvg(values)")) => Self::Deviation,
            ("ewma", Some(alpha)) => Self::ExponentialAverage(number(alpha)?),
            _ => return None,
        };
        (second.is_some() || arguments == "values").then_some(function)
    }
}

/// The numbers of a window among `values`, for the value at `at`. Without a shift these are the ones before it.
pub(super) fn window_of<'a>(moving: &MovingWindow, values: &'a [f64], at: usize) -> &'a [f64] {
    let clamp = |place: i64| place.clamp(0, values.len() as i64) as usize;
    let end = (at as i64).saturating_add(moving.shift);
    &values[clamp(end.saturating_sub(moving.window as i64))..clamp(end)]
}

/// Value of a moving function over the numbers of a window, as in Elasticsearch; NaN where it has no value, such as the maximum of no numbers.
pub(super) fn compute(function: &MovingFunction, values: &[f64]) -> f64 {
    if values.is_empty() && *function != MovingFunction::Sum {
        return f64::NAN;
    }
    match function {
        MovingFunction::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        MovingFunction::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        // Rust's own sum of nothing is -0.
        MovingFunction::Sum => values.iter().fold(0.0, |sum, value| sum + value),
        MovingFunction::Average => mean(values),
        MovingFunction::Deviation => {
            let mean = mean(values);
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / values.len() as f64).sqrt()
        }
        MovingFunction::LinearAverage => {
            // The sum of the weights begins at 1, there as here.
            let (mut sum, mut weights) = (0.0, 1.0);
            for (place, value) in values.iter().enumerate() {
                let weight = (place + 1) as f64;
                sum += value * weight;
                weights += weight;
            }
            sum / weights
        }
        MovingFunction::ExponentialAverage(alpha) => values
            .iter()
            .copied()
            .reduce(|average, value| value * alpha + average * (1.0 - alpha))
            .unwrap_or(f64::NAN),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_before_a_bucket_unless_shifted() {
        let values = [1.0, 2.0, 3.0, 4.0];
        let of = |window, shift, at| {
            let moving = MovingWindow { window, shift, function: MovingFunction::Sum };
            window_of(&moving, &values, at).to_vec()
        };
        assert_eq!(of(2, 0, 0), [0.0; 0]);
        assert_eq!(of(2, 0, 3), [2.0, 3.0]);
        assert_eq!(of(2, 1, 3), [3.0, 4.0]);
        assert_eq!(of(3, i64::MAX, 3), [0.0; 0]);
        assert_eq!(of(10, 0, 2), [1.0, 2.0]);
    }

    #[test]
    fn functions_are_those_of_elasticsearch() {
        let of = |function| compute(&function, &[1.0, 2.0, 4.0]);
        assert_eq!(of(MovingFunction::Max), 4.0);
        assert_eq!(of(MovingFunction::Min), 1.0);
        assert_eq!(of(MovingFunction::Sum), 7.0);
        assert_eq!(of(MovingFunction::Average), 7.0 / 3.0);
        assert_eq!(of(MovingFunction::LinearAverage), 17.0 / 7.0);
        assert_eq!(of(MovingFunction::ExponentialAverage(0.5)), 2.75);
        assert!((of(MovingFunction::Deviation) - 1.247_219_128_924_647).abs() < 1e-12);
        assert!(compute(&MovingFunction::Sum, &[]).is_sign_positive());
        assert!(compute(&MovingFunction::Max, &[]).is_nan());
    }

    #[test]
    fn scripts_that_call_a_function_are_read() {
        let params = Map::from_iter([("a".to_owned(), 0.5.into())]);
        for (source, function) in [
            ("MovingFunctions.max(values)", MovingFunction::Max),
            ("return MovingFunctions.unweightedAvg( values );", MovingFunction::Average),
            ("MovingFunctions.ewma(values, params.a)", MovingFunction::ExponentialAverage(0.5)),
            ("MovingFunctions.ewma(values, 0.3)", MovingFunction::ExponentialAverage(0.3)),
            (
                "MovingFunctions.stdDev(values, MovingFunctions.unweightedAvg(values))",
                MovingFunction::Deviation,
            ),
        ] {
            assert_eq!(MovingFunction::called(source, Some(&params)), Some(function), "{source}");
        }
        for source in [
            "1",
            "MovingFunctions.max(other)",
            "MovingFunctions.windowMax(values)",
            "MovingFunctions.ewma(values, b)",
        ] {
            assert_eq!(MovingFunction::called(source, Some(&params)), None, "{source}");
        }
    }
}
