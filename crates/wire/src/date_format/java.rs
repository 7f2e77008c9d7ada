//! Compares formats with what Elasticsearch 8.19 answered: `java.tsv` was written by its `DateFormatter`, on Java 17, and on Java 25 for
//! names of time zones, which that has from CLDR.

use crate::zone::Zone;

use super::{parse_date, parse_formats};

/// Rows: `R`, format, text, the date and its rounded up form in milliseconds, `-` where it cannot be read; `P`, format, milliseconds,
/// text; `Z`, format, milliseconds, time zone, text.
const TABLE: &str = include_str!("java.tsv");

fn millis(text: &str) -> Option<i64> {
    (text != "-").then(|| text.parse().unwrap())
}

#[test]
fn formats_read_and_write_dates_as_java_does() {
    let mut differences = Vec::new();
    for row in TABLE.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let formats = match parse_formats(cells[1]) {
            Ok(formats) => formats,
            Err(reason) => {
                differences.push(format!("{row}: {reason}"));
                continue;
            }
        };
        match cells[..] {
            ["R", _, text, first, last] => {
                let read = (parse_date(&formats, text, false), parse_date(&formats, text, true));
                if read != (millis(first), millis(last)) {
                    differences.push(format!("{row}: {read:?}"));
                }
            }
            ["P", _, at, text] => {
                let written = formats[0].write(at.parse().unwrap(), &Zone::UTC);
                if written != text {
                    differences.push(format!("{row}: {written}"));
                }
            }
            ["Z", _, at, zone, text] => {
                let written = formats[0].write(at.parse().unwrap(), &Zone::parse(zone).unwrap());
                if written != text {
                    differences.push(format!("{row}: {written}"));
                }
            }
            _ => panic!("{row}"),
        }
    }
    assert_eq!(TABLE.lines().count(), 1603);
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
