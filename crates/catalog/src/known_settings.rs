//! The settings that an index may have, with their types and defaults.

use sparrow_mapping::MOST_TOTAL_FIELDS;
use sparrow_request::error::EngineError;
use sparrow_request::params::parse_duration;
use sparrow_wire::shape::{
    Shape, any, count, either, length, list, named, nullable, object, one, open, scalar, switch, text,
};
use sparrow_wire::size::parse_size;
use sparrow_wire::suggest::{did_you_mean, suggestions};

/// The type of a setting's value. All values are kept as text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Integer {
        min: i64,
    },
    Boolean,
    Time,
    Bytes,
    Durability,
    /// One of these words.
    Choice(&'static [&'static str]),
    Text,
}

impl Kind {
    /// What such a setting holds in a request; null for its default.
    fn shape(self) -> Shape {
        nullable(match self {
            Self::Integer { .. } => count(),
            Self::Boolean => switch(),
            Self::Bytes => length(),
            Self::Choice(choices) => one(choices),
            Self::Time | Self::Durability | Self::Text => text(),
        })
    }
}

/// A setting that an index may have.
#[derive(Debug)]
pub(super) struct KnownSetting {
    /// Name of the setting without `index.`.
    name: &'static str,
    kind: Kind,
    /// Whether the setting may change while the index is open.
    dynamic: bool,
    /// Default value; empty if there is no fixed one.
    default: &'static str,
}

const fn known(name: &'static str, kind: Kind, dynamic: bool, default: &'static str) -> KnownSetting {
    KnownSetting { name, kind, dynamic, default }
}

const KNOWN: &[KnownSetting] = &[
    known("number_of_shards", Kind::Integer { min: 1 }, false, "1"),
    known("number_of_replicas", Kind::Integer { min: 0 }, true, "1"),
    known("auto_expand_replicas", Kind::Text, true, "false"),
    known("refresh_interval", Kind::Time, true, "1s"),
    known("translog.durability", Kind::Durability, true, "REQUEST"),
    known("translog.sync_interval", Kind::Time, true, "5s"),
    known("default_pipeline", Kind::Text, true, "_none"),
    known("final_pipeline", Kind::Text, true, "_none"),
    known("max_result_window", Kind::Integer { min: 1 }, true, "10000"),
    known("mapping.total_fields.limit", Kind::Integer { min: 1 }, true, "1000"),
    known("mapping.total_fields.ignore_dynamic_beyond_limit", Kind::Boolean, true, "false"),
    known("mapping.depth.limit", Kind::Integer { min: 1 }, true, "20"),
    known("mapping.field_name_length.limit", Kind::Integer { min: 1 }, true, "9223372036854775807"),
    known("mapping.nested_fields.limit", Kind::Integer { min: 0 }, true, "50"),
    known("mapping.nested_objects.limit", Kind::Integer { min: 0 }, true, "10000"),
    known("mapping.dimension_fields.limit", Kind::Integer { min: 0 }, true, "32768"),
    known("mapping.ignore_malformed", Kind::Boolean, false, "false"),
    known("mapping.exclude_source_vectors", Kind::Boolean, false, "false"),
    // What 8.18 and later hold documents in; the earlier format is not there.
    known("mapping.semantic_text.use_legacy_format", Kind::Choice(&["false"]), false, "false"),
    known("query.default_field", Kind::Text, true, "*"),
    known("max_inner_result_window", Kind::Integer { min: 0 }, true, "100"),
    known("max_rescore_window", Kind::Integer { min: 1 }, true, "10000"),
    known("max_docvalue_fields_search", Kind::Integer { min: 0 }, true, "100"),
    known("max_script_fields", Kind::Integer { min: 0 }, true, "32"),
    known("max_slices_per_scroll", Kind::Integer { min: 1 }, true, "1024"),
    known("max_slices_per_pit", Kind::Integer { min: 1 }, true, "1024"),
    known("max_terms_count", Kind::Integer { min: 1 }, true, "65536"),
    known("max_regex_length", Kind::Integer { min: 1 }, true, "1000"),
    known("highlight.max_analyzed_offset", Kind::Integer { min: 1 }, true, "1000000"),
    known("gc_deletes", Kind::Time, true, "60s"),
    known("hidden", Kind::Boolean, true, "false"),
    known("codec", Kind::Text, false, "default"),
    known("max_ngram_diff", Kind::Integer { min: 0 }, true, "1"),
    known("max_shingle_diff", Kind::Integer { min: 0 }, true, "3"),
    known("analyze.max_token_count", Kind::Integer { min: 1 }, true, "10000"),
    known("blocks.read_only", Kind::Boolean, true, "false"),
    known("blocks.read_only_allow_delete", Kind::Boolean, true, "false"),
    known("blocks.read", Kind::Boolean, true, "false"),
    known("blocks.write", Kind::Boolean, true, "false"),
    known("blocks.metadata", Kind::Boolean, true, "false"),
    // Where and when data lies and moves, and what is logged or cached: nothing that an answer depends on. They are kept
    // and shown, so that definitions of indices from Elasticsearch can be used as they are.
    known("number_of_routing_shards", Kind::Integer { min: 1 }, false, "1"),
    known("routing_partition_size", Kind::Integer { min: 1 }, false, "1"),
    known("priority", Kind::Integer { min: 0 }, true, "1"),
    known("soft_deletes.enabled", Kind::Boolean, false, "true"),
    known("soft_deletes.retention_lease.period", Kind::Time, true, "12h"),
    known("translog.flush_threshold_size", Kind::Bytes, true, "10gb"),
    known("translog.generation_threshold_size", Kind::Bytes, true, "64mb"),
    known("search.idle.after", Kind::Time, true, "30s"),
    known("max_refresh_listeners", Kind::Integer { min: 0 }, true, "1000"),
    known("query_string.lenient", Kind::Boolean, false, "false"),
    known("allocation.max_retries", Kind::Integer { min: 0 }, true, "5"),
    known("write.wait_for_active_shards", Kind::Text, true, "1"),
    known("requests.cache.enable", Kind::Boolean, true, "true"),
    known("queries.cache.enabled", Kind::Boolean, false, "true"),
    known("unassigned.node_left.delayed_timeout", Kind::Time, true, "1m"),
    known("merge.scheduler.auto_throttle", Kind::Boolean, true, "true"),
    known("merge.scheduler.max_merge_count", Kind::Integer { min: 1 }, true, ""),
    known("merge.scheduler.max_thread_count", Kind::Integer { min: 1 }, true, ""),
    known("merge.policy.max_merged_segment", Kind::Bytes, true, "5gb"),
    known("merge.policy.segments_per_tier", Kind::Integer { min: 2 }, true, "10"),
    known(
        "routing.allocation.enable",
        Kind::Choice(&["all", "primaries", "new_primaries", "none"]),
        true,
        "all",
    ),
    known("routing.rebalance.enable", Kind::Choice(&["all", "primaries", "replicas", "none"]), true, "all"),
    known("routing.allocation.total_shards_per_node", Kind::Integer { min: -1 }, true, "-1"),
    known("routing.allocation.include._tier_preference", Kind::Text, true, "data_content"),
    known("search.slowlog.threshold.query.warn", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.query.info", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.query.debug", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.query.trace", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.fetch.warn", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.fetch.info", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.fetch.debug", Kind::Time, true, "-1"),
    known("search.slowlog.threshold.fetch.trace", Kind::Time, true, "-1"),
    known("indexing.slowlog.threshold.index.warn", Kind::Time, true, "-1"),
    known("indexing.slowlog.threshold.index.info", Kind::Time, true, "-1"),
    known("indexing.slowlog.threshold.index.debug", Kind::Time, true, "-1"),
    known("indexing.slowlog.threshold.index.trace", Kind::Time, true, "-1"),
    known("indexing.slowlog.source", Kind::Text, true, "1000"),
];

/// Settings with a largest value that this server allows.
const MOST: &[(&str, i64)] = &[
    ("max_terms_count", 65_536),
    ("max_regex_length", 1_000),
    ("max_script_fields", 32),
    ("mapping.total_fields.limit", MOST_TOTAL_FIELDS as i64),
];

/// Prefix of the settings that say on which nodes shards may be, without `index.`. Any name may follow it; with one node they have
/// no effect.
const ALLOCATION: &str = "routing.allocation.";
/// The definition that all settings below [`ALLOCATION`] share.
static ALLOCATED: KnownSetting = known("routing.allocation.*", Kind::Text, true, "");

/// Settings that may change only while the index is closed.
pub(super) const CLOSED: &[&str] = &["query_string.lenient", "codec"];

/// Elasticsearch settings that would change answers and that this server does not support: names, or prefixes if they end with a
/// dot.
const ELSEWHERE: &[&str] = &[
    "lifecycle.",
    "load_fixed_bitset_filters_eagerly",
    "mapper.",
    "mapping.coerce",
    "max_adjacency_matrix_filters",
    "merge.",
    "mode",
    "query.parse.allow_unmapped_fields",
    "routing_path",
    "shard.check_on_startup",
    "sort.",
    "store.",
    "time_series.",
    "warmer.",
];

/// The definition of the setting with this name without `index.`; none if it is unknown.
pub(super) fn find(name: &str) -> Option<&'static KnownSetting> {
    let setting = KNOWN.iter().find(|setting| setting.name == name);
    setting.or_else(|| name.starts_with(ALLOCATION).then_some(&ALLOCATED))
}

/// Whether a setting may change while the index is open.
pub(super) fn is_dynamic(name: &str) -> bool {
    find(name).is_some_and(|setting| setting.dynamic)
}

/// The error for a setting that [`find`] does not know.
pub(super) fn unknown(name: &str) -> EngineError {
    let elsewhere = |other: &&str| name == *other || (other.ends_with('.') && name.starts_with(*other));
    EngineError::illegal_argument(if ELSEWHERE.iter().any(elsewhere) {
        format!("setting [index.{name}] is not supported by this server")
    } else {
        let known: Vec<&str> = KNOWN.iter().map(|setting| setting.name).collect();
        match suggestions(name, &known).as_slice() {
            [] => format!(
                "unknown setting [index.{name}] please check that any required plugins are installed, or check the \
                 breaking changes documentation for removed settings"
            ),
            near => format!("unknown setting [index.{name}]{}", did_you_mean(near)),
        }
    })
}

/// What the settings of a request hold. They may also stand in objects, for which the dots of their names are left out.
pub(super) fn shape() -> Shape {
    let about = [
        ("number_of_shards", "always 1 on one server"),
        ("refresh_interval", "time until a write is searchable; `-1` for never"),
    ];
    let one_of = |setting: &KnownSetting| {
        let shape = setting.kind.shape();
        let shape = match (setting.kind, setting.default) {
            (_, "") => shape,
            (Kind::Integer { .. }, default) => shape.preset(default.parse::<i64>().ok()),
            (Kind::Boolean, default) => shape.preset(default == "true"),
            (_, default) => shape.preset(default),
        };
        match about.iter().find(|(name, _)| *name == setting.name) {
            Some((_, text)) => shape.about(text),
            None => shape,
        }
    };
    object(KNOWN.iter().map(|setting| (setting.name, one_of(setting))))
        .and([
            ("index", named("Settings")),
            ("analysis", open().about("analyzers, tokenizers and filters of your own")),
            ("similarity", open()),
        ])
        .by_field(either([scalar(), list(any()), open()]))
        .about("Settings of an index by their names, with or without `index.` in front, as they are or in objects.")
}

/// Name and default of each setting that has a default.
pub(super) fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.iter().filter(|setting| !setting.default.is_empty()).map(|setting| (setting.name, setting.default))
}

/// Checks that `text` is a valid value of a setting.
///
/// # Errors
/// Illegal argument that names the setting.
pub(super) fn check(name: &str, setting: &KnownSetting, text: &str) -> Result<(), EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    match setting.kind {
        Kind::Integer { min } => match text.parse::<i64>() {
            Err(_) => refuse(format!("Failed to parse value [{text}] for setting [index.{name}]")),
            Ok(number) if number < min => {
                refuse(format!("Failed to parse value [{text}] for setting [index.{name}] must be >= {min}"))
            }
            // Sparrow keeps an index in one piece; asking for more pieces would be silently wrong.
            Ok(number) if name == "number_of_shards" && number > 1024 => {
                refuse(format!("Failed to parse value [{text}] for setting [index.{name}] must be <= 1024"))
            }
            Ok(number) => match MOST.iter().find(|(limited, most)| *limited == name && number > *most) {
                Some((_, most)) => refuse(format!(
                    "Failed to parse value [{text}] for setting [index.{name}] must be <= {most}"
                )),
                None => Ok(()),
            },
        },
        Kind::Boolean if !matches!(text, "true" | "false") => {
            refuse(format!("Failed to parse value [{text}] as only [true] or [false] are allowed."))
        }
        Kind::Time => parse_duration(&format!("index.{name}"), text).map(|_| ()),
        Kind::Durability if !text.eq_ignore_ascii_case("request") && !text.eq_ignore_ascii_case("async") => {
            refuse(format!(
                "No enum constant org.elasticsearch.index.translog.Translog.Durability.{}",
                text.to_uppercase()
            ))
        }
        Kind::Choice(choices) if !choices.iter().any(|choice| text.eq_ignore_ascii_case(choice)) => {
            refuse(format!("unknown value for [index.{name}] must be one of [{}] but was: {text}", choices.join(", ")))
        }
        // Nothing is lost by keeping deleted documents' history; without it Elasticsearch 8 makes no index either.
        Kind::Boolean if name == "soft_deletes.enabled" && text == "false" => refuse(
            "Creating indices with soft-deletes disabled is no longer supported. Please do not specify a value for \
             setting [index.soft_deletes.enabled]."
                .to_owned(),
        ),
        Kind::Bytes if parse_size(text).is_none() => refuse(format!(
            "failed to parse setting [index.{name}] with value [{text}] as a size in bytes: unit is missing or \
             unrecognized"
        )),
        Kind::Boolean | Kind::Durability | Kind::Text | Kind::Bytes | Kind::Choice(_) => Ok(()),
    }
}

/// Checks one setting of a similarity, `NAME.PARAMETER`. Texts are always scored by BM25 with its default parameters, so these are
/// the only values allowed.
pub(super) fn check_similarity(definition: &str, text: &str) -> Result<(), EngineError> {
    let refused = |reason: String| Err(EngineError::illegal_argument(reason));
    let Some((name, parameter)) = definition.rsplit_once('.') else {
        return refused(format!("Similarity [{definition}] must be a group of settings with a [type]"));
    };
    let is = |wanted: f64| text.parse::<f64>().is_ok_and(|value| (value - wanted).abs() < 1e-6);
    match parameter {
        "type" if text == "BM25" => Ok(()),
        "type"
            if matches!(
                text,
                "boolean" | "DFR" | "DFI" | "IB" | "LMDirichlet" | "LMJelinekMercer" | "scripted"
            ) =>
        {
            refused(format!(
                "[type] [{text}] of similarity [{name}] is not supported by this server, only [BM25] is"
            ))
        }
        "type" => refused(format!("Unknown Similarity type [{text}] for [{name}]")),
        "k1" if is(1.2) => Ok(()),
        "b" if is(0.75) => Ok(()),
        "discount_overlaps" if text == "true" => Ok(()),
        "k1" | "b" | "discount_overlaps" => refused(format!(
            "[{parameter}] [{text}] of similarity [{name}] is not supported by this server: BM25 has [k1] 1.2, [b] 0.75 and \
             [discount_overlaps] true"
        )),
        _ => refused(format!("Unknown settings for similarity of type [BM25]: [{parameter}]")),
    }
}
