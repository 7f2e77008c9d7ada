//! Statistics about the lengths of texts and the characters in them.

use std::collections::BTreeMap;

/// The counts behind `string_stats`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StringStats {
    /// Number of texts.
    pub count: u64,
    /// Total length of all texts, in UTF-16 code units as everywhere in Elasticsearch.
    pub total: u64,
    /// Length of the shortest text, in UTF-16 code units; `None` without texts.
    pub shortest: Option<usize>,
    /// Length of the longest text, in UTF-16 code units.
    pub longest: usize,
    /// Number of occurrences of each character.
    pub letters: BTreeMap<char, u64>,
}

impl StringStats {
    /// Adds a text that occurs `times` times.
    pub fn add(&mut self, text: &str, times: u64) {
        let length = text.encode_utf16().count();
        self.count += times;
        self.total += length as u64 * times;
        self.shortest = Some(self.shortest.map_or(length, |shortest| shortest.min(length)));
        self.longest = self.longest.max(length);
        for letter in text.chars() {
            *self.letters.entry(letter).or_default() += times;
        }
    }

    /// Adds the counts of other texts.
    pub fn merge(&mut self, other: StringStats) {
        self.count += other.count;
        self.total += other.total;
        self.shortest = match (self.shortest, other.shortest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.longest = self.longest.max(other.longest);
        for (letter, times) in other.letters {
            *self.letters.entry(letter).or_default() += times;
        }
    }

    /// Average length in UTF-16 code units; `None` without texts.
    pub fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }

    /// Share (0 to 1) of each character in all characters, the most frequent first.
    pub fn shares(&self) -> Vec<(char, f64)> {
        let all: u64 = self.letters.values().sum();
        let mut shares: Vec<_> =
            self.letters.iter().map(|(letter, times)| (*letter, *times as f64 / all as f64)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }

    /// Shannon entropy of the characters, in bits per character.
    pub fn entropy(&self) -> f64 {
        self.shares().iter().map(|(_, share)| -share * share.log2()).sum::<f64>().max(0.0)
    }
}
