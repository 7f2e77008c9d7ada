use std::ops::Range;

use proptest::prelude::*;

use super::{Fragment, Mark, choose, opening, passages, stretches, whole};
use sparrow_search_body::highlight::Scanner;

fn marks(text: &str, words: &[&str]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = words
        .iter()
        .flat_map(|word| {
            text.match_indices(word).map(|(at, word)| Mark {
                range: at..at + word.len(),
                term: word.to_owned(),
                weight: None,
            })
        })
        .collect();
    marks.sort_by_key(|mark| mark.range.start);
    marks
}

fn shown(text: &str, fragments: &[Fragment]) -> Vec<String> {
    fragments
        .iter()
        .map(|fragment| {
            let mut out = String::new();
            let mut at = fragment.range.start;
            for mark in &fragment.marks {
                out.push_str(&text[at..mark.start]);
                out.push_str(&format!("[{}]", &text[mark.clone()]));
                at = mark.end;
            }
            out.push_str(&text[at..fragment.range.end]);
            out
        })
        .collect()
}

fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                ranges.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    ranges
}

const STORY: &str = "The fox ran. It was a quick brown fox that ran over hills, rivers and a very long road that \
    would not end. A dog slept. The fox saw the dog!";

#[test]
fn passages_are_sentences_of_bounded_length() {
    let marks = marks(STORY, &["fox", "dog"]);
    let passages = |scanner, size| shown(STORY, &passages(0, STORY, &marks, scanner, size));
    assert_eq!(
        passages(Scanner::Sentence, 0),
        [
            "The [fox] ran.",
            "It was a quick brown [fox] that ran over hills, rivers and a very long road that would not end.",
            "A [dog] slept.",
            "The [fox] saw the [dog]!",
        ]
    );
    assert_eq!(
        passages(Scanner::Sentence, 40),
        [
            "The [fox] ran.",
            "It was a quick brown [fox] that ran over hills",
            "A [dog] slept. The [fox] saw the [dog]!",
        ]
    );
    assert_eq!(passages(Scanner::Word, 40), ["[fox]", "[fox]", "[dog]", "[fox]", "[dog]"]);
    assert_eq!(shown(STORY, &whole(0, STORY, &marks).into_iter().collect::<Vec<_>>()).len(), 1);
}

#[test]
fn the_best_passages_are_kept() {
    let all = passages(0, STORY, &marks(STORY, &["fox", "dog"]), Scanner::Sentence, 0);
    let best = choose(all.clone(), 1, true);
    assert_eq!(shown(STORY, &best), ["The [fox] saw the [dog]!"]);
    let two = choose(all.clone(), 2, false);
    assert!(two[0].range.start < two[1].range.start);
    assert_eq!(choose(all, 100, true).len(), 4);
    // Weights decide where they are known.
    let mut weighed = marks(STORY, &["hills", "slept"]);
    weighed[0].weight = Some(3.0);
    weighed[1].weight = Some(0.5);
    let passages = passages(0, STORY, &weighed, Scanner::Sentence, 30);
    assert!(shown(STORY, &choose(passages, 1, true))[0].contains("[hills]"));
}

/// Examples from the Elasticsearch documentation.
#[test]
fn plain_stretches_as_documented() {
    let text = "some message with the number 1";
    let all = marks(text, &["number", "1"]);
    let simple = stretches(0, text, &tokens(text), &all, &[], 15, true);
    assert_eq!(shown(text, &simple), [" with the [number]", " [1]"]);
    let phrase = 22..30;
    let span = stretches(0, text, &tokens(text), &all, &[phrase], 15, false);
    assert_eq!(shown(text, &span), [" with the [number] [1]"]);
}

#[test]
fn an_opening_ends_with_a_word() {
    assert_eq!(opening("hello wide world", 7), 0..10);
    assert_eq!(opening("hello", 7), 0..5);
    assert_eq!(opening("", 7), 0..0);
    assert_eq!(opening("日本語", 1), 0..6);
}

proptest! {
    /// Every fragment is a part of the text with whole characters, and holds its marks.
    #[test]
    fn fragments_are_parts_of_the_text(
        text in r"([a-c .!?\n]|é|日|🙂|\u{301}|\u{2029}){0,80}",
        size in 0usize..50, number in 0usize..4, word in any::<bool>(), simple in any::<bool>(),
    ) {
        let found = marks(&text, &["a", "bb", "日", "é"]);
        let found: Vec<Mark> = found.into_iter().fold(Vec::new(), |mut kept: Vec<Mark>, mark| {
            if kept.last().is_none_or(|last| last.range.end <= mark.range.start) {
                kept.push(mark);
            }
            kept
        });
        let scanner = if word { Scanner::Word } else { Scanner::Sentence };
        let unified = passages(0, &text, &found, scanner, size);
        let plain = stretches(0, &text, &tokens(&text), &found, &[], size, simple);
        prop_assert_eq!(unified.is_empty(), found.is_empty());
        let marked: usize = unified.iter().map(|fragment| fragment.marks.len()).sum();
        prop_assert_eq!(marked, found.len());
        for fragment in unified.iter().chain(&plain) {
            prop_assert!(text.get(fragment.range.clone()).is_some());
            let mut at = fragment.range.start;
            for mark in &fragment.marks {
                prop_assert!(mark.start >= at && mark.end <= fragment.range.end, "{:?}", fragment);
                prop_assert!(text.get(mark.clone()).is_some());
                at = mark.end;
            }
        }
        prop_assert!(choose(unified, number, true).len() <= number);
        let opening = opening(&text, size);
        prop_assert!(text.get(opening).is_some());
    }
}
