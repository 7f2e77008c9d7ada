//! The engine's log events as lines on standard error, JSON or text, in the form of the HTTP layer's own.

use std::fmt::Debug;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use serde_json::{Map, Value};
use sparrow_engine::{Origin, SLOW_LOG_TARGET};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// Number in [`LEVELS`] of the most detailed level that is written, and whether lines are text instead of JSON. Set before the
/// engine opens, and read by all its threads.
static LEAST: AtomicUsize = AtomicUsize::new(INFO);
static AS_TEXT: AtomicBool = AtomicBool::new(false);

/// The levels as the server's options name them; each writes everything that the ones before it write.
const LEVELS: [&str; 5] = ["silent", "error", "warn", "info", "debug"];
const INFO: usize = 3;

/// Position of an event's level in [`LEVELS`].
fn number_of(level: Level) -> usize {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => INFO,
        _ => 4,
    }
}

/// Sets the log level, one of [`LEVELS`], and whether lines are text for people instead of JSON. An unknown level changes nothing.
pub(crate) fn configure(level: &str, as_text: bool) {
    if let Some(number) = LEVELS.iter().position(|known| *known == level) {
        LEAST.store(number, Relaxed);
    }
    AS_TEXT.store(as_text, Relaxed);
}

/// Writes events of the project's own crates. Spans are not used, so they are not kept.
struct Lines;

/// Sends the engine's events to standard error. Only the first call in a process counts.
pub(crate) fn install() {
    // An error means that a subscriber is there already, which is what is wanted.
    let _ = tracing::subscriber::set_global_default(Lines);
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let slow = metadata.target() == SLOW_LOG_TARGET;
        slow || (number_of(*metadata.level()) <= LEAST.load(Relaxed)
            && metadata.target().starts_with("sparrow"))
    }

    /// Asks again for each event of the project whether it is wanted, since the level may be set after the first one.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target().starts_with("sparrow") { Interest::sometimes() } else { Interest::never() }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let slow = event.metadata().target() == SLOW_LOG_TARGET;
        let now = timestamp(OffsetDateTime::now_utc());
        let level = event.metadata().level().as_str().to_lowercase();
        let mut fields = Map::new();
        if slow {
            // These have the names that tools for Elasticsearch's logs look for.
            fields.insert("@timestamp".into(), now.clone().into());
        }
        event.record(&mut Fields(&mut fields));
        if let Some(origin) = sparrow_engine::current_origin() {
            let Origin { request_id, trace_id, .. } = &*origin;
            for (name, value) in [("request_id", request_id), ("trace.id", trace_id)] {
                if let Some(value) = value {
                    fields.insert(name.into(), value.as_str().into());
                }
            }
        }
        let mut line = if AS_TEXT.load(Relaxed) {
            as_text(&now, &level, &fields)
        } else if slow {
            fields.remove("msg");
            Value::Object(fields).to_string()
        } else {
            let mut line = Map::new();
            line.insert("ts".into(), now.into());
            line.insert("level".into(), level.into());
            line.insert("msg".into(), fields.remove("msg").unwrap_or_default());
            line.append(&mut fields);
            line.insert("target".into(), event.metadata().target().into());
            Value::Object(line).to_string()
        };
        line = printable(&line);
        line.push('\n');
        // In one call, as the HTTP layer writes to the same file. Nothing can be done about a closed standard error.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line with escapes as in JSON for all that a reader would not see as it is, since clients choose ids, paths and headers: what a
/// terminal obeys or nobody sees, such as control characters and marks of direction. The HTTP layer's log has the same
/// (`packages/http/src/log.ts`).
fn printable(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter {
            '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(letter),
        }
    }
    out
}

/// A time in UTC with milliseconds, always three digits, in the form of the HTTP layer's log lines.
fn timestamp(moment: OffsetDateTime) -> String {
    const FORM: &[BorrowedFormatItem<'_>] =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    moment.format(FORM).unwrap_or_default()
}

/// A log line for people, in the form of the HTTP layer's: time, level, message, then the other fields.
fn as_text(now: &str, level: &str, fields: &Map<String, Value>) -> String {
    let level = fields.get("log.level").and_then(Value::as_str).unwrap_or(level).to_uppercase();
    let sentence = fields.get("msg").and_then(Value::as_str).unwrap_or_default();
    let mut line = format!("{now} {level:<5} {sentence}");
    for (name, value) in
        fields.iter().filter(|(name, _)| !matches!(name.as_str(), "msg" | "log.level" | "@timestamp"))
    {
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_nobody_would_see_is_escaped() {
        for (line, shown) in [
            ("plain: ä 東京 \u{1f600}", "plain: ä 東京 \u{1f600}"),
            ("a\u{9b}31mb\u{7f}\u{85}", r"a\u009b31mb\u007f\u0085"),
            ("\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}", r"\u202egpj.exe\u2066\u200b\ufeff"),
            ("two\nlines\r\u{2028}", r"two\u000alines\u000d\u2028"),
            ("\u{e0041}", r"\udb40\udc41"),
        ] {
            assert_eq!(printable(line), shown);
        }
    }
}
