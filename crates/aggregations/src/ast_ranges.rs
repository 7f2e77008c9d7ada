//! `ip_range`: ranges and networks of addresses, each as a query over the field.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;
use sparrow_mapping::ip;
use sparrow_query::{ExistsQuery, Query, QueryKind, RangeQuery};

/// `ip_range`
#[derive(Debug, Clone, PartialEq)]
pub struct AddressRanges {
    /// The field of type `ip`.
    pub field: String,
    /// The ranges, in the order of the response.
    pub ranges: Vec<AddressRange>,
    /// Whether the response has buckets as members of an object rather than as a list.
    pub keyed: bool,
}

/// A range of addresses, including its lower end and excluding its upper end.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressRange {
    /// Name of the range in the response.
    pub key: String,
    /// Lower end, inclusive; `None` if unbounded.
    pub from: Option<String>,
    /// Upper end, exclusive; `None` if unbounded.
    pub to: Option<String>,
    /// The documents with an address in the range.
    pub query: Query,
}

/// A range of addresses as a request describes it.
#[derive(Debug, Default)]
pub struct AddressEnds {
    /// Name of the range in the response.
    pub key: Option<String>,
    /// Lower end, inclusive.
    pub from: Option<String>,
    /// Upper end, exclusive.
    pub to: Option<String>,
    /// A network, in place of the ends.
    pub mask: Option<String>,
}

impl AddressRange {
    /// A range of the addresses in a field.
    ///
    /// # Errors
    /// The message about text that is no address, or no network.
    pub fn new(field: &str, ends: AddressEnds) -> Result<Self, String> {
        let (from, to) = match &ends.mask {
            Some(mask) => network(mask)?,
            None => {
                let address = |end: &Option<String>| end.as_deref().map(address).transpose();
                (address(&ends.from)?, address(&ends.to)?)
            }
        };
        let shown = |end: &Option<String>| end.clone().unwrap_or_else(|| "*".to_owned());
        let key = ends.key.or(ends.mask).unwrap_or_else(|| format!("{}-{}", shown(&from), shown(&to)));
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
        Ok(Self { key, from, to, query: Query::from(kind) })
    }
}

impl AddressRanges {
    /// Orders the ranges by their lower ends, then by their upper ones, as in Elasticsearch, whatever their order in the request.
    pub fn sort(&mut self) {
        let bits = |end: &Option<String>| end.as_deref().and_then(ip::parse).map(ip::keyword);
        self.ranges.sort_by_cached_key(|range| (bits(&range.from), range.to.is_none(), bits(&range.to)));
    }
}

/// An address in its shortest form.
fn address(text: &str) -> Result<String, String> {
    let address = ip::parse(text).ok_or_else(|| ip::not_an_address(text))?;
    Ok(ip::shown(&ip::keyword(address)))
}

/// The first address of a network, and the first one behind it; none at the ends of all addresses.
fn network(mask: &str) -> Result<(Option<String>, Option<String>), String> {
    let (first, last) = ip::network(mask)?;
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
