//! Addresses of `ip` fields. The index holds each as a keyword of 32 hexadecimal digits: the 128-bit IPv6 address, or
//! the IPv4-mapped one for IPv4. So keywords sort like addresses, and a network is a range of keywords.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

/// Number of hexadecimal digits of an address's keyword.
const DIGITS: usize = 32;
const BITS: u32 = 128;

/// Parses an IPv4 or IPv6 address.
pub fn parse(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// The keyword under which an address is indexed: 32 hexadecimal digits.
pub fn keyword(address: IpAddr) -> String {
    keyword_of(bits(address))
}

/// Converts an indexed keyword back to the usual notation of its address; any other text is returned as it is.
pub fn shown(keyword: &str) -> String {
    match u128::from_str_radix(keyword, 16) {
        Ok(bits) if keyword.len() == DIGITS => Ipv6Addr::from_bits(bits).to_canonical().to_string(),
        _ => keyword.to_owned(),
    }
}

/// First and last keyword of the addresses in a network such as `192.168.0.0/16`.
///
/// # Errors
/// The message about text that is not a network.
pub fn network(text: &str) -> Result<(String, String), String> {
    network_bits(text).map(|(first, last)| (keyword_of(first), keyword_of(last)))
}

/// First and last address of a network, as the 128 bits of IPv6.
///
/// # Errors
/// As [`network`].
pub(crate) fn network_bits(text: &str) -> Result<(u128, u128), String> {
    let Some((address, prefix)) = text.split_once('/') else {
        return Err(format!("Expected [ip/prefix] but was [{text}]"));
    };
    let address = parse(address).ok_or_else(|| not_an_address(address))?;
    let (width, all) = if address.is_ipv4() { (32, BITS - 32) } else { (BITS, 0) };
    let prefix = prefix.parse::<u32>().ok().filter(|prefix| *prefix <= width).ok_or_else(|| {
        format!("Illegal prefix length [{prefix}] in [{text}]. Must be 0-32 for IPv4 ranges, 0-128 for IPv6 ranges")
    })?;
    let host = u128::MAX.checked_shr(prefix + all).unwrap_or(0);
    let bits = bits(address);
    Ok((bits & !host, bits | host))
}

/// Error message for text that is not an IP address.
pub fn not_an_address(text: &str) -> String {
    format!("'{text}' is not an IP string literal.")
}

/// The 128 bits of an IPv6 address, or of the one that stands for an IPv4 address.
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn keyword_of(bits: u128) -> String {
    let mut keyword = String::with_capacity(DIGITS);
    let _ = write!(keyword, "{bits:032x}");
    keyword
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> String {
        keyword(parse(text).unwrap())
    }

    #[test]
    fn networks_are_ranges_of_keywords() {
        let within = |network: &str, address: &str| {
            let (first, last) = super::network(network).unwrap();
            (first..=last).contains(&of(address))
        };
        assert!(within("192.168.0.0/16", "192.168.255.255") && !within("192.168.0.0/16", "192.169.0.0"));
        assert!(within("0.0.0.0/0", "255.255.255.255") && !within("0.0.0.0/0", "2001:db8::1"));
        assert!(within("2001:db8::/32", "2001:db8:ffff::1") && within("::/0", "10.0.0.1"));
        assert!(within("10.1.2.3/32", "10.1.2.3") && !within("10.1.2.3/32", "10.1.2.4"));
        for bad in ["10.0.0.0", "10.0.0.0/33", "2001:db8::/129", "10.0.0/8", "10.0.0.0/x", "/", "10.0.0.0/-1"]
        {
            assert!(network(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_are_shown_in_their_shortest_form() {
        for (given, shown) in [
            ("192.168.0.1", "192.168.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("2001:DB8:0:0::1", "2001:db8::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(super::shown(&of(given)), shown);
        }
        assert_eq!(shown("no keyword"), "no keyword");
    }

    proptest! {
        #[test]
        fn keywords_are_in_the_order_of_addresses(a: u128, b: u128) {
            let of = |bits| keyword(IpAddr::V6(Ipv6Addr::from_bits(bits)));
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
            prop_assert_eq!(parse(&shown(&of(a))).map(keyword), Some(of(a)));
        }
    }
}
