//! State of a graph walk: the vectors visited, and the best of them in order.

/// A vector and its nearness packed into one integer: nearer vectors are greater, and of equally near ones
/// those with the lower number. The lowest bit says whether the vector was expanded, so vector numbers have
/// 31 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen(u64);

impl Seen {
    pub(super) fn new(nearness: f32, vector: u32) -> Self {
        let bits = nearness.to_bits();
        // The order of floats as that of whole numbers: all bits of negative ones are turned, the sign of others.
        let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        Self(u64::from(ordered) << 32 | u64::from(!vector << 1))
    }

    pub(super) fn vector(self) -> u32 {
        !(self.0 as u32) >> 1
    }

    pub(super) fn nearness(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
    }

    fn is_expanded(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The best vectors found so far, nearest first, at most `width`.
#[derive(Debug, Default)]
pub(super) struct Beam {
    best: Vec<Seen>,
    width: usize,
    /// Index up to which all vectors have been expanded.
    next: usize,
}

impl Beam {
    pub(super) fn clear(&mut self, width: usize) {
        self.best.clear();
        self.width = width.max(1);
        self.next = 0;
    }

    /// Inserts a vector if it is among the best; returns whether it was.
    pub(super) fn offer(&mut self, seen: Seen) -> bool {
        if self.best.len() >= self.width {
            if self.best.last().is_some_and(|worst| seen < *worst) {
                return false;
            }
            self.best.pop();
        }
        let at = self.best.partition_point(|other| *other > seen);
        self.best.insert(at, seen);
        self.next = self.next.min(at);
        true
    }

    /// The nearest vector that was not expanded yet; marks it as expanded.
    pub(super) fn expand(&mut self) -> Option<Seen> {
        let ahead = self.best.get_mut(self.next..)?;
        let offset = ahead.iter().position(|seen| !seen.is_expanded())?;
        ahead[offset].0 |= 1;
        self.next += offset + 1;
        Some(ahead[offset])
    }

    /// The vectors that [`Beam::expand`] would return one after another, if none were offered meanwhile.
    pub(super) fn ahead(&self) -> impl Iterator<Item = Seen> {
        let ahead = self.best.get(self.next..).unwrap_or_default();
        ahead.iter().filter(|seen| !seen.is_expanded()).copied()
    }

    pub(super) fn into_best(self) -> Vec<Seen> {
        self.best
    }

    pub(super) fn best(&self) -> &[Seen] {
        &self.best
    }
}

/// Bitmap of the vectors visited.
#[derive(Debug, Default)]
pub(super) struct Visited(Vec<u64>);

impl Visited {
    pub(super) fn clear(&mut self, count: usize) {
        self.0.clear();
        self.0.resize(count.div_ceil(64), 0);
    }

    /// Marks a vector as visited; returns whether it was new.
    pub(super) fn visit(&mut self, vector: u32) -> bool {
        let (word, bit) = (vector as usize / 64, 1 << (vector % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_ordered_by_nearness_and_number() {
        let all = [-3.5, -0.0, 0.0, 1e-30, 0.25, 7.0];
        for (at, nearness) in all.into_iter().enumerate() {
            let seen = Seen::new(nearness, 12);
            assert_eq!((seen.nearness().to_bits(), seen.vector()), (nearness.to_bits(), 12));
            assert!(seen > Seen::new(nearness, 13));
            assert!(all[..at].iter().all(|less| Seen::new(*less, 0) < seen));
        }
    }

    #[test]
    fn a_beam_keeps_the_best_and_expands_each_once() {
        let mut beam = Beam::default();
        beam.clear(3);
        for (vector, nearness) in [0.1, 0.5, 0.3].into_iter().enumerate() {
            assert!(beam.offer(Seen::new(nearness, vector as u32)));
        }
        assert_eq!(beam.expand().map(Seen::vector), Some(1));
        assert!(beam.offer(Seen::new(0.9, 3)) && !beam.offer(Seen::new(0.2, 4)));
        let mut rest = Vec::new();
        while let Some(seen) = beam.expand() {
            rest.push(seen.vector());
        }
        assert_eq!(rest, [3, 2]);
        let best: Vec<u32> = beam.best().iter().map(|seen| seen.vector()).collect();
        assert_eq!(best, [3, 1, 2]);
    }
}
