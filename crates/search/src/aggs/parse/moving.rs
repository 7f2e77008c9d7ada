//! The parser of `moving_fn`: a function over the numbers of the buckets around each.

use serde_json::{Map, Value};
use sparrow_aggregations::{
    AggregationKind, GapPolicy, MovingFunction, MovingWindow, Pipeline, PipelineKind,
};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

use super::metric_path;
use super::parameter_reader::ParameterReader;
use super::pipeline::{gap_policy, single_path};

/// Most buckets of a window: each is read once for each bucket.
const MOST_WINDOW: i64 = 10_000;

pub fn moving_fn(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] = &["buckets_path", "gap_policy", "format", "script", "shift", "window"];
    let (mut path, mut gaps, mut format) = (None, GapPolicy::Skip, None);
    let (mut window, mut shift, mut function) = (None, 0, None);
    for member in reader.members() {
        match &*member.name {
            "buckets_path" => path = Some(single_path(&reader, member)?),
            "gap_policy" => gaps = gap_policy(&reader, member)?,
            "format" => format = Some(reader.format(member)?),
            "window" => {
                let given = reader.whole(member, i64::MIN, "window")?;
                if given <= 0 {
                    return Err(BodyError::illegal("[window] must be a positive, non-zero integer."));
                }
                if given > MOST_WINDOW {
                    let reason =
                        format!("[window] may be at most [{MOST_WINDOW}] on this server, found [{given}]");
                    return Err(BodyError::illegal(reason));
                }
                window = Some(given as usize);
            }
            "shift" => shift = reader.whole(member, i64::MIN, "shift")?,
            "script" => function = Some(read_function(&member.value)?),
            _ => return Err(reader.unknown(member, KNOWN)),
        }
    }
    let path = path.ok_or(BodyError::Required { field: "buckets_path" })?;
    let moving = MovingWindow {
        window: window.ok_or(BodyError::Required { field: "window" })?,
        shift,
        function: function.ok_or(BodyError::Required { field: "script" })?,
    };
    let kind = PipelineKind::Moving(moving);
    Ok(AggregationKind::Pipeline(Pipeline { kind, path: metric_path(&path), gaps, format }))
}

/// Reads the script: a call of one of the functions of `MovingFunctions`, as nearly all scripts of this aggregation are.
fn read_function(node: &Node) -> Result<MovingFunction, BodyError> {
    let (source, params) = match &node.json {
        Json::String(source) => (source.to_string(), Map::new()),
        Json::Object(members) => {
            let (mut source, mut params) = (None, Map::new());
            for member in members {
                match (&*member.name, &member.value.json) {
                    ("source" | "inline", Json::String(text)) => source = Some(text.to_string()),
                    ("lang", Json::String(lang)) if &**lang == "painless" => {}
                    ("params", Json::Object(_)) => {
                        params = member.value.to_value().as_object().cloned().unwrap_or_default();
                    }
                    (name, _) => {
                        let reason =
                            format!("[script] of [moving_fn]: [{name}] is not supported by this server");
                        return Err(BodyError::parsing(member.at, reason));
                    }
                }
            }
            (source.ok_or(BodyError::Required { field: "source" })?, params)
        }
        _ => return Err(BodyError::parsing(node.at, "[moving_fn] needs a [script]")),
    };
    called(&source, &params).ok_or_else(|| {
        BodyError::illegal(
            "[script] of [moving_fn] has to be one call on this server: [MovingFunctions.] and [max], [min], [sum], \
             [unweightedAvg], [linearWeightedAvg], [stdDev] or [ewma], of [values]",
        )
    })
}

/// The function that a script calls; none for any other script.
fn called(source: &str, params: &Map<String, Value>) -> Option<MovingFunction> {
    let text: String = source.chars().filter(|letter| !letter.is_whitespace()).collect();
    let text = text.strip_suffix(';').unwrap_or(&text);
    let text = text.strip_prefix("return").unwrap_or(text);
    let (name, rest) = text.strip_prefix("MovingFunctions.")?.split_once('(')?;
    let arguments = rest.strip_suffix(')')?;
    let second = arguments.strip_prefix("values,");
    let number = |text: &str| match text.strip_prefix("params.") {
        Some(name) => params.get(name)?.as_f64(),
        None => text.parse().ok(),
    };
    Some(match (name, second) {
        ("max", None) => MovingFunction::Max,
        ("min", None) => MovingFunction::Min,
        ("sum", None) => MovingFunction::Sum,
        ("unweightedAvg", None) => MovingFunction::Average,
        ("linearWeightedAvg", None) => MovingFunction::LinearAverage,
        ("stdDev", Some("MovingFunctions.unweightedAvg(values)")) => MovingFunction::Deviation,
        ("ewma", Some(alpha)) => MovingFunction::ExponentialAverage(number(alpha)?),
        _ => return None,
    })
    .filter(|_| second.is_some() || arguments == "values")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scripts_that_call_a_function_are_read() {
        let params = json!({"a": 0.5}).as_object().cloned().unwrap_or_default();
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
            assert_eq!(called(source, &params), Some(function), "{source}");
        }
        for source in [
            "1",
            "MovingFunctions.max(other)",
            "MovingFunctions.windowMax(values)",
            "MovingFunctions.ewma(values, b)",
        ] {
            assert_eq!(called(source, &params), None, "{source}");
        }
    }
}
