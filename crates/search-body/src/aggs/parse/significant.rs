//! Parsers of `significant_terms`, `significant_text` and `sampler`.

use sparrow_aggregations::{AggregationKind, Heuristic, Significant, SignificantText, ValueSource};
use sparrow_query::dsl::{self, Context};

use super::buckets::{execution_hint, selection};
use super::parameter_reader::ParameterReader;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member};

/// Number of documents in a sample that names none.
const DEFAULT_SAMPLE: usize = 100;
/// Smallest number of documents of a bucket where none is given.
const DEFAULT_LEAST: u64 = 3;

pub fn significant(reader: ParameterReader<'_>, context: Context) -> Result<AggregationKind, BodyError> {
    const TERMS: &[&str] = &[
        "field",
        "format",
        "size",
        "shard_size",
        "min_doc_count",
        "shard_min_doc_count",
        "execution_hint",
        "background_filter",
        "include",
        "exclude",
        "jlh",
        "mutual_information",
        "chi_square",
        "gnd",
        "percentage",
    ];
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
    let takes: &[&str] = if is_text { &["field"] } else { &["field", "format"] };
    for member in reader.members() {
        if reader.source(member, &mut asked.source, takes)? {
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
                None if is_text => {
                    let own = ["source_fields", "filter_duplicate_text"];
                    let names: Vec<&'static str> = TERMS.iter().chain(&own).copied().collect();
                    return Err(reader.unknown(member, &names));
                }
                None => return Err(reader.unknown(member, TERMS)),
            },
        }
    }
    reader.need_field(&asked.source)?;
    Ok(AggregationKind::Significant(asked))
}

/// Reads the parameter of a heuristic; `None` if the parameter is not the name of a heuristic.
fn heuristic(reader: &ParameterReader<'_>, member: &Member) -> Result<Option<Heuristic>, BodyError> {
    let takes: &[&'static str] = match &*member.name {
        "jlh" | "percentage" => &[],
        "gnd" => &["background_is_superset"],
        "mutual_information" | "chi_square" => &["include_negatives", "background_is_superset"],
        _ => return Ok(None),
    };
    let Some(options) = member.value.as_object() else {
        return Err(reader.wrong_type(&member.name, &member.value));
    };
    let (mut negatives, mut superset) = (false, true);
    for option in options {
        match &*option.name {
            name if !takes.contains(&name) => return Err(reader.unknown(option, takes)),
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

pub fn sampler(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut size = DEFAULT_SAMPLE;
    for member in reader.members() {
        match &*member.name {
            "shard_size" => size = reader.whole(member, 1, "shard_size")? as usize,
            _ => return Err(reader.unknown(member, &["shard_size"])),
        }
    }
    Ok(AggregationKind::Sampler(size))
}
