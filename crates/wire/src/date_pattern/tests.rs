use super::DatePattern;
use crate::zone::Zone;

/// Patterns with what is wrong with them, in Java's words where it refuses them too.
#[test]
fn patterns_that_make_no_sense_are_refused_and_say_why() {
    for (pattern, reason) in [
        ("yyyy-MM-ddd", "Too many pattern letters: d"),
        ("yyyy-bb", "Unknown pattern letter: b"),
        ("yyyy {HH}", "Pattern includes reserved character: '{'"),
        ("yyyy#", "Pattern includes reserved character: '#'"),
        ("dd'T", "Pattern ends with an incomplete string literal: dd'T"),
        ("dd]", "Pattern invalid as it contains ] without previous ["),
        ("V", "Pattern letter count must be 2: V"),
        ("OO", "Pattern letter count must be 1 or 4: O"),
        ("cc", "Invalid pattern \"cc\""),
        ("XXXXXX", "Too many pattern letters: X"),
        ("zzzzz", "Too many pattern letters: z"),
        ("W", "weeks of a month [W] are not supported by this server"),
        ("B", "periods of the day [B] are not supported by this server"),
    ] {
        assert_eq!(
            DatePattern::parse(pattern).unwrap_err(),
            format!("Invalid format: [{pattern}]: {reason}")
        );
    }
    assert!(DatePattern::parse("").is_err());
    let deep = "[".repeat(100_000);
    assert!(DatePattern::parse(&deep).unwrap_err().contains("nested more than [32] levels"));
}

#[test]
fn names_of_zones_are_read_and_written() {
    let paris = Zone::parse("Europe/Paris").unwrap();
    let pattern = DatePattern::parse("yyyy-MM-dd HH:mm VV").unwrap();
    let winter = pattern.first_moment("2024-02-09 05:06 Europe/Paris", &Zone::UTC).unwrap();
    assert_eq!(winter.unix_timestamp(), 1_707_451_560);
    assert_eq!(pattern.write_in(winter, &paris), "2024-02-09 05:06 Europe/Paris");
    assert_eq!(pattern.write_in(winter, &Zone::UTC), "2024-02-09 05:06 +01:00");
    assert_eq!(pattern.write(winter.to_offset(time::UtcOffset::UTC)), "2024-02-09 04:06 UTC");
    let summer = DatePattern::parse("yyyy-MM-dd HH:mm z").unwrap();
    let read = summer.first_moment("2024-07-09 05:06 PST", &Zone::UTC).unwrap();
    assert_eq!(read.unix_timestamp(), 1_720_526_760);
}

#[test]
fn a_date_without_a_year_is_one_of_this_year_or_of_1970() {
    let pattern = DatePattern::parse("MMM d HH:mm:ss").unwrap();
    let first = pattern.first_moment("Feb 9 05:06:07", &Zone::UTC).unwrap();
    assert_eq!(first.unix_timestamp(), 3_387_967);
    let this = pattern.read("Feb 9 05:06:07", &Zone::UTC).unwrap();
    assert_eq!(this.year(), time::OffsetDateTime::now_utc().year());
}

/// Whatever a pattern of a request and a text of a document are, they end in an answer.
#[test]
fn no_text_makes_a_pattern_panic() {
    let patterns = [
        "yyyyMMddHHmmssSSS",
        "[[[yyyy]-MM]-dd]",
        "G y-M-d h:m a",
        "N",
        "A",
        "YYYY-'W'ww-e",
        "D",
        "O",
        "XXXXX",
        "VV",
        "z",
        "n",
        "QQQ q",
        "uuuu-MM-dd'T'HH:mmXXX",
        "uuuu-MM-dd'T'HH:mmVV",
    ];
    let texts = [
        "",
        "-",
        "+",
        "é",
        "99999999999999999999",
        "-99999999999999999999",
        "9223372036854775807",
        "0000-W00-0",
        "GMT+99",
        "+99:99:99",
        "UTC+",
        "Europe/",
        "AD 999999999-12-31 12:59 PM",
        "AD 9999-12-31 11:59 PM",
        "9999-W52-7",
        "9999-12-31T23:59-18:00",
        "-9999-01-01T00:00+18:00",
        "9999-12-31T23:59America/New_York",
        "-9999-01-01T00:00Asia/Tokyo",
    ];
    let zones =
        ["Z", "-18:00", "+18:00", "America/New_York", "Asia/Tokyo"].map(|name| Zone::parse(name).unwrap());
    for (pattern, text) in patterns.iter().flat_map(|pattern| texts.map(|text| (pattern, text))) {
        let pattern = DatePattern::parse(pattern).unwrap();
        for zone in &zones {
            let read =
                [pattern.read(text, zone), pattern.first_moment(text, zone), pattern.last_moment(text, zone)];
            for date in read.into_iter().flatten() {
                // Dates are written in UTC as well.
                assert!(date.checked_to_offset(time::UtcOffset::UTC).is_some(), "{text}");
                for local in zones.iter().filter_map(|zone| Some((zone, zone.local(date)?))) {
                    let (zone, local) = local;
                    let _ = pattern.write_in(local, zone);
                }
            }
        }
    }
}
