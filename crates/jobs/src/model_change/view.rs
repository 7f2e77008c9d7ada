//! The response that shows the models of an index's fields, and the progress of a change.

use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_catalog::IndexHandle;
use sparrow_catalog::model_change::{ChangeState, ModelChange};
use sparrow_mapping::{Mapping, SemanticText};
use sparrow_search::SearchService;

/// The fields of an index that a model fills.
pub(super) fn of_index(service: &SearchService, handle: &IndexHandle) -> Value {
    let mapping = handle.mapping();
    let (change, of_pipelines) = {
        let metadata = handle.metadata.read();
        (metadata.model_change.clone(), metadata.field_models.clone())
    };
    let filling = handle.filling.lock().as_ref().map(|filling| FillingView {
        task: filling.task.lock().clone(),
        documents: FilledDocuments {
            total: filling.total.load(Relaxed),
            filled: filling.filled.load(Relaxed),
        },
    });
    let change = change.map(|change| ModelChange { failure: handle.filling_failure(&change), ..change });
    of(service, &mapping, change.as_ref(), filling.as_ref(), of_pipelines)
}

/// The models of the fields of an index, wherever the index is kept, as JSON. `of_pipelines` holds the paths of fields that pipelines
/// fill, each with the fingerprint of its model.
pub(super) fn of(
    service: &SearchService,
    mapping: &Mapping,
    change: Option<&ModelChange>,
    filling: Option<&FillingView>,
    of_pipelines: impl IntoIterator<Item = (String, String)>,
) -> Value {
    let mut fields = Map::new();
    for path in mapping.semantic_fields() {
        let Some(settings) = mapping.semantic_field(path) else { continue };
        let change = change.filter(|change| change.field == *path);
        let shown = FieldView {
            model: ModelView::of(service, settings),
            field_type: "semantic_text",
            change: change.map(|change| ChangeView::of(service, mapping, change, filling)),
        };
        fields.insert(path.clone(), json!(shown));
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

/// A `semantic_text` field, in the order of its members.
#[derive(Serialize)]
struct FieldView {
    #[serde(flatten)]
    model: ModelView,
    #[serde(rename = "type")]
    field_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeView>,
}

/// The model of a set of vectors, in the order of its members.
#[derive(Serialize)]
struct ModelView {
    inference_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_inference_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl ModelView {
    fn of(service: &SearchService, settings: &SemanticText) -> Self {
        Self {
            inference_id: settings.inference_id.clone(),
            search_inference_id: settings.search_inference_id.clone(),
            task_type: settings.model.map(|model| model.task()),
            // Of the vectors, as the endpoint may have another model since.
            fingerprint: settings
                .fingerprint
                .clone()
                .or_else(|| service.models.model_fingerprint(&settings.inference_id)),
        }
    }
}

/// The progress of a change, in the order of its JSON members.
#[derive(Serialize)]
struct ChangeView {
    state: &'static str,
    /// The model before, once searches read the new vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<ModelView>,
    /// The new model, as long as searches use the old vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<ModelView>,
    switch: &'static str,
    can_be_rolled_back: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<FilledDocuments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// The task that fills a second set of vectors.
#[derive(Deserialize)]
pub(super) struct FillingView {
    task: Option<String>,
    #[serde(flatten)]
    documents: FilledDocuments,
}

/// Documents of an index, and how many of them have vectors of the new model.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct FilledDocuments {
    total: u64,
    filled: u64,
}

impl ChangeView {
    fn of(
        service: &SearchService,
        mapping: &Mapping,
        change: &ModelChange,
        filling: Option<&FillingView>,
    ) -> Self {
        let state = match (change.state, filling) {
            (ChangeState::Filling, None) => "stopped",
            (state, _) => state.name(),
        };
        let switched = change.state == ChangeState::Switched;
        let beside = mapping.slot_beside(&change.field).and_then(|slot| mapping.slot(&slot).cloned());
        let beside = beside.map(|settings| ModelView::of(service, &settings));
        let (from, to) = if switched { (beside, None) } else { (None, beside) };
        let filling = filling.filter(|_| change.state == ChangeState::Filling);
        Self {
            state,
            from,
            to,
            switch: if change.automatic { "auto" } else { "manual" },
            can_be_rolled_back: switched,
            task: filling.and_then(|filling| filling.task.clone()),
            documents: filling.map(|filling| filling.documents),
            compared: change.compared.clone(),
            failure: change.failure.clone(),
        }
    }
}
