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
        ("zzzz", "whole names of time zones [z] are not supported by this server"),
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
    let local = winter.to_offset(time::UtcOffset::from_hms(1, 0, 0).unwrap());
    assert_eq!(pattern.write_in(local, paris.name()), "2024-02-09 05:06 Europe/Paris");
    assert_eq!(pattern.write_in(local, None), "2024-02-09 05:06 +01:00");
    assert_eq!(pattern.write(winter), "2024-02-09 04:06 UTC");
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
    ];
    for pattern in patterns {
        let parsed = DatePattern::parse(pattern).unwrap();
        for text in texts {
            let _ = (parsed.first_moment(text, &Zone::UTC), parsed.last_moment(text, &Zone::UTC));
        }
    }
}
