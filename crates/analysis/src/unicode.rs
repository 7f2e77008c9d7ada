//! Character properties: word break classes (UAX #29), from the tables of `regex-syntax`, and lower case.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// Word break class of a character, as far as Lucene's `StandardTokenizer` distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WordClass {
    Other,
    Letter,
    Hebrew,
    Hangul,
    Digit,
    Katakana,
    /// Hiragana: each character is a word of its own.
    Hiragana,
    /// Han ideograph: each character is a word of its own.
    Ideograph,
    /// Letter or mark of a Southeast Asian script without spaces, whose runs are kept in one piece.
    SoutheastAsian,
    Emoji,
    /// `_` and other connector punctuation.
    Connector,
    /// Punctuation that joins letters, such as `:`.
    MidLetter,
    /// Punctuation that joins digits, such as `,`.
    MidNumber,
    /// Punctuation that joins both letters and digits: `.` and `'`.
    MidBoth,
    DoubleQuote,
    /// Combining mark or format character, which belongs to the character before it.
    Extend,
}

use WordClass as W;

/// Character sets of the classes; for a character in several sets, the last one applies.
const RULES: [(&str, WordClass); 15] = [
    (r"\p{Extended_Pictographic}", W::Emoji),
    (r"\p{wb=ALetter}", W::Letter),
    (r"[\p{Hangul}&&\p{wb=ALetter}]", W::Hangul),
    (r"\p{wb=Hebrew_Letter}", W::Hebrew),
    (r"[\p{wb=Numeric}\x{FF10}-\x{FF19}]", W::Digit),
    (r"[\p{wb=Katakana}\x{FF66}-\x{FF9F}]", W::Katakana),
    (r"\p{wb=ExtendNumLet}", W::Connector),
    (r"\p{wb=MidLetter}", W::MidLetter),
    (r"\p{wb=MidNum}", W::MidNumber),
    (r"[\p{wb=MidNumLet}\p{wb=Single_Quote}]", W::MidBoth),
    (r"[\p{Hiragana}&&\p{Alphabetic}]", W::Hiragana),
    (r"\p{Han}", W::Ideograph),
    (
        r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Ahom}]&&[\p{L}\p{M}]]",
        W::SoutheastAsian,
    ),
    (
        r"[[\p{wb=Extend}\p{wb=Format}\p{wb=ZWJ}]--\p{sc=Thai}--\p{sc=Lao}--\p{sc=Khmer}--\p{sc=Myanmar}--\p{sc=Tai_Tham}]",
        W::Extend,
    ),
    (r"[\p{wb=Regional_Indicator}]", W::Emoji),
];

const PAGE: usize = 128;

/// Two-stage table from characters to classes, which saves space because most pages are equal.
struct Table {
    pages: Vec<[WordClass; PAGE]>,
    index: Vec<u8>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut all = vec![W::Other; 0x11_0000];
    for (pattern, class) in RULES {
        let Ok(hir) = regex_syntax::parse(pattern) else { continue };
        if let HirKind::Class(Class::Unicode(ranges)) = hir.kind() {
            for range in ranges.iter() {
                all[range.start() as usize..=range.end() as usize].fill(class);
            }
        }
    }
    let mut table = Table { pages: Vec::new(), index: Vec::with_capacity(all.len() / PAGE) };
    for page in all.chunks_exact(PAGE) {
        let known = table.pages.iter().position(|known| known[..] == *page);
        let at = known.unwrap_or_else(|| {
            let mut copy = [W::Other; PAGE];
            copy.copy_from_slice(page);
            table.pages.push(copy);
            table.pages.len() - 1
        });
        // There are some two hundred different ones.
        table.index.push(at as u8);
    }
    debug_assert!(table.pages.len() <= 256);
    table
});

/// Classes of the ASCII characters, of which most texts consist.
const ASCII: [WordClass; 128] = {
    let mut classes = [W::Other; 128];
    let mut at = 0;
    while at < 128 {
        classes[at as usize] = match at {
            b'a'..=b'z' | b'A'..=b'Z' => W::Letter,
            b'0'..=b'9' => W::Digit,
            b'_' => W::Connector,
            b'\'' | b'.' => W::MidBoth,
            b':' => W::MidLetter,
            b',' | b';' => W::MidNumber,
            b'"' => W::DoubleQuote,
            _ => W::Other,
        };
        at += 1;
    }
    classes
};

/// Word break class of a character.
#[inline]
pub(super) fn word_class(c: char) -> WordClass {
    if c.is_ascii() {
        return ASCII[c as usize];
    }
    let table = &*TABLE;
    let c = c as usize;
    table.pages[table.index[c / PAGE] as usize][c % PAGE]
}

/// Lowercases a text character by character, like Java's `Character.toLowerCase`.
pub(super) fn lowercase(text: &mut String) {
    if text.is_ascii() {
        text.make_ascii_lowercase();
    } else {
        *text = text.chars().map(lower).collect();
    }
}

/// The simple lower case of a character.
#[inline]
pub(super) fn lower(c: char) -> char {
    // Only one character has two in lower case, of which Java takes the first.
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_a_class_and_pages_fit() {
        for (pattern, _) in RULES {
            let hir = regex_syntax::parse(pattern).unwrap();
            assert!(matches!(hir.kind(), HirKind::Class(Class::Unicode(_))), "{pattern}");
        }
        assert!(TABLE.pages.len() <= 256, "{}", TABLE.pages.len());
        for (c, class) in
            [('é', W::Letter), ('\u{301}', W::Extend), ('日', W::Ideograph), ('ひ', W::Hiragana)]
        {
            assert_eq!(word_class(c), class);
        }
        for (c, class) in [('ไ', W::SoutheastAsian), ('한', W::Hangul), ('🙂', W::Emoji), ('٣', W::Digit)]
        {
            assert_eq!(word_class(c), class);
        }
    }
}
