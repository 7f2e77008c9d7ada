//! What the 16 levels of a dense term stand for.

/// Levels above 0.
const LEVELS: usize = 15;
/// Sums of more errors than any term has.
const NEVER: u64 = u64::MAX / 4;

/// The codes whose bounds of blocks are highest above their highest impacts by the least sum, given these
/// (0: a block without postings). Ascending, 0 for level 0, the highest impact for level 15.
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
    let mut least: Vec<u64> = (0..=values.len()).map(|end| errors.of(0, end)).collect();
    // Per further level and number of values, how many of them the levels below take.
    let mut below = vec![vec![0; values.len() + 1]; LEVELS - 1];
    for below in &mut below {
        let mut next = vec![NEVER; values.len() + 1];
        next[0] = 0;
        place(&errors, &least, &mut next, below, 1..values.len() + 1, 0..values.len());
        least = next;
    }
    let mut end = values.len();
    for (level, below) in below.iter().enumerate().rev() {
        codes[level + 2] = values[end.max(1) - 1];
        end = below[end];
    }
    codes[1] = values[end.max(1) - 1];
    codes
}

/// Sums of errors of values that share a level, which is the highest of them.
struct Errors<'a> {
    values: &'a [u8],
    /// Of the first so many values: blocks, and their impacts added up.
    blocks: Vec<u64>,
    impacts: Vec<u64>,
}

impl<'a> Errors<'a> {
    fn new(values: &'a [u8], counts: &[u64; 256]) -> Self {
        let (mut blocks, mut impacts) = (vec![0], vec![0]);
        let (mut block_sum, mut impact_sum) = (0, 0);
        for value in values {
            let count = counts[usize::from(*value)];
            block_sum += count;
            impact_sum += count * u64::from(*value);
            blocks.push(block_sum);
            impacts.push(impact_sum);
        }
        Self { values, blocks, impacts }
    }

    /// Error of the values from `start` up to, but not including, `end`.
    fn of(&self, start: usize, end: usize) -> u64 {
        if start == end {
            return 0;
        }
        let code = u64::from(self.values[end - 1]);
        code * (self.blocks[end] - self.blocks[start]) - (self.impacts[end] - self.impacts[start])
    }
}

/// Finds for every end in `ends` the best start in `starts` of one more level: where the middle end has its
/// best bounds where those before and behind it have theirs.
fn place(
    errors: &Errors<'_>,
    least: &[u64],
    next: &mut [u64],
    below: &mut [usize],
    ends: std::ops::Range<usize>,
    starts: std::ops::Range<usize>,
) {
    if ends.is_empty() {
        return;
    }
    let end = ends.start + ends.len() / 2;
    let mut best = starts.start;
    for (start, least) in least.iter().enumerate().take(starts.end.min(end)).skip(starts.start) {
        let sum = least + errors.of(start, end);
        if sum < next[end] {
            (next[end], best) = (sum, start);
        }
    }
    below[end] = best;
    place(errors, least, next, below, ends.start..end, starts.start..best + 1);
    place(errors, least, next, below, end + 1..ends.end, best..starts.end);
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
