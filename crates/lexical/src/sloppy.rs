//! The frequency of a phrase in a document when its terms may be out of place: Lucene's sloppy frequency.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Counts steps of this thread, and tells whether its request is to stop.
pub type StopsAfter = fn(usize) -> bool;

/// A place of a phrase: how far it is from the phrase's start, and the number of the list that has its terms' positions. Places with
/// the same terms share a list, so that a phrase which repeats a word thousands of times reads its positions once.
#[derive(Debug, Clone, Copy)]
pub struct PhrasePlace {
    pub offset: u32,
    pub list: usize,
}

/// One place of a phrase, with its occurrences in a document.
struct Place<'a> {
    /// Positions of its terms in the document, ascending.
    positions: &'a [u32],
    next: usize,
    /// Current position in the document minus the place's offset in the phrase.
    at: i64,
    offset: i64,
    /// Number of the group of places that share terms, and this place's number within it.
    group: Option<(usize, usize)>,
}

impl Place<'_> {
    fn advance(&mut self) -> bool {
        match self.positions.get(self.next) {
            Some(position) => {
                self.at = i64::from(*position) - self.offset;
                self.next += 1;
                true
            }
            None => false,
        }
    }

    /// Current position in the document.
    fn in_document(&self) -> i64 {
        self.at + self.offset
    }
}

/// A place in the priority queue, ordered by adjusted position, then offset, then order in the phrase.
#[derive(PartialEq, Eq)]
struct Entry {
    at: i64,
    offset: i64,
    place: usize,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.offset, other.place).cmp(&(self.at, self.offset, self.place))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The part of a sloppy phrase that does not depend on the document.
#[derive(Debug, Clone)]
pub struct SloppyPhrase {
    slop: u32,
    /// Groups of places that share a term, each sorted by offset.
    groups: Vec<Vec<usize>>,
    /// Whether some place in a group has several terms, in which case its members may start at different
    /// positions.
    mixed: bool,
    stops_after: StopsAfter,
}

impl SloppyPhrase {
    /// `places` holds the offset and the terms of each place; `slop` is the total distance that terms may move.
    pub fn new<T: Eq + Hash>(places: &[(u32, &[T])], slop: u32, stops_after: StopsAfter) -> Self {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of: FxHashMap<&T, usize> = FxHashMap::default();
        for (number, (_, terms)) in places.iter().enumerate() {
            let mut joined: Vec<usize> =
                terms.iter().filter_map(|term| group_of.get(term).copied()).collect();
            joined.sort_unstable();
            joined.dedup();
            let group = joined.first().copied().unwrap_or(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(number);
            for other in joined.iter().skip(1) {
                let places = std::mem::take(&mut groups[*other]);
                groups[group].extend(places);
                group_of.values_mut().filter(|of| **of == *other).for_each(|of| *of = group);
            }
            group_of.extend(terms.iter().map(|term| (term, group)));
        }
        groups.retain(|group| group.len() > 1);
        for group in &mut groups {
            group.sort_by_key(|place| (places[*place].0, *place));
        }
        let mixed = groups.iter().flatten().any(|place| places[*place].1.len() > 1);
        Self { slop, groups, mixed, stops_after }
    }

    /// Sum of `1 / (1 + distance)` over the matches in a document with these lists of positions, each ascending; 0 if the request of this
    /// thread is to stop meanwhile. `places` are those that the phrase was made of.
    pub fn frequency(&self, places: &[PhrasePlace], lists: &[Vec<u32>]) -> f32 {
        let Some(mut run) = Run::start(self, places, lists) else { return 0.0 };
        let mut frequency = 0.0;
        while let Some(distance) = run.next_match() {
            frequency += 1.0 / (1.0 + distance as f32);
        }
        if run.stopped { 0.0 } else { frequency }
    }
}

struct Run<'a> {
    phrase: &'a SloppyPhrase,
    places: Vec<Place<'a>>,
    queue: BinaryHeap<Entry>,
    /// Highest adjusted position of all places.
    end: i64,
    positioned: bool,
    /// The request of this thread is to stop: no place moves any more.
    stopped: bool,
}

impl<'a> Run<'a> {
    fn start(phrase: &'a SloppyPhrase, places: &[PhrasePlace], lists: &'a [Vec<u32>]) -> Option<Self> {
        // Without this, a phrase of thousands of places would be laid out in every document that has one word of it.
        let has_room = |group: &Vec<usize>| lists[places[group[0]].list].len() >= group.len();
        if (!phrase.mixed && !phrase.groups.iter().all(has_room)) || (phrase.stops_after)(places.len()) {
            return None;
        }
        let mut places: Vec<Place<'_>> = places
            .iter()
            .map(|PhrasePlace { offset, list }| Place {
                positions: &lists[*list],
                next: 0,
                at: 0,
                offset: i64::from(*offset),
                group: None,
            })
            .collect();
        for (number, group) in phrase.groups.iter().enumerate() {
            for (index, place) in group.iter().enumerate() {
                places[*place].group = Some((number, index));
            }
        }
        if !places.iter_mut().all(Place::advance) {
            return None;
        }
        let mut run = Self {
            phrase,
            places,
            queue: BinaryHeap::new(),
            end: i64::MIN,
            positioned: true,
            stopped: false,
        };
        if !run.spread_groups() {
            return None;
        }
        for place in 0..run.places.len() {
            run.end = run.end.max(run.places[place].at);
            run.push(place);
        }
        Some(run)
    }

    fn push(&mut self, place: usize) {
        let Place { at, offset, .. } = self.places[place];
        self.queue.push(Entry { at, offset, place });
    }

    /// Moves places that share a term apart, so that no two stand on the same position; false if that is
    /// impossible.
    fn spread_groups(&mut self) -> bool {
        let phrase = self.phrase;
        for group in &phrase.groups {
            if !phrase.mixed {
                for (later, place) in group.iter().enumerate() {
                    self.places[*place].next = later;
                    if !self.places[*place].advance() {
                        return false;
                    }
                }
                continue;
            }
            let mut index = 0;
            'next: while index < group.len() {
                let place = group[index];
                while let Some(other) = self.collides(place) {
                    let lesser = self.lesser(place, other);
                    if !self.advance(lesser) {
                        return false;
                    }
                    if self.places[lesser].group.is_some_and(|(_, own)| own < index) {
                        continue 'next;
                    }
                }
                index += 1;
            }
        }
        true
    }

    fn advance(&mut self, place: usize) -> bool {
        self.stopped |= (self.phrase.stops_after)(1);
        let moved = !self.stopped && self.places[place].advance();
        if moved {
            self.end = self.end.max(self.places[place].at);
        }
        moved
    }

    /// Another place of the group on the same position of the document.
    fn collides(&mut self, place: usize) -> Option<usize> {
        let (group, _) = self.places[place].group?;
        let group = &self.phrase.groups[group];
        self.stopped |= (self.phrase.stops_after)(group.len());
        if self.stopped {
            return None;
        }
        let position = self.places[place].in_document();
        group.iter().copied().find(|other| *other != place && self.places[*other].in_document() == position)
    }

    fn lesser(&self, a: usize, b: usize) -> usize {
        let key = |place: usize| (self.places[place].at, self.places[place].offset);
        if key(a) < key(b) { a } else { b }
    }

    /// Moves places that collide with one that was just advanced; false when one of them runs out of
    /// positions.
    fn spread(&mut self, mut place: usize) -> bool {
        let first = place;
        let mut moved = Vec::new();
        while let Some(other) = self.collides(place) {
            place = self.lesser(place, other);
            if !self.advance(place) {
                return false;
            }
            if other != first {
                moved.push(other);
            }
        }
        if !moved.is_empty() {
            self.stopped |= (self.phrase.stops_after)(self.queue.len());
            let entries: Vec<Entry> = self.queue.drain().collect();
            for entry in entries {
                self.push(entry.place);
            }
        }
        true
    }

    /// Distance of the next match within the slop, in positions; `None` without another match.
    fn next_match(&mut self) -> Option<u32> {
        if !self.positioned {
            return None;
        }
        let slop = i64::from(self.phrase.slop);
        let mut place = self.queue.pop()?.place;
        let mut distance = self.end - self.places[place].at;
        let mut next = self.queue.peek().map_or(i64::MAX, |entry| entry.at);
        while self.advance(place) {
            if self.places[place].group.is_some() && !self.spread(place) {
                break;
            }
            if self.places[place].at > next {
                self.push(place);
                if distance <= slop {
                    return Some(distance as u32);
                }
                place = self.queue.pop()?.place;
                next = self.queue.peek().map_or(i64::MAX, |entry| entry.at);
                distance = self.end - self.places[place].at;
            } else {
                distance = distance.min(self.end - self.places[place].at);
            }
        }
        self.positioned = false;
        (distance <= slop).then_some(distance as u32)
    }
}

/// Number of times that the places stand exactly as in the phrase, in a document with these lists of positions, each ascending; 0 if the
/// request of this thread is to stop meanwhile.
pub fn exact_frequency(places: &[PhrasePlace], lists: &[Vec<u32>], stops_after: StopsAfter) -> f32 {
    let Some((first, rest)) = places.split_first() else { return 0.0 };
    let mut occurrences = 0;
    for position in &lists[first.list] {
        let Some(start) = position.checked_sub(first.offset) else { continue };
        let stand = |place: &&PhrasePlace| lists[place.list].binary_search(&(start + place.offset)).is_ok();
        let standing = rest.iter().take_while(stand).count();
        if stops_after(standing + 1) {
            return 0.0;
        }
        occurrences += u32::from(standing == rest.len());
    }
    occurrences as f32
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::{PhrasePlace, SloppyPhrase, exact_frequency};

    /// Places one after another, each with a list of its own.
    fn in_order(places: usize) -> Vec<PhrasePlace> {
        (0..places).map(|list| PhrasePlace { offset: list as u32, list }).collect()
    }

    /// Frequency of a phrase of words in a text of words.
    fn frequency(text: &str, phrase: &str, slop: u32) -> f32 {
        let words: Vec<[&str; 1]> = phrase.split(' ').map(|word| [word]).collect();
        let places: Vec<(u32, &[&str])> =
            words.iter().enumerate().map(|(offset, word)| (offset as u32, &word[..])).collect();
        let positions: Vec<Vec<u32>> = words
            .iter()
            .map(|[word]| {
                let text = text.split(' ').enumerate();
                text.filter(|(_, found)| found == word).map(|(at, _)| at as u32).collect()
            })
            .collect();
        SloppyPhrase::new(&places, slop, |_| false).frequency(&in_order(words.len()), &positions)
    }

    #[test]
    fn distances_as_lucene_counts_them() {
        assert_eq!(frequency("a b", "a b", 0), 1.0);
        assert_eq!(frequency("a x b", "a b", 0), 0.0);
        assert_eq!(frequency("a x b", "a b", 1), 0.5);
        // A swap costs two moves.
        assert_eq!(frequency("b a", "a b", 1), 0.0);
        assert_eq!(frequency("b a", "a b", 2), 1.0 / 3.0);
        // The second `a` after the first `b` is three moves away.
        assert_eq!(frequency("a b x a x b", "a b", 3), 1.0 + 0.25 + 0.5);
        // One term cannot stand for two places.
        assert_eq!(frequency("a", "a a", 5), 0.0);
        assert_eq!(frequency("a a", "a a", 0), 1.0);
        assert_eq!(frequency("a x a", "a a", 1), 0.5);
        assert_eq!(frequency("c b a", "a b c", 4), 1.0 / 5.0);
    }

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    fn counted(steps: usize) -> bool {
        STEPS.with(|count| count.set(count.get() + steps));
        false
    }

    #[test]
    fn a_word_that_is_repeated_is_counted_at_each_place_and_not_laid_out_in_vain() {
        let words = vec![["a"]; 400];
        let places: Vec<(u32, &[&str])> =
            (0..).zip(&words).map(|(offset, word)| (offset, &word[..])).collect();
        let shared: Vec<PhrasePlace> = (0..400).map(|offset| PhrasePlace { offset, list: 0 }).collect();
        let phrase = SloppyPhrase::new(&places, 1, counted);
        let steps = |positions: u32| {
            STEPS.with(|count| count.set(0));
            let found = phrase.frequency(&shared, &[(0..positions).collect()]);
            (found > 0.0, STEPS.with(Cell::get))
        };
        assert_eq!(steps(399), (false, 0));
        let (found, counted) = steps(400);
        assert!(found && counted >= 400, "{counted}");
    }

    #[test]
    fn places_with_several_terms_may_share_lists() {
        let words: [&[&str]; 4] = [&["a", "b"], &["a"], &["a", "b"], &["b"]];
        let places: Vec<(u32, &[&str])> = (0..).zip(words).collect();
        let at = |offset, list| PhrasePlace { offset, list };
        let shared = [at(0, 0), at(1, 1), at(2, 0), at(3, 2)];
        for text in 0_u32..1 << 10 {
            let of = |words: &[&str]| -> Vec<u32> {
                let word = |at: &u32| if text >> at & 1 == 0 { "a" } else { "b" };
                (0..10).filter(|at| words.contains(&word(at))).collect()
            };
            let all: Vec<Vec<u32>> = words.iter().map(|words| of(words)).collect();
            let distinct = [all[0].clone(), all[1].clone(), all[3].clone()];
            for slop in 0..3 {
                let phrase = SloppyPhrase::new(&places, slop, |_| false);
                assert_eq!(phrase.frequency(&shared, &distinct), phrase.frequency(&in_order(4), &all));
            }
            let exact = exact_frequency(&shared, &distinct, |_| false);
            assert_eq!(exact, exact_frequency(&in_order(4), &all, |_| false));
        }
    }

    /// Smallest distance over all ways to give each place a position of its own.
    fn least_distance(positions: &[Vec<u32>], offsets: &[u32], taken: &mut Vec<u32>, best: &mut Option<i64>) {
        let place = taken.len();
        if place == positions.len() {
            let at: Vec<i64> =
                taken.iter().zip(offsets).map(|(at, offset)| i64::from(*at) - i64::from(*offset)).collect();
            let distance = at.iter().max().unwrap() - at.iter().min().unwrap();
            *best = Some(best.map_or(distance, |best| best.min(distance)));
            return;
        }
        for position in &positions[place] {
            if !taken.contains(position) {
                taken.push(*position);
                least_distance(positions, offsets, taken, best);
                taken.pop();
            }
        }
    }

    proptest! {
        /// For phrases without repeated words, a document matches exactly when some choice of positions is
        /// within the slop.
        #[test]
        fn a_phrase_of_different_words_matches_when_some_choice_does(
            text in proptest::collection::vec(0u8..4, 1..12),
            length in 2usize..4,
            slop in 0u32..6,
        ) {
            let positions: Vec<Vec<u32>> = (0..length as u8)
                .map(|word| (0..text.len() as u32).filter(|at| text[*at as usize] == word).collect())
                .collect();
            let offsets: Vec<u32> = (0..length as u32).collect();
            let words: Vec<[u8; 1]> = (0..length as u8).map(|word| [word]).collect();
            let places: Vec<(u32, &[u8])> = words.iter().zip(&offsets).map(|(word, at)| (*at, &word[..])).collect();
            let mut best = None;
            least_distance(&positions, &offsets, &mut Vec::new(), &mut best);
            let exact = exact_frequency(&in_order(length), &positions, |_| false);
            let found = SloppyPhrase::new(&places, slop, |_| false).frequency(&in_order(length), &positions);
            prop_assert_eq!(found > 0.0, best.is_some_and(|best| best <= i64::from(slop)));
            if slop == 0 {
                prop_assert_eq!(found, exact);
            }
            if let Some(best) = best.filter(|best| *best <= i64::from(slop)) {
                prop_assert!(found >= 1.0 / (1.0 + best as f32));
            }
        }

        /// With repeated words the search always ends, and it only finds phrases within the slop.
        #[test]
        fn repeated_words_end(text in proptest::collection::vec(0u8..3, 0..12), phrase in proptest::collection::vec(0u8..3, 2..5), slop in 0u32..8) {
            let positions: Vec<Vec<u32>> = phrase.iter()
                .map(|word| (0..text.len() as u32).filter(|at| text[*at as usize] == *word).collect())
                .collect();
            let offsets: Vec<u32> = (0..phrase.len() as u32).collect();
            let words: Vec<[u8; 1]> = phrase.iter().map(|word| [*word]).collect();
            let places: Vec<(u32, &[u8])> = words.iter().zip(&offsets).map(|(word, at)| (*at, &word[..])).collect();
            let sloppy = SloppyPhrase::new(&places, slop, |_| false);
            let found = sloppy.frequency(&in_order(phrase.len()), &positions);
            // Places of the same word may share its list.
            let first = |word: &u8| phrase.iter().position(|other| other == word).unwrap();
            let shared: Vec<PhrasePlace> = (0..).zip(&phrase).map(|(offset, word)| PhrasePlace { offset, list: first(word) }).collect();
            prop_assert_eq!(found, sloppy.frequency(&shared, &positions));
            let exact = exact_frequency(&in_order(phrase.len()), &positions, |_| false);
            prop_assert_eq!(exact, exact_frequency(&shared, &positions, |_| false));
            let starts = text.windows(phrase.len()).filter(|window| *window == &phrase[..]).count();
            prop_assert_eq!(exact, starts as f32);
            if found > 0.0 {
                let mut best = None;
                least_distance(&positions, &offsets, &mut Vec::new(), &mut best);
                prop_assert!(best.is_some_and(|best| best <= i64::from(slop)));
            }
        }
    }
}
