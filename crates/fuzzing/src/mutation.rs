//! Mutations of bytes and of text.

use crate::random::Random;

/// Numbers at and beyond the limits of number types, as text.
pub const EDGES: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1",
    "127",
    "128",
    "255",
    "256",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "-1e400",
    "1e-400",
    "0.5",
    "-0.0",
    "1E9",
    "3.4028236e38",
    "123456789012345678901234567890",
];

/// Words and pieces of syntax that have a meaning in some format.
pub const WORDS: &[&str] = &[
    "",
    " ",
    "\0",
    "*",
    "?",
    "**",
    "_all",
    "_id",
    "_source",
    "_index",
    "_score",
    "_doc",
    ".",
    "..",
    "a.b",
    "a..b",
    ".a",
    "a.",
    "now",
    "now-1d/d",
    "2020-01-01||+1M/d",
    "now+999999999999999y",
    "||",
    "now/",
    "-1",
    "0",
    "1d",
    "75%",
    "-1%",
    "3<90%",
    "2<-25% 9<-3",
    "AND",
    "OR NOT",
    "(((",
    ")))",
    "\"",
    "\"a b\"~2",
    "a~",
    "a~9",
    "/a(b/",
    "[a TO",
    "{1 TO *]",
    "title:",
    ":",
    "a^",
    "a^-1",
    "+-+-",
    "<>",
    "<1-5>",
    "<9999999999-1>",
    "~(a)",
    "a{1,99999}",
    "(a+)+$",
    "[[:alpha:]",
    "\\p{L}",
    "\\",
    "(?i)a",
    "a|",
    "@",
    "#",
    "&&",
    "\u{feff}",
    "\u{202e}",
    "İ",
    "ß",
    "é",
    "👩‍👩‍👧",
    "\u{10ffff}",
    "yyyy",
    "uuuu-MM-dd'T'HH",
    "strict_date||epoch_millis",
    "UTC",
    "+25:00",
    "Europe/Nowhere",
    "{{a}}",
    "{{{a}}}",
    "{{",
    "%{a}",
    "%{+a/9}",
    "null",
    "true",
    "false",
    "NaN",
    "-Infinity",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
    "\r\n",
    "{}",
    "[]",
];

/// A valid seed with some random changes: flipped bits, boundary numbers, cuts, repeats, parts of other seeds,
/// inserted words. `words` are those of the format itself.
pub fn mutated(random: &mut Random, seeds: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut data = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(4) {
        change(random, &mut data, seeds, words);
    }
    data
}

fn change(random: &mut Random, data: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&[u8]]) {
    let at = random.below(data.len() + 1);
    match random.below(10) {
        0 | 1 => {
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => data.truncate(at),
        3 => {
            let end = (at + 1 + random.below(16)).min(data.len());
            data.drain(at..end);
        }
        4 => {
            let other = random.pick(seeds).cloned().unwrap_or_default();
            let from = random.below(other.len());
            let end = (from + random.below(64)).min(other.len());
            data.splice(at..at, other[from..end].iter().copied());
        }
        5 => {
            let word = match random.below(3) {
                0 => random.pick(words).map_or(&[][..], |word| word),
                1 => random.pick(EDGES).map_or(&[][..], |word| word.as_bytes()),
                _ => random.pick(WORDS).map_or(&[][..], |word| word.as_bytes()),
            };
            let end = if random.once_in(2) { at } else { (at + word.len()).min(data.len()) };
            data.splice(at..end, word.iter().copied());
        }
        6 => {
            let end = (at + 1 + random.below(32)).min(data.len());
            let part = data[at..end].to_vec();
            for _ in 0..=random.below(3) {
                data.splice(at..at, part.iter().copied());
            }
        }
        7 | 8 => number(random, data, at),
        _ => {
            if let Some(byte) = data.get_mut(at) {
                *byte = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\n', 0xc0][random.below(8)];
            }
        }
    }
}

/// Overwrites bytes at about `at` with a little-endian number near the limit of some integer type, 1 to 8 bytes wide.
fn number(random: &mut Random, data: &mut [u8], at: usize) {
    const VALUES: [u64; 12] =
        [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, i64::MAX as u64, u64::MAX];
    let width = [1, 2, 4, 8][random.below(4)];
    // Numbers mostly lie at multiples of their width.
    let at = if random.once_in(4) { at } else { at / width * width };
    let value = VALUES[random.below(VALUES.len())].wrapping_sub(u64::from(random.once_in(3)));
    if let Some(place) = data.get_mut(at..at + width) {
        place.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}
