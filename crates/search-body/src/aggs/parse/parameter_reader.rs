//! Reading the parameters of one aggregation, each with the error that a wrong value gets.

use serde_json::Value;
use sparrow_aggregations::{MetricPath, Order, OrderBy, ValueSource, ValueType};
use sparrow_wire::Zone;

use sparrow_query::dsl::value;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};
use sparrow_wire::shape::Shape;
use sparrow_wire::suggest::near;

/// Most numbers that a script reads of each bucket, and most that buckets are sorted by.
pub const MOST_PATHS: usize = 100;

/// Reads the members of an aggregation's object, and knows what errors call it.
#[derive(Clone, Copy)]
pub struct ParameterReader<'a> {
    /// The type.
    pub parser: &'static str,
    /// Name that the request gives the aggregation.
    pub name: &'a str,
    /// The options object.
    pub node: &'a Node,
    /// The names of the parameters that the type has.
    pub known: &'static [&'static str],
}

impl<'a> ParameterReader<'a> {
    /// The members that are read.
    pub fn members(&self) -> &'a [Member] {
        self.node.as_object().unwrap_or_default()
    }

    /// The error for a parameter that the aggregation type does not have.
    pub fn unknown(&self, member: &Member) -> BodyError {
        BodyError::unknown_field(self.parser, member, self.known)
    }

    /// The error for a member that an aggregation does not have, in the form that also names the kind of its value, such as `START_OBJECT`.
    pub fn unknown_key(&self, member: &Member) -> BodyError {
        let (token, name) = (member.value.token(), &*member.name);
        let near = near(name, self.known);
        let reason = format!("Unknown key for a {token} in [{}]: [{name}].{near}", self.name);
        BodyError::parsing(member.value.at, reason)
    }

    /// The error for a member that an object inside the aggregation does not have.
    pub fn unknown_in(&self, object: &Shape, member: &Member) -> BodyError {
        BodyError::unknown_field(self.parser, member, object.names())
    }

    /// The error for a value of the wrong JSON type.
    pub fn wrong_type(&self, key: &str, node: &Node) -> BodyError {
        BodyError::ValueType { parser: self.parser, field: key.to_owned(), token: node.token(), at: node.at }
    }

    /// The error for a value of the right type that is invalid.
    pub fn invalid(&self, member: &Member, reason: impl Into<String>) -> BodyError {
        BodyError::illegal(reason).within(self.parser, &member.name, member.value.at)
    }

    /// Reads a whole number of at least `least`; `label` names it in errors.
    pub fn whole(&self, member: &Member, least: i64, label: &str) -> Result<i64, BodyError> {
        if !member.value.is_scalar() || matches!(member.value.json, Json::Null | Json::Bool(_)) {
            return Err(self.wrong_type(&member.name, &member.value));
        }
        let within = |error: BodyError| error.within(self.parser, &member.name, member.value.at);
        let number = match &member.value.json {
            Json::Number(text) | Json::String(text) => match text.parse::<i64>() {
                Ok(number) => number,
                Err(_) => i64::from(value::int(&member.value).map_err(within)?),
            },
            _ => i64::from(value::int(&member.value).map_err(within)?),
        };
        if number < least {
            let bound = match least {
                1 => "greater than 0".to_owned(),
                least => format!("greater than or equal to {least}"),
            };
            return Err(self
                .invalid(member, format!("[{label}] must be {bound}. Found [{number}] in [{}]", self.name)));
        }
        Ok(number)
    }

    /// Reads a scalar, a text of up to [`sparrow_wire::MOST_REPEATED`] characters.
    pub fn scalar(&self, member: &Member) -> Result<Value, BodyError> {
        let scalar = scalar(self, &member.name, &member.value)?;
        self.check_length(member, scalar.as_str().unwrap_or_default(), sparrow_wire::MOST_REPEATED)?;
        Ok(scalar)
    }

    /// Reads a floating-point number, also from a string; NaN is an error.
    pub fn float(&self, member: &Member) -> Result<f64, BodyError> {
        let text = match &member.value.json {
            Json::Number(text) | Json::String(text) => text,
            _ => return Err(self.wrong_type(&member.name, &member.value)),
        };
        match text.trim().parse::<f64>() {
            Ok(number) if !number.is_nan() => Ok(number),
            _ => Err(BodyError::NumberFormat { input: text.to_string() }.within(
                self.parser,
                &member.name,
                member.value.at,
            )),
        }
    }

    /// Reads a boolean, also from a string.
    pub fn boolean(&self, member: &Member) -> Result<bool, BodyError> {
        if !matches!(member.value.json, Json::Bool(_) | Json::String(_)) {
            return Err(self.wrong_type(&member.name, &member.value));
        }
        value::boolean(&member.value)
            .map_err(|error| error.within(self.parser, &member.name, member.value.at))
    }

    /// Reads a string of up to [`sparrow_wire::MOST_REPEATED`] characters; a number or boolean is taken as its text.
    pub fn text(&self, member: &Member) -> Result<String, BodyError> {
        self.text_of(member, sparrow_wire::MOST_REPEATED)
    }

    /// Reads a format of dates or numbers.
    pub fn format(&self, member: &Member) -> Result<String, BodyError> {
        self.text_of(member, value::MOST_FORMAT)
    }

    fn text_of(&self, member: &Member, most: usize) -> Result<String, BodyError> {
        let text = match &member.value.json {
            Json::String(text) => text.to_string(),
            Json::Number(text) => text.to_string(),
            Json::Bool(value) => value.to_string(),
            _ => return Err(self.wrong_type(&member.name, &member.value)),
        };
        self.check_length(member, &text, most)?;
        Ok(text)
    }

    /// Checks the length of a name that the request gives a bucket or a part of its key.
    pub fn check_name(&self, member: &Member) -> Result<(), BodyError> {
        value::check_length("the name of a bucket or source", &member.name, sparrow_wire::MOST_REPEATED)
            .map_err(|error| error.within(self.parser, self.name, member.at))
    }

    fn check_length(&self, member: &Member, text: &str, most: usize) -> Result<(), BodyError> {
        value::check_length(&format!("[{}]", member.name), text, most)
            .map_err(|error| error.within(self.parser, &member.name, member.value.at))
    }

    /// Reads an array of numbers.
    pub fn floats(&self, member: &Member) -> Result<Vec<f64>, BodyError> {
        let Some(items) = member.value.as_array() else {
            return Err(self.wrong_type(&member.name, &member.value));
        };
        let mut numbers = Vec::with_capacity(items.len());
        for item in items {
            let number = match &item.json {
                Json::Number(text) | Json::String(text) => text.trim().parse::<f64>().ok(),
                _ => None,
            };
            match number.filter(|number| number.is_finite()) {
                Some(number) => numbers.push(number),
                None => {
                    let input = match &item.json {
                        Json::String(text) => text.to_string(),
                        _ => item.token().to_owned(),
                    };
                    return Err(BodyError::NumberFormat { input }.within(self.parser, &member.name, item.at));
                }
            }
        }
        Ok(numbers)
    }

    /// Reads a parameter that says which values are aggregated (such as `field`, `missing` or `format`), if
    /// it is one that the aggregation has; returns `false` for any other parameter.
    pub fn source(&self, member: &Member, source: &mut ValueSource) -> Result<bool, BodyError> {
        let key = &*member.name;
        if key == "script" {
            return Err(BodyError::parsing(
                member.value.at,
                format!(
                    "[script] of the [{}] aggregation [{}] is not supported by this server",
                    self.parser, self.name
                ),
            ));
        }
        if !self.known.contains(&key) {
            return Ok(false);
        }
        match key {
            "field" => source.field = self.text(member)?,
            "missing" => source.missing = Some(self.scalar(member)?),
            "format" => source.format = Some(self.format(member)?),
            "time_zone" => source.time_zone = Some(self.time_zone(member)?),
            "value_type" => {
                let name = self.text(member)?;
                source.value_type = Some(match name.as_str() {
                    "string" => ValueType::String,
                    "long" | "integer" | "short" | "byte" => ValueType::Long,
                    "double" | "float" | "number" | "numeric" => ValueType::Double,
                    "date" => ValueType::Date,
                    "boolean" => ValueType::Boolean,
                    _ => {
                        return Err(self.invalid(member, format!("Unknown value type [{name}]")));
                    }
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a time zone: a zone name, an offset, or a number of hours.
    fn time_zone(&self, member: &Member) -> Result<String, BodyError> {
        let text = match &member.value.json {
            Json::Number(hours) => {
                let hours: i32 = hours
                    .parse()
                    .map_err(|_| self.invalid(member, format!("Unknown time-zone ID: {hours}")))?;
                format!("{}{:02}:00", if hours < 0 { '-' } else { '+' }, hours.abs())
            }
            _ => self.text(member)?,
        };
        match Zone::parse(&text) {
            Some(_) => Ok(text),
            None => Err(self.invalid(member, format!("Unknown time-zone ID: {text}"))),
        }
    }

    /// Checks that a field was named.
    pub fn need_field(&self, source: &ValueSource) -> Result<(), BodyError> {
        match source.field.is_empty() {
            true => {
                Err(BodyError::illegal("Required one of fields [field, script], but none were specified. "))
            }
            false => Ok(()),
        }
    }

    /// Checks that buckets are not sorted by too many keys.
    pub fn check_keys(&self, option: &str, keys: usize) -> Result<(), BodyError> {
        match keys > MOST_PATHS {
            true => Err(BodyError::illegal(format!(
                "[{option}] of aggregation [{}] has more than [{MOST_PATHS}] keys",
                self.name
            ))),
            false => Ok(()),
        }
    }

    /// Reads a bucket `order`: a single one or an array of them.
    pub fn order(&self, member: &Member) -> Result<Vec<Order>, BodyError> {
        let mut orders = Vec::new();
        match &member.value.json {
            Json::Object(_) => orders.push(self.one_order(&member.value)?),
            Json::Array(items) => {
                self.check_keys(&member.name, items.len())?;
                for item in items {
                    orders.push(self.one_order(item)?);
                }
            }
            _ => return Err(self.wrong_type(&member.name, &member.value)),
        }
        // Ties are broken by the key, upwards, unless the order says it itself.
        if !orders.iter().any(|order: &Order| order.by == OrderBy::Key) {
            orders.push(Order { by: OrderBy::Key, ascending: true });
        }
        Ok(orders)
    }

    fn one_order(&self, node: &Node) -> Result<Order, BodyError> {
        let Some([member]) = node.as_object() else {
            return Err(BodyError::parsing(node.at, "Must specify at least one field for [order]"));
        };
        let direction = match &member.value.json {
            Json::String(text) => text.to_ascii_lowercase(),
            _ => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("Unexpected token [{}] for [order]", member.value.token()),
                ));
            }
        };
        let ascending = match direction.as_str() {
            "asc" => true,
            "desc" => false,
            other => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("Unknown order direction [{other}]"),
                ));
            }
        };
        let by = match &*member.name {
            "_count" => OrderBy::Count,
            "_key" => OrderBy::Key,
            path => OrderBy::Metric(metric_path(path)),
        };
        Ok(Order { by, ascending })
    }
}

/// Parses the path to a numeric result: `outer>inner.property`, `inner[property]`, `_count`.
pub fn metric_path(text: &str) -> MetricPath {
    let mut names: Vec<String> = text.split('>').map(|name| name.trim().to_owned()).collect();
    let mut property = None;
    if let Some(last) = names.last_mut() {
        if let Some((name, rest)) = last.split_once('[') {
            property = Some(rest.trim_end_matches(']').to_owned());
            *last = name.to_owned();
        } else if let Some((name, rest)) = last.rsplit_once('.') {
            property = Some(rest.to_owned());
            *last = name.to_owned();
        }
    }
    if names.last().is_some_and(|name| name.is_empty()) {
        names.pop();
    }
    MetricPath { text: text.to_owned(), names, property }
}

/// The value of a scalar; objects and arrays are refused.
pub fn scalar(reader: &ParameterReader<'_>, key: &str, node: &Node) -> Result<Value, BodyError> {
    match node.json {
        Json::Object(_) | Json::Array(_) | Json::Null => Err(reader.wrong_type(key, node)),
        _ => Ok(node.to_value()),
    }
}
