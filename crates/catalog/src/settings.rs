//! Settings of an index: kept as text under dotted names, as the API shows them, and read with types.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sparrow_analysis::{Analysis, AnalysisLimits};
use sparrow_mapping::{LONGEST_NAME, Limits, MOST_LEVELS, MOST_TOTAL_FIELDS};

use super::known_settings as known;
use super::search_limits::SearchLimits;
use sparrow_request::error::EngineError;
use sparrow_request::params::parse_duration;
use sparrow_wire::shape::Shape;

const MAX_DEPTH: usize = 20;

/// Most tokens that `_analyze` returns without an index.
pub const DEFAULT_ANALYZED_TOKENS: usize = 10_000;

/// Prefix of the settings that define analyzers. Any name may follow it, and values may be lists.
const ANALYSIS: &str = "analysis.";
/// Prefix of the settings that define similarities, by name.
const SIMILARITY: &str = "similarity.";

/// The index settings that were given explicitly: strings, and lists of strings below `analysis`. Clones share them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings(Arc<BTreeMap<String, Value>>);

impl Settings {
    /// What the settings of a request hold.
    pub fn shape() -> Shape {
        known::shape()
    }

    /// Reads settings from a request: nested or dotted, with or without `index.`.
    ///
    /// # Errors
    /// Illegal argument that names the setting.
    pub fn parse(value: &Value) -> Result<Self, EngineError> {
        let mut flat = BTreeMap::new();
        flatten("", value, 0, &mut flat)?;
        let mut settings = BTreeMap::new();
        for (name, value) in flat {
            let short = name.strip_prefix("index.").unwrap_or(&name).to_owned();
            if short.matches('.').count() > MAX_DEPTH {
                let shown: String = short.chars().take(100).collect();
                return Err(EngineError::illegal_argument(format!(
                    "setting [{shown}] has more than [{MAX_DEPTH}] dots in its name"
                )));
            }
            if short.starts_with(ANALYSIS) {
                if let Some(value) = value {
                    settings.insert(short, value);
                }
                continue;
            }
            if let Some(definition) = short.strip_prefix(SIMILARITY) {
                if let Some(value) = value {
                    let text = one_text(&value);
                    known::check_similarity(definition, &text)?;
                    settings.insert(short, text.into());
                }
                continue;
            }
            let Some(setting) = known::find(&short) else {
                return Err(known::unknown(&short));
            };
            if let Some(value) = value {
                let text = one_text(&value);
                known::check(&short, setting, &text)?;
                settings.insert(short, text.into());
            }
        }
        Ok(Self(Arc::new(settings)))
    }

    /// The settings with changes applied. A change to `null` resets a setting.
    ///
    /// # Errors
    /// Illegal argument for a setting that cannot change.
    pub fn updated(&self, value: &Value, index: &str, uuid: &str) -> Result<Self, EngineError> {
        self.changed(value, index, uuid, false, false)
    }

    /// As [`Settings::updated`]; with `preserve`, settings that are set already stay as they are, and an index that is `closed` may
    /// change more of them.
    ///
    /// # Errors
    /// As [`Settings::updated`].
    pub fn changed(
        &self,
        value: &Value,
        index: &str,
        uuid: &str,
        preserve: bool,
        closed: bool,
    ) -> Result<Self, EngineError> {
        let changes = Self::parse(value)?;
        let mut names = BTreeMap::new();
        flatten("", value, 0, &mut names)?;
        let mut result = BTreeMap::clone(&self.0);
        for (name, given) in names {
            let short = name.strip_prefix("index.").unwrap_or(&name);
            if preserve && (self.0.contains_key(short) || short == "number_of_replicas") {
                continue;
            }
            let dynamic = known::is_dynamic(short) || (closed && known::CLOSED.contains(&short));
            if !dynamic && matches!(short, "number_of_shards" | "number_of_routing_shards") && closed {
                return Err(EngineError::illegal_argument(format!(
                    "final {index} setting [index.{short}], not updateable"
                )));
            }
            if !dynamic {
                return Err(EngineError::illegal_argument(format!(
                    "Can't update non dynamic settings [[index.{short}]] for open indices [[{index}/{uuid}]]"
                )));
            }
            match given.and(changes.0.get(short)) {
                Some(value) => result.insert(short.to_owned(), value.clone()),
                None => result.remove(short),
            };
        }
        Ok(Self(Arc::new(result)))
    }

    /// The settings for a copy of the index with this number of shards: these settings overridden by `given`, which may not change
    /// how texts are analyzed. A `null` in `given` removes a setting.
    ///
    /// # Errors
    /// Illegal argument for a setting that a copy takes from its source.
    pub fn resized(&self, given: &Value, shards: usize) -> Result<Self, EngineError> {
        let mut settings = BTreeMap::clone(&self.overlaid(&Self::parse(given)?).0);
        let mut names = BTreeMap::new();
        flatten("", given, 0, &mut names)?;
        for (name, value) in names {
            let short = name.strip_prefix("index.").unwrap_or(&name);
            let from_source = short.starts_with(ANALYSIS) || short.starts_with(SIMILARITY);
            if from_source {
                return Err(EngineError::illegal_argument(format!(
                    "cannot provide [index.{short}] on a resize: it is that of the source index"
                )));
            }
            if value.is_none() {
                settings.remove(short);
            }
        }
        settings.insert("number_of_shards".to_owned(), shards.to_string().into());
        Ok(Self(Arc::new(settings)))
    }

    /// The settings for a restored index: these settings without those that `ignored` names (patterns without `index.`), overridden
    /// by `given`.
    ///
    /// # Errors
    /// `refuse` for a setting that is fixed when an index is created, and for one of the snapshot that no request could give; illegal
    /// argument for an unknown one.
    pub fn restored(
        &self,
        given: &Value,
        ignored: &[String],
        refuse: &dyn Fn(&str) -> EngineError,
    ) -> Result<Self, EngineError> {
        let given = Self::parse(given)?;
        let fixed = |name: &str| {
            name.starts_with(ANALYSIS)
                || name.starts_with(SIMILARITY)
                || matches!(name, "number_of_shards" | "number_of_routing_shards" | "routing_partition_size")
        };
        if let Some(name) = given.0.keys().find(|name| fixed(name)) {
            return Err(refuse(&format!("cannot modify setting [index.{name}] on restore")));
        }
        let is_ignored = |name: &str| ignored.iter().any(|one| sparrow_wire::glob::matches(one, name));
        if let Some(name) =
            ignored.iter().find(|name| fixed(name) || matches!(name.as_str(), "number_of_replicas"))
        {
            return Err(refuse(&format!("cannot remove setting [index.{name}] on restore")));
        }
        let mut settings = BTreeMap::clone(&self.0);
        settings.retain(|name, _| fixed(name) || name == "number_of_replicas" || !is_ignored(name));
        settings.extend(given.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        let restored = Self(Arc::new(settings));
        // The repository may have been written to by somebody else than this server.
        Self::parse(&restored.to_flat()).map_err(|error| {
            refuse(&format!("the snapshot has settings that cannot be: {}", error.reason()))
        })?;
        Ok(restored)
    }

    /// The number of shards that was given explicitly, if any.
    pub fn asked_shards(&self) -> Option<usize> {
        self.text("number_of_shards").and_then(|text| text.parse().ok())
    }

    /// Whether a similarity of this name is defined.
    pub fn defines_similarity(&self, name: &str) -> bool {
        let prefix = format!("{SIMILARITY}{name}.");
        self.0.range(prefix.clone()..).next().is_some_and(|(key, _)| key.starts_with(&prefix))
    }

    /// Name and value of the settings whose names start with `prefix`, without lists.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(prefix))
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// The analyzers that the settings define.
    ///
    /// # Errors
    /// Illegal argument for a definition that cannot be used.
    pub fn analysis(&self) -> Result<Arc<Analysis>, EngineError> {
        let mut nested = Map::new();
        for (name, value) in self.0.iter() {
            if let Some(name) = name.strip_prefix(ANALYSIS) {
                insert_nested(&mut nested, name, value);
            }
        }
        if nested.is_empty() && self.analysis_limits() == AnalysisLimits::default() {
            return Ok(Analysis::built_in());
        }
        Ok(Arc::new(Analysis::parse(&nested, self.analysis_limits())?))
    }

    fn analysis_limits(&self) -> AnalysisLimits {
        let default = AnalysisLimits::default();
        AnalysisLimits {
            max_ngram_diff: self.number("max_ngram_diff", default.max_ngram_diff),
            max_shingle_diff: self.number("max_shingle_diff", default.max_shingle_diff),
        }
    }

    /// Most tokens that `_analyze` returns.
    pub fn max_analyzed_tokens(&self) -> usize {
        self.number("analyze.max_token_count", DEFAULT_ANALYZED_TOKENS)
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Time between periodic refreshes; `None` if there are none.
    pub fn refresh_interval(&self) -> Option<Duration> {
        match self.text("refresh_interval") {
            None => Some(Duration::from_secs(1)),
            Some(text) => parse_duration("index.refresh_interval", text).ok().flatten(),
        }
    }

    /// How long the version of a deleted document is remembered; `None` for the default.
    pub fn gc_deletes(&self) -> Option<Duration> {
        parse_duration("index.gc_deletes", self.text("gc_deletes")?).ok().flatten()
    }

    /// How often the log of an index with `async` durability is synced.
    pub fn sync_interval(&self) -> Duration {
        let text = self.text("translog.sync_interval");
        text.and_then(|text| parse_duration("index.translog.sync_interval", text).ok().flatten())
            .unwrap_or(Duration::from_secs(5))
    }

    /// Whether a write is answered before the log is on the disk.
    pub fn is_async(&self) -> bool {
        self.text("translog.durability").is_some_and(|text| text.eq_ignore_ascii_case("async"))
    }

    /// Name of the ingest pipeline for writes that name none; none for no pipeline.
    pub fn default_pipeline(&self) -> Option<&str> {
        self.text("default_pipeline").filter(|name| *name != "_none")
    }

    /// Name of the ingest pipeline that runs after all others; none for no pipeline.
    pub fn final_pipeline(&self) -> Option<&str> {
        self.text("final_pipeline").filter(|name| *name != "_none")
    }

    /// The limits for searches of the index.
    pub fn search_limits(&self) -> SearchLimits {
        let default = SearchLimits::default();
        SearchLimits {
            result_window: self.number("max_result_window", default.result_window),
            inner_result_window: self.number("max_inner_result_window", default.inner_result_window),
            rescore_window: self.number("max_rescore_window", default.rescore_window),
            docvalue_fields: self.number("max_docvalue_fields_search", default.docvalue_fields),
            script_fields: self.number("max_script_fields", default.script_fields),
            slices_per_scroll: self.number("max_slices_per_scroll", default.slices_per_scroll),
            slices_per_pit: self.number("max_slices_per_pit", default.slices_per_pit),
            terms: self.number("max_terms_count", default.terms),
            regex_length: self.number("max_regex_length", default.regex_length),
        }
    }

    /// Most characters of a field's texts that highlighting analyzes.
    pub fn max_analyzed_offset(&self) -> usize {
        self.number("highlight.max_analyzed_offset", 1_000_000)
    }

    /// Field, or list of fields, that a query string searches when it names none.
    pub fn default_field(&self) -> Option<&str> {
        self.text("query.default_field")
    }

    /// Whether the sources of documents are shown without their vectors, unless a request says otherwise.
    pub fn excludes_vectors(&self) -> bool {
        self.number("mapping.exclude_source_vectors", false)
    }

    /// The limits for the index's mapping.
    pub fn limits(&self) -> Limits {
        Limits {
            total_fields: self
                .number("mapping.total_fields.limit", Limits::default().total_fields)
                .min(MOST_TOTAL_FIELDS),
            ignore_dynamic_beyond_limit: self
                .number("mapping.total_fields.ignore_dynamic_beyond_limit", false),
            depth: self.number("mapping.depth.limit", MAX_DEPTH).min(MOST_LEVELS),
            field_name: self.number("mapping.field_name_length.limit", LONGEST_NAME).min(LONGEST_NAME),
            nested_fields: self.number("mapping.nested_fields.limit", Limits::default().nested_fields),
            nested_objects: self.number("mapping.nested_objects.limit", Limits::default().nested_objects),
            ignore_malformed: self.number("mapping.ignore_malformed", false),
        }
    }

    /// Number of replicas that the index asks for. There never are any, which is why an index with replicas is yellow.
    pub fn replicas(&self) -> usize {
        self.number("number_of_replicas", 1)
    }

    /// Number of shards that the index claims to have. It really has one; jobs with automatic slices use this number.
    pub fn shards(&self) -> usize {
        self.number("number_of_shards", 1)
    }

    /// Whether patterns skip the index unless hidden ones are asked for.
    pub fn is_hidden(&self) -> bool {
        self.text("hidden") == Some("true")
    }

    /// Whether any setting below `blocks.` is set.
    pub(super) fn has_blocks(&self) -> bool {
        self.0
            .range::<str, _>((Bound::Included("blocks."), Bound::Unbounded))
            .next()
            .is_some_and(|(name, _)| name.starts_with("blocks."))
    }

    /// Whether a block is set.
    pub fn is_blocked(&self, block: &str) -> bool {
        self.text(&format!("blocks.{block}")) == Some("true")
    }

    /// Whether no settings other than blocks are set.
    pub fn is_only_blocks(&self) -> bool {
        self.0.keys().all(|name| name.starts_with("blocks."))
    }

    /// These settings overridden by those of `above`.
    pub(super) fn overlaid(&self, above: &Self) -> Self {
        let mut result = BTreeMap::clone(&self.0);
        result.extend(above.0.iter().map(|(name, text)| (name.clone(), text.clone())));
        Self(Arc::new(result))
    }

    /// The settings that were given explicitly: nested as the API shows them, or with dotted names if `flat`.
    pub fn given(&self, flat: bool) -> Value {
        if flat {
            let dotted = self.0.iter().map(|(name, text)| (format!("index.{name}"), text.as_str().into()));
            return Value::Object(dotted.collect());
        }
        let mut nested = Map::new();
        for (name, text) in &*self.0 {
            insert_nested(&mut nested, &format!("index.{name}"), text);
        }
        Value::Object(nested)
    }

    /// The settings as a JSON object with dotted names, for storing.
    pub fn to_flat(&self) -> Value {
        Value::Object(self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Reads what [`Settings::to_flat`] wrote.
    pub fn from_flat(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        Self(Arc::new(
            entries
                .filter(|(_, value)| value.is_string() || value.is_array())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ))
    }

    /// Dotted name → value of each setting that was not given and has a default.
    pub fn defaults(&self) -> BTreeMap<String, Value> {
        known::defaults()
            .filter(|(name, _)| !self.0.contains_key(*name))
            .map(|(name, value)| (format!("index.{name}"), value.into()))
            .collect()
    }

    /// Dotted name → value of the settings as the API shows them: those given, the defaults that every index shows, and `facts`.
    pub fn dotted(&self, facts: &[(&str, String)]) -> BTreeMap<String, Value> {
        let mut dotted = BTreeMap::from([
            ("index.number_of_shards".to_owned(), Value::from("1")),
            ("index.number_of_replicas".to_owned(), "1".into()),
            ("index.routing.allocation.include._tier_preference".to_owned(), "data_content".into()),
        ]);
        dotted.extend(self.0.iter().map(|(name, value)| (format!("index.{name}"), value.clone())));
        dotted.extend(facts.iter().map(|(name, text)| (format!("index.{name}"), text.as_str().into())));
        dotted
    }
}

/// Settings with dotted names as the API shows them: nested, unless `flat`.
pub fn shown(dotted: BTreeMap<String, Value>, flat: bool) -> Value {
    if flat {
        return Value::Object(dotted.into_iter().collect());
    }
    let mut nested = Map::new();
    for (name, value) in &dotted {
        insert_nested(&mut nested, name, value);
    }
    Value::Object(nested)
}

/// A list of strings joined by commas, for settings that hold no lists.
fn one_text(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

pub fn insert_nested(object: &mut Map<String, Value>, name: &str, value: &Value) {
    match name.split_once('.') {
        None => {
            object.insert(name.to_owned(), value.clone());
        }
        Some((head, tail)) => {
            let entry = object.entry(head.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = entry {
                insert_nested(inner, tail, value);
            }
        }
    }
}

fn flatten(
    prefix: &str,
    value: &Value,
    depth: usize,
    flat: &mut BTreeMap<String, Option<Value>>,
) -> Result<(), EngineError> {
    match value {
        Value::Object(members) if depth < MAX_DEPTH => {
            for (name, value) in members {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&path, value, depth + 1, flat)?;
            }
        }
        _ if prefix.is_empty() => {
            return Err(EngineError::parse("settings must be an object"));
        }
        Value::Null => {
            flat.insert(prefix.to_owned(), None);
        }
        Value::String(_) => {
            flat.insert(prefix.to_owned(), Some(value.clone()));
        }
        Value::Array(items) => {
            let texts = items.iter().map(|item| match item {
                Value::String(_) => item.clone(),
                other => other.to_string().into(),
            });
            flat.insert(prefix.to_owned(), Some(Value::Array(texts.collect())));
        }
        other => {
            flat.insert(prefix.to_owned(), Some(other.to_string().into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A build of before took any number.
    #[test]
    fn a_stored_limit_of_fields_counts_as_the_most_there_may_be() {
        let flat = json!({"mapping.total_fields.limit": "1000000"});
        assert!(Settings::parse(&flat).is_err());
        let stored = Settings::from_flat(&flat);
        assert_eq!(stored.limits().total_fields, MOST_TOTAL_FIELDS);
        assert_eq!(stored.to_flat(), flat);
    }

    #[test]
    fn nested_dotted_and_prefixed_names_are_one() {
        let expected = Settings::parse(&json!({"index.refresh_interval": "5s"})).unwrap();
        for form in [json!({"refresh_interval": "5s"}), json!({"index": {"refresh_interval": "5s"}})] {
            assert_eq!(Settings::parse(&form).unwrap(), expected);
        }
        assert_eq!(expected.refresh_interval(), Some(Duration::from_secs(5)));
        assert_eq!(Settings::from_flat(&expected.to_flat()), expected);
        let off = Settings::parse(&json!({"index": {"refresh_interval": -1}})).unwrap();
        assert_eq!(off.refresh_interval(), None);
    }

    #[test]
    fn bad_settings_are_named() {
        let reason = |value| Settings::parse(&value).unwrap_err().reason();
        assert!(reason(json!({"foo.bar": 1})).starts_with("unknown setting [index.foo.bar] please check"));
        assert!(reason(json!({"number_of_replicas": "x"})).contains("[index.number_of_replicas]"));
        assert!(reason(json!({"number_of_shards": 0})).contains("must be >= 1"));
        assert!(reason(json!({"refresh_interval": "5"})).contains("unit is missing"));
        assert!(reason(json!({"translog": {"durability": "never"}})).contains("NEVER"));
    }

    #[test]
    fn updates_change_reset_and_refuse() {
        let settings = Settings::parse(&json!({"refresh_interval": "5s", "default_pipeline": "p"})).unwrap();
        let updated = settings
            .updated(&json!({"index": {"refresh_interval": null, "default_pipeline": "q"}}), "books", "u")
            .unwrap();
        assert_eq!(updated.refresh_interval(), Some(Duration::from_secs(1)));
        assert_eq!(updated.default_pipeline(), Some("q"));
        let error = settings.updated(&json!({"number_of_shards": 2}), "books", "u").unwrap_err();
        assert_eq!(
            error.reason(),
            "Can't update non dynamic settings [[index.number_of_shards]] for open indices [[books/u]]"
        );
    }

    #[test]
    fn the_api_shows_strings() {
        let settings =
            Settings::parse(&json!({"number_of_replicas": 0, "mapping.total_fields.limit": 5})).unwrap();
        let nested = &shown(settings.dotted(&[("uuid", "u".into())]), false)["index"];
        assert_eq!(nested["number_of_replicas"], json!("0"));
        assert_eq!(nested["mapping"]["total_fields"]["limit"], json!("5"));
        assert_eq!(nested["number_of_shards"], json!("1"));
        assert_eq!(nested["uuid"], json!("u"));
        assert_eq!(settings.limits().total_fields, 5);
    }
}
