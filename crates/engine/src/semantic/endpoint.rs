//! Inference ids: what encodes the texts of a field.

use crate::Engine;

/// Endpoints that are there without being made, and the models behind them.
const BUILT_IN: [(&str, &str); 4] = [
    (".elser-2-elasticsearch", ".elser_model_2"),
    (".elser-2-elastic", ".elser_model_2"),
    (".multilingual-e5-small-elasticsearch", ".all-minilm-l6-v2"),
    (".all-minilm-l6-v2-elasticsearch", ".all-minilm-l6-v2"),
];

/// The model or deployment that an inference id stands for: a model or deployment of that name, else a built-in
/// endpoint. An id that is neither comes back as it is, and encoding with it says that it is not there.
pub(crate) fn model_of<'i>(engine: &Engine, inference_id: &'i str) -> &'i str {
    if engine.models.model_fingerprint(inference_id).is_some() {
        return inference_id;
    }
    BUILT_IN.iter().find(|(id, _)| *id == inference_id).map_or(inference_id, |(_, model)| model)
}
