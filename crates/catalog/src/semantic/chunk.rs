//! Cutting texts into passages, by words or by sentences (Unicode's rules, UAX #29).

use std::convert::Infallible;
use std::ops::Range;

use sparrow_mapping::{Chunking, Separator};
use unicode_segmentation::UnicodeSegmentation;

/// Cuts a text into passages; gives them as byte ranges, in order. Together they cover all of its words. None for a text of white
/// space only.
pub(super) fn chunks(text: &str, chunking: &Chunking) -> Vec<Range<usize>> {
    let Ok(out) = chunks_while(text, chunking, &mut || Ok::<_, Infallible>(()));
    out
}

/// As [`chunks`], asking between parts of a long text, and before each search for a separator, whether to go on.
///
/// # Errors
/// What `check` fails with.
pub fn chunks_while<E>(
    text: &str,
    chunking: &Chunking,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<Range<usize>>, E> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    Ok(match chunking {
        Chunking::None => std::iter::once(0..text.len()).collect(),
        Chunking::Word { max_chunk_size, overlap } => by_words(text, *max_chunk_size, *overlap),
        Chunking::Sentence { max_chunk_size, sentence_overlap } => {
            by_sentences(text, *max_chunk_size, *sentence_overlap > 0, check)?
        }
        Chunking::Recursive { max_chunk_size, separators } => {
            let mut out = Vec::new();
            by_separators(text, 0..text.len(), *max_chunk_size, separators, &mut out, check)?;
            out.retain(|range| !text[range.clone()].trim().is_empty());
            out
        }
    })
}

/// Cuts a part of a text before its separators, joins neighbouring pieces as long as they have at most `size` words, and cuts
/// longer ones further by the remaining separators.
fn by_separators<E>(
    text: &str,
    range: Range<usize>,
    size: usize,
    separators: &[Separator],
    out: &mut Vec<Range<usize>>,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    check()?;
    let part = &text[range.clone()];
    if words(part) <= size {
        out.push(range);
        return Ok(());
    }
    // The first separator that the part has: counting its words again for each that it has not would take long.
    let (mut cuts, mut finer) = (Vec::new(), separators);
    while let Some((separator, rest)) = finer.split_first()
        && cuts.is_empty()
    {
        finer = rest;
        for at in separator.starts(part) {
            check()?;
            cuts.extend(Some(range.start + at).filter(|at| *at > range.start));
        }
        check()?;
    }
    if cuts.is_empty() {
        let pieces = by_sentences(part, size, false, check)?;
        out.extend(pieces.into_iter().map(|piece| range.start + piece.start..range.start + piece.end));
        return Ok(());
    }
    cuts.push(range.end);
    let (mut open, mut held) = (range.start..range.start, 0);
    for end in cuts {
        let count = words(&text[open.end..end]);
        if held > 0 && held + count > size {
            by_separators(text, open.clone(), size, finer, out, check)?;
            (open, held) = (open.end..open.end, 0);
        }
        open.end = end;
        held += count;
    }
    by_separators(text, open, size, finer, out, check)
}

/// The two byte ranges that a passage is cut into, at the end of a word near the middle; `None` if it cannot be cut.
pub(super) fn halves(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let ends: Vec<usize> = text.unicode_word_indices().map(|(start, word)| start + word.len()).collect();
    let cut = match &ends[..] {
        // One endless word: at a character.
        [] | [_] => {
            let middle = text.len() / 2;
            (middle..text.len()).find(|at| text.is_char_boundary(*at))?
        }
        ends => ends[ends.len() / 2 - 1],
    };
    (cut > 0 && cut < text.len()).then_some((0..cut, cut..text.len()))
}

fn words(text: &str) -> usize {
    text.unicode_words().count()
}

/// Cuts a text into passages of `size` words that share `overlap` words. As in Elasticsearch, a passage begins right after the last
/// word that it does not contain.
fn by_words(text: &str, size: usize, overlap: usize) -> Vec<Range<usize>> {
    let size = size.max(1);
    let overlap = overlap.min(size - 1);
    let ends: Vec<usize> = text.unicode_word_indices().map(|(start, word)| start + word.len()).collect();
    let mut out = Vec::new();
    let mut first = 0;
    loop {
        let start = if first == 0 { 0 } else { ends[first - 1] };
        if first + size >= ends.len() {
            out.push(start..text.len());
            return out;
        }
        out.push(start..ends[first + size - 1]);
        first += size - overlap;
    }
}

/// Cuts a text into passages of whole sentences with at most `size` words. A single sentence with more words is cut by words.
fn by_sentences<E>(
    text: &str,
    size: usize,
    overlap: bool,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Vec<Range<usize>>, E> {
    let size = size.max(1);
    let mut out: Vec<Range<usize>> = Vec::new();
    // The passage that is being filled, and its words; the last sentence in it, and its words.
    let mut open: Option<(Range<usize>, usize)> = None;
    let mut last: Option<(usize, usize)> = None;
    for (start, sentence) in text.split_sentence_bound_indices() {
        check()?;
        let (end, count) = (start + sentence.len(), words(sentence));
        if let Some((range, held)) = &mut open {
            if *held + count <= size {
                range.end = end;
                *held += count;
                last = Some((start, count));
                continue;
            }
            out.push(range.clone());
            open = None;
        }
        if count > size {
            let pieces = by_words(sentence, size, 0);
            let pieces = pieces.into_iter().map(|piece| start + piece.start..start + piece.end);
            out.extend(pieces);
            // What follows begins a passage of its own: half a sentence gives it no context.
            last = None;
            continue;
        }
        open = Some(match last.filter(|(_, before)| overlap && before + count <= size) {
            Some((before, held)) => (before..end, held + count),
            None => (start..end, count),
        });
        last = Some((start, count));
    }
    out.extend(open.map(|(range, _)| range));
    out.retain(|range| !text[range.clone()].trim().is_empty());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TEXT: &str = "Elasticsearch is an open source, distributed, RESTful, search engine which is built on top of \
                        Lucene internally and enjoys all the features it provides.";

    fn cut(text: &str, chunking: Chunking) -> Vec<&str> {
        chunks(text, &chunking).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn words_overlap_as_in_elasticsearch() {
        assert_eq!(
            cut(TEXT, Chunking::Word { max_chunk_size: 10, overlap: 1 }),
            [
                "Elasticsearch is an open source, distributed, RESTful, search engine which",
                " which is built on top of Lucene internally and enjoys",
                " enjoys all the features it provides."
            ]
        );
        assert_eq!(cut(TEXT, Chunking::default()), [TEXT]);
        assert_eq!(cut(TEXT, Chunking::None), [TEXT]);
        assert!(cut(" \n", Chunking::None).is_empty() && cut("", Chunking::default()).is_empty());
        assert_eq!(cut("!!!", Chunking::Word { max_chunk_size: 10, overlap: 1 }), ["!!!"]);
    }

    #[test]
    fn sentences_stay_whole_and_the_last_begins_the_next() {
        let sentence =
            |n: usize| (0..8).map(|word| format!("W{n}x{word}")).collect::<Vec<_>>().join(" ") + ". ";
        let text: String = (1..=3).map(sentence).collect();
        let sizes =
            |overlap| cut(&text, Chunking::Sentence { max_chunk_size: 20, sentence_overlap: overlap });
        assert_eq!(sizes(0), [sentence(1) + &sentence(2), sentence(3)]);
        assert_eq!(sizes(1), [sentence(1) + &sentence(2), sentence(2) + &sentence(3)]);
        let endless = "word ".repeat(45) + "end. And then.";
        let found = cut(&endless, Chunking::Sentence { max_chunk_size: 20, sentence_overlap: 1 });
        assert_eq!(found.iter().map(|piece| words(piece)).collect::<Vec<_>>(), [20, 20, 6, 2]);
    }

    #[test]
    fn separators_come_before_sentences() {
        let text = "# One\n\na b c d e f g h.\ni j k.\n\nL m n o p. Q r s t u v w x y z.";
        let recursive = |size: usize, separators: serde_json::Value| {
            let mut settings = json!({"strategy": "recursive", "max_chunk_size": size});
            settings["separators"] = separators;
            cut(text, Chunking::parse(settings.as_object().unwrap()).unwrap().unwrap())
        };
        assert_eq!(
            recursive(12, json!(null)),
            ["# One\n\na b c d e f g h.\ni j k.", "\n\nL m n o p. ", "Q r s t u v w x y z."]
        );
        // What looks around is seen: one line end only.
        assert_eq!(
            recursive(12, json!(["(?<!\\n)\\n(?!\\n)", "Q"])),
            ["# One\n\na b c d e f g h.", "\ni j k.\n\nL m n o p. ", "Q r s t u v w x y z."]
        );
        assert_eq!(recursive(100, json!(["x"])), [text]);
    }

    #[test]
    fn cutting_may_be_ended_at_each_separator() {
        let settings = json!({"strategy": "recursive", "max_chunk_size": 10, "separators": ["x", "y", "a"]});
        let chunking = Chunking::parse(settings.as_object().unwrap()).unwrap().unwrap();
        let text = "a b c d e f g h i j k l. ".repeat(3);
        let mut asked = 0;
        let mut count = || {
            asked += 1;
            Ok::<_, ()>(())
        };
        let all = chunks_while(&text, &chunking, &mut count).unwrap();
        assert_eq!(all, chunks(&text, &chunking));
        // Once for each of the three separators at least, and for each of the parts.
        assert!(asked > 6, "{asked}");
        for at in 0..asked {
            let mut left: usize = at;
            let mut stop = || {
                left = left.checked_sub(1).ok_or("stopped")?;
                Ok(())
            };
            assert_eq!(chunks_while(&text, &chunking, &mut stop), Err("stopped"));
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_passage_too_long(
            text in "([a-zé漢]{1,6}[ .,!?\n]{1,2}){0,80}",
            size in 10_usize..40, overlap in 0_usize..5, by_word in any::<bool>(),
        ) {
            let chunking = match by_word {
                true => Chunking::Word { max_chunk_size: size, overlap },
                false => Chunking::Sentence { max_chunk_size: size, sentence_overlap: overlap % 2 },
            };
            let ranges = chunks(&text, &chunking);
            for range in &ranges {
                prop_assert!(words(&text[range.clone()]) <= size);
            }
            prop_assert!(ranges.is_sorted_by(|a, b| a.start < b.start && a.end < b.end));
            for (start, word) in text.unicode_word_indices() {
                let held = ranges.iter().any(|range| range.start <= start && start + word.len() <= range.end);
                prop_assert!(held, "{word}");
            }
        }

        #[test]
        fn halves_are_the_whole(text in "[a-zé漢 .]{0,40}") {
            if let Some((first, second)) = halves(&text) {
                prop_assert_eq!(first.end, second.start);
                prop_assert!(!first.is_empty() && second.end == text.len() && !second.is_empty());
            } else {
                prop_assert!(text.chars().count() <= 1 || text.unicode_words().count() <= 2);
            }
        }
    }
}
