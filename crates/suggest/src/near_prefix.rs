//! Texts that begin with something near a given text, as Lucene's `FuzzyCompletionQuery` finds them.

/// A text, and how far the beginnings of others may be from it.
#[derive(Debug, Clone, PartialEq)]
pub struct NearPrefix {
    /// The bytes of the text, or its characters if these are what edits change.
    units: Vec<u32>,
    /// Number of units at the start that have to be the same.
    exact: usize,
    /// Number of edits that the rest may differ by.
    edits: usize,
    /// Whether swapping two units counts as one edit instead of two.
    transpositions: bool,
    by_characters: bool,
}

/// Options of a fuzzy completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FuzzyOptions {
    /// Number of edits: 0, 1 or 2.
    pub edits: usize,
    /// Whether swapping two letters counts as one edit instead of two.
    pub transpositions: bool,
    /// Number of units below which a text has to be the same.
    pub min_length: usize,
    /// Number of units at the start that have to be the same.
    pub prefix_length: usize,
    /// Whether units are characters instead of bytes.
    pub unicode_aware: bool,
}

impl Default for FuzzyOptions {
    fn default() -> Self {
        Self { edits: 1, transpositions: true, min_length: 3, prefix_length: 1, unicode_aware: false }
    }
}

impl NearPrefix {
    pub fn new(text: &str, options: &FuzzyOptions) -> Self {
        let units: Vec<u32> = match options.unicode_aware {
            true => text.chars().map(u32::from).collect(),
            false => text.bytes().map(u32::from).collect(),
        };
        let is_short = units.len() <= options.prefix_length || units.len() < options.min_length;
        Self {
            exact: if is_short { units.len() } else { options.prefix_length },
            edits: if is_short { 0 } else { options.edits },
            transpositions: options.transpositions,
            by_characters: options.unicode_aware,
            units,
        }
    }

    /// Length in bytes of what all matching texts begin with, which is the start of the text itself.
    pub fn literal_bytes(&self) -> usize {
        match self.by_characters {
            true => self.units[..self.exact]
                .iter()
                .filter_map(|unit| char::from_u32(*unit))
                .map(char::len_utf8)
                .sum(),
            false => self.exact,
        }
    }

    /// Length in bytes of the shortest beginning of `text` that is near enough; `None` if no beginning is.
    pub fn shortest(&self, text: &str) -> Option<usize> {
        match self.by_characters {
            true => {
                let ends = text.char_indices().map(|(at, one)| (u32::from(one), at + one.len_utf8()));
                self.shortest_of(ends)
            }
            false => self.shortest_of(text.bytes().enumerate().map(|(at, byte)| (u32::from(byte), at + 1))),
        }
    }

    /// Length in bytes of the shortest beginning of a text that is near enough; `None` if no beginning is. The text is given as its units, each
    /// with the number of bytes up to its end.
    fn shortest_of(&self, mut text: impl Iterator<Item = (u32, usize)>) -> Option<usize> {
        let (same, rest) = self.units.split_at(self.exact);
        let mut bytes = 0;
        for unit in same {
            let (found, end) = text.next()?;
            if found != *unit {
                return None;
            }
            bytes = end;
        }
        let far = self.edits + 1;
        // Distances of what was read from each beginning of the rest; only those near the diagonal can be small enough.
        let mut row: Vec<usize> = (0..=rest.len()).map(|place| place.min(far)).collect();
        let (mut before, mut next) = (vec![far; row.len()], vec![far; row.len()]);
        let mut last = None;
        let mut read = 0;
        loop {
            if row[rest.len()] < far {
                return Some(bytes);
            }
            let (found, end) = text.next()?;
            bytes = end;
            read += 1;
            next.fill(far);
            next[0] = read.min(far);
            let mut is_near = next[0] < far;
            let band = read.saturating_sub(self.edits).max(1)..=(read + self.edits).min(rest.len());
            for place in band {
                let unit = rest[place - 1];
                let mut distance = (row[place - 1] + usize::from(unit != found))
                    .min(row[place] + 1)
                    .min(next[place - 1] + 1);
                if self.transpositions && place > 1 && last == Some(unit) && rest[place - 2] == found {
                    distance = distance.min(before[place - 2] + 1);
                }
                next[place] = distance.min(far);
                is_near |= distance < far;
            }
            // Two units that are swapped reach behind a row in which nothing is near.
            let may_be_swapped = self.transpositions && row.iter().any(|distance| *distance < self.edits);
            if !is_near && !may_be_swapped {
                return None;
            }
            last = Some(found);
            std::mem::swap(&mut before, &mut row);
            std::mem::swap(&mut row, &mut next);
        }
    }

    /// Number of units that the text has in common with the first bytes of another.
    pub fn common(&self, bytes: &[u8]) -> usize {
        // As in Lucene, units are compared with bytes even where they are characters.
        self.units.iter().zip(bytes).take_while(|(unit, byte)| **unit == u32::from(**byte)).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FuzzyOptions, NearPrefix};

    /// Number of edits between two texts, the slow way.
    fn distance(left: &[u32], right: &[u32], transpositions: bool) -> usize {
        match (left, right) {
            ([], other) | (other, []) => other.len(),
            ([left_rest @ .., a], [right_rest @ .., b]) => {
                let mut least = (distance(left_rest, right_rest, transpositions) + usize::from(a != b))
                    .min(distance(left_rest, right, transpositions) + 1)
                    .min(distance(left, right_rest, transpositions) + 1);
                if let ([left_rest @ .., c], [right_rest @ .., d]) = (left_rest, right_rest)
                    && transpositions
                    && (a, c) == (d, b)
                {
                    least = least.min(distance(left_rest, right_rest, transpositions) + 1);
                }
                least
            }
        }
    }

    #[test]
    fn the_shortest_beginning_counts() {
        let near = |text: &str, options| NearPrefix::new(text, &options);
        let usual = FuzzyOptions::default();
        assert_eq!(near("nirv", usual).shortest("nirvana"), Some(3));
        assert_eq!(near("norv", usual).shortest("nirvana"), Some(4));
        assert_eq!(near("nrivana", usual).shortest("nirvana"), Some(7));
        assert_eq!(near("inrvana", usual).shortest("nirvana"), None, "the first byte has to be the same");
        assert_eq!(near("no", usual).shortest("nirvana"), None, "too short to differ");
        assert_eq!(near("nor", FuzzyOptions { edits: 0, ..usual }).shortest("nir"), None);
        assert_eq!(near("norv", usual).common(b"nirv"), 1);
        // An umlaut is one character and two bytes.
        let by_characters = FuzzyOptions { unicode_aware: true, ..usual };
        assert_eq!(near("für", by_characters).shortest("far"), Some(3));
        assert_eq!(near("fürs", by_characters).shortest("fars"), Some(4));
        assert_eq!(near("fürs", usual).shortest("fars"), None);
    }

    proptest! {
        #[test]
        fn is_what_a_naive_search_finds(
            text in "[abcü]{0,5}",
            other in "[abcü]{0,6}",
            edits in 0usize..3,
            transpositions: bool,
            prefix_length in 0usize..3,
            unicode_aware: bool,
        ) {
            let options = FuzzyOptions { edits, transpositions, min_length: 0, prefix_length, unicode_aware };
            let near = NearPrefix::new(&text, &options);
            let units = |text: &str| -> Vec<u32> {
                match unicode_aware {
                    true => text.chars().map(u32::from).collect(),
                    false => text.bytes().map(u32::from).collect(),
                }
            };
            let (wanted, found) = (units(&text), units(&other));
            let (exact, edits) =
                if wanted.len() <= prefix_length { (wanted.len(), 0) } else { (prefix_length, edits) };
            let expected = (exact..=found.len()).find(|length| {
                found[..exact] == wanted[..exact]
                    && distance(&found[exact..*length], &wanted[exact..], transpositions) <= edits
            });
            let bytes = expected.map(|length| match unicode_aware {
                true => other.chars().take(length).map(char::len_utf8).sum(),
                false => length,
            });
            prop_assert_eq!(near.shortest(&other), bytes);
        }
    }
}
