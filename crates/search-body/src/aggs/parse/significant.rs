//! Parsers of `significant_terms`, `significant_text` and `sampler`.

use sparrow_aggregations::{AggregationKind, Heuristic, Significant, SignificantText, ValueSource};
use sparrow_query::dsl::{self, Context};

use super::buckets::{choice, execution_hint, selection, size, terms_hint};
use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member};

/// Number of documents in a sample that names none.
const DEFAULT_SAMPLE: usize = 100;
/// Smallest number of documents of a bucket where none is given.
const DEFAULT_LEAST: u64 = 3;

pub fn significant_terms_shape() -> Shape {
    common().and([format(), terms_hint()])
}

pub fn significant_text_shape() -> Shape {
    let own = [("source_fields", list(text())), ("filter_duplicate_text", flag().preset(false))];
    common().and(own)
}

fn common() -> Shape {
    let own = [
        size(),
        shard_size(),
        min_doc_count(DEFAULT_LEAST),
        ("shard_min_doc_count", int()),
        ("background_filter", query()),
        ("include", choice(true)),
        ("exclude", choice(false)),
    ];
    of_values([field()], own).and(HEURISTICS.map(|(name, takes)| (name, options_shape(takes))))
}

/// The heuristics that say how much a term characterises documents, each with its options.
const HEURISTICS: [(&str, &[&str]); 5] = [
    ("jlh", &[]),
    ("percentage", &[]),
    ("gnd", &["background_is_superset"]),
    ("mutual_information", &["include_negatives", "background_is_superset"]),
    ("chi_square", &["include_negatives", "background_is_superset"]),
];

fn options_shape(names: &[&'static str]) -> Shape {
    object(names.iter().map(|name| (*name, flag().preset(*name == "background_is_superset"))))
}

pub fn significant(reader: ParameterReader<'_>, context: Context) -> Result<AggregationKind, BodyError> {
    let is_text = reader.parser == "significant_text";
    let mut asked = Significant {
        source: ValueSource::default(),
        size: 10,
        min_doc_count: DEFAULT_LEAST,
        include: None,
        exclude: None,
        heuristic: Heuristic::Jlh,
        background: None,
        text: is_text.then(|| SignificantText { sources: Vec::new(), distinct: false }),
    };
    for member in reader.members() {
        if reader.source(member, &mut asked.source)? {
            continue;
        }
        match (&*member.name, &mut asked.text) {
            ("size", _) => asked.size = reader.whole(member, 1, "size")? as usize,
            // Every index is looked at as a whole: there is nothing that a larger number would make more exact.
            ("shard_size", _) => {
                reader.whole(member, 1, "shardSize")?;
            }
            ("min_doc_count", _) => asked.min_doc_count = reader.whole(member, 0, "minDocCount")? as u64,
            ("shard_min_doc_count", _) => {
                reader.whole(member, 0, "shardMinDocCount")?;
            }
            ("execution_hint", None) => execution_hint(&reader, member)?,
            ("background_filter", _) => asked.background = Some(dsl::parse_query(&member.value, context)?),
            ("include", _) => asked.include = Some(selection(&reader, member, true)?),
            ("exclude", _) => asked.exclude = Some(selection(&reader, member, false)?),
            ("source_fields", Some(text)) => text.sources = names(&reader, member)?,
            ("filter_duplicate_text", Some(text)) => text.distinct = reader.boolean(member)?,
            ("script_heuristic" | "p_value", _) => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!(
                        "[{}] of the [{}] aggregation [{}] is not supported by this server",
                        member.name, reader.parser, reader.name
                    ),
                ));
            }
            _ => match heuristic(&reader, member)? {
                Some(heuristic) => asked.heuristic = heuristic,
                None => return Err(reader.unknown(member)),
            },
        }
    }
    reader.need_field(&asked.source)?;
    Ok(AggregationKind::Significant(asked))
}

/// Reads the parameter of a heuristic; `None` if the parameter is not the name of a heuristic.
fn heuristic(reader: &ParameterReader<'_>, member: &Member) -> Result<Option<Heuristic>, BodyError> {
    let Some((_, takes)) = HEURISTICS.iter().find(|(name, _)| *name == &*member.name) else {
        return Ok(None);
    };
    let Some(options) = member.value.as_object() else {
        return Err(reader.wrong_type(&member.name, &member.value));
    };
    let (mut negatives, mut superset) = (false, true);
    for option in options {
        match &*option.name {
            name if !takes.contains(&name) => return Err(reader.unknown_in(&options_shape(takes), option)),
            "include_negatives" => negatives = reader.boolean(option)?,
            _ => superset = reader.boolean(option)?,
        }
    }
    Ok(Some(match &*member.name {
        "jlh" => Heuristic::Jlh,
        "percentage" => Heuristic::Percentage,
        "gnd" => Heuristic::Gnd { superset },
        "chi_square" => Heuristic::ChiSquare { negatives, superset },
        _ => Heuristic::MutualInformation { negatives, superset },
    }))
}

/// Reads a list of names of fields.
fn names(reader: &ParameterReader<'_>, member: &Member) -> Result<Vec<String>, BodyError> {
    let Some(items) = member.value.as_array() else {
        return Err(reader.wrong_type(&member.name, &member.value));
    };
    let name = |item: &sparrow_wire::json::Node| match &item.json {
        Json::String(name) => Ok(name.to_string()),
        _ => Err(reader.wrong_type(&member.name, item)),
    };
    items.iter().map(name).collect()
}

pub fn sampler_shape() -> Shape {
    object([("shard_size", int().about("documents of each index").preset(DEFAULT_SAMPLE))])
}

pub fn sampler(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut size = DEFAULT_SAMPLE;
    for member in reader.members() {
        match &*member.name {
            "shard_size" => size = reader.whole(member, 1, "shard_size")? as usize,
            _ => return Err(reader.unknown(member)),
        }
    }
    Ok(AggregationKind::Sampler(size))
}
