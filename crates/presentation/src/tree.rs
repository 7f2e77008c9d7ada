//! Changes that need the answer as a tree: readable forms of statistics (`human`) and error traces
//! (`error_trace`).

use sparrow_mapping::date::iso_millis;

use super::scan::{Malformed, Scanner, Token, escaped, unescaped};

/// A JSON tree whose scalars and keys are slices of the text.
pub(super) enum Json<'a> {
    Scalar(&'a [u8]),
    /// A scalar that was added, and is not in the text.
    Made(Vec<u8>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Vec<u8>, Json<'a>)>),
}

/// Deepest nesting, in levels, that is read; statistics and errors have a few levels.
const MOST_LEVELS: usize = 64;

/// Reads JSON; `None` if it is nested deeper than [`MOST_LEVELS`].
pub(super) fn read(bytes: &[u8]) -> Result<Option<Json<'_>>, Malformed> {
    let mut scanner = Scanner::new(bytes);
    let first = scanner.next()?.ok_or(Malformed)?;
    value(&mut scanner, first, MOST_LEVELS)
}

fn value<'a>(
    scanner: &mut Scanner<'a>,
    token: Token<'a>,
    left: usize,
) -> Result<Option<Json<'a>>, Malformed> {
    match token {
        Token::Scalar(text) => Ok(Some(Json::Scalar(text))),
        Token::ArrayStart | Token::ObjectStart if left == 0 => Ok(None),
        Token::ArrayStart => {
            let mut items = Vec::new();
            loop {
                match scanner.next()?.ok_or(Malformed)? {
                    Token::ArrayEnd => return Ok(Some(Json::Array(items))),
                    token => match value(scanner, token, left - 1)? {
                        Some(item) => items.push(item),
                        None => return Ok(None),
                    },
                }
            }
        }
        Token::ObjectStart => {
            let mut members = Vec::new();
            loop {
                let Token::Key(key) = scanner.next()?.ok_or(Malformed)? else {
                    return Ok(Some(Json::Object(members)));
                };
                let token = scanner.next()?.ok_or(Malformed)?;
                match value(scanner, token, left - 1)? {
                    Some(member) => members.push((key.to_vec(), member)),
                    None => return Ok(None),
                }
            }
        }
        Token::ObjectEnd | Token::ArrayEnd | Token::Key(_) => Err(Malformed),
    }
}

/// Writes JSON without whitespace between tokens.
pub(super) fn write(json: &Json<'_>, out: &mut Vec<u8>) {
    match json {
        Json::Scalar(text) => out.extend_from_slice(text),
        Json::Made(text) => out.extend_from_slice(text),
        Json::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (place, (key, member)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(key);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
    }
}

impl Json<'_> {
    fn text(&self) -> Option<&[u8]> {
        match self {
            Json::Scalar(text) => Some(text),
            Json::Made(text) => Some(text),
            Json::Array(_) | Json::Object(_) => None,
        }
    }

    fn member(&self, key: &[u8]) -> Option<&Self> {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, member)| member),
            _ => None,
        }
    }

    /// Text of a scalar, a string without quotes and escapes; empty for a container.
    fn said(&self) -> Vec<u8> {
        match self.text() {
            Some(text) if text.starts_with(b"\"") => unescaped(text),
            Some(text) => text.to_vec(),
            None => Vec::new(),
        }
    }
}

/// Adds `stack_trace` to an error and each of its causes. The engine answers with values and unwinds no stack, so a trace names
/// what went wrong, each cause under the one that it caused, and the request (`METHOD /path`).
pub(super) fn trace(body: &mut Json<'_>, request: &str) {
    if let Json::Object(members) = body {
        for (key, member) in members {
            if key == b"\"error\"" && matches!(member, Json::Object(_)) {
                trace_error(member, request);
            }
        }
    }
}

fn trace_error(error: &mut Json<'_>, request: &str) {
    let text = escaped(&lines(error, request).join(&b'\n'));
    let Json::Object(members) = error else { return };
    for (key, member) in members.iter_mut() {
        match (key.as_slice(), member) {
            (b"\"caused_by\"", member) => trace_error(member, request),
            (b"\"root_cause\"", Json::Array(causes)) => {
                causes.iter_mut().for_each(|cause| trace_error(cause, request));
            }
            _ => {}
        }
    }
    members.push((b"\"stack_trace\"".to_vec(), Json::Made(text)));
}

fn lines(error: &Json<'_>, request: &str) -> Vec<Vec<u8>> {
    let said = |key: &[u8]| error.member(key).map(Json::said).unwrap_or_default();
    let head = [said(b"\"type\""), said(b"\"reason\"")].join(b": ".as_slice());
    let mut all = vec![head, format!("\tat {request}").into_bytes()];
    if let Some(cause @ Json::Object(_)) = error.member(b"\"caused_by\"") {
        let mut rest = lines(cause, request);
        if let Some(first) = rest.first_mut() {
            first.splice(0..0, *b"Caused by: ");
        }
        all.append(&mut rest);
    }
    all
}

/// Adds a readable form before each number of bytes or milliseconds (`size` before `size_in_bytes`). Only for
/// statistics: documents may have fields with such names.
pub(super) fn humanize(json: &mut Json<'_>) {
    match json {
        Json::Scalar(_) | Json::Made(_) => {}
        Json::Array(items) => items.iter_mut().for_each(humanize),
        Json::Object(members) => {
            let present: rustc_hash::FxHashSet<Vec<u8>> =
                members.iter().map(|(key, _)| key.clone()).collect();
            let mut all = Vec::with_capacity(members.len());
            for (key, mut member) in std::mem::take(members) {
                let twin = member.text().and_then(|text| twin_of(&key, text));
                humanize(&mut member);
                if let Some((name, shown)) = twin
                    && !present.contains(&name)
                {
                    all.push((name, Json::Made(escaped(shown.as_bytes()))));
                }
                all.push((key, member));
            }
            *members = all;
        }
    }
}

/// The version of Elasticsearch whose indices have the version in `settings.index.version.created`.
const CREATED: &str = "8.19.0";

/// Name (in quotes) and value of the readable form of a scalar; `None` if the key has none.
fn twin_of(key: &[u8], text: &[u8]) -> Option<(Vec<u8>, String)> {
    let name = std::str::from_utf8(key.get(1..key.len().checked_sub(1)?)?).ok()?;
    let text = std::str::from_utf8(text).ok()?;
    if name == "creation_date" {
        let number = match text.replace('"', "").as_str() {
            "" => 0.0,
            digits => digits.parse().unwrap_or(f64::NAN),
        };
        return Some((b"\"creation_date_string\"".to_vec(), moment(number)));
    }
    // The version of an index is the only text of this name; others are numbers of documents.
    if name == "created" && text.starts_with('"') {
        return Some((b"\"created_string\"".to_vec(), CREATED.to_owned()));
    }
    let (stem, unit) = ["bytes", "millis", "nanos", "micros"].into_iter().find_map(|unit| {
        Some((name.strip_suffix(unit)?.strip_suffix("_in_").filter(|stem| !stem.is_empty())?, unit))
    })?;
    let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
    let is_moment = matches!(stem, "start_time" | "creation" | "timestamp") || stem.ends_with("_date");
    let shown = match unit {
        "bytes" => size(number),
        "millis" if is_moment => moment(number),
        "millis" => time(number),
        _ => short_time(number, unit),
    };
    Some((escaped(stem.as_bytes()), shown))
}

fn size(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["b", "kb", "mb", "gb", "tb", "pb"];
    let (mut amount, mut unit) = (bytes, 0);
    while amount.abs() >= 1024.0 && unit < UNITS.len() - 1 {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{}{}", decimal(amount), UNITS[unit])
}

fn time(milliseconds: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("d", 86_400_000.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1000.0)];
    let fitting = UNITS.into_iter().find(|(_, length)| milliseconds.abs() >= *length);
    let (unit, length) = fitting.unwrap_or(("ms", 1.0));
    format!("{}{unit}", decimal(milliseconds / length))
}

fn short_time(number: f64, unit: &str) -> String {
    let micros = if unit == "micros" { number } else { number / 1000.0 };
    if micros.abs() >= 1000.0 {
        return time(micros / 1000.0);
    }
    if unit == "nanos" && number.abs() < 1000.0 {
        let is_tiny = number != 0.0 && number.abs() < 1e-6;
        return if is_tiny { format!("{number:e}nanos") } else { format!("{}nanos", number + 0.0) };
    }
    format!("{}micros", decimal(micros))
}

/// Formats a number with one decimal, truncated, and without decimals if that is 0.
fn decimal(number: f64) -> String {
    // Adding nothing takes the sign from a zero.
    format!("{}", (number * 10.0).trunc() / 10.0 + 0.0)
}

/// A time, in milliseconds since the epoch, in ISO 8601; empty for one outside the calendar.
#[expect(clippy::cast_possible_truncation, reason = "what calendars have is far inside the range of an i64")]
fn moment(milliseconds: f64) -> String {
    let is_in_range = milliseconds.is_finite() && milliseconds.abs() < 8.64e15;
    is_in_range.then(|| iso_millis(milliseconds as i64)).flatten().unwrap_or_default()
}
