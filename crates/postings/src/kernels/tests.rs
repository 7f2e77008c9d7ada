use proptest::prelude::*;

use super::*;

#[derive(Debug)]
struct Owned {
    bitmap: Vec<u8>,
    impacts: Vec<u8>,
    factor: u16,
}

fn term(groups: usize) -> impl Strategy<Value = Owned> {
    let word = prop_oneof![Just(0_u64), Just(u64::MAX), any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit)];
    (
        proptest::collection::vec(word, groups),
        proptest::collection::vec(any::<u8>(), groups * GROUP + SLACK),
        any::<u16>(),
    )
        .prop_map(|(words, impacts, factor)| Owned {
            bitmap: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            impacts,
            factor,
        })
}

proptest! {
    #[test]
    fn every_implementation_equals_the_scalar_one(
        terms in (0_usize..12).prop_flat_map(|groups| proptest::collection::vec(term(groups), 0..7)),
        wanted in proptest::collection::vec(prop_oneof![Just(0_u64), any::<u64>()], 12),
        floor in any::<u16>(),
        end in 0_u32..512,
        block in proptest::collection::vec(any::<u8>(), 64),
    ) {
        let groups = terms.first().map_or(0, |term| term.bitmap.len() / 8);
        let views: Vec<_> = terms
            .iter()
            .map(|term| DenseTerm { bitmap: &term.bitmap, impacts: &term.impacts, factor: term.factor })
            .collect();
        let block: &[u8; 64] = block.first_chunk().unwrap();
        let run = |one: &Implementation| {
            let mut sums = vec![7_u16; groups * GROUP];
            one.add_dense(&mut sums, &wanted[..groups], &views);
            let (mut nonzero, mut reached) = (vec![1; groups], vec![1; groups]);
            one.nonzero(&sums, &mut nonzero);
            one.at_least(&sums, floor, &mut reached);
            (sums, nonzero, reached, one.rank(block, end))
        };
        let expected = run(&scalar::implementation());
        for one in available() {
            prop_assert_eq!(&run(&one), &expected, "{}", one.name());
        }
    }
}

#[test]
fn terms_with_short_slices_are_left_out() {
    for one in available() {
        let mut sums = [0; GROUP];
        let short = DenseTerm { bitmap: &[0xff; 8], impacts: &[1; GROUP + SLACK - 1], factor: 256 };
        let whole = DenseTerm { bitmap: &[0xff; 8], impacts: &[1; GROUP + SLACK], factor: 256 };
        one.add_dense(&mut sums, &[1], &[short, whole]);
        assert_eq!(sums, [1; GROUP], "{}", one.name());
    }
}

#[test]
fn lanes_are_a_permutation_within_groups() {
    let mut seen: Vec<u16> = (0..=u16::MAX).map(lane).collect();
    assert_eq!((lane(0), lane(1), lane(2), lane(63), lane(64)), (0, 32, 1, 63, 64));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..=u16::MAX));
}
