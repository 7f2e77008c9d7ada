//! Summaries of many values: exact while there are few, approximate beyond.

use std::hash::{Hash, Hasher};

use datasketches::hll::{HllSketch, HllType, HllUnion};
use rustc_hash::FxHashSet;

use super::key::Key;

/// A set of distinct values, which can be counted and merged.
#[derive(Debug, Clone)]
pub enum Distinct {
    /// The hashes of all values, while they are few.
    Exact(FxHashSet<u64>),
    /// HyperLogLog sketch, used beyond the threshold.
    Sketch(Box<HllSketch>),
}

impl Default for Distinct {
    fn default() -> Self {
        Distinct::Exact(FxHashSet::default())
    }
}

/// Hash of a value: the same for equal keys of all segments and indices.
pub fn hash(key: &Key) -> u64 {
    // Whole numbers of one index may be doubles of another.
    let mut state = rustc_hash::FxHasher::default();
    match key {
        Key::Long(_) | Key::Unsigned(_) | Key::Double(_) => {
            Key::double(key.number()).hash(&mut state);
            // Doubles do not tell large whole numbers apart.
            match key {
                Key::Long(value) if value.unsigned_abs() > 1 << 53 => value.hash(&mut state),
                Key::Unsigned(value) if *value > 1 << 53 => (*value as i64).hash(&mut state),
                _ => {}
            }
        }
        other => other.hash(&mut state),
    }
    mix(state.finish())
}

/// Spreads the entropy of a hash over all of its bits (the finalizer of MurmurHash3).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

impl Distinct {
    /// Adds the hash of a value; beyond `threshold` distinct hashes, the set becomes a sketch.
    pub fn insert(&mut self, hash: u64, threshold: usize) {
        match self {
            Distinct::Exact(set) => {
                set.insert(hash);
                if set.len() > threshold {
                    let mut sketch = new_sketch(threshold);
                    set.drain().for_each(|hash| sketch.update(hash));
                    *self = Distinct::Sketch(Box::new(sketch));
                }
            }
            Distinct::Sketch(sketch) => sketch.update(hash),
        }
    }

    /// Adds the values of another set.
    pub fn merge(&mut self, other: Distinct, threshold: usize) {
        match other {
            Distinct::Exact(set) => set.into_iter().for_each(|hash| self.insert(hash, threshold)),
            Distinct::Sketch(mut sketch) => match self {
                Distinct::Exact(set) => {
                    set.drain().for_each(|hash| sketch.update(hash));
                    *self = Distinct::Sketch(sketch);
                }
                Distinct::Sketch(own) => {
                    if let Ok(mut union) = HllUnion::new(precision(threshold)) {
                        union.update(own);
                        union.update(&sketch);
                        **own = union.to_sketch(HllType::Hll8);
                    }
                }
            },
        }
    }

    /// Number of distinct values: exact or, for a sketch, estimated.
    pub fn count(&self) -> u64 {
        match self {
            Distinct::Exact(set) => set.len() as u64,
            Distinct::Sketch(sketch) => sketch.estimate().round() as u64,
        }
    }
}

/// Base-2 logarithm of a sketch's number of registers, from 4 to 18: four registers for each value of the threshold,
/// rounded up.
fn precision(threshold: usize) -> u8 {
    (threshold.max(1).next_power_of_two().trailing_zeros() as u8 + 2).clamp(4, 18)
}

fn new_sketch(threshold: usize) -> HllSketch {
    HllSketch::new(precision(threshold), HllType::Hll8).expect("the precision is in its bounds")
}

/// Largest number of individual values kept before they are merged into groups.
const MOST_VALUES: usize = 1 << 16;
/// Scale of the number of groups after merging: larger means more and smaller groups.
const GROUPS: f64 = 4000.0;

/// Distribution of numbers. Exact up to 65,536 values; beyond that, neighbouring values are merged into groups that
/// are smaller towards both ends, as in a t-digest.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    /// Values with their weights (numbers of occurrences), in ascending order if `sorted`.
    values: Vec<(f64, f64)>,
    sorted: bool,
    summed: bool,
}

impl Distribution {
    /// Adds a value.
    pub fn insert(&mut self, value: f64) {
        self.add(value, 1.0);
    }

    fn add(&mut self, value: f64, weight: f64) {
        self.values.push((value, weight));
        self.sorted = false;
        if self.values.len() > MOST_VALUES {
            self.sum_up();
        }
    }

    /// Adds the values of another distribution.
    pub fn merge(&mut self, other: Distribution) {
        self.summed |= other.summed;
        for (value, weight) in other.values {
            self.add(value, weight);
        }
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            self.sorted = true;
        }
    }

    fn sum_up(&mut self) {
        self.sort();
        self.summed = true;
        let total: f64 = self.values.iter().map(|(_, weight)| weight).sum();
        let mut groups: Vec<(f64, f64)> = Vec::with_capacity(GROUPS as usize * 2);
        let mut before = 0.0;
        for &(value, weight) in &self.values {
            let rank = (before + weight / 2.0) / total;
            // A group may be the larger the further it is from both ends; those at the ends are single values.
            let most = 4.0 * total * rank * (1.0 - rank) / GROUPS;
            match groups.last_mut() {
                Some(last) if last.1 + weight <= most => {
                    last.0 += (value - last.0) * weight / (last.1 + weight);
                    last.1 += weight;
                }
                _ => groups.push((value, weight)),
            }
            before += weight;
        }
        self.values = groups;
    }

    /// Quantile at `share` (0 to 1), interpolated between neighbouring values; `None` without values.
    pub fn quantile(&mut self, share: f64) -> Option<f64> {
        self.sort();
        let (first, last) = (self.values.first()?.0, self.values.last()?.0);
        let total: f64 = self.values.iter().map(|(_, weight)| weight).sum();
        if !self.summed {
            let place = share * (self.values.len() - 1) as f64;
            let below = self.values[place.floor() as usize].0;
            let above = self.values[(place.ceil() as usize).min(self.values.len() - 1)].0;
            return Some(below + (above - below) * place.fract());
        }
        // A group stands at its middle.
        let wanted = share * (total - 1.0);
        let (mut before, mut previous) = (0.0, (0.0, first));
        for &(value, weight) in &self.values {
            let middle = before + (weight - 1.0) / 2.0;
            if wanted <= middle {
                let width = middle - previous.0;
                let part = if width > 0.0 { (wanted - previous.0) / width } else { 1.0 };
                return Some(previous.1 + (value - previous.1) * part);
            }
            previous = (middle, value);
            before += weight;
        }
        Some(last)
    }

    /// Quantile at `share` (0 to 1) as an HDR histogram with so many significant digits has it: the largest value that it does not
    /// tell from the one of this rank, and the smallest at 0. `None` without values.
    pub fn hdr_quantile(&mut self, share: f64, digits: u8) -> Option<f64> {
        let value = self.nearest_rank(share)?;
        let (lowest, highest) = self.equivalent(value, digits);
        Some(if share == 0.0 { lowest } else { highest })
    }

    /// Share (0 to 1) of the values that are at most `of` or that such a histogram does not tell from it; `None` without values.
    pub fn hdr_share_up_to(&mut self, of: f64, digits: u8) -> Option<f64> {
        let (_, highest) = self.equivalent(of, digits);
        self.share_up_to(highest.max(of))
    }

    /// The smallest and largest value that an HDR histogram with so many significant digits does not tell from `value`. It counts in
    /// steps that are as fine as its smallest value needs, and in coarser ones the larger a value is. It has
    /// no values below 0 (`metrics.rs` refuses them), and tells 0 from all others.
    fn equivalent(&mut self, value: f64, digits: u8) -> (f64, f64) {
        self.sort();
        let smallest = self.values.iter().map(|(value, _)| *value).find(|value| *value > 0.0);
        let (Some(smallest), true) = (smallest, value > 0.0) else { return (value, value) };
        let bits = (2.0 * 10_f64.powi(i32::from(digits))).log2().ceil() as i32 - 1;
        let unit = smallest.log2().floor().exp2() / f64::from(bits).exp2();
        let steps = (value / unit).floor();
        // No double counts the steps to a value that is so far from the smallest one.
        if !steps.is_finite() {
            return (value, value);
        }
        let width = f64::from(steps.max(1.0).log2().floor() as i32 - bits).exp2().max(1.0);
        let lowest = (steps / width).floor() * width;
        (lowest * unit, (lowest + width - 1.0) * unit)
    }

    /// The value whose rank is nearest to `share` (0 to 1) of all values; `None` without values.
    fn nearest_rank(&mut self, share: f64) -> Option<f64> {
        self.sort();
        let total: f64 = self.values.iter().map(|(_, weight)| weight).sum();
        let wanted = (share * total + 0.5).floor().max(1.0);
        let mut before = 0.0;
        for &(value, weight) in &self.values {
            before += weight;
            if before >= wanted {
                return Some(value);
            }
        }
        self.values.last().map(|&(value, _)| value)
    }

    /// Share (0 to 1) of the values that are below `of`, with equal ones counted half; `None` without values.
    pub fn rank(&mut self, of: f64) -> Option<f64> {
        if self.values.is_empty() {
            return None;
        }
        let total: f64 = self.values.iter().map(|(_, weight)| weight).sum();
        let sum = |keep: &dyn Fn(f64) -> bool| -> f64 {
            self.values.iter().filter(|(value, _)| keep(*value)).map(|(_, weight)| weight).sum()
        };
        let equal = sum(&|value| value == of);
        // As Elasticsearch counts: what is larger than all has rank 1, what is smaller has 0.
        Some((sum(&|value| value < of) + equal / 2.0) / total)
    }

    /// Share (0 to 1) of the values that are at most `of`; `None` without values.
    fn share_up_to(&self, of: f64) -> Option<f64> {
        let total: f64 = self.values.iter().map(|(_, weight)| weight).sum();
        let below: f64 = self.values.iter().filter(|(value, _)| *value <= of).map(|(_, weight)| weight).sum();
        (total > 0.0).then(|| below / total)
    }

    /// Minimum, maximum, first quartile, median, third quartile, and the lower and upper whisker: the outermost
    /// values within 1.5 times the interquartile range of the box. `None` without values.
    pub fn boxplot(&mut self) -> Option<[f64; 7]> {
        let (q1, q2, q3) = (self.quantile(0.25)?, self.quantile(0.5)?, self.quantile(0.75)?);
        let (min, max) = (self.values.first()?.0, self.values.last()?.0);
        let reach = 1.5 * (q3 - q1);
        let lower = self.values.iter().map(|(value, _)| *value).find(|value| *value >= q1 - reach);
        let upper = self.values.iter().rev().map(|(value, _)| *value).find(|value| *value <= q3 + reach);
        Some([min, max, q1, q2, q3, lower.unwrap_or(min), upper.unwrap_or(max)])
    }

    /// Median of the values' distances to their median; `None` without values.
    pub fn median_absolute_deviation(&mut self) -> Option<f64> {
        let median = self.quantile(0.5)?;
        let mut distances = Distribution { summed: self.summed, ..Distribution::default() };
        distances.values =
            self.values.iter().map(|&(value, weight)| ((value - median).abs(), weight)).collect();
        distances.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::{Distinct, Distribution, hash};
    use crate::key::Key;

    #[test]
    fn few_values_are_interpolated_as_documented() {
        let mut values = Distribution::default();
        [151.0, 1.0, 101.0, 51.0].into_iter().for_each(|value| values.insert(value));
        let percentiles = [(1.0, 2.5), (5.0, 8.5), (25.0, 38.5), (50.0, 76.0), (95.0, 143.5), (100.0, 151.0)];
        for (percent, expected) in percentiles {
            assert_eq!(values.quantile(percent / 100.0), Some(expected), "{percent}");
        }
        assert_eq!(values.rank(50.0), Some(0.25));
        assert_eq!(values.rank(51.0), Some(0.375));
        assert_eq!(values.rank(200.0), Some(1.0));
        assert_eq!(values.nearest_rank(0.25), Some(1.0));
        assert_eq!(values.nearest_rank(0.5), Some(51.0));
        assert_eq!((values.nearest_rank(0.62), values.nearest_rank(0.63)), (Some(51.0), Some(101.0)));
        // As Elasticsearch's own tests have them.
        let hdr =
            [(0.0, 1.0), (25.0, 1.0), (50.0, 51.0302734375), (75.0, 101.0615234375), (99.0, 151.1240234375)];
        for (percent, expected) in hdr {
            assert_eq!(values.hdr_quantile(percent / 100.0, 3), Some(expected), "{percent}");
        }
        assert_eq!(values.hdr_quantile(0.0, 1), Some(1.0));
        assert_eq!(values.hdr_share_up_to(50.0, 3), Some(0.25));
        assert_eq!(values.hdr_share_up_to(50.0, 1), Some(0.5));
        assert_eq!(values.hdr_share_up_to(-2.0, 3), Some(0.0));
        assert_eq!(values.median_absolute_deviation(), Some(50.0));
        let mut apart = Distribution::default();
        [1e-300, 1e300].into_iter().for_each(|value| apart.insert(value));
        assert_eq!(apart.hdr_quantile(1.0, 3), Some(1e300));
        assert_eq!(apart.hdr_share_up_to(1e299, 3), Some(0.5));
    }

    #[test]
    fn many_values_are_approximated() {
        let mut values = Distribution::default();
        let mut other = Distribution::default();
        for number in 0..500_000u64 {
            let value = (number * 7919 % 500_000) as f64;
            if number % 2 == 0 { values.insert(value) } else { other.insert(value) }
        }
        values.merge(other);
        for percent in [0.0, 0.1, 1.0, 25.0, 50.0, 75.0, 99.0, 99.9, 100.0] {
            let found = values.quantile(percent / 100.0).unwrap();
            let expected = percent / 100.0 * 499_999.0;
            assert!((found - expected).abs() < 500.0, "{percent}: {found} is not {expected}");
            assert!((values.rank(expected).unwrap() - percent / 100.0).abs() < 0.002);
        }
        assert!((values.median_absolute_deviation().unwrap() - 125_000.0).abs() < 500.0);
        assert!(values.values.len() <= super::MOST_VALUES);
    }

    #[test]
    fn distinct_values_are_counted() {
        let mut few = Distinct::default();
        let mut many = Distinct::default();
        for number in 0..100_000i64 {
            few.insert(hash(&Key::Long(number % 3000)), 3000);
            many.insert(hash(&Key::Long(number)), 3000);
        }
        assert_eq!(few.count(), 3000);
        let error = (many.count() as f64 / 100_000.0 - 1.0).abs();
        assert!(error < 0.03, "{}", many.count());
        let mut both = Distinct::default();
        for number in 50_000..150_000i64 {
            both.insert(hash(&Key::double(number as f64)), 3000);
        }
        both.merge(many, 3000);
        both.merge(few, 3000);
        let error = (both.count() as f64 / 150_000.0 - 1.0).abs();
        assert!(error < 0.03, "{}", both.count());
    }
}
