//! Regular expressions in Lucene's syntax, compiled to automata over characters.
//!
//! [`syntax`] parses an expression into terms of [`expression`], whose derivatives become the states of an [`Automaton`]:
//! intersection and complement need no special treatment there.

mod expression;
mod syntax;

use rustc_hash::FxHashMap;
use sparrow_runtime::work;

use self::expression::{Builder, Id, NEVER};
use crate::RegexpQuery;

/// Longest expression in characters (`index.max_regex_length`).
const MAX_LENGTH: usize = 1000;
/// Most entries of an automaton's transition table.
const MAX_TABLE: usize = 4 << 20;

/// Why an expression could not be compiled to an automaton.
#[derive(Debug, thiserror::Error)]
pub enum RegexpError {
    /// The expression is malformed.
    #[error("cannot parse regular expression {pattern:?}: {detail}")]
    Syntax { pattern: String, detail: String },
    /// The expression is longer than allowed.
    #[error("regular expression of {length} characters")]
    Length { length: usize, limit: usize },
    /// The automaton is too large.
    #[error("automaton of regular expression {pattern:?} has more than {limit} states")]
    States { pattern: String, limit: usize },
    /// The request was cancelled, has timed out or uses too much memory.
    #[error("the request is to stop")]
    Stopped(work::Stopped),
    /// The patterns of the request take more work than the limit for requests allows.
    #[error(transparent)]
    Effort(#[from] work::TooMuchEffort),
}

impl From<work::Stopped> for RegexpError {
    fn from(stopped: work::Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// A deterministic automaton that decides whether an expression matches the whole of a text.
#[derive(Debug)]
pub struct Automaton {
    /// Ranges of characters that no state distinguishes: the first character of each, and the number of its class.
    stretches: Vec<(u32, u32)>,
    classes: usize,
    /// Next state for each state and class of characters; the classes of one state are next to each other.
    table: Vec<u32>,
    accepting: Vec<bool>,
    /// The state from which nothing can match any more, if there is one.
    dead: Option<u32>,
}

impl Automaton {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// [`RegexpError::Syntax`] when it is malformed, [`RegexpError::Length`] or [`RegexpError::States`] when it is too long or its
    /// automaton too large.
    pub fn new(query: &RegexpQuery) -> Result<Self, RegexpError> {
        let length = query.value.chars().count();
        if length > MAX_LENGTH {
            return Err(RegexpError::Length { length, limit: MAX_LENGTH });
        }
        let limit = query.max_determinized_states.max(1);
        let too_large = || RegexpError::States { pattern: query.value.clone(), limit };
        // A state has a handful of terms of its own.
        let mut builder = Builder::new(limit.saturating_mul(32).min(1 << 20));
        let start = syntax::parse(&query.value, query.flags, query.case_insensitive, &mut builder)
            .map_err(|detail| RegexpError::Syntax { pattern: query.value.clone(), detail })?;
        let (stretches, classes) = builder.stretches();
        let mut representatives = vec![0; classes];
        for (first, class) in &stretches {
            representatives[*class as usize] = *first;
        }
        let mut states: FxHashMap<Id, u32> = FxHashMap::default();
        let mut order = vec![start];
        states.insert(start, 0);
        let mut table = Vec::new();
        let mut at = 0;
        while at < order.len() {
            work::check()?;
            builder.spend()?;
            for character in &representatives {
                let next = builder.derivative(order[at], *character).ok_or_else(too_large)?;
                let number = *states.entry(next).or_insert_with(|| {
                    order.push(next);
                    (order.len() - 1) as u32
                });
                table.push(number);
            }
            if order.len() > limit || order.len() * classes > MAX_TABLE {
                return Err(too_large());
            }
            at += 1;
        }
        builder.spend()?;
        let accepting = order.iter().map(|state| builder.nullable(*state)).collect();
        Ok(Self { stretches, classes, table, accepting, dead: states.get(&NEVER).copied() })
    }

    fn class(&self, character: char) -> usize {
        let after = self.stretches.partition_point(|(first, _)| *first <= character as u32);
        self.stretches[after - 1].1 as usize
    }

    /// Whether the whole of a text matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut state = 0;
        for character in text.chars() {
            state = self.table[state * self.classes + self.class(character)] as usize;
            if Some(state as u32) == self.dead {
                return false;
            }
        }
        self.accepting[state]
    }

    /// Whether a beginning of a text matches, or the whole of it.
    pub fn matches_start(&self, text: &str) -> bool {
        let mut state = 0;
        for character in text.chars() {
            if self.accepting[state] {
                return true;
            }
            state = self.table[state * self.classes + self.class(character)] as usize;
            if Some(state as u32) == self.dead {
                return false;
            }
        }
        self.accepting[state]
    }

    /// The literal text that every matching text starts with; may be empty.
    pub fn literal_prefix(&self) -> String {
        let mut prefix = String::new();
        let mut state = 0;
        // A cycle of single characters matches nothing; its length is no matter.
        while !self.accepting[state] && prefix.len() < MAX_LENGTH {
            let row = &self.table[state * self.classes..(state + 1) * self.classes];
            let mut alive =
                row.iter().enumerate().filter(|(_, next)| Some(**next) != self.dead).map(|(class, _)| class);
            let (Some(class), None) = (alive.next(), alive.next()) else { break };
            let mut members =
                self.stretches.iter().enumerate().filter(|(_, (_, other))| *other as usize == class);
            let (Some((place, (first, _))), None) = (members.next(), members.next()) else { break };
            let single = self.stretches.get(place + 1).is_some_and(|(next, _)| *next == first + 1);
            let Some(character) = char::from_u32(*first).filter(|_| single) else { break };
            prefix.push(character);
            state = row[class] as usize;
        }
        prefix
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Automaton, MAX_LENGTH, RegexpError, work};
    use crate::{RegexpQuery, regexp_flags};

    fn automaton(pattern: &str) -> Automaton {
        Automaton::new(&RegexpQuery::new("f", pattern)).unwrap_or_else(|error| panic!("{pattern}: {error}"))
    }

    #[test]
    fn lucenes_syntax() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("abc", &["abc"], &["ab", "abcd", ""]),
            ("a.c", &["abc", "a\u{1F642}c"], &["ac"]),
            ("ab?c*d+", &["ad", "abccdd"], &["abc"]),
            ("a{2}b{1,}c{0,2}", &["aabcc", "aabb"], &["ab", "aabccc"]),
            ("ab|cd", &["ab", "cd"], &["abd", "acd"]),
            ("(ab|c)*", &["", "abcab"], &["aab"]),
            ("()a", &["a"], &[""]),
            ("[a-cx]", &["a", "x"], &["d", "-"]),
            ("[^a-c]", &["d", "-"], &["a", ""]),
            ("[-a]", &["-", "a"], &["b"]),
            ("[\\]a]", &["]", "a"], &["\\"]),
            ("\\d\\w\\s", &["1_ "], &["a1 "]),
            ("[\\d-]+", &["1-2"], &["a"]),
            ("\\*\\.", &["*."], &["aa"]),
            ("\"a.*\"b", &["a.*b"], &["axb"]),
            ("a~bc", &["acc", "ac", "aac"], &["abc"]),
            ("~(ab)", &["", "a", "abc"], &["ab"]),
            ("aaa.+&.+bbb", &["aaabbb", "aaaxbbb"], &["aaabb", "aabbb"]),
            ("@&~(abc.+)", &["", "abc", "xabcd"], &["abcd"]),
            ("a@", &["a", "abc"], &["b"]),
            ("#|abc", &["abc"], &["", "#"]),
            ("foo<1-100>", &["foo1", "foo100", "foo007"], &["foo0", "foo101"]),
            ("foo<01-100>", &["foo1", "foo099"], &["foo0"]),
            ("foo<01-20>", &["foo01", "foo20"], &["foo1", "foo21", "foo00"]),
            ("^a$", &["^a$"], &["a"]),
        ] {
            let automaton = automaton(pattern);
            for text in yes {
                assert!(automaton.matches(text), "{pattern} {text}");
            }
            for text in no {
                assert!(!automaton.matches(text), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn flags_switch_operators_off() {
        let with = |pattern: &str, flags| {
            Automaton::new(&RegexpQuery { flags, ..RegexpQuery::new("f", pattern) }).unwrap()
        };
        assert!(with("a&b", 0).matches("a&b"));
        assert!(with("~a", 0).matches("~a"));
        assert!(with("<1-2>", 0).matches("<1-2>"));
        assert!(with("a@", regexp_flags::COMPLEMENT).matches("a@"));
        assert!(with("#", regexp_flags::ANYSTRING).matches("#"));
        let insensitive =
            Automaton::new(&RegexpQuery { case_insensitive: true, ..RegexpQuery::new("f", "aB[c]\u{e9}") })
                .unwrap();
        assert!(insensitive.matches("AbC\u{e9}"));
        assert!(!insensitive.matches("abc\u{c9}"));
    }

    #[test]
    fn prefixes_are_what_all_matches_share() {
        for (pattern, prefix) in [
            ("abc", "abc"),
            ("ab.*", "ab"),
            ("ab?c", "a"),
            ("(abc|abd)e", "ab"),
            ("a|b", ""),
            ("#", ""),
            ("~a", ""),
        ] {
            assert_eq!(automaton(pattern).literal_prefix(), prefix, "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let error = |pattern: &str| match Automaton::new(&RegexpQuery::new("f", pattern)) {
            Err(RegexpError::Syntax { detail, .. }) => detail,
            other => panic!("{pattern}: {other:?}"),
        };
        assert_eq!(error("(a"), "expected ')' at position 2");
        assert_eq!(error("[a"), "expected ']' at position 2");
        assert_eq!(error("a)"), "end-of-string expected at position 1");
        assert_eq!(error("a{x}"), "integer expected at position 2");
        assert_eq!(error("a{2,1}"), "invalid repetition range(out of order): 2..1");
        assert_eq!(error("\"a"), "expected '\"' at position 2");
        assert_eq!(error("a\\"), "unexpected end-of-string");
        assert_eq!(error("<a>"), "interval syntax error at position 2");
        assert!(error(&"(".repeat(900)).contains("nested"));
        let long = Automaton::new(&RegexpQuery::new("f", "a".repeat(1001)));
        assert!(matches!(long, Err(RegexpError::Length { length: 1001, limit: MAX_LENGTH })));
    }

    #[test]
    fn large_automata_are_refused() {
        let small = |pattern: &str, max_determinized_states| {
            Automaton::new(&RegexpQuery { max_determinized_states, ..RegexpQuery::new("f", pattern) })
        };
        assert!(small("[ac]*a[ac]{50,200}", 10_000).is_err());
        assert!(small("abcdef", 3).is_err());
        assert!(small("(((a{1,1000}){1,1000}){1,1000}){1,1000}", 10_000).is_err());
        assert!(small("a{1,5000}", 10_000).is_ok());
    }

    /// Each of these expressions would have more states than allowed, made of tens of thousands of parts.
    #[test]
    fn expressions_end_soon_whatever_they_repeat() {
        for pattern in
            ["~z]+.*.a{1,99999}", ".*a{1,99999}", "(a|b)*.{1,99999}", "(.*a{1,999}){1,999}", "~(.*a.{99999})"]
        {
            let query = RegexpQuery { max_determinized_states: 100_000, ..RegexpQuery::new("f", pattern) };
            let memory = std::sync::Arc::new(work::Memory::new(usize::MAX, usize::MAX));
            let _entered = work::enter(Some(work::Work::new(std::sync::Arc::default(), memory, "<test>")));
            // A quarter of what a request may do is enough to find out.
            work::spend(work::MOST_EFFORT * 3 / 4).unwrap();
            let made = Automaton::new(&query);
            assert!(!matches!(made, Err(RegexpError::Effort(_))), "{pattern}");
        }
    }

    #[test]
    fn all_expressions_of_a_request_have_one_effort() {
        let memory = std::sync::Arc::new(work::Memory::new(usize::MAX, usize::MAX));
        let _entered = work::enter(Some(work::Work::new(std::sync::Arc::default(), memory, "<test>")));
        let query = RegexpQuery { max_determinized_states: 100_000, ..RegexpQuery::new("f", ".*a{1,99999}") };
        work::spend(work::MOST_EFFORT * 3 / 4).unwrap();
        let errors = (0..100).map(|_| Automaton::new(&query).unwrap_err());
        let before = errors.take_while(|error| matches!(error, RegexpError::States { .. })).count();
        assert!((1..10).contains(&before), "{before}");
        assert!(matches!(Automaton::new(&query), Err(RegexpError::Effort(_))));
    }

    proptest! {
        #[test]
        fn plain_expressions_agree_with_the_regex_crate(
            pattern in "(a|b|\\.|\\[ab\\]|\\[\\^a\\]|\\(a\\|b\\)|\\(ab\\)|a\\?|b\\*|\\(ab\\)\\+|a\\{2\\}|\\(a\\|b\\)\\{1,3\\}|\\|){0,6}",
            texts in proptest::collection::vec("[abc]{0,6}", 8),
        ) {
            // An empty side of a union is an error for Lucene.
            prop_assume!(!pattern.starts_with('|') && !pattern.ends_with('|') && !pattern.contains("||"));
            let expected = regex::Regex::new(&format!("^(?s:{pattern})$")).unwrap();
            let automaton = automaton(&pattern);
            for text in texts {
                prop_assert_eq!(automaton.matches(&text), expected.is_match(&text), "{} {}", pattern, text);
                if automaton.matches(&text) {
                    prop_assert!(text.starts_with(&automaton.literal_prefix()));
                }
            }
        }

        #[test]
        fn any_text_is_read_or_refused(pattern in "[ab.|()\\[\\]{}0-9,<>~&#@*+?\"\\\\^-]{0,12}") {
            let _ = Automaton::new(&RegexpQuery { max_determinized_states: 200, ..RegexpQuery::new("f", pattern) });
        }

        #[test]
        fn both_sides_of_an_intersection_match(
            left in "[ab.]{1,2}(\\*|\\+)?[ab]?",
            right in "[ab]?[ab.](\\*|\\+)?",
            text in "[ab]{0,5}",
        ) {
            let both = automaton(&format!("({left})&({right})")).matches(&text);
            prop_assert_eq!(both, automaton(&left).matches(&text) && automaton(&right).matches(&text));
            let not = automaton(&format!("~({left})")).matches(&text);
            prop_assert_eq!(not, !automaton(&left).matches(&text));
        }
    }
}
