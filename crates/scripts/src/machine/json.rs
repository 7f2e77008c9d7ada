//! From values to JSON.

use serde_json::{Map, Number, Value as Json};
use sparrow_wire::strict_json::MOST_LEVELS;

use super::Run;
use crate::error::Fault;
use crate::value::Value;
use crate::value::collection::Key;
use crate::value::object::Object;

impl Run<'_> {
    /// Converts a value; `around` are the collections in which it is.
    pub(crate) fn json(&mut self, value: &Value, around: &mut Vec<Value>) -> Result<Json, Fault> {
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Float(float) => number(float.to_string().parse().unwrap_or(f64::NAN))?,
            Value::Double(double) => number(*double)?,
            Value::Text(text) => {
                self.tick_text(text.len())?;
                Json::String(text.to_string())
            }
            Value::Char(_) => Json::String(self.shown(value)?),
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Doc(_) => {
                self.collection(value, around)?
            }
            Value::Object(object) => match &**object {
                Object::View(..) => self.collection(value, around)?,
                Object::Moment(moment) => Json::String(moment.json()),
                Object::Named(..) | Object::Zone(_) | Object::Span(_) => Json::String(self.shown(value)?),
                _ => {
                    let class = value.class_name();
                    return Err(Fault::illegal(format!(
                        "cannot write xcontent for unknown value of type class {class}"
                    )));
                }
            },
            integer => Json::Number(integer.as_i64().unwrap_or_default().into()),
        })
    }

    fn collection(&mut self, value: &Value, around: &mut Vec<Value>) -> Result<Json, Fault> {
        if around.iter().any(|outer| outer.is_same(value)) {
            return Err(Fault::illegal("Iterable object is self-referencing itself"));
        }
        if around.len() >= MOST_LEVELS {
            return Err(Fault::illegal(format!("the value is nested deeper than [{MOST_LEVELS}] levels")));
        }
        around.push(value.clone());
        let json = if let Value::Map(table) = value {
            let entries = table.pairs();
            let mut members = Map::new();
            for (key, value) in entries {
                self.tick(1)?;
                let name = match &key {
                    Key::Text(text) => text.to_string(),
                    Key::Plain(Value::Null) => return Err(Fault::illegal("field name cannot be null")),
                    other => self.shown(&other.to_value())?,
                };
                let value = self.json(&value, around)?;
                members.insert(name, value);
            }
            Json::Object(members)
        } else {
            let items = self.items(value)?;
            let items: Result<Vec<Json>, Fault> = items.iter().map(|item| self.json(item, around)).collect();
            Json::Array(items?)
        };
        around.pop();
        Ok(json)
    }
}

fn number(double: f64) -> Result<Json, Fault> {
    match Number::from_f64(double) {
        Some(number) => Ok(Json::Number(number)),
        None => Err(Fault::illegal(format!("[{}] is no number of JSON", super::texts::java_f64(double)))),
    }
}
