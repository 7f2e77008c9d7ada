//! Turns matches in a text into fragments: cuts passages around the matches and chooses the best.
//!
//! Lengths are in characters, so that no fragment ends inside one; ranges are bytes.

use std::ops::Range;

use rustc_hash::FxHashMap;
use unicode_segmentation::UnicodeSegmentation;

use sparrow_search_body::highlight::Scanner;

/// A stretch of a text to be marked.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Byte range in the text.
    pub range: Range<usize>,
    /// The term that matched: the more marks have the same term, the less each counts.
    pub term: String,
    /// How much the mark adds to the score of its passage; `None` to score it by its term's frequency.
    pub weight: Option<f32>,
}

/// A part of one value of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Fragment {
    /// Number of the value within the field, from 0.
    pub value: usize,
    /// Byte range in the value.
    pub range: Range<usize>,
    /// Byte ranges of the marked stretches in the value, ascending and disjoint.
    pub marks: Vec<Range<usize>>,
    /// Score by which fragments are ranked, higher is better.
    pub score: f32,
}

/// Passages of one value around its marks, ascending. A `fragment_size` of 0 means whole sentences, or
/// whatever unit the scanner uses.
pub fn passages(
    value: usize,
    text: &str,
    marks: &[Mark],
    scanner: Scanner,
    fragment_size: usize,
) -> Vec<Fragment> {
    if marks.is_empty() {
        return Vec::new();
    }
    let chars = Chars::new(text);
    let mut breaks = Breaks::new(text, &chars, scanner, fragment_size);
    let mut passages: Vec<(Range<usize>, Vec<&Mark>)> = Vec::new();
    for mark in marks {
        let start = chars.at(mark.range.start);
        match passages.last_mut() {
            Some((range, inside)) if start < range.end => inside.push(mark),
            _ => passages.push((breaks.around(start), vec![mark])),
        }
    }
    let mut totals: FxHashMap<&str, usize> = FxHashMap::default();
    for mark in marks {
        *totals.entry(&mark.term).or_default() += 1;
    }
    let length = chars.len();
    passages
        .into_iter()
        .map(|(range, inside)| {
            let bytes = chars.byte(range.start)..chars.byte(range.end);
            let score = score(&inside, &totals, &range, length);
            let marks = inside
                .iter()
                .map(|mark| mark.range.start..mark.range.end.min(bytes.end))
                .filter(|mark| mark.start < mark.end)
                .collect();
            Fragment { value, range: trimmed(text, bytes), marks, score }
        })
        .collect()
}

/// A whole value as a single fragment; `None` if nothing in it is marked.
pub fn whole(value: usize, text: &str, marks: &[Mark]) -> Option<Fragment> {
    let ranges = || marks.iter().map(|mark| mark.range.clone()).collect();
    (!marks.is_empty()).then(|| Fragment { value, range: 0..text.len(), marks: ranges(), score: 1.0 })
}

/// The best `number` fragments, in the order of the text or best first.
pub fn choose(mut fragments: Vec<Fragment>, number: usize, by_score: bool) -> Vec<Fragment> {
    fragments.sort_by(|a, b| b.score.total_cmp(&a.score));
    fragments.truncate(number);
    if !by_score {
        fragments.sort_by_key(|fragment| (fragment.value, fragment.range.start));
    }
    fragments
}

/// Score of a passage: the sum of the weights of its marks if they have any, else BM25 with passages as
/// documents (Lucene's `PassageScorer`).
fn score(marks: &[&Mark], totals: &FxHashMap<&str, usize>, range: &Range<usize>, length: usize) -> f32 {
    const K1: f32 = 1.2;
    const B: f32 = 0.75;
    /// Length that a passage is assumed to have on average, in characters.
    const PIVOT: f32 = 87.0;
    if marks.iter().any(|mark| mark.weight.is_some()) {
        return marks.iter().filter_map(|mark| mark.weight).sum();
    }
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    for mark in marks {
        *counts.entry(&mark.term).or_default() += 1;
    }
    let mut terms: Vec<(&str, usize)> = counts.into_iter().collect();
    // A sum of floats depends on its order.
    terms.sort_unstable();
    let passages = 1.0 + length as f32 / PIVOT;
    let norm = K1 * ((1.0 - B) + B * (range.len() as f32 / PIVOT));
    let sum: f32 = terms
        .into_iter()
        .map(|(term, count)| {
            let total = totals.get(term).copied().unwrap_or(count) as f32;
            let weight = (K1 + 1.0) * (1.0 + (passages + 0.5) / (total + 0.5)).ln();
            count as f32 / (count as f32 + norm) * weight
        })
        .sum();
    sum * (1.0 + 1.0 / (PIVOT + range.start as f32).ln())
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..(start + part.trim().len())
}

/// Maps between the characters of a text and its bytes.
struct Chars {
    /// Offset of the first byte of each character, then the length of the text.
    bytes: Vec<usize>,
}

impl Chars {
    fn new(text: &str) -> Self {
        Self { bytes: text.char_indices().map(|(at, _)| at).chain([text.len()]).collect() }
    }

    fn len(&self) -> usize {
        self.bytes.len() - 1
    }

    /// Number of the character that starts at a byte offset, or of the next one.
    fn at(&self, byte: usize) -> usize {
        self.bytes.partition_point(|start| *start < byte).min(self.len())
    }

    fn byte(&self, char: usize) -> usize {
        self.bytes[char.min(self.len())]
    }
}

/// Finds the passage around each match of a text; matches must be given in ascending order.
struct Breaks {
    /// Character positions at which passages may begin and end, ascending, including 0 and the end of the
    /// text.
    main: Vec<usize>,
    /// Character positions between words, at which passages that are too long are cut.
    words: Vec<usize>,
    most: usize,
    length: usize,
    window: Range<usize>,
    inner: Range<usize>,
}

impl Breaks {
    fn new(text: &str, chars: &Chars, scanner: Scanner, fragment_size: usize) -> Self {
        let ends = |starts: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
            let mut all: Vec<usize> = starts.map(|byte| chars.at(byte)).chain([0, chars.len()]).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let words = || ends(&mut text.split_word_bound_indices().map(|(at, _)| at));
        let (main, words, most) = match scanner {
            Scanner::Word => (words(), Vec::new(), 0),
            Scanner::Sentence | Scanner::Chars => {
                let sentences = ends(&mut text.split_sentence_bound_indices().map(|(at, _)| at));
                let words = if fragment_size > 0 { words() } else { Vec::new() };
                (sentences, words, fragment_size)
            }
        };
        Self { main, words, most, length: chars.len(), window: 0..0, inner: 0..0 }
    }

    fn around(&mut self, at: usize) -> Range<usize> {
        if self.most == 0 {
            return before(&self.main, at)..after(&self.main, at, self.length);
        }
        if at >= self.window.start && at < self.window.end && self.inner.end != self.window.end {
            // The rest of a sentence that was cut.
            self.inner = self.inner.end..self.window.end;
        } else {
            self.window = before(&self.main, at)..after(&self.main, at, self.length);
            // Sentences that follow, as long as they fit.
            while self.window.len() < self.most && self.window.end < self.length {
                let end = after(&self.main, self.window.end, self.length);
                if end - self.window.start > self.most {
                    break;
                }
                self.window.end = end;
            }
            self.inner = self.window.clone();
        }
        if self.inner.len() > self.most {
            // Too long: words are left out on the left first, then on the right.
            let offset = at + 1;
            if offset > self.inner.start + self.most {
                let start = before(&self.words, (offset - self.most).saturating_sub(1));
                self.inner.start = self.inner.start.max(start);
            }
            let room = self.most.saturating_sub(offset - self.inner.start);
            if offset + room < self.window.end {
                self.inner.end = self.window.end.min(after(&self.words, offset + room, self.length));
            }
        }
        self.inner.clone()
    }
}

/// The last boundary at or before the character position `at`.
fn before(boundaries: &[usize], at: usize) -> usize {
    boundaries[..boundaries.partition_point(|boundary| *boundary <= at)].last().copied().unwrap_or(0)
}

/// The first boundary after the character position `at`.
fn after(boundaries: &[usize], at: usize, length: usize) -> usize {
    boundaries.get(boundaries.partition_point(|boundary| *boundary <= at)).copied().unwrap_or(length)
}

/// The first words of a text, as far as the end of the word at `size` characters: shown where nothing
/// matches. A byte range.
pub fn opening(text: &str, size: usize) -> Range<usize> {
    let chars = Chars::new(text);
    if chars.len() <= size {
        return 0..text.len();
    }
    let at = chars.byte(size);
    let end = text
        .split_word_bound_indices()
        .map(|(start, word)| start + word.len())
        .find(|end| *end > at)
        .unwrap_or(text.len());
    0..end
}

/// Fragments of the plain highlighter: stretches of about `size` characters that begin and end at tokens.
/// Unless `simple`, none ends inside a phrase.
pub fn stretches(
    value: usize,
    text: &str,
    tokens: &[Range<usize>],
    marks: &[Mark],
    phrases: &[Range<usize>],
    size: usize,
    simple: bool,
) -> Vec<Fragment> {
    let chars = Chars::new(text);
    let length = chars.len();
    let mut starts = vec![0];
    let mut last_end = 0;
    for (number, token) in tokens.iter().enumerate() {
        // Tokens that overlap stay together.
        let distinct = token.start >= last_end;
        let end = chars.at(token.end);
        let full = end >= size.saturating_mul(starts.len());
        let inside = || phrases.iter().any(|phrase| phrase.start < token.start && token.start < phrase.end);
        let breaks = full && (simple || (length - end >= size / 2 && !inside()));
        if number > 0 && distinct && breaks {
            starts.push(last_end);
        }
        last_end = last_end.max(token.end);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let ranges: Vec<Range<usize>> = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    ranges
        .into_iter()
        .filter_map(|range| {
            let inside: Vec<&Mark> = marks
                .iter()
                .filter(|mark| mark.range.start >= range.start && mark.range.end <= range.end)
                .collect();
            let mut terms: Vec<&str> = inside.iter().map(|mark| mark.term.as_str()).collect();
            terms.sort_unstable();
            terms.dedup();
            let marks: Vec<Range<usize>> = inside.iter().map(|mark| mark.range.clone()).collect();
            let score = terms.len() as f32;
            (!marks.is_empty()).then_some(Fragment { value, range, marks, score })
        })
        .collect()
}

#[cfg(test)]
#[path = "fragments_tests.rs"]
mod tests;
