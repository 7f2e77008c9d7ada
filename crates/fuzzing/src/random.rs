/// Pseudo-random number generator, determined by a seed and the number of the input.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator for input `number` of a run with `seed`.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random =
            Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD134_2543_DE82_EF95));
        random.next();
        random
    }

    /// The next 64 random bits (SplitMix64).
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// True with probability 1/`of`.
    pub fn once_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    /// A random item; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}
