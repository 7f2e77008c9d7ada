//! Methods of `StringBuilder`.

use super::strings::outside;
use super::{Found, int, objects::units, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::value::Value;
use crate::value::object::Builder;

impl Run<'_> {
    pub(super) fn builder_method(
        &mut self,
        own: &Value,
        builder: &Builder,
        name: &str,
        arguments: &[Value],
    ) -> Found {
        if let ("append", [value]) = (name, arguments) {
            let mut more = String::new();
            self.show(value, &mut more, 0)?;
            self.tick_text(more.len())?;
            self.room(more.len())?;
            builder.change(|own| own.push_str(&more));
            return Ok(Some(own.clone()));
        }
        if matches!((name, arguments), ("length", [])) && builder.text().is_ascii() {
            self.tick_text(builder.text().len())?;
            return Ok(Some(count(builder.text().len())));
        }
        let before = builder.text().clone();
        self.tick_text(before.len())?;
        self.room(before.len())?;
        let before = units(&before);
        let size = before.length();
        let byte = |at: &Value| -> Result<usize, Fault> {
            let at = int(at)?;
            match usize::try_from(at) {
                Ok(at) if at <= size => Ok(before.byte_at(at)),
                _ => Err(outside(format!("index {at},length {size}"))),
            }
        };
        let (from, to, by) = match (name, arguments) {
            ("insert", [at, value]) => {
                let at = byte(at)?;
                (at, at, self.shown(value)?)
            }
            ("delete" | "replace", [from, to, rest @ ..]) if rest.len() == usize::from(name == "replace") => {
                let end = usize::try_from(int(to)?).unwrap_or_default().min(size);
                let by = rest.first().map(text).transpose()?;
                (byte(from)?, before.byte_at(end), by.map(|by| by.to_string()).unwrap_or_default())
            }
            ("deleteCharAt" | "setCharAt", [at, rest @ ..])
                if rest.len() == usize::from(name == "setCharAt") =>
            {
                let from = byte(at)?;
                let end = before[from..].chars().next().map(|char| from + char.len_utf8());
                let end =
                    end.ok_or_else(|| outside(format!("index {},length {size}", before.position(from))))?;
                let by = rest.first().map(text).transpose()?;
                (from, end, by.map(|by| by.to_string()).unwrap_or_default())
            }
            ("setLength", [length]) => {
                let length = super::length(length)?;
                self.room(length)?;
                (before.byte_at(length), before.len(), "\0".repeat(length.saturating_sub(size)))
            }
            ("reverse", []) => (0, before.len(), before.chars().rev().collect()),
            ("toString", []) => return Ok(Some(Value::Text(before))),
            // The rest is as strings have it.
            ("length" | "charAt" | "indexOf" | "lastIndexOf" | "substring" | "isEmpty" | "chars", _) => {
                return self.string_method(&before, name, arguments);
            }
            _ => return Ok(None),
        };
        if from > to {
            return Err(outside(format!("start {from}, end {to}, length {size}")));
        }
        self.tick_text(by.len())?;
        self.room(by.len())?;
        builder.change(|own| own.replace_range(from..to, &by));
        Ok(Some(if matches!(name, "setLength" | "setCharAt") { Value::Null } else { own.clone() }))
    }
}
