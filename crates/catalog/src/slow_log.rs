//! The slow log: log lines about searches and writes that took longer than the thresholds in the index settings, with
//! Elasticsearch's field names.
//!
//! An index without thresholds pays one look-up in its settings per search, and per batch of writes.

use std::time::Duration;

use super::settings::Settings;
use sparrow_request::params::parse_duration;
use sparrow_runtime::attempt;

/// Log target by which the slow log is recognised: its lines are written whatever the log level is.
pub const TARGET: &str = "sparrow::slowlog";

/// Log levels of slow log lines, most severe first: name in settings, name in lines.
const LEVELS: [(&str, &str); 4] =
    [("warn", "WARN"), ("info", "INFO"), ("debug", "DEBUG"), ("trace", "TRACE")];

/// Most characters of a search's body that a line shows.
const SEARCH_CHARS: usize = 10_000;
/// Most characters of a document that a line shows unless the index settings say otherwise.
const DOCUMENT_CHARS: usize = 1000;

/// For each of [`LEVELS`], the duration from which on something is logged at that level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Thresholds([Option<Duration>; LEVELS.len()]);

impl Thresholds {
    /// Reads the thresholds below a prefix of the settings; `None` if there are none.
    fn read(settings: &Settings, prefix: &str) -> Option<Self> {
        let mut thresholds = Self::default();
        for (name, text) in settings.under(prefix) {
            let level = &name[prefix.len()..];
            if let Some(place) = LEVELS.iter().position(|(name, _)| *name == level) {
                // −1 turns the threshold off. A value that cannot be read was refused when it was set.
                thresholds.0[place] = parse_duration(name, text).ok().flatten();
            }
        }
        thresholds.0.iter().any(Option::is_some).then_some(thresholds)
    }

    /// The most severe level whose threshold a duration reaches; none if it reaches none.
    fn level(&self, took: Duration) -> Option<&'static str> {
        let reached = self.0.iter().position(|threshold| threshold.is_some_and(|least| took >= least))?;
        Some(LEVELS[reached].1)
    }
}

/// The slow log thresholds of an index for the two phases of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowSearches {
    query: Option<Thresholds>,
    fetch: Option<Thresholds>,
}

/// A phase of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding the hits, and aggregating.
    Query,
    /// Reading the documents of the hits.
    Fetch,
}

impl SlowSearches {
    /// Reads the thresholds from the settings; `None` if there are none.
    pub fn read(settings: &Settings) -> Option<Box<Self>> {
        settings.under("search.slowlog.").next()?;
        let query = Thresholds::read(settings, "search.slowlog.threshold.query.");
        let fetch = Thresholds::read(settings, "search.slowlog.threshold.fetch.");
        (query.is_some() || fetch.is_some()).then(|| Box::new(Self { query, fetch }))
    }

    /// Logs a phase of a search if it took too long. `targets` is the number of indices searched, `hits` the total number of hits
    /// as text, `source` the request's body.
    pub fn note(&self, phase: Phase, took: Duration, index: &str, targets: usize, hits: &str, source: &[u8]) {
        let (thresholds, logger) = match phase {
            Phase::Query => (&self.query, "index.search.slowlog.query"),
            Phase::Fetch => (&self.fetch, "index.search.slowlog.fetch"),
        };
        let Some(level) = thresholds.as_ref().and_then(|thresholds| thresholds.level(took)) else { return };
        // It would be logged again if the attempt were given up later.
        if attempt::give_up() {
            return;
        }
        let opaque_id = sparrow_request::origin::current().and_then(|origin| origin.opaque_id.clone());
        tracing::info!(
            target: TARGET,
            {
            "log.level" = level,
            "event.dataset" = "elasticsearch.index_search_slowlog",
            "log.logger" = logger,
            "elasticsearch.slowlog.id" = opaque_id.as_deref(),
            "elasticsearch.slowlog.message" = format!("[{index}][0]"),
            "elasticsearch.slowlog.search_type" = "QUERY_THEN_FETCH",
            "elasticsearch.slowlog.source" = shortened(&String::from_utf8_lossy(source), SEARCH_CHARS),
            "elasticsearch.slowlog.stats" = "[]",
            "elasticsearch.slowlog.took" = readable(took),
            "elasticsearch.slowlog.took_millis" = took.as_millis() as u64,
            "elasticsearch.slowlog.total_hits" = hits,
            "elasticsearch.slowlog.total_shards" = targets as u64
            },
            "a slow search"
        );
    }
}

/// The slow log thresholds of an index for writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowWrites {
    thresholds: Thresholds,
    /// Most characters of a document that a line shows; 0 to leave the document out.
    source: usize,
}

/// A document that was written, as the log shows it.
pub struct WrittenDocument<'a> {
    pub index: &'a str,
    pub uuid: &'a str,
    pub id: &'a str,
    pub source: &'a str,
    /// Number of documents in the same batch.
    pub batch: usize,
}

impl SlowWrites {
    /// Reads the thresholds from the settings; `None` if there are none.
    pub fn read(settings: &Settings) -> Option<Self> {
        let thresholds = Thresholds::read(settings, "indexing.slowlog.threshold.index.")?;
        let text = settings.under("indexing.slowlog.source").next().map(|(_, text)| text);
        let source = match text {
            None | Some("") => DOCUMENT_CHARS,
            Some("false") => 0,
            Some("true") => usize::MAX,
            Some(number) => number.parse().unwrap_or(DOCUMENT_CHARS),
        };
        Some(Self { thresholds, source })
    }

    /// Logs a document, if it took too long.
    pub fn note(&self, took: Duration, document: &WrittenDocument<'_>) {
        let Some(level) = self.thresholds.level(took) else { return };
        tracing::info!(
            target: TARGET,
            {
            "log.level" = level,
            "event.dataset" = "elasticsearch.index_indexing_slowlog",
            "log.logger" = "index.indexing.slowlog.index",
            "elasticsearch.slowlog.id" = document.id,
            "elasticsearch.slowlog.message" = format!("[{}/{}]", document.index, document.uuid),
            "elasticsearch.slowlog.source" =
                (self.source > 0).then(|| shortened(document.source, self.source)),
            "elasticsearch.slowlog.took" = readable(took),
            "elasticsearch.slowlog.took_millis" = took.as_millis() as u64,
            "sparrow.slowlog.batch" = document.batch as u64
            },
            "a slow write"
        );
    }
}

/// The first characters of a text.
fn shortened(text: &str, chars: usize) -> String {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end]).to_owned()
}

/// A duration in Elasticsearch's readable form: with one decimal, in the largest unit of which it has at least one.
fn readable(time: Duration) -> String {
    const UNITS: [(&str, f64); 5] =
        [("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("micros", 1e-6), ("nanos", 1e-9)];
    let seconds = time.as_secs_f64();
    let (unit, size) = UNITS.into_iter().find(|(_, size)| seconds >= *size).unwrap_or(UNITS[4]);
    let text = format!("{:.1}", seconds / size);
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_urgent_level_that_is_reached_counts_and_minus_one_is_none() {
        let settings = Settings::parse(&json!({
            "index.search.slowlog.threshold.query.warn": "1s",
            "index.search.slowlog.threshold.query.info": "-1",
            "index.search.slowlog.threshold.query.trace": "10ms",
            "index.indexing.slowlog.threshold.index.warn": "0ms",
            "index.indexing.slowlog.source": "5",
        }))
        .unwrap();
        let searches = SlowSearches::read(&settings).unwrap();
        let query = searches.query.unwrap();
        assert_eq!(query.level(Duration::from_secs(2)), Some("WARN"));
        assert_eq!(query.level(Duration::from_millis(500)), Some("TRACE"));
        assert_eq!(query.level(Duration::from_millis(5)), None);
        assert_eq!(searches.fetch, None);
        let writes = SlowWrites::read(&settings).unwrap();
        assert_eq!(writes.source, 5);
        assert_eq!(writes.thresholds.level(Duration::ZERO), Some("WARN"));
        let none = Settings::parse(&json!({"index.search.slowlog.threshold.query.warn": "-1"})).unwrap();
        assert_eq!(SlowSearches::read(&none), None);
        assert_eq!(SlowWrites::read(&none), None);
    }

    #[test]
    fn times_and_texts_are_short() {
        assert_eq!(readable(Duration::from_nanos(747_300)), "747.3micros");
        assert_eq!(readable(Duration::from_millis(1500)), "1.5s");
        assert_eq!(readable(Duration::from_secs(60)), "1m");
        assert_eq!(readable(Duration::ZERO), "0nanos");
        assert_eq!(shortened("größer", 3), "grö");
    }
}
