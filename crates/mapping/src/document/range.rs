//! Values of fields of ranges: objects with the ends of a range, and networks of addresses.

use serde_json::Value;

use super::super::error::{Cause, illegal};
use super::super::java::{java_string, token_name};
use super::super::types::{FieldType, NumberValue};
use super::super::{LeafNode, date, ip, range};
use super::Reader;

impl Reader<'_> {
    /// Reads a range of values of the type `of`.
    pub(super) fn range(
        &mut self,
        leaf: &LeafNode,
        of: &FieldType,
        path: &str,
        value: &Value,
    ) -> Result<(), Vec<Cause>> {
        let (mut first, mut last) = range::bounds(of).into_inner();
        match value {
            Value::Null => return Ok(()),
            Value::String(text) if *of == FieldType::Ip => {
                (first, last) = ip::network_bits(text).map_err(illegal)?;
            }
            Value::Object(ends) => {
                for (name, end) in ends {
                    let (is_first, step) = match name.as_str() {
                        "gte" => (true, 0),
                        "gt" => (true, 1),
                        "lte" => (false, 0),
                        "lt" => (false, 1),
                        _ => {
                            return Err(illegal(format!(
                                "error parsing field [{path}], with unknown parameter [{name}]"
                            )));
                        }
                    };
                    // As in queries, `gt` and `lte` look at the last moment of a day that is named without a time.
                    let round_up = is_first == (step == 1);
                    let Some(rank) = self.place_of_end(leaf, of, end, round_up)? else { continue };
                    let beyond = || illegal(format!("no value is {name} [{}]", java_string(end)));
                    match is_first {
                        true => first = rank.checked_add(step).ok_or_else(beyond)?,
                        false => last = rank.checked_sub(step).ok_or_else(beyond)?,
                    }
                }
            }
            other => {
                return Err(illegal(format!(
                    "error parsing field [{path}], expected an object but got {}",
                    token_name(other)
                )));
            }
        }
        if first > last {
            let shown = |rank| match range::number_at(of, rank) {
                _ if *of == FieldType::Ip => ip::shown(&range::digits(of, rank)),
                NumberValue::F64(number) => number.to_string(),
                NumberValue::I64(number) if of.date_formats().is_none() => number.to_string(),
                NumberValue::I64(millis) => date::format_millis(millis),
                NumberValue::U64(_) | NumberValue::Bool(_) => String::new(),
            };
            return Err(illegal(format!(
                "min value ({}) is greater than max value ({})",
                shown(first),
                shown(last)
            )));
        }
        if leaf.options.indexed {
            self.values.seen(path);
            let keyword = range::digits(of, first) + &range::digits(of, last);
            self.values.add_keyword(path, keyword.into());
        }
        Ok(())
    }

    /// The place of an end of a range; `None` for one that is open.
    fn place_of_end(
        &mut self,
        leaf: &LeafNode,
        of: &FieldType,
        end: &Value,
        round_up: bool,
    ) -> Result<Option<u128>, Vec<Cause>> {
        match (of, end) {
            (_, Value::Null) => Ok(None),
            (FieldType::Ip, _) => {
                let text = java_string(end);
                let address = ip::parse(&text).ok_or_else(|| illegal(ip::not_an_address(&text)))?;
                Ok(Some(range::rank_of_address(address)))
            }
            (FieldType::Date { formats }, Value::String(text)) if round_up => {
                // A text that is no date has its error from below.
                match date::parse_date(formats, text, true) {
                    Some(millis) => Ok(Some(range::rank(of, NumberValue::I64(millis)))),
                    None => self.place_of_end(leaf, of, end, false),
                }
            }
            _ => Ok(self.number(of, leaf.options.coerce, end)?.map(|number| range::rank(of, number))),
        }
    }
}
