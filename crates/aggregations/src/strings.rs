//! Lengths and letters of texts.

use std::collections::BTreeMap;

/// What `string_stats` counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StringStats {
    /// Texts.
    pub count: u64,
    /// Length of all of them, in UTF-16 units as everywhere in Elasticsearch.
    pub total: u64,
    /// The shortest length.
    pub shortest: Option<usize>,
    /// The longest length.
    pub longest: usize,
    /// How often each letter occurs.
    pub letters: BTreeMap<char, u64>,
}

impl StringStats {
    /// Adds a text that occurs so many times.
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

    /// Adds what was counted elsewhere.
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

    /// The average length; `None` without texts.
    pub fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total as f64 / self.count as f64)
    }

    /// Letters with their shares of all, the most frequent first.
    pub fn shares(&self) -> Vec<(char, f64)> {
        let all: u64 = self.letters.values().sum();
        let mut shares: Vec<_> =
            self.letters.iter().map(|(letter, times)| (*letter, *times as f64 / all as f64)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }

    /// Shannon's entropy of the letters, in bits.
    pub fn entropy(&self) -> f64 {
        self.shares().iter().map(|(_, share)| -share * share.log2()).sum::<f64>().max(0.0)
    }
}
