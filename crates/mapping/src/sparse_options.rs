//! `index_options` of a `sparse_vector` field: which tokens queries of the field leave out by default.
//!
//! All tokens are indexed nonetheless: as in Elasticsearch, the options are only defaults of the `sparse_vector`
//! query.

use serde_json::{Map, Value, json};
use sparrow_wire::shape::{self, Shape, flag, num};

use super::error::{Cause, ILLEGAL_ARGUMENT, MappingError, NUMBER_FORMAT};
use super::java::{java_string, json_token};

const X_CONTENT: &str = "x_content_parse_exception";
const PRUNE: &str = "prune";
const CONFIG: &str = "pruning_config";

/// `pruning_config`: a token is left out when it is both frequent and of low weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PruningConfig {
    /// A token is frequent when its share of documents is at least this many times the average.
    pub tokens_freq_ratio_threshold: f32,
    /// A weight is low when it is at most this share of the highest query weight.
    pub tokens_weight_threshold: f32,
    /// Whether the tokens that pruning leaves out are scored instead of those it keeps.
    pub only_score_pruned_tokens: bool,
}

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            tokens_freq_ratio_threshold: 5.0,
            tokens_weight_threshold: 0.4,
            only_score_pruned_tokens: false,
        }
    }
}

/// Whether and how queries of a `sparse_vector` field prune tokens, as far as the mapping sets it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SparseIndexOptions {
    /// The `prune` option: whether queries leave out tokens.
    pub prune: Option<bool>,
    /// `pruning_config`, only with `prune: true`.
    pub config: Option<PruningConfig>,
}

pub(super) fn options_shape() -> Shape {
    let config = shape::object([
        ("tokens_freq_ratio_threshold", num().preset(5)),
        ("tokens_weight_threshold", num().preset(0.4)),
        ("only_score_pruned_tokens", flag().preset(false)),
    ]);
    shape::object([(PRUNE, flag()), (CONFIG, config)])
}

impl SparseIndexOptions {
    /// Reads the value of `index_options`.
    ///
    /// # Errors
    /// On unknown keys, values of a wrong type or out of range, and a configuration without `prune: true`.
    pub(super) fn parse(value: &Value) -> Result<Self, MappingError> {
        let map = object(value, "index_options")?;
        let mut options = Self::default();
        let build = || -> Vec<Cause> {
            vec![
                (X_CONTENT, "Failed to build [index_options] after last required field arrived".to_owned()),
                (
                    ILLEGAL_ARGUMENT,
                    "[index_options] field [pruning_config] should only be set if [prune] is set to true"
                        .to_owned(),
                ),
            ]
        };
        for (key, value) in map {
            match key.as_str() {
                PRUNE => options.prune = Some(boolean(value).map_err(|cause| within(PRUNE, vec![cause]))?),
                CONFIG => {
                    let map = value.as_object().ok_or_else(|| error(vec![unsupported(CONFIG, value)]))?;
                    options.config = Some(config(map).map_err(|causes| within(CONFIG, causes))?);
                }
                _ => return Err(error(vec![unknown("index_options", key)])),
            }
        }
        match (options.prune, options.config) {
            (Some(true), _) | (_, None) => Ok(options),
            (Some(false), Some(_)) => Err(within(CONFIG, build())),
            (None, Some(_)) => Err(error(build())),
        }
    }

    /// The options as JSON, in the form of mappings.
    pub(super) fn to_json(self) -> Value {
        let mut out = Map::new();
        if let Some(prune) = self.prune {
            out.insert(PRUNE.to_owned(), prune.into());
        }
        if let Some(config) = self.config {
            let mut shown = json!({
                "tokens_freq_ratio_threshold": config.tokens_freq_ratio_threshold as u32,
                // Through text, so that 0.4 is not shown with the digits of a double.
                "tokens_weight_threshold":
                    config.tokens_weight_threshold.to_string().parse::<f64>().unwrap_or_default(),
            });
            if config.only_score_pruned_tokens {
                shown["only_score_pruned_tokens"] = true.into();
            }
            out.insert(CONFIG.to_owned(), shown);
        }
        Value::Object(out)
    }
}

fn config(map: &Map<String, Value>) -> Result<PruningConfig, Vec<Cause>> {
    let mut config = PruningConfig::default();
    for (key, value) in map {
        let failed = |cause: Cause| {
            vec![(X_CONTENT, format!("[0:0] [{CONFIG}] failed to parse field [{key}]")), cause]
        };
        match key.as_str() {
            "tokens_freq_ratio_threshold" => {
                let ratio = number(value).and_then(|ratio| match ratio.fract() == 0.0 {
                    true => Ok(ratio as f32),
                    false => Err((
                        ILLEGAL_ARGUMENT,
                        format!("{} cannot be converted to Integer without data loss", java_string(value)),
                    )),
                });
                config.tokens_freq_ratio_threshold = ratio.map_err(failed)?;
            }
            "tokens_weight_threshold" => {
                config.tokens_weight_threshold = number(value).map_err(failed)? as f32;
            }
            "only_score_pruned_tokens" => {
                config.only_score_pruned_tokens = boolean(value).map_err(failed)?;
            }
            _ => return Err(vec![unknown(CONFIG, key)]),
        }
    }
    let built = |reason: String| {
        let wrapper = format!("Failed to build [{CONFIG}] after last required field arrived");
        vec![(X_CONTENT, wrapper), (ILLEGAL_ARGUMENT, reason)]
    };
    if !(1.0..=100.0).contains(&config.tokens_freq_ratio_threshold) {
        return Err(built(format!(
            "[tokens_freq_ratio_threshold] must be between [1] and [100], got {:?}",
            config.tokens_freq_ratio_threshold
        )));
    }
    if !(0.0..=1.0).contains(&config.tokens_weight_threshold) {
        return Err(built("[tokens_weight_threshold] must be between 0 and 1".to_owned()));
    }
    Ok(config)
}

fn object<'v>(value: &'v Value, name: &str) -> Result<&'v Map<String, Value>, MappingError> {
    value
        .as_object()
        .ok_or_else(|| MappingError::Malformed { reason: format!("[{name}] must be an object, got {value}") })
}

fn boolean(value: &Value) -> Result<bool, Cause> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        other => Err((
            ILLEGAL_ARGUMENT,
            format!("Failed to parse value [{}] as only [true] or [false] are allowed.", java_string(other)),
        )),
    }
}

fn number(value: &Value) -> Result<f64, Cause> {
    let text = java_string(value);
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| (NUMBER_FORMAT, format!("For input string: \"{text}\"")))
}

fn unknown(parser: &str, key: &str) -> Cause {
    (X_CONTENT, format!("[0:0] [{parser}] unknown field [{key}]"))
}

fn unsupported(key: &str, value: &Value) -> Cause {
    let token = json_token(value);
    (X_CONTENT, format!("[0:0] [index_options] {key} doesn't support values of type: {token}"))
}

fn within(key: &str, mut causes: Vec<Cause>) -> MappingError {
    causes.insert(0, (X_CONTENT, format!("[0:0] [index_options] failed to parse field [{key}]")));
    error(causes)
}

fn error(causes: Vec<Cause>) -> MappingError {
    MappingError::Nested { causes }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::SparseIndexOptions;
    use crate::Mapping;
    use crate::sparse_options::PruningConfig;

    fn mapping(options: Value) -> Value {
        json!({"properties": {"v": {"type": "sparse_vector", "index_options": options}}})
    }

    /// Messages of all causes of the error for these `index_options`, outermost first.
    fn errors(options: Value) -> Vec<String> {
        let error = Mapping::parse(&mapping(options)).expect_err("refused");
        assert_eq!(error.es_type(), "mapper_parsing_exception");
        assert!(error.reason().starts_with("Failed to parse mapping: "), "{}", error.reason());
        error.causes().into_iter().map(|(_, reason)| reason).collect()
    }

    #[test]
    fn options_are_read_and_shown() {
        let config = json!({"tokens_freq_ratio_threshold": 7, "tokens_weight_threshold": 0.25});
        let parsed = Mapping::parse(&mapping(json!({"prune": true, "pruning_config": config}))).unwrap();
        let expected = PruningConfig {
            tokens_freq_ratio_threshold: 7.0,
            tokens_weight_threshold: 0.25,
            only_score_pruned_tokens: false,
        };
        assert_eq!(
            parsed.sparse_index_options("v"),
            SparseIndexOptions { prune: Some(true), config: Some(expected) }
        );
        assert_eq!(
            parsed.to_json()["properties"]["v"]["index_options"],
            json!({"prune": true, "pruning_config": config})
        );
        let partly = Mapping::parse(&mapping(json!({"prune": true, "pruning_config": {}}))).unwrap();
        assert_eq!(
            partly.to_json()["properties"]["v"]["index_options"]["pruning_config"],
            json!({"tokens_freq_ratio_threshold": 5, "tokens_weight_threshold": 0.4})
        );
        let off = parsed.merge_update(&mapping(json!({"prune": false}))).unwrap();
        assert_eq!(off.sparse_index_options("v"), SparseIndexOptions { prune: Some(false), config: None });
        assert_eq!(off.sparse_index_options("zzz"), SparseIndexOptions::default());
    }

    #[test]
    fn wrong_options_are_named() {
        let only = "[index_options] field [pruning_config] should only be set if [prune] is set to true";
        assert_eq!(
            errors(json!({"prune": false, "pruning_config": {"tokens_freq_ratio_threshold": 5.0}})),
            [
                "[0:0] [index_options] failed to parse field [pruning_config]",
                "Failed to build [index_options] after last required field arrived",
                only,
            ]
        );
        assert_eq!(errors(json!({"pruning_config": {}})).last().map(String::as_str), Some(only));
        for (options, reason) in [
            (
                json!({"prune": "othervalue"}),
                "Failed to parse value [othervalue] as only [true] or [false] are allowed.",
            ),
            (
                json!({"prune": true, "pruning_config": "x"}),
                "[0:0] [index_options] pruning_config doesn't support values of type: VALUE_STRING",
            ),
            (
                json!({"prune": true, "pruning_config": {"tokens_freq_ratio_threshold": "notaninteger"}}),
                "For input string: \"notaninteger\"",
            ),
            (
                json!({"prune": true, "pruning_config": {"tokens_freq_ratio_threshold": -2}}),
                "[tokens_freq_ratio_threshold] must be between [1] and [100], got -2.0",
            ),
            (
                json!({"prune": true, "pruning_config": {"tokens_freq_ratio_threshold": 101}}),
                "[tokens_freq_ratio_threshold] must be between [1] and [100], got 101.0",
            ),
            (
                json!({"prune": true, "pruning_config": {"tokens_weight_threshold": 1.1}}),
                "[tokens_weight_threshold] must be between 0 and 1",
            ),
            (json!({"prune": true, "x": 1}), "[0:0] [index_options] unknown field [x]"),
            (json!({"prune": true, "pruning_config": {"x": 1}}), "[0:0] [pruning_config] unknown field [x]"),
        ] {
            assert_eq!(errors(options.clone()).last().map(String::as_str), Some(reason), "{options}");
        }
    }
}
