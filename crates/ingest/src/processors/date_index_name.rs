//! `date_index_name`: sends a document to the index of its day, month or year.

use serde_json::Value;
use sparrow_wire::{DatePattern, Zone};

use super::date::{Format, english_only, formats, parse, text_of};
use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, list, of_field, text};
use crate::template::{Escape, Template};

/// Names the index of a document by a date in it.
#[derive(Debug)]
pub(crate) struct DateIndexName {
    field: String,
    prefix: Template,
    rounding: Template,
    formats: Vec<Format>,
    zone: Zone,
    zone_name: String,
    name_format: Template,
}

pub(super) fn date_index_name_shape() -> Shape {
    of_field([
        ("date_rounding", text()),
        ("date_formats", list(text())),
        ("index_name_prefix", text()),
        ("index_name_format", text().preset("yyyy-MM-dd")),
        ("timezone", text()),
        ("locale", text()),
    ])
    .needs(&["field", "date_rounding"])
}

impl DateIndexName {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let zone_name = match config.optional("timezone") {
            None => "UTC".to_owned(),
            Some(Value::String(name)) => name,
            Some(other) => return Err(config.wrong_type("timezone", "string", &other)),
        };
        let zone = Zone::parse(&zone_name)
            .ok_or_else(|| config.unusable("timezone", format!("Unknown time-zone ID: {zone_name}")))?;
        english_only(config)?;
        let formats = match formats(config, "date_formats")? {
            Some(formats) => formats,
            None => vec![Format::iso8601()],
        };
        let field = config.field("field")?;
        let prefix = optional_template(config, "index_name_prefix", "")?;
        let rounding = config.template("date_rounding")?;
        let name_format = optional_template(config, "index_name_format", "yyyy-MM-dd")?;
        Ok(Self { field, prefix, rounding, formats, zone, zone_name, name_format })
    }
}

impl Processor for DateIndexName {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let text = text_of(document, &self.field)?;
        let date = parse(&self.formats, &text, &self.zone).ok_or(ProcessorError::Date { value: text })?;
        let prefix = self.prefix.render(document, Escape::Plain)?;
        let rounding = self.rounding.render(document, Escape::Plain)?;
        let format = self.name_format.render(document, Escape::Plain)?;
        let pattern = DatePattern::parse(&format).map_err(|reason| ProcessorError::Form { reason })?;
        let written = pattern.write_local(date, &self.zone);
        let zone = &self.zone_name;
        document
            .set("_index", Value::String(format!("<{prefix}{{{written}||/{rounding}{{{format}|{zone}}}}}>")))
    }
}

fn optional_template(config: &mut Config, name: &str, default: &str) -> Result<Template, ConfigError> {
    let text = config.optional_text(name)?.unwrap_or_else(|| default.to_owned());
    Template::parse(&text).map_err(|reason| config.unusable(name, reason))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::chain::Action;
    use crate::document::Document;
    use crate::processors::build_node;

    fn index(parameters: Value, date: Value) -> Result<String, String> {
        let node = build_node(json!({"date_index_name": parameters}), 0)
            .map_err(|error| format!("config: {error}"))?;
        let Action::Each(processor) = node.action else { unreachable!() };
        let Value::Object(source) = json!({"d": date, "p": "logs-"}) else { unreachable!() };
        let mut document = Document { source, ..Document::default() };
        processor.run(&mut document).map_err(|error| error.to_string())?;
        Ok(document.metadata["_index"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_date_names_an_index() {
        for (parameters, date, expected) in [
            (
                json!({"field": "d", "index_name_prefix": "events-", "date_rounding": "d"}),
                json!("2016-04-22T16:32:14.968Z"),
                "<events-{2016-04-22||/d{yyyy-MM-dd|UTC}}>",
            ),
            (
                json!({"field": "d", "index_name_prefix": "{{p}}", "date_rounding": "M", "index_name_format": "yyyy-MM",
                       "date_formats": ["UNIX"], "timezone": "Europe/Berlin"}),
                json!(1_483_225_200),
                "<logs-{2017-01||/M{yyyy-MM|Europe/Berlin}}>",
            ),
        ] {
            assert_eq!(index(parameters, date).unwrap(), expected);
        }
        for (parameters, date, message) in [
            (json!({"field": "d", "date_rounding": "d"}), json!("x"), "unable to parse date [x]"),
            (
                json!({"field": "d", "date_rounding": "d"}),
                Value::Null,
                "field [d] is null, cannot extract date",
            ),
            (json!({"field": "d"}), json!("x"), "config: [date_rounding] required property is missing"),
            (
                json!({"field": "d", "date_rounding": "d", "timezone": "Mars"}),
                json!("x"),
                "config: [timezone] Unknown time-zone ID: Mars",
            ),
        ] {
            assert_eq!(index(parameters, date).unwrap_err(), message);
        }
    }
}
