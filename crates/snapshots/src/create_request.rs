//! Parses the body of a request for a snapshot.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::manifest::MOST_METADATA;
use super::{features, list_of, switch};
use sparrow_catalog::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::params::Params;
use sparrow_wire::shape::{Shape, alike, flag, object, open, several, text};

/// Parsed body of a request for a snapshot.
pub(super) struct SnapshotRequest {
    pub indices: String,
    pub options: ResolveOptions,
    pub include_global_state: bool,
    pub include_models: bool,
    pub include_keys: bool,
    pub metadata: Option<Map<String, Value>>,
    pub partial: bool,
}

impl SnapshotRequest {
    pub fn shape() -> Shape {
        object(alike("indices feature_states expand_wildcards", several(text())))
            .and(alike("ignore_unavailable include_models partial", flag().preset(false)))
            .and(alike("allow_no_indices include_global_state", flag().preset(true)))
            .and([("metadata", open())])
    }

    /// # Errors
    /// For a member that is unknown or has an invalid value.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut wanted = Self {
            indices: String::new(),
            options: ResolveOptions::everything(),
            include_global_state: true,
            include_models: false,
            include_keys: false,
            metadata: None,
            partial: false,
        };
        for (key, value) in body {
            match key.as_str() {
                "indices" => wanted.indices = list_of(key, value)?,
                "ignore_unavailable" => wanted.options.ignore_unavailable = switch(key, value)?,
                "allow_no_indices" => wanted.options.allow_no_indices = switch(key, value)?,
                "expand_wildcards" => {
                    let given = BTreeMap::from([("expand_wildcards".to_owned(), list_of(key, value)?)]);
                    let with = wanted.options.clone().with(&Params::new(&given))?;
                    wanted.options = with;
                }
                "include_global_state" => wanted.include_global_state = switch(key, value)?,
                "include_models" => wanted.include_models = switch(key, value)?,
                "partial" => wanted.partial = switch(key, value)?,
                "feature_states" => wanted.include_keys = features::parse(value)?,
                "metadata" => match value {
                    Value::Null => {}
                    Value::Object(metadata) => {
                        let bytes = value.to_string().len();
                        if bytes > MOST_METADATA {
                            return Err(EngineError::invalid(format!(
                                "metadata must be smaller than {MOST_METADATA} bytes but was [{bytes}]"
                            )));
                        }
                        wanted.metadata = Some(metadata.clone());
                    }
                    _ => {
                        return Err(EngineError::illegal_argument("malformed metadata, should be an object"));
                    }
                },
                other => {
                    return Err(EngineError::parse(format!(
                        "[create_snapshot_request] {}",
                        Self::shape().unknown(other)
                    )));
                }
            }
        }
        Ok(wanted)
    }
}
