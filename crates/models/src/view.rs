//! The JSON form of models and deployments in responses.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sparrow_encoder::{DeploymentStats, ModelInfo, ModelKind};

use super::deployments::Running;
use super::registry::{Origin, RegisteredModel};

/// A model as `GET _ml/trained_models` shows it, with the aliases that requests gave it.
pub(super) fn config(model: &RegisteredModel, aliases: &[String]) -> Value {
    if let Some(Value::Object(stored)) = &model.kept {
        let mut shown = Map::from_iter([("model_id".to_owned(), model.id.clone().into())]);
        shown.extend(stored.clone());
        return Value::Object(shown);
    }
    let said = &model.config;
    let embedded = model.origin == Origin::Embedded;
    let mut config = Map::new();
    config.insert("model_id".into(), model.id.clone().into());
    config.insert("model_type".into(), "pytorch".into());
    config.insert("created_by".into(), if embedded { "_xpack" } else { "api_user" }.into());
    config.insert("version".into(), "12.0.0".into());
    config.insert("create_time".into(), model.created_ms.into());
    let mut metadata = said.metadata.clone();
    if let Some(description) = &said.description {
        config.insert("description".into(), description.clone().into());
    }
    match model.info() {
        Ok(info) => {
            config.insert("model_size_bytes".into(), info.size_bytes.into());
            config.insert("estimated_operations".into(), 0.into());
            config.insert("license_level".into(), "basic".into());
            if embedded {
                let language =
                    if info.language.as_deref() == Some("en") { "English" } else { "Multilingual" };
                let what = match info.kind {
                    ModelKind::Dense { dims } => format!("dense sentence encoder, {dims} dimensions"),
                    ModelKind::SparseMlm | ModelKind::SparseDocOnly => "learned sparse encoder".to_owned(),
                    ModelKind::CrossEncoder => "cross-encoder".to_owned(),
                };
                config.insert("description".into(), format!("{language} {what}").into());
            }
            config.insert("inference_config".into(), inference_config(model, info));
            config.insert("fully_defined".into(), true.into());
            metadata.insert("fingerprint".into(), info.fingerprint.clone().into());
            metadata.insert("vocabulary_size".into(), info.vocabulary_size.into());
            metadata.insert("recognised".into(), json!(RecognisedView::of(info, model.is_int8())));
        }
        Err(error) => {
            if let Some(inference) = &said.inference_config {
                config.insert("inference_config".into(), Value::Object(inference.clone()));
            }
            config.insert("fully_defined".into(), false.into());
            if model.complete {
                metadata.insert("error".into(), error.to_string().into());
            } else {
                config.insert("model_size_bytes".into(), 0.into());
                config.insert("estimated_operations".into(), 0.into());
                config.insert("license_level".into(), "basic".into());
            }
        }
    }
    if !model.aliases.is_empty() {
        metadata.insert("aliases".into(), json!(model.aliases));
    }
    if !aliases.is_empty() {
        metadata.insert("model_aliases".into(), json!(aliases));
    }
    if let Some(prefixes) = &said.prefix_strings {
        config.insert("prefix_strings".into(), json!(prefixes));
    }
    if let Some(platform) = &said.platform_architecture {
        config.insert("platform_architecture".into(), platform.clone().into());
    }
    config.insert("tags".into(), json!(said.tags));
    config.insert("metadata".into(), Value::Object(metadata));
    config.insert("input".into(), json!({"field_names": [said.input]}));
    Value::Object(config)
}

/// The member `metadata.recognised` of a model's configuration: the facts found in its directory, in the order of its members.
#[derive(Serialize)]
struct RecognisedView<'m> {
    weights: &'m str,
    #[serde(flatten)]
    shape: Option<ShapeView<'m>>,
    pooling: &'m str,
    #[serde(flatten)]
    vectors: Option<VectorsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arithmetic: Option<&'static str>,
    max_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_prompt: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document_prompt: Option<&'m str>,
    /// Id of the dense model that it is a head on.
    #[serde(skip_serializing_if = "Option::is_none")]
    trunk: Option<&'m str>,
}

/// The architecture of a checkpoint.
#[derive(Serialize)]
struct ShapeView<'m> {
    architecture: &'m str,
    layers: usize,
    width: usize,
    heads: usize,
}

/// The vectors of a dense model.
#[derive(Serialize)]
struct VectorsView {
    dimensions: usize,
    normalized: bool,
}

impl<'m> RecognisedView<'m> {
    fn of(info: &'m ModelInfo, int8: bool) -> Self {
        let recognised = &info.recognised;
        let shape = recognised.architecture.as_ref();
        Self {
            weights: recognised.weights,
            shape: shape.map(|(architecture, [layers, width, heads])| ShapeView {
                architecture,
                layers: *layers,
                width: *width,
                heads: *heads,
            }),
            pooling: recognised.pooling,
            vectors: info
                .dims
                .map(|dimensions| VectorsView { dimensions, normalized: recognised.normalized }),
            arithmetic: int8.then_some("int8"),
            max_tokens: info.max_tokens,
            query_prompt: info.prefixes.search.as_deref(),
            document_prompt: info.prefixes.ingest.as_deref(),
            trunk: info.trunk.as_ref().map(|trunk| trunk.model.as_str()),
        }
    }
}

/// The member `inference_config` of a model: as a request configured it, or as detected in the model directory.
fn inference_config(model: &RegisteredModel, info: &ModelInfo) -> Value {
    if let Some(said) = &model.config.inference_config {
        let mut said = said.clone();
        if let (Some(Value::Object(options)), Some(dims)) = (said.get_mut("text_embedding"), info.dims) {
            options.insert("embedding_size".into(), dims.into());
        }
        return Value::Object(said);
    }
    let tokenization = json!({"bert": {
        "do_lower_case": true,
        "with_special_tokens": true,
        "max_sequence_length": info.max_tokens,
        "truncate": "first",
        "span": -1,
    }});
    match info.kind {
        ModelKind::Dense { dims } => {
            json!({"text_embedding": {"tokenization": tokenization, "embedding_size": dims}})
        }
        ModelKind::SparseMlm | ModelKind::SparseDocOnly => {
            json!({"text_expansion": {"tokenization": tokenization}})
        }
        ModelKind::CrossEncoder => json!({"text_similarity": {"tokenization": tokenization}}),
    }
}

/// A deployment as `_start` and `_update` answer it.
pub(super) fn assignment(running: &Running, node: &str) -> Value {
    let settings = running.settings();
    let bytes = running.model.info().map(|info| info.size_bytes).unwrap_or_default();
    let mut shown = json!({"assignment": {
        "task_parameters": {
            "model_id": running.model.id,
            "deployment_id": settings.deployment_id,
            "model_bytes": bytes,
            "threads_per_allocation": settings.threads_per_allocation,
            "number_of_allocations": settings.number_of_allocations,
            "queue_capacity": settings.queue_capacity,
            "cache_size": bytes_text(settings.cache_bytes),
            "priority": settings.priority,
            "per_deployment_memory_bytes": bytes,
            "per_allocation_memory_bytes": 0,
        },
        "routing_table": {
            node: {
                "current_allocations": settings.number_of_allocations,
                "target_allocations": settings.number_of_allocations,
                "routing_state": "started",
                "reason": "",
            }
        },
        "assignment_state": "started",
        "start_time": timestamp(running.start_time_ms),
        "max_assigned_allocations": settings.number_of_allocations,
    }});
    if let Some(adaptive) = settings.adaptive_allocations {
        shown["assignment"]["adaptive_allocations"] = json!(adaptive);
    }
    shown
}

/// The entry of a model and one of its deployments in the response of `_stats`.
pub(super) fn stats(
    model: &RegisteredModel,
    running: Option<&Running>,
    pipelines: usize,
    node: &str,
) -> Value {
    let bytes = model.info().map(|info| info.size_bytes).unwrap_or_default();
    let mut shown = json!({
        "model_id": model.id,
        "model_size_stats": {"model_size_bytes": bytes, "required_native_memory_bytes": bytes},
        "pipeline_count": pipelines,
    });
    if let Some(running) = running {
        if model.info().is_ok_and(|info| info.recognised.architecture.is_some()) {
            shown["arithmetic"] = json!(if model.is_int8() { "int8" } else { "float32" });
        }
        let figures = running.deployment.stats();
        shown["inference_stats"] = json!({
            "failure_count": figures.error_count,
            "inference_count": figures.inference_count,
            "cache_miss_count": figures.inference_count.saturating_sub(figures.cache_hit_count),
            "missing_all_fields_count": 0,
            "timestamp": super::deployments::now_ms(),
        });
        shown["deployment_stats"] = deployment_stats(running, &figures, node);
    }
    shown
}

fn deployment_stats(running: &Running, figures: &DeploymentStats, node: &str) -> Value {
    let settings = running.settings();
    let mut entry = json!({
        "node": {node: {
            "name": sparrow_request::NODE_NAME,
            "ephemeral_id": node,
            "transport_address": "127.0.0.1:9300",
            "attributes": {},
            "roles": sparrow_request::NODE_ROLES,
        }},
        "routing_state": {"routing_state": "started"},
        "inference_count": figures.inference_count,
        "average_inference_time_ms": figures.average_inference_time_ms,
        "average_inference_time_ms_excluding_cache_hits": figures.average_inference_time_ms_excluding_cache_hits,
        "average_inference_time_ms_last_minute": figures.average_inference_time_ms_last_minute,
        "inference_cache_hit_count": figures.cache_hit_count,
        "inference_cache_hit_count_last_minute": figures.cache_hit_count_last_minute,
        "number_of_pending_requests": figures.pending,
        "start_time": running.start_time_ms,
        "threads_per_allocation": settings.threads_per_allocation,
        "number_of_allocations": settings.number_of_allocations,
        "peak_throughput_per_minute": figures.peak_throughput_per_minute,
        "throughput_last_minute": figures.throughput_last_minute,
        "error_count": figures.error_count,
        "rejected_execution_count": figures.rejected_execution_count,
        "timeout_count": figures.timeout_count,
        "truncated_count": figures.truncated_texts,
    });
    if let Some(last) = figures.last_access_ms {
        entry["last_access"] = last.into();
    }
    let mut shown = json!({
        "deployment_id": settings.deployment_id,
        "model_id": running.model.id,
        "threads_per_allocation": settings.threads_per_allocation,
        "number_of_allocations": settings.number_of_allocations,
        "queue_capacity": settings.queue_capacity,
        "cache_size": bytes_text(settings.cache_bytes),
        "state": "started",
        "allocation_status": {
            "allocation_count": settings.number_of_allocations,
            "target_allocation_count": settings.number_of_allocations,
            "state": "fully_allocated",
        },
        "priority": settings.priority,
        "start_time": running.start_time_ms,
        "inference_count": figures.inference_count,
        "error_count": figures.error_count,
        "rejected_execution_count": figures.rejected_execution_count,
        "timeout_count": figures.timeout_count,
        "peak_throughput_per_minute": figures.peak_throughput_per_minute,
        "nodes": [entry],
    });
    if let Some(adaptive) = settings.adaptive_allocations {
        shown["adaptive_allocations"] = json!(adaptive);
    }
    shown
}

/// A number of bytes in the largest fitting unit: `16mb`, `1.5gb`, `100b`.
pub(super) fn bytes_text(bytes: usize) -> String {
    for (unit, size) in [("gb", 1_usize << 30), ("mb", 1 << 20), ("kb", 1 << 10)] {
        if bytes >= size {
            return if bytes.is_multiple_of(size) {
                format!("{}{unit}", bytes / size)
            } else {
                let tenths = bytes * 10 / size;
                format!("{}.{}{unit}", tenths / 10, tenths % 10)
            };
        }
    }
    format!("{bytes}b")
}

fn timestamp(millis: u64) -> String {
    i64::try_from(millis)
        .ok()
        .and_then(|millis| {
            time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()
        })
        .and_then(|time| time.format(&time::format_description::well_known::Rfc3339).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::bytes_text;

    #[test]
    fn sizes_are_written_as_people_do() {
        for (bytes, text) in [(0, "0b"), (100, "100b"), (1024, "1kb"), (1536, "1.5kb"), (16 << 20, "16mb")] {
            assert_eq!(bytes_text(bytes), text);
        }
    }
}
