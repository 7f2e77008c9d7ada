//! Writing of results that consist of a few numbers, and of composite keys.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};

use super::ast::{MultiTerms, StatsKind, TopHits};
use super::fields::Resolved;
use super::format::ValueFormat;
use super::hits::sort_values;
use super::key::Key;
use super::order::BOXPLOT;
use super::partial::{Stats, TopList};
use super::sketch::Distribution;
use super::strings::StringStats;
use super::write_values::{any_number, key_value, number, optional};
use sparrow_mapping::java_double;

/// Writes the members of a `boxplot` result. Without values, minimum and maximum are infinite, as in Elasticsearch.
pub fn boxplot(mut distribution: Distribution, format: &ValueFormat, out: &mut Map<String, Value>) {
    let Some(values) = distribution.boxplot() else {
        for (place, name) in BOXPLOT.iter().enumerate() {
            let text = ["Infinity", "-Infinity", "NaN", "NaN", "NaN", "Infinity", "-Infinity"][place];
            out.insert((*name).to_owned(), text.into());
        }
        return;
    };
    for (name, value) in BOXPLOT.iter().zip(values) {
        out.insert((*name).to_owned(), number(value));
    }
    for (name, value) in BOXPLOT.iter().zip(values) {
        if let Some(text) = format.text(value) {
            out.insert(format!("{name}_as_string"), text.into());
        }
    }
}

/// Writes the members of a `string_stats` result.
pub fn strings(strings: &StringStats, distribution: bool, out: &mut Map<String, Value>) {
    out.insert("count".to_owned(), strings.count.into());
    out.insert("min_length".to_owned(), json!(strings.shortest));
    out.insert("max_length".to_owned(), json!(strings.shortest.map(|_| strings.longest)));
    out.insert("avg_length".to_owned(), optional(strings.average()));
    out.insert("entropy".to_owned(), number(strings.entropy()));
    if distribution {
        let shares = strings.shares();
        let letters: Map<String, Value> =
            shares.into_iter().map(|(letter, share)| (letter.to_string(), number(share))).collect();
        out.insert("distribution".to_owned(), Value::Object(letters));
    }
}

/// The `top` list of a `top_metrics` result: the sort values and metrics of the first documents.
pub fn top_metrics(top: &TopHits, list: &TopList, fields: &FxHashMap<usize, &Resolved>) -> Value {
    let sorted = top.sort.len() - top.metrics.len();
    let mut shown = Vec::new();
    // Documents without the first key are in no order.
    let ordered = list.hits.iter().filter(|hit| !matches!(hit.sort.first(), Some(Key::Missing)));
    let by_score = matches!(top.sort.first().map(|key| &key.by), Some(super::ast::HitOrderBy::Score));
    let hits: Vec<_> = if by_score { list.hits.iter().collect() } else { ordered.collect() };
    for hit in hits.into_iter().take(top.size) {
        let mut values = sort_values(top, hit, fields);
        for ((value, key), by) in values.iter_mut().zip(&hit.sort).zip(&top.sort) {
            let text = match key {
                Key::Long(whole) => fields.get(&by.id).and_then(|field| field.format.whole_text(*whole)),
                _ => None,
            };
            if let Some(text) = text {
                *value = text.into();
            }
        }
        let metrics: Map<String, Value> = top.metrics.iter().cloned().zip(values.split_off(sorted)).collect();
        shown.push(json!({"sort": values, "metrics": metrics}));
    }
    shown.into()
}

/// Writes `key` and `key_as_string` of a `multi_terms` bucket, with each value in the format of its field.
pub fn tuple_key(
    key: &Key,
    multi: &MultiTerms,
    fields: &FxHashMap<usize, &Resolved>,
    head: &mut Map<String, Value>,
) {
    let Key::Tuple(parts) = key else { return };
    let mut values = Vec::with_capacity(parts.len());
    let mut texts = Vec::with_capacity(parts.len());
    for (part, source) in parts.iter().zip(&multi.key.sources) {
        let format = fields.get(&source.id).map(|field| &field.format);
        let plain = |part: &Key| key_value(part, format.unwrap_or(&ValueFormat::Raw));
        let text = match part {
            Key::Long(whole) => format.and_then(|format| format.whole_text(*whole)),
            Key::Text(text) => Some(format.unwrap_or(&ValueFormat::Raw).keyword(text).into_owned()),
            other => format.and_then(|format| format.text(other.number())),
        };
        texts.push(match (&text, part) {
            (Some(text), _) => text.clone(),
            (None, Key::Double(bits)) => java_double(f64::from_bits(*bits)),
            (None, part) => plain(part).to_string(),
        });
        values.push(text.map_or_else(|| plain(part), Value::from));
    }
    head.insert("key".to_owned(), values.into());
    head.insert("key_as_string".to_owned(), texts.join("|").into());
}

/// The `values` of a `percentiles_bucket` result: an object by percentage if `keyed`, otherwise a list.
pub fn percentiles(percents: &[f64], values: &[f64], keyed: bool, format: &ValueFormat) -> Value {
    let mut named = Map::new();
    let mut listed = Vec::new();
    for (&percent, &value) in percents.iter().zip(values) {
        let finite = Some(value).filter(|value| value.is_finite());
        let text = finite.and_then(|value| format.text(value));
        let name = java_double(percent);
        if keyed {
            named.insert(name.clone(), optional(finite));
            named.extend(text.map(|text| (format!("{name}_as_string"), text.into())));
        } else {
            let mut entry = Map::new();
            entry.insert("key".to_owned(), number(percent));
            entry.insert("value".to_owned(), optional(finite));
            entry.extend(text.map(|text| (format!("{name}_as_string"), text.into())));
            listed.push(Value::Object(entry));
        }
    }
    if keyed { Value::Object(named) } else { Value::Array(listed) }
}

/// Writes the members of a result that is a single number; null if it has no value.
pub fn single(value: Option<f64>, format: &ValueFormat, out: &mut Map<String, Value>) {
    out.insert("value".to_owned(), optional(value));
    if let Some(text) = value.and_then(|value| format.text(value)) {
        out.insert("value_as_string".to_owned(), text.into());
    }
}

/// Writes the members of `stats`, `extended_stats`, or a metric that is one number of these.
pub fn write_stats(kind: StatsKind, stats: &Stats, format: &ValueFormat, out: &mut Map<String, Value>) {
    let some = stats.count > 0;
    let if_some = |value: f64| some.then_some(value);
    let sigma = match kind {
        StatsKind::Avg => return single(if_some(stats.mean()), format, out),
        StatsKind::Min => return single(if_some(stats.min), format, out),
        StatsKind::Max => return single(if_some(stats.max), format, out),
        StatsKind::Sum => {
            out.insert("value".to_owned(), number(stats.sum.value()));
            if let Some(text) = format.text(stats.sum.value()) {
                out.insert("value_as_string".to_owned(), text.into());
            }
            return;
        }
        StatsKind::ValueCount => {
            out.insert("value".to_owned(), stats.count.into());
            return;
        }
        StatsKind::Stats => None,
        StatsKind::Extended(sigma) => Some(sigma),
    };
    out.insert("count".to_owned(), stats.count.into());
    let basic = [
        ("min", if_some(stats.min)),
        ("max", if_some(stats.max)),
        ("avg", if_some(stats.mean())),
        ("sum", Some(stats.sum.value())),
    ];
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut put = |out: &mut Map<String, Value>, name: &str, value: Option<f64>| {
        out.insert(name.to_owned(), value.map_or(Value::Null, any_number));
        if let (true, Some(text)) = (some, value.and_then(|value| format.text(value))) {
            texts.push((format!("{name}_as_string"), text));
        }
    };
    for (name, value) in basic {
        put(out, name, value);
    }
    if let Some(sigma) = sigma {
        let (population, sampling) = (stats.variance(), stats.sampling_variance());
        for (name, value) in [
            ("sum_of_squares", stats.squares.value()),
            ("variance", population),
            ("variance_population", population),
            ("variance_sampling", sampling),
            ("std_deviation", population.sqrt()),
            ("std_deviation_population", population.sqrt()),
            ("std_deviation_sampling", sampling.sqrt()),
        ] {
            put(out, name, if_some(value));
        }
        let bound = |deviation: f64, sign: f64| if_some(stats.mean() + sign * sigma * deviation);
        let bounds = [
            ("upper", bound(population.sqrt(), 1.0)),
            ("lower", bound(population.sqrt(), -1.0)),
            ("upper_population", bound(population.sqrt(), 1.0)),
            ("lower_population", bound(population.sqrt(), -1.0)),
            ("upper_sampling", bound(sampling.sqrt(), 1.0)),
            ("lower_sampling", bound(sampling.sqrt(), -1.0)),
        ];
        let object: Map<String, Value> = bounds
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map_or(Value::Null, any_number)))
            .collect();
        out.insert("std_deviation_bounds".to_owned(), Value::Object(object));
        let shown: Map<String, Value> = bounds
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), format.text((*value)?)?.into())))
            .collect();
        if some && !shown.is_empty() {
            out.insert("std_deviation_bounds_as_string".to_owned(), json!(shown));
        }
    }
    out.extend(texts.into_iter().map(|(name, text)| (name, Value::String(text))));
}
