//! `_cluster/settings`: persistent settings, which survive a restart, and transient ones, which do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use sparrow_write_ahead_log::DataDir;

use super::memory_limits::{self, parse_limit};
use super::settings::insert_nested;
use super::watermark::{Watermark, Watermarks};
use sparrow_request::NODE_NAME;
use sparrow_request::error::EngineError;
use sparrow_request::params::parse_duration;
use sparrow_wire::glob;
use sparrow_write_ahead_log::stores;

/// The name of the cluster, which has one node.
pub const CLUSTER_NAME: &str = "sparrow";

const STORE: &str = "cluster-settings";

/// The type of a setting's value.
#[derive(Clone, Copy)]
enum Kind {
    Boolean,
    /// `true`, `false`, or a list of name patterns, each with `+` or `-`.
    AutoCreate,
    Integer {
        min: i64,
    },
    Time,
    OneOf(&'static [&'static str]),
    /// A share of the disk, or the bytes that have to be left.
    Watermark,
    /// A size with its unit.
    Bytes,
    /// A share of the memory, or a size with its unit.
    Memory,
    Text,
}

const ALLOCATION: Kind = Kind::OneOf(&["all", "primaries", "new_primaries", "none"]);
const REBALANCE: Kind = Kind::OneOf(&["all", "primaries", "replicas", "none"]);

/// Settings that can be changed: name, type, default. Those of shards and their allocation are kept for tools that set them before
/// they maintain a cluster; one node has nothing to allocate.
const KNOWN: &[(&str, Kind, &str)] = &[
    ("action.auto_create_index", Kind::AutoCreate, "true"),
    ("action.destructive_requires_name", Kind::Boolean, "true"),
    ("cluster.info.update.interval", Kind::Time, "30s"),
    ("cluster.max_shards_per_node", Kind::Integer { min: 1 }, "1000"),
    ("cluster.routing.allocation.enable", ALLOCATION, "all"),
    ("cluster.routing.rebalance.enable", REBALANCE, "all"),
    ("cluster.routing.allocation.allow_rebalance", Kind::Text, "always"),
    ("cluster.routing.allocation.cluster_concurrent_rebalance", Kind::Integer { min: -1 }, "2"),
    ("cluster.routing.allocation.node_concurrent_recoveries", Kind::Integer { min: 0 }, "2"),
    ("cluster.routing.allocation.exclude._name", Kind::Text, ""),
    ("cluster.routing.allocation.exclude._ip", Kind::Text, ""),
    ("cluster.routing.allocation.disk.threshold_enabled", Kind::Boolean, "true"),
    ("cluster.routing.allocation.disk.watermark.low", Kind::Watermark, "85%"),
    ("cluster.routing.allocation.disk.watermark.high", Kind::Watermark, "90%"),
    ("cluster.routing.allocation.disk.watermark.flood_stage", Kind::Watermark, "95%"),
    ("cluster.routing.allocation.disk.watermark.flood_stage.max_headroom", Kind::Bytes, "1gb"),
    ("cluster.routing.allocation.disk.watermark.high.max_headroom", Kind::Bytes, "2gb"),
    (memory_limits::TOTAL.0, Kind::Memory, memory_limits::TOTAL.1),
    (memory_limits::REQUEST.0, Kind::Memory, memory_limits::REQUEST.1),
    ("indices.recovery.max_bytes_per_sec", Kind::Text, "40mb"),
    ("search.allow_expensive_queries", Kind::Boolean, "true"),
    ("search.default_keep_alive", Kind::Time, "5m"),
    ("search.max_buckets", Kind::Integer { min: 0 }, "65536"),
    ("search.max_keep_alive", Kind::Time, MOST_KEEP_ALIVE),
    ("search.max_open_scroll_context", Kind::Integer { min: 0 }, "500"),
];

/// Default of `search.max_keep_alive`.
const MOST_KEEP_ALIVE: &str = "1d";

/// Largest value that `search.max_buckets` may be set to.
const MOST_BUCKETS: i64 = 65_536;

/// Setting name → value as text.
type Flat = BTreeMap<String, String>;

#[derive(Debug, Clone, Default)]
struct State {
    persistent: Flat,
    transient: Flat,
}

/// The settings of the cluster in force, persistent and transient.
pub struct ClusterSettings {
    data: Arc<DataDir>,
    state: RwLock<Arc<State>>,
    changing: Mutex<()>,
}

impl ClusterSettings {
    /// Reads the persistent settings from the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let mut persistent = Flat::new();
        for (name, value) in stores::read_members(&data, STORE)? {
            let Value::String(text) = value else {
                return Err(stores::damaged(&data, STORE, format!("[{name}] is not a text")).into());
            };
            // One that this version does not know is kept, and shown.
            persistent.insert(name, text);
        }
        let state = State { persistent, transient: Flat::new() };
        Ok(Self { data, state: RwLock::new(Arc::new(state)), changing: Mutex::new(()) })
    }

    /// The persistent settings, by name.
    pub fn persistent(&self) -> BTreeMap<String, String> {
        self.state.read().persistent.clone()
    }

    /// Checks the values of settings that are to become persistent, except those that this version does not know.
    ///
    /// # Errors
    /// A value that a setting cannot have.
    pub fn check_persistent(settings: &BTreeMap<String, String>) -> Result<(), EngineError> {
        settings.iter().try_for_each(|(name, text)| match known("persistent", name) {
            Ok(kind) => check(name, kind, text),
            Err(_) => Ok(()),
        })
    }

    /// Replaces all persistent settings by these. Settings that this version does not know are left out.
    ///
    /// # Errors
    /// A value that a setting cannot have; a failure of the disk. Nothing has changed then.
    pub fn replace_persistent(&self, settings: &BTreeMap<String, String>) -> Result<(), EngineError> {
        Self::check_persistent(settings)?;
        let mut persistent = Flat::new();
        for (name, text) in settings {
            match known("persistent", name) {
                Ok(_) => {
                    persistent.insert(name.clone(), text.clone());
                }
                Err(_) => {
                    tracing::warn!(setting = name, "a setting of the cluster that is not known is left out")
                }
            }
        }
        let _one = self.changing.lock();
        let state = State { persistent, ..State::clone(&self.state.read()) };
        // Those that last until the next start need no room on the disk: watermarks can be moved while it is full.
        if state.persistent != self.state.read().persistent {
            self.data.write_json(STORE, &json!(state.persistent))?;
        }
        *self.state.write() = Arc::new(state);
        Ok(())
    }

    /// The value of a setting as it was given, transient before persistent; none if it is not set.
    pub fn text(&self, name: &str) -> Option<String> {
        let state = self.state.read().clone();
        state.transient.get(name).or_else(|| state.persistent.get(name)).cloned()
    }

    fn is(&self, name: &str, default: bool) -> bool {
        self.text(name).map_or(default, |text| text == "true")
    }

    /// Whether deleting indices needs their names, so that patterns are refused.
    pub fn destructive_requires_name(&self) -> bool {
        self.is("action.destructive_requires_name", true)
    }

    /// Largest number of buckets in one answer.
    pub fn max_buckets(&self) -> usize {
        self.number("search.max_buckets", 65_536)
    }

    /// Whether searches may have queries that look at many terms or run scripts.
    pub fn allows_expensive_queries(&self) -> bool {
        self.is("search.allow_expensive_queries", true)
    }

    /// Longest time that a scroll or a point in time may be kept between two requests, as it was set.
    pub fn max_keep_alive(&self) -> String {
        self.text("search.max_keep_alive").unwrap_or_else(|| MOST_KEEP_ALIVE.to_owned())
    }

    /// Largest number of scrolls that may be open at once.
    pub fn max_open_scrolls(&self) -> usize {
        self.number("search.max_open_scroll_context", 500)
    }

    /// How full the disk may get; none while the thresholds are switched off.
    pub fn watermarks(&self) -> Option<Watermarks> {
        const DISK: &str = "cluster.routing.allocation.disk";
        if !self.is(&format!("{DISK}.threshold_enabled"), true) {
            return None;
        }
        let default = |name: &str| {
            KNOWN.iter().find(|(setting, ..)| *setting == name).map_or("", |(_, _, default)| *default)
        };
        let mark = |name: &str| {
            let name = format!("{DISK}.watermark.{name}");
            let headroom = format!("{name}.max_headroom");
            let (chosen, chosen_headroom) = (self.text(&name), self.text(&headroom));
            Watermark::chosen(
                chosen.as_deref(),
                chosen_headroom.as_deref(),
                (default(&name), default(&headroom)),
            )
        };
        Some(Watermarks { flood_stage: mark("flood_stage")?, high: mark("high")? })
    }

    /// Checks that `more` indices may be opened in addition to the `open` ones. Each counts as one shard, as its replicas have no
    /// node to be on.
    ///
    /// # Errors
    /// `validation_exception`
    pub fn check_shards(&self, open: usize, more: usize) -> Result<(), EngineError> {
        let most = self.number("cluster.max_shards_per_node", 1000);
        if open + more <= most {
            return Ok(());
        }
        let reason = format!(
            "Validation Failed: 1: this action would add [{more}] shards, but this cluster currently has \
             [{open}]/[{most}] maximum normal shards open;"
        );
        Err(EngineError::api(400, sparrow_request::error::Exception::new("validation_exception", reason)))
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Checks that a write may create an index of this name.
    ///
    /// # Errors
    /// When `action.auto_create_index` forbids it.
    pub fn check_auto_create(&self, index: &str) -> Result<(), EngineError> {
        const SETTING: &str = "action.auto_create_index";
        let Some(text) = self.text(SETTING) else { return Ok(()) };
        let refused = |why: &str| {
            Err(EngineError::api(
                404,
                sparrow_request::error::Exception::new(
                    "index_not_found_exception",
                    format!("no such index [{index}] and {why}"),
                )
                .with("resource.type", "index_expression")
                .with("resource.id", index)
                .with("index_uuid", "_na_")
                .with("index", index),
            ))
        };
        match text.as_str() {
            "true" => return Ok(()),
            "false" => return refused(&format!("[{SETTING}] is [false]")),
            _ => {}
        }
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (allowed, name) = match (part.strip_prefix('-'), part.strip_prefix('+')) {
                (Some(name), _) => (false, name),
                (None, Some(name)) => (true, name),
                (None, None) => (true, part),
            };
            if glob::matches(name, index) {
                return match allowed {
                    true => Ok(()),
                    false => refused(&format!(
                        "[{SETTING}] contains [{part}] which forbids automatic creation of the index"
                    )),
                };
            }
        }
        refused(&format!("[{SETTING}] ([{text}]) doesn't match"))
    }

    /// The persistent settings as an answer shows them.
    pub fn persistent_json(&self, flat: bool) -> Value {
        shown(&self.state.read().persistent, flat)
    }

    /// The settings of both scopes as an answer shows them, with the defaults of those that are not set if `defaults` says so.
    pub fn view(&self, flat: bool, defaults: bool) -> Value {
        let state = self.state.read().clone();
        let mut body = json!({
            "persistent": shown(&state.persistent, flat), "transient": shown(&state.transient, flat),
        });
        if defaults {
            let given =
                |name: &str| state.persistent.contains_key(name) || state.transient.contains_key(name);
            let mut defaults: Flat = KNOWN
                .iter()
                .filter(|(name, ..)| !given(name))
                .map(|(name, _, default)| ((*name).to_owned(), (*default).to_owned()))
                .collect();
            defaults.insert("cluster.name".to_owned(), CLUSTER_NAME.to_owned());
            defaults.insert("node.name".to_owned(), NODE_NAME.to_owned());
            body["defaults"] = shown(&defaults, flat);
        }
        body
    }

    /// Applies `changes`, each with its scope, to the settings in force; gives the settings of each scope that were set.
    ///
    /// # Errors
    /// A setting that is not known, a value that it cannot have, or a failure of the disk. Nothing has changed then.
    pub fn update(&self, changes: [(&str, &Value); 2]) -> Result<[BTreeMap<String, String>; 2], EngineError> {
        let _one = self.changing.lock();
        let mut state = State::clone(&self.state.read());
        let mut changed = [Flat::new(), Flat::new()];
        for ((scope, value), changed) in changes.into_iter().zip(&mut changed) {
            let target = if scope == "persistent" { &mut state.persistent } else { &mut state.transient };
            apply(scope, value, target, changed)?;
        }
        self.data.write_json(STORE, &json!(state.persistent))?;
        *self.state.write() = Arc::new(state);
        Ok(changed)
    }
}

/// Applies changes to the settings of one scope; a name with the value `null`, which may be a pattern, is removed.
fn apply(scope: &str, value: &Value, target: &mut Flat, changed: &mut Flat) -> Result<(), EngineError> {
    let mut flat = BTreeMap::new();
    flatten("", value, 0, &mut flat)?;
    for (name, text) in flat {
        let wild = name.contains('*');
        let Some(text) = text else {
            if !wild {
                known(scope, &name)?;
            }
            target.retain(|setting, _| !glob::matches(&name, setting));
            continue;
        };
        let kind = known(scope, &name)?;
        check(&name, kind, &text)?;
        target.insert(name.clone(), text.clone());
        changed.insert(name, text);
    }
    Ok(())
}

fn known(scope: &str, name: &str) -> Result<Kind, EngineError> {
    match KNOWN.iter().find(|(setting, ..)| *setting == name) {
        Some((_, kind, _)) => Ok(*kind),
        None if matches!(name, "cluster.name" | "node.name" | "path.data" | "http.port" | "network.host") => {
            Err(EngineError::illegal_argument(format!(
                "{scope} setting [{name}], not dynamically updateable"
            )))
        }
        None => Err(EngineError::illegal_argument(format!("{scope} setting [{name}], not recognized"))),
    }
}

fn check(name: &str, kind: Kind, text: &str) -> Result<(), EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    match kind {
        Kind::Boolean if !matches!(text, "true" | "false") => {
            refuse(format!("Failed to parse value [{text}] as only [true] or [false] are allowed."))
        }
        Kind::AutoCreate => {
            let bare = |part: &str| part.trim().trim_start_matches(['+', '-']).is_empty();
            if !matches!(text, "true" | "false") && text.split(',').any(bare) {
                return refuse(format!(
                    "Can't parse [{text}] for setting [action.auto_create_index] must be either [true, false, or a \
                     comma separated list of index patterns]"
                ));
            }
            Ok(())
        }
        Kind::Integer { min } => match text.parse::<i64>() {
            Err(_) => refuse(format!("Failed to parse value [{text}] for setting [{name}]")),
            Ok(number) if number < min => {
                refuse(format!("Failed to parse value [{text}] for setting [{name}] must be >= {min}"))
            }
            // What an answer may hold is bounded by the memory that is set aside for it.
            Ok(number) if name == "search.max_buckets" && number > MOST_BUCKETS => refuse(format!(
                "Failed to parse value [{text}] for setting [{name}] must be <= {MOST_BUCKETS}"
            )),
            Ok(_) => Ok(()),
        },
        Kind::Time => parse_duration(name, text).map(|_| ()),
        Kind::OneOf(values) if !values.iter().any(|value| value.eq_ignore_ascii_case(text)) => {
            refuse(format!("Illegal [{name}] value [{text}]"))
        }
        Kind::Watermark if Watermark::parse(text, 0).is_none() => {
            refuse(format!("unable to parse [{name}] with value [{text}] as either percentage or bytes"))
        }
        Kind::Bytes if !matches!(Watermark::parse(text, 0), Some(Watermark::Free(_))) => refuse(format!(
            "failed to parse setting [{name}] with value [{text}] as a size in bytes: unit is missing or unrecognized"
        )),
        Kind::Memory if parse_limit(text, 0).is_none() => refuse(format!(
            "failed to parse setting [{name}] with value [{text}] as a percentage or a size in bytes"
        )),
        Kind::Boolean | Kind::OneOf(_) | Kind::Watermark | Kind::Bytes | Kind::Memory | Kind::Text => Ok(()),
    }
}

fn flatten(
    prefix: &str,
    value: &Value,
    depth: usize,
    flat: &mut BTreeMap<String, Option<String>>,
) -> Result<(), EngineError> {
    let text = match value {
        Value::Object(members) if depth < 20 => {
            for (name, value) in members {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&path, value, depth + 1, flat)?;
            }
            return Ok(());
        }
        Value::Object(_) => {
            return Err(EngineError::illegal_argument("settings are nested too deeply"));
        }
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(
            items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(","),
        ),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    };
    flat.insert(prefix.to_owned(), text);
    Ok(())
}

/// Settings as an answer shows them: by their dotted names if `flat`, otherwise nested.
pub fn shown(settings: &BTreeMap<String, String>, flat: bool) -> Value {
    let mut object = Map::new();
    for (name, text) in settings {
        if flat {
            object.insert(name.clone(), text.as_str().into());
        } else {
            insert_nested(&mut object, name, &text.as_str().into());
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_settings_and_bad_values_are_named() {
        let refused = |value: Value| {
            apply("persistent", &value, &mut Flat::new(), &mut Flat::new()).unwrap_err().reason()
        };
        assert_eq!(refused(json!({"foo": {"bar": 1}})), "persistent setting [foo.bar], not recognized");
        assert!(refused(json!({"search.max_buckets": "x"})).contains("[search.max_buckets]"));
        assert!(refused(json!({"action.destructive_requires_name": "yes"})).contains("[yes]"));
        assert!(refused(json!({"cluster.routing.allocation.enable": "some"})).contains("[some]"));
        let mut set = Flat::from([("search.max_buckets".to_owned(), "5".to_owned())]);
        apply("transient", &json!({"search.*": null}), &mut set, &mut Flat::new()).unwrap();
        assert!(set.is_empty());
    }
}
