//! The parser of `moving_fn`: a function over the numbers of the buckets around each.

use sparrow_aggregations::{
    AggregationKind, GapPolicy, MovingFunction, MovingWindow, Pipeline, PipelineKind,
};
use sparrow_scripts::ScriptSource;
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

use super::parameter_reader::{ParameterReader, metric_path};
use super::pipeline::{gap_policy, pipeline_shape, single_path};
use super::shape::*;

/// Most buckets of a window: each is read once for each bucket.
const MOST_WINDOW: i64 = 10_000;

pub fn moving_fn_shape() -> Shape {
    pipeline_shape()
        .and([("script", named("Script")), ("window", int()), ("shift", int().preset(0))])
        .needs(&["buckets_path", "script", "window"])
}

pub fn moving_fn(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
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
            _ => return Err(reader.unknown(member)),
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
    let script = ScriptSource::parse(&node.to_value()).and_then(ScriptSource::inline);
    let script = script.map_err(|error| BodyError::Script { exception: Box::new(error.exception()) })?;
    MovingFunction::called(&script.source, script.params.as_deref()).ok_or_else(|| {
        BodyError::illegal(
            "[script] of [moving_fn] has to be one call on this server: [MovingFunctions.] and [max], [min], [sum], \
             [unweightedAvg], [linearWeightedAvg], [stdDev] or [ewma], of [values]",
        )
    })
}
