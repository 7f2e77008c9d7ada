//! The parser of `ip_range`: ranges and networks of addresses, each as a query over the field.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;
use sparrow_aggregations::{AddressRange, AddressRanges, AggregationKind};
use sparrow_mapping::ip;
use sparrow_query::{ExistsQuery, Query, QueryKind, RangeQuery};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::suggest::suggestions;

use super::buckets::MOST_FILTERS;
use super::parameter_reader::ParameterReader;

const OF_RANGE: &[&str] = &["key", "from", "to", "mask"];

pub fn ip_range(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let (mut field, mut keyed, mut items) = (None, false, None);
    for member in reader.members() {
        match &*member.name {
            "field" => field = Some(reader.text(member)?),
            "keyed" => keyed = reader.boolean(member)?,
            "ranges" => {
                let list = member.value.as_array();
                items = Some(list.ok_or_else(|| reader.wrong_type("ranges", &member.value))?);
            }
            _ => return Err(reader.unknown(member, &["field", "keyed", "ranges"])),
        }
    }
    let items = items.unwrap_or_default();
    if items.is_empty() {
        return Err(BodyError::illegal(format!(
            "No [ranges] specified for the [{}] aggregation",
            reader.name
        )));
    }
    if items.len() > MOST_FILTERS {
        return Err(BodyError::illegal(format!(
            "[{}] has [{}] ranges, at most [{MOST_FILTERS}] are possible on this server",
            reader.name,
            items.len()
        )));
    }
    let field = field.ok_or(BodyError::Required { field: "field" })?;
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        ranges.push(range(&reader, &field, item)?);
    }
    // By their lower ends, then by their upper ones, as in Elasticsearch, whatever their order in the request.
    let bits = |end: &Option<String>| end.as_deref().and_then(ip::parse).map(ip::keyword);
    ranges.sort_by_cached_key(|range| (bits(&range.from), range.to.is_none(), bits(&range.to)));
    Ok(AggregationKind::AddressRanges(AddressRanges { field, ranges, keyed }))
}

fn range(reader: &ParameterReader<'_>, field: &str, node: &Node) -> Result<AddressRange, BodyError> {
    let Some(members) = node.as_object() else { return Err(reader.wrong_type("ranges", node)) };
    let (mut key, mut from, mut to, mut mask) = (None, None, None, None);
    for member in members {
        let given = || match member.value.json {
            Json::Null => Ok(None),
            _ => reader.text(member).map(Some),
        };
        match &*member.name {
            "key" => key = given()?,
            "from" => from = given()?,
            "to" => to = given()?,
            "mask" => mask = given()?,
            name => {
                return Err(BodyError::UnknownField {
                    parser: "range",
                    field: name.to_owned(),
                    suggestions: suggestions(name, OF_RANGE),
                    at: member.at,
                });
            }
        }
    }
    let (from, to) = match &mask {
        Some(mask) => network(mask)?,
        None => (from.as_deref().map(address).transpose()?, to.as_deref().map(address).transpose()?),
    };
    let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "*".to_owned());
    let key = key.or(mask).unwrap_or_else(|| format!("{}-{}", end(&from), end(&to)));
    let field = field.to_owned();
    let kind = match (&from, &to) {
        (None, None) => QueryKind::Exists(ExistsQuery { field }),
        _ => QueryKind::Range(RangeQuery {
            field,
            gte: from.clone().map(Value::from),
            lt: to.clone().map(Value::from),
            ..RangeQuery::default()
        }),
    };
    Ok(AddressRange { key, from, to, query: Query::from(kind) })
}

/// An address in its shortest form.
fn address(text: &str) -> Result<String, BodyError> {
    let address = ip::parse(text).ok_or_else(|| BodyError::illegal(ip::not_an_address(text)))?;
    Ok(ip::shown(&ip::keyword(address)))
}

/// The first address of a network, and the first one behind it; none at the ends of all addresses.
fn network(mask: &str) -> Result<(Option<String>, Option<String>), BodyError> {
    let (first, last) = ip::network(mask).map_err(BodyError::illegal)?;
    let bits = |keyword: &str| u128::from_str_radix(keyword, 16).unwrap_or_default();
    let shown = |bits: u128| ip::shown(&ip::keyword(IpAddr::V6(Ipv6Addr::from_bits(bits))));
    let from = Some(bits(&first)).filter(|bits| *bits > 0).map(shown);
    Ok((from, bits(&last).checked_add(1).map(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_end_where_addresses_do() {
        let network = |mask| network(mask).unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(network("192.168.0.0/16"), (text("192.168.0.0"), text("192.169.0.0")));
        assert_eq!(network("::/24"), (None, text("0:100::")));
        assert_eq!(network("::/0"), (None, None));
        assert_eq!(network("ff00::/8"), (text("ff00::"), None));
        assert!(super::network("192.168.0.0").is_err() && address("192.168.0").is_err());
        assert_eq!(address("::ffff:10.0.0.1").unwrap(), "10.0.0.1");
    }
}
