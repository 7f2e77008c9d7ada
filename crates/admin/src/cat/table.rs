//! Tables in text or JSON: columns are selected, sorted and formatted as requests ask.

use sparrow_wire::size::{human_bytes, tenths};
use std::cmp::Ordering;

use serde_json::{Map, Value};

use sparrow_request::error::EngineError;
use sparrow_request::params::Params;
use sparrow_request::request::Reply;
use sparrow_wire::glob;

/// One column of a table.
pub(super) struct Column {
    name: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
    /// Whether values are aligned to the right, as numbers are.
    right: bool,
    /// Whether the column is shown if the request selects no columns.
    shown: bool,
    /// Whether the column is also shown if the request asks for details.
    detail: bool,
}

/// A column of text, aligned to the left and shown by default.
pub(super) const fn text(
    name: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
) -> Column {
    Column { name, aliases, about, right: false, shown: true, detail: false }
}

/// A column of numbers, aligned to the right and shown by default.
pub(super) const fn number(
    name: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
) -> Column {
    Column { name, aliases, about, right: true, shown: true, detail: false }
}

impl Column {
    /// Makes this column one that is shown only if the request selects it.
    pub(super) const fn on_request(mut self) -> Self {
        self.shown = false;
        self
    }

    /// Makes this column one that is shown only if the request selects it or asks for details.
    pub(super) const fn when_detailed(mut self) -> Self {
        self.shown = false;
        self.detail = true;
        self
    }
}

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Nothing,
    Text(String),
    Number(f64),
    /// A number of bytes, shown in the unit that the request asks for, or else in a suitable one.
    Bytes(u64),
    /// A time in milliseconds, shown in the unit that the request asks for, or else in a suitable one.
    Millis(u64),
    Nanos(u64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl Cell {
    fn compare(&self, other: &Self) -> Ordering {
        let rank = |cell: &Self| match cell {
            Self::Nothing => 0,
            Self::Text(_) => 2,
            Self::Number(_) | Self::Bytes(_) | Self::Millis(_) | Self::Nanos(_) => 1,
        };
        let number = |cell: &Self| match cell {
            Self::Number(number) => *number,
            Self::Bytes(bytes) => *bytes as f64,
            Self::Millis(millis) => *millis as f64 * 1e6,
            Self::Nanos(nanos) => *nanos as f64,
            Self::Nothing | Self::Text(_) => 0.0,
        };
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)).then(number(self).total_cmp(&number(other))),
        }
    }

    fn show(&self, units: Units) -> Option<String> {
        let time = |nanos: u64| match units.nanos {
            Some(unit) => (nanos / unit).to_string(),
            None => human_time(nanos),
        };
        match self {
            Self::Nothing => None,
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            Self::Millis(millis) => Some(time(millis.saturating_mul(1_000_000))),
            Self::Nanos(nanos) => Some(time(*nanos)),
            Self::Bytes(bytes) => Some(match units.bytes {
                Some(unit) => (bytes / unit).to_string(),
                None => human_bytes(*bytes),
            }),
        }
    }
}

/// The units in which a request wants sizes and times, as their sizes in bytes and nanoseconds; `None` for suitable
/// ones.
#[derive(Clone, Copy)]
struct Units {
    bytes: Option<u64>,
    nanos: Option<u64>,
}

/// A table, whose rows have a cell for each column.
pub(super) struct Table {
    columns: &'static [Column],
    detailed: bool,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(columns: &'static [Column]) -> Self {
        Self { columns, detailed: false, rows: Vec::new() }
    }

    /// Whether columns of details are shown.
    pub(super) fn detailed(&mut self, detailed: bool) {
        self.detailed = detailed;
    }

    /// Adds a row; missing cells are empty.
    pub(super) fn row(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::Nothing);
        self.rows.push(cells);
    }

    /// Formats the table as the parameters of the request specify.
    ///
    /// # Errors
    /// Illegal argument for an unknown unit, format or sort column.
    pub(super) fn reply(mut self, params: &Params<'_>) -> Result<Reply, EngineError> {
        if params.bool("help", false)? {
            return Ok(Reply::text(self.help()));
        }
        let units = Units { bytes: byte_unit(params)?, nanos: time_unit(params)? };
        self.sort(params)?;
        let shown = self.choose(params.get("h"));
        let rows = self
            .rows
            .iter()
            .map(|row| shown.iter().map(|(at, _)| row[*at].show(units)).collect::<Vec<Option<String>>>());
        match params.get("format") {
            Some("json") => {
                let objects = rows.map(|row| {
                    let names = shown.iter().map(|(_, name)| (*name).to_owned());
                    Value::Object(names.zip(row.into_iter().map(Value::from)).collect::<Map<_, _>>())
                });
                Ok(Reply::ok(&Value::Array(objects.collect())))
            }
            None | Some("text" | "txt" | "") => {
                let head = params
                    .bool("v", false)?
                    .then(|| shown.iter().map(|(_, name)| (*name).to_owned()).collect());
                let rows = rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
                let right: Vec<bool> = shown.iter().map(|(at, _)| self.columns[*at].right).collect();
                Ok(Reply::text(lay_out(head.into_iter().chain(rows).collect(), &right)))
            }
            Some(other) => Err(EngineError::illegal_argument(format!(
                "format [{other}] is not supported, use [text] or [json]"
            ))),
        }
    }

    /// The indexes of the columns to show, each with the name by which the request selected it.
    fn choose<'a>(&self, wanted: Option<&'a str>) -> Vec<(usize, &'a str)>
    where
        'static: 'a,
    {
        let all = self.columns.iter().enumerate();
        let Some(list) = wanted else {
            return all
                .filter(|(_, column)| column.shown || (column.detail && self.detailed))
                .map(|(at, column)| (at, column.name))
                .collect();
        };
        let mut chosen: Vec<(usize, &'a str)> = Vec::new();
        for name in list.split(',').map(str::trim) {
            if let Some(at) = self.columns.iter().position(|column| column.name == name) {
                chosen.push((at, name));
            } else if name.contains('*') {
                for (at, column) in self.columns.iter().enumerate() {
                    if glob::matches(name, column.name) && !chosen.iter().any(|(other, _)| *other == at) {
                        chosen.push((at, column.name));
                    }
                }
            } else if let Some(at) = self.find(name) {
                chosen.push((at, name));
            }
        }
        chosen
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name || column.aliases.contains(&name))
    }

    fn sort(&mut self, params: &Params<'_>) -> Result<(), EngineError> {
        let mut keys = Vec::new();
        for key in params.get("s").into_iter().flat_map(|list| list.split(',')) {
            let key = key.trim();
            let (name, descending) = match key.strip_suffix(":desc") {
                Some(name) => (name, true),
                None => (key.strip_suffix(":asc").unwrap_or(key), false),
            };
            let at = self.find(name).ok_or_else(|| {
                EngineError::illegal_argument(format!("Unable to sort by unknown sort key `{name}`"))
            })?;
            keys.push((at, descending));
        }
        self.rows.sort_by(|a, b| {
            keys.iter().fold(Ordering::Equal, |order, (at, descending)| {
                let by = a[*at].compare(&b[*at]);
                order.then(if *descending { by.reverse() } else { by })
            })
        });
        Ok(())
    }

    fn help(&self) -> String {
        let lines: Vec<[String; 3]> = self
            .columns
            .iter()
            .map(|column| [column.name.to_owned(), column.aliases.join(","), column.about.to_owned()])
            .collect();
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default();
        let widths = [width(0), width(1), width(2)];
        lines
            .iter()
            .map(|line| {
                let cells: Vec<String> =
                    line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
                cells.join(" | ") + "\n"
            })
            .collect()
    }
}

fn lay_out(lines: Vec<Vec<String>>, right: &[bool]) -> String {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let width = widths[at];
                // The last column needs no padding behind it.
                if right[at] {
                    format!("{cell:>width$}")
                } else if at + 1 == right.len() {
                    cell.clone()
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        text.push_str(&cells.join(" "));
        text.push('\n');
    }
    text
}

fn byte_unit(params: &Params<'_>) -> Result<Option<u64>, EngineError> {
    Ok(Some(match params.get("bytes") {
        None => return Ok(None),
        Some("b" | "") => 1,
        Some("k" | "kb") => 1 << 10,
        Some("m" | "mb") => 1 << 20,
        Some("g" | "gb") => 1 << 30,
        Some("t" | "tb") => 1 << 40,
        Some("p" | "pb") => 1 << 50,
        Some(other) => {
            return Err(EngineError::illegal_argument(format!(
                "failed to parse setting [bytes] with value [{other}] as a size in bytes: unit is missing or \
                 unrecognized"
            )));
        }
    }))
}

/// The unit of the parameter `time`, in nanoseconds; `None` if it is absent.
fn time_unit(params: &Params<'_>) -> Result<Option<u64>, EngineError> {
    Ok(Some(match params.get("time") {
        None | Some("") => return Ok(None),
        Some("nanos") => 1,
        Some("micros") => 1_000,
        Some("ms") => 1_000_000,
        Some("s") => 1_000_000_000,
        Some("m") => 60_000_000_000,
        Some("h") => 3_600_000_000_000,
        Some("d") => 86_400_000_000_000,
        Some(other) => {
            return Err(EngineError::illegal_argument(format!("unknown value [{other}] for [time]")));
        }
    }))
}

/// A time as Elasticsearch formats it, such as `1.2s`.
fn human_time(nanos: u64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let units: [(&str, u64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("micros", 1_000),
        ("nanos", 1),
    ];
    let (unit, size) = units.into_iter().find(|(_, size)| nanos >= *size).unwrap_or(("nanos", 1));
    tenths(nanos as f64 / size as f64, unit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const COLUMNS: &[Column] = &[
        text("index", &["i", "idx"], "index name"),
        number("docs.count", &["dc"], "available docs"),
        number("size", &[], "bytes").on_request(),
    ];

    fn shown(pairs: &[(&str, &str)]) -> Result<String, String> {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut table = Table::new(COLUMNS);
        table.row(vec!["b".into(), 2u64.into(), Cell::Bytes(6800)]);
        table.row(vec!["a".into(), 10u64.into(), Cell::Bytes(1024)]);
        table.row(vec!["c".into()]);
        let reply = table.reply(&Params::new(&map)).map_err(|error| error.reason())?;
        Ok(String::from_utf8(reply.body).unwrap())
    }

    #[test]
    fn columns_are_chosen_sorted_and_laid_out() {
        assert_eq!(shown(&[]).unwrap(), "b  2\na 10\nc   \n");
        assert_eq!(
            shown(&[("v", ""), ("h", "i,size"), ("s", "i:desc")]).unwrap(),
            "i  size\nc      \nb 6.6kb\na   1kb\n"
        );
        assert_eq!(shown(&[("s", "dc"), ("h", "dc,nope")]).unwrap(), "  \n 2\n10\n");
        assert_eq!(shown(&[("h", "s*"), ("bytes", "b")]).unwrap(), "6800\n1024\n    \n");
        assert_eq!(
            shown(&[("format", "json"), ("h", "idx,docs.count"), ("s", "index")]).unwrap(),
            r#"[{"idx":"a","docs.count":"10"},{"idx":"b","docs.count":"2"},{"idx":"c","docs.count":null}]"#
        );
        assert_eq!(
            shown(&[("help", "true")]).unwrap(),
            "index      | i,idx | index name    \ndocs.count | dc    | available docs\nsize       |       | bytes         \n"
        );
        assert_eq!(shown(&[("s", "x")]).unwrap_err(), "Unable to sort by unknown sort key `x`");
        assert!(shown(&[("bytes", "x")]).is_err() && shown(&[("format", "x")]).is_err());
    }

    #[test]
    fn times_read_as_elasticsearch_writes_them() {
        for (nanos, text) in [(0, "0s"), (999, "999nanos"), (1_250_000, "1.2ms"), (90_000_000_000, "1.5m")] {
            assert_eq!(human_time(nanos), text);
        }
        assert_eq!(Cell::Millis(1500).show(Units { bytes: None, nanos: Some(1_000_000) }).unwrap(), "1500");
    }

    #[test]
    fn sizes_read_as_elasticsearch_writes_them() {
        for (bytes, text) in [(0, "0b"), (227, "227b"), (1024, "1kb"), (6800, "6.6kb"), (5 << 30, "5gb")] {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
