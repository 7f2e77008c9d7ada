//! The settings of a repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::errors;
use sparrow_request::error::EngineError;
use sparrow_wire::shape::{Shape, alike, count, object, one, switch, text};
use sparrow_wire::size::parse_size;

/// Default rate limit of a snapshot or restore, in bytes per second.
const DEFAULT_RATE: u64 = 40 << 20;
/// Default of the most snapshots in a repository.
const DEFAULT_SNAPSHOTS: usize = 500;

fn settings_shape() -> Shape {
    object([("location", text().about("where it lies, below `--repo-path`")), ("compress", switch())])
        .and(alike("max_snapshot_bytes_per_sec max_restore_bytes_per_sec", text()))
        .and([("readonly", switch()), ("max_number_of_snapshots", count().preset(DEFAULT_SNAPSHOTS))])
        .needs(&["location"])
}

/// Definition of a registered repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Registered {
    #[serde(rename = "type")]
    pub kind: String,
    /// Uuid of the repository at the location; `None` if there was none when it was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Settings as strings, in which form the API shows them.
    pub settings: BTreeMap<String, String>,
}

impl Registered {
    /// What the registration of a repository holds.
    pub fn shape() -> Shape {
        object([("type", one(&["fs"]).about("a folder")), ("uuid", text()), ("settings", settings_shape())])
            .needs(&["type", "settings"])
    }

    /// Reads the body of a registration.
    ///
    /// # Errors
    /// For a setting that is missing, unknown or has an invalid value.
    pub fn parse(name: &str, body: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut kind = None;
        let mut settings = BTreeMap::new();
        for (key, value) in body {
            match key.as_str() {
                "type" => kind = value.as_str().map(str::to_owned),
                "settings" => {
                    let Some(given) = value.as_object() else {
                        return Err(EngineError::illegal_argument(
                            "Malformed settings section, should include an inner object",
                        ));
                    };
                    for (key, value) in given {
                        flatten(key, value, &mut settings);
                    }
                }
                // What a client got from the server it may send back.
                "uuid" => {}
                other => {
                    let unknown = Self::shape().unknown(other);
                    return Err(EngineError::parse(format!("[put_repository] {unknown}")));
                }
            }
        }
        let Some(kind) = kind else { return Err(EngineError::invalid("type is missing")) };
        if kind != "fs" {
            return Err(errors::repository(name, &format!("repository type [{kind}] does not exist")));
        }
        let known = settings_shape();
        if let Some(unknown) = settings.keys().find(|key| !known.names().contains(&key.as_str())) {
            return Err(EngineError::illegal_argument(format!(
                "[{name}] setting [{unknown}] of a repository of type [fs] is unknown or not supported by this server{}",
                known.near(unknown)
            )));
        }
        let registered = Self { kind, uuid: None, settings };
        if registered.location().is_empty() {
            return Err(errors::not_created(name, "missing location"));
        }
        for switch in ["compress", "readonly"] {
            if let Some(text) = registered.settings.get(switch)
                && !matches!(text.as_str(), "true" | "false")
            {
                return Err(EngineError::illegal_argument(format!(
                    "Failed to parse value [{text}] as only [true] or [false] are allowed."
                )));
            }
        }
        for rate in ["max_snapshot_bytes_per_sec", "max_restore_bytes_per_sec"] {
            if let Some(text) = registered.settings.get(rate)
                && parse_size(text).is_none()
            {
                return Err(EngineError::illegal_argument(format!(
                    "failed to parse setting [{rate}] with value [{text}] as a size in bytes: unit is missing or \
                     unrecognized"
                )));
            }
        }
        if let Some(text) = registered.settings.get("max_number_of_snapshots")
            && !text.parse::<usize>().is_ok_and(|most| most > 0)
        {
            return Err(EngineError::illegal_argument(format!(
                "Failed to parse value [{text}] for setting [max_number_of_snapshots] must be >= 1"
            )));
        }
        Ok(registered)
    }

    /// Setting `location` as given; empty if it is missing.
    pub fn location(&self) -> &str {
        self.settings.get("location").map_or("", String::as_str)
    }

    /// Whether the repository is read-only.
    pub fn is_readonly(&self) -> bool {
        self.settings.get("readonly").is_some_and(|text| text == "true")
    }

    /// Rate limit of a snapshot, in bytes per second; `None` for no limit.
    pub fn snapshot_rate(&self) -> Option<u64> {
        self.rate("max_snapshot_bytes_per_sec")
    }

    /// Rate limit of a restore, in bytes per second; `None` for no limit.
    pub fn restore_rate(&self) -> Option<u64> {
        self.rate("max_restore_bytes_per_sec")
    }

    /// Most snapshots that the repository may hold.
    pub fn most_snapshots(&self) -> usize {
        let given = self.settings.get("max_number_of_snapshots").and_then(|text| text.parse().ok());
        given.unwrap_or(DEFAULT_SNAPSHOTS)
    }

    fn rate(&self, name: &str) -> Option<u64> {
        let rate = self.settings.get(name).and_then(|text| parse_size(text)).unwrap_or(DEFAULT_RATE);
        (rate > 0).then_some(rate)
    }

    /// The definition as the API shows it.
    pub fn view(&self) -> Value {
        json!(self)
    }
}

fn flatten(path: &str, value: &Value, settings: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                flatten(&format!("{path}.{key}"), value, settings);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            settings.insert(path.to_owned(), text.clone());
        }
        other => {
            settings.insert(path.to_owned(), other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<Registered, EngineError> {
        Registered::parse("r", body.as_object().unwrap())
    }

    #[test]
    fn rates_and_switches_are_read() {
        let plain = parse(json!({"type": "fs", "settings": {"location": "b"}})).unwrap();
        assert_eq!((plain.snapshot_rate(), plain.restore_rate()), (Some(40 << 20), Some(40 << 20)));
        let given = json!({"type": "fs", "settings": {"location": "b", "max_snapshot_bytes_per_sec": "1kb",
            "max_restore_bytes_per_sec": "0", "readonly": true, "compress": "false"}});
        let given = parse(given).unwrap();
        assert_eq!((given.snapshot_rate(), given.restore_rate()), (Some(1024), None));
        assert!(given.is_readonly());
        assert_eq!(given.settings["readonly"], "true");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let reason = |body: Value| parse(body).unwrap_err().reason();
        assert_eq!(reason(json!({"settings": {}})), "Validation Failed: 1: type is missing;");
        assert_eq!(reason(json!({"type": "s3"})), "[r] repository type [s3] does not exist");
        assert!(reason(json!({"type": "fs", "nope": 1})).contains("[nope]"));
        assert!(
            reason(json!({"type": "fs", "settings": {"location": "a", "x": {"y": 1}}})).contains("[x.y]")
        );
        let rate = json!({"type": "fs", "settings": {"location": "a", "max_restore_bytes_per_sec": "5"}});
        assert!(reason(rate).contains("[max_restore_bytes_per_sec]"));
    }
}
