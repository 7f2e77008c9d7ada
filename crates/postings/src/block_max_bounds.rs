//! Choice of the impact codes that the 16 levels of a dense term stand for.

/// Levels above 0.
const LEVELS: usize = 15;

/// Chooses the codes of the levels so that the blocks' bounds exceed their highest impacts by the least total.
/// `highest` holds the highest impact of each block, 0 for a block without postings. The codes ascend: level 0 has
/// code 0, and level 15 the highest impact.
pub(crate) fn codes_for(highest: &[u8]) -> [u8; 16] {
    let mut counts = [0_u64; 256];
    highest.iter().for_each(|impact| counts[usize::from(*impact)] += 1);
    let values: Vec<u8> = (1..=255).filter(|value| counts[usize::from(*value)] > 0).collect();
    let mut codes = [0; 16];
    if values.len() <= LEVELS {
        // All exact, and the rest of the levels as the last.
        codes[1..].fill(values.last().copied().unwrap_or(0));
        codes[1..=values.len()].copy_from_slice(&values);
        return codes;
    }
    let errors = Errors::new(&values, &counts);
    // `least[i]` is the least sum of errors of the first `i` values with as many levels as were placed.
    let mut least: Vec<i64> = (0..=values.len()).map(|end| errors.of(0, end)).collect();
    // Per further level and number of values, how many of them the levels below take.
    let mut below = vec![vec![0; values.len() + 1]; LEVELS - 1];
    let mut lines = Vec::with_capacity(values.len());
    for below in &mut below {
        least = place(&errors, &least, below, &mut lines);
    }
    let mut end = values.len();
    for (level, below) in below.iter().enumerate().rev() {
        codes[level + 2] = values[end.max(1) - 1];
        end = below[end];
    }
    codes[1] = values[end.max(1) - 1];
    codes
}

/// Total errors of ranges of values that share a level, whose code is the highest of them.
struct Errors<'a> {
    values: &'a [u8],
    /// Number of blocks, and sum of their impacts, over the first n values.
    blocks: Vec<i64>,
    impacts: Vec<i64>,
}

impl<'a> Errors<'a> {
    fn new(values: &'a [u8], counts: &[u64; 256]) -> Self {
        let (mut blocks, mut impacts) = (vec![0], vec![0]);
        let (mut block_sum, mut impact_sum) = (0, 0);
        for value in values {
            let count = counts[usize::from(*value)] as i64;
            block_sum += count;
            impact_sum += count * i64::from(*value);
            blocks.push(block_sum);
            impacts.push(impact_sum);
        }
        Self { values, blocks, impacts }
    }

    /// Error of the values from `start` up to, but not including, `end`.
    fn of(&self, start: usize, end: usize) -> i64 {
        if start == end {
            return 0;
        }
        let code = i64::from(self.values[end - 1]);
        code * (self.blocks[end] - self.blocks[start]) - (self.impacts[end] - self.impacts[start])
    }
}

/// A candidate for the value at which the highest level starts, as a line: the total error for a code is `constant -
/// blocks * code`, up to a term that depends on the end alone.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    blocks: i64,
    constant: i64,
}

impl Line {
    fn at(&self, code: i64) -> i64 {
        self.constant - self.blocks * code
    }

    /// Whether this line, between two others, is nowhere the lowest: where the outer two meet, it is not below them.
    fn is_above(&self, before: &Line, after: &Line) -> bool {
        // A term may have 2^28 blocks, and sums of errors 255 times as much: their products need more than 64 bits.
        let times = |a: i64, b: i64| i128::from(a) * i128::from(b);
        times(after.constant - before.constant, self.blocks - before.blocks)
            <= times(self.constant - before.constant, after.blocks - before.blocks)
    }
}

/// Adds one more level: returns the least total error for each number of values, and stores in `below` where the new
/// level starts in each case.
///
/// For a given end, the totals are lines over its code, one line for each start. As both starts and codes ascend, the
/// lowest line moves forward along the lower hull of the lines so far, and each line is looked at once (the convex
/// hull trick).
fn place(errors: &Errors<'_>, least: &[i64], below: &mut [usize], hull: &mut Vec<Line>) -> Vec<i64> {
    hull.clear();
    let mut lowest = 0;
    let mut next = vec![0; least.len()];
    for end in 1..least.len() {
        let start = end - 1;
        let line =
            Line { start, blocks: errors.blocks[start], constant: least[start] + errors.impacts[start] };
        while let [.., before, last] = hull[..]
            && last.is_above(&before, &line)
        {
            hull.pop();
        }
        hull.push(line);
        let code = i64::from(errors.values[end - 1]);
        lowest = lowest.min(hull.len() - 1);
        while lowest + 1 < hull.len() && hull[lowest + 1].at(code) < hull[lowest].at(code) {
            lowest += 1;
        }
        below[end] = hull[lowest].start;
        next[end] = hull[lowest].at(code) + code * errors.blocks[end] - errors.impacts[end];
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(codes: &[u8], highest: &[u8]) -> u64 {
        let of = |impact: &u8| u64::from(codes[codes.partition_point(|code| code < impact)] - impact);
        highest.iter().map(of).sum()
    }

    proptest! {
        #[test]
        fn codes_bound_all_blocks(highest in proptest::collection::vec(0..=255_u8, 0..150), low in any::<bool>()) {
            let highest: Vec<u8> = highest.into_iter().map(|impact| if low { impact / 6 } else { impact }).collect();
            let codes = codes_for(&highest);
            prop_assert!(codes.is_sorted() && codes[0] == 0);
            prop_assert_eq!(codes[15], highest.iter().copied().max().unwrap_or(0));
            let even: [u8; 16] = std::array::from_fn(|level| (level * 17) as u8);
            prop_assert!(error(&codes, &highest) <= error(&even, &highest));
            // No code can be moved for the better.
            for level in 1..15 {
                for code in codes[level - 1]..=codes[level + 1] {
                    let mut moved = codes;
                    moved[level] = code;
                    prop_assert!(error(&codes, &highest) <= error(&moved, &highest));
                }
            }
        }
    }

    #[test]
    fn the_sum_is_the_least_of_all_choices() {
        // 17 values, of which two share the levels of others.
        let value = |at: u16| (at * at / 2 + at + 1) as u8;
        let highest: Vec<u8> = (0..17).flat_map(|at| vec![value(at); usize::from(at % 5 + 1)]).collect();
        let mut least = u64::MAX;
        for first in 0..16 {
            for second in 0..first {
                let kept = (0..17).filter(|at| *at != first && *at != second).map(value);
                let codes: Vec<u8> = [0].into_iter().chain(kept).collect();
                least = least.min(error(&codes, &highest));
            }
        }
        assert_eq!(error(&codes_for(&highest), &highest), least);
    }
}
