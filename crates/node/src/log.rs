//! The engine's log events as JSON lines on standard error, in the form of the HTTP layer's own.

use std::fmt::Debug;
use std::io::Write;

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes events of the project's own crates from `INFO` up. Spans are not used, so they are not kept.
struct JsonLines;

/// Sends the engine's events to standard error. Only the first call in a process counts.
pub(crate) fn install() {
    // An error means that a subscriber is there already, which is what is wanted.
    let _ = tracing::subscriber::set_global_default(JsonLines);
}

impl Subscriber for JsonLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("sparrow")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let now = OffsetDateTime::now_utc();
        let now = now.replace_millisecond(now.millisecond()).unwrap_or(now);
        let mut line = Map::new();
        line.insert("ts".into(), now.format(&Rfc3339).unwrap_or_default().into());
        line.insert("level".into(), event.metadata().level().as_str().to_lowercase().into());
        line.insert("msg".into(), Value::Null);
        event.record(&mut Fields(&mut line));
        line.insert("target".into(), event.metadata().target().into());
        // Nothing can be done about a closed standard error.
        let _ = writeln!(std::io::stderr().lock(), "{}", Value::Object(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
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
