//! Wildcard patterns of `*` and `?`.

/// A pattern in which `*` stands for any text, `?` for one character and `\` escapes both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Character(char),
    One,
    Many,
}

impl Wildcard {
    /// Parses a pattern; every text is a valid one.
    pub fn new(pattern: &str) -> Self {
        let mut pieces = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let piece = match character {
                '*' => Piece::Many,
                '?' => Piece::One,
                '\\' => Piece::Character(characters.next().unwrap_or('\\')),
                other => Piece::Character(other),
            };
            // Runs of stars would only make the matcher backtrack more.
            if piece != Piece::Many || pieces.last() != Some(&Piece::Many) {
                pieces.push(piece);
            }
        }
        Self(pieces)
    }

    /// Number of characters in the pattern, `?` and `*` included; a run of `*` counts once.
    pub fn pieces(&self) -> usize {
        self.0.len()
    }

    /// The text before the first `*` or `?`.
    pub fn literal_prefix(&self) -> String {
        self.0
            .iter()
            .map_while(|piece| match piece {
                Piece::Character(character) => Some(*character),
                Piece::One | Piece::Many => None,
            })
            .collect()
    }

    /// Whether the pattern matches the whole of `value`.
    pub fn matches(&self, value: &str, case_insensitive: bool) -> bool {
        let equal = |a: char, b: char| a == b || case_insensitive && a.eq_ignore_ascii_case(&b);
        let value: Vec<char> = value.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // After a star: where it is, and how far it reaches so far.
        let mut star: Option<(usize, usize)> = None;
        while at < value.len() {
            match self.0.get(piece) {
                Some(Piece::Many) => {
                    star = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                Some(Piece::Character(character)) if equal(*character, value[at]) => {
                    piece += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let Some((star_piece, reached)) = star else { return false };
            star = Some((star_piece, reached + 1));
            piece = star_piece + 1;
            at = reached + 1;
        }
        self.0[piece..].iter().all(|piece| *piece == Piece::Many)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Wildcard;

    #[test]
    fn wildcards() {
        for (pattern, value, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*", "abc", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("", "", true),
            ("", "a", false),
            ("?ü*", "xün", true),
        ] {
            assert_eq!(Wildcard::new(pattern).matches(value, false), expected, "{pattern} {value}");
        }
        assert!(Wildcard::new("AB*").matches("abc", true));
        assert!(!Wildcard::new("AB*").matches("abc", false));
    }

    proptest! {
        #[test]
        fn a_wildcard_agrees_with_its_regular_expression(
            pattern in "[ab*?]{0,6}",
            value in "[ab]{0,8}",
        ) {
            let regex: String = pattern
                .chars()
                .map(|character| match character {
                    '*' => ".*".to_owned(),
                    '?' => ".".to_owned(),
                    other => other.to_string(),
                })
                .collect();
            let expected = regex::Regex::new(&format!("^(?:{regex})$")).unwrap().is_match(&value);
            prop_assert_eq!(Wildcard::new(&pattern).matches(&value, false), expected);
        }
    }
}
