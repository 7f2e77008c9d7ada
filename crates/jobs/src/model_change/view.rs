//! Which models the fields of an index have, and how far a change of one is.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};
use sparrow_indices::IndexHandle;
use sparrow_indices::model_change::{ChangeState, ModelChange};
use sparrow_mapping::{Mapping, SemanticText};
use sparrow_search::SearchService;

/// The fields of an index that a model fills.
pub(super) fn of_index(service: &SearchService, handle: &IndexHandle) -> Value {
    let mapping = handle.mapping();
    let (change, of_pipelines) = {
        let metadata = handle.metadata.read();
        (metadata.model_change.clone(), metadata.field_models.clone())
    };
    let mut fields = Map::new();
    for path in mapping.semantic_fields() {
        let Some(settings) = mapping.semantic_field(path) else { continue };
        let mut shown = model(service, settings);
        shown.insert("type".to_owned(), "semantic_text".into());
        if let Some(change) = change.as_ref().filter(|change| change.field == *path) {
            shown.insert("change".to_owned(), of_change(service, handle, &mapping, change));
        }
        fields.insert(path.clone(), Value::Object(shown));
    }
    for (path, fingerprint) in of_pipelines {
        let Some(field) = mapping.field(&path) else { continue };
        let mut shown = json!({"type": field.name(), "fingerprint": fingerprint});
        if let Some(name) = service.models.name_of(&fingerprint) {
            shown["model_id"] = name.into();
        }
        fields.insert(path, shown);
    }
    json!({ "fields": fields })
}

/// The model of a set of vectors.
fn model(service: &SearchService, settings: &SemanticText) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("inference_id".to_owned(), settings.inference_id.as_str().into());
    if let Some(id) = &settings.search_inference_id {
        shown.insert("search_inference_id".to_owned(), id.as_str().into());
    }
    if let Some(model) = settings.model {
        shown.insert("task_type".to_owned(), model.task().into());
    }
    if let Some(fingerprint) = service.models.model_fingerprint(&settings.inference_id) {
        shown.insert("fingerprint".to_owned(), fingerprint.into());
    }
    shown
}

fn of_change(
    service: &SearchService,
    handle: &IndexHandle,
    mapping: &Mapping,
    change: &ModelChange,
) -> Value {
    let filling = handle.filling.lock().clone();
    let mut shown = Map::new();
    let state = match (change.state, &filling) {
        (ChangeState::Filling, None) => "stopped",
        (state, _) => state.name(),
    };
    shown.insert("state".to_owned(), state.into());
    let beside = mapping.slot_beside(&change.field).and_then(|slot| mapping.slot(&slot).cloned());
    if let Some(beside) = beside {
        let role = if change.state == ChangeState::Switched { "from" } else { "to" };
        shown.insert(role.to_owned(), Value::Object(model(service, &beside)));
    }
    shown.insert("switch".to_owned(), if change.automatic { "auto" } else { "manual" }.into());
    shown.insert("can_be_rolled_back".to_owned(), (change.state == ChangeState::Switched).into());
    if let Some(filling) = filling.filter(|_| change.state == ChangeState::Filling) {
        if let Some(task) = filling.task.lock().clone() {
            shown.insert("task".to_owned(), task.into());
        }
        let (total, filled) = (filling.total.load(Relaxed), filling.filled.load(Relaxed));
        shown.insert("documents".to_owned(), json!({"total": total, "filled": filled}));
    }
    for (name, value) in
        [("compared", &change.compared), ("failure", &change.failure.clone().map(Value::from))]
    {
        if let Some(value) = value {
            shown.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(shown)
}
