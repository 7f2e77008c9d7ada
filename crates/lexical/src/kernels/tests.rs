use proptest::prelude::*;

use super::*;

fn sums() -> impl Strategy<Value = Vec<f32>> {
    let sum = prop_oneof![3 => Just(0.0_f32), 2 => 0.0_f32..20.0, 1 => Just(7.0), 1 => Just(f32::INFINITY)];
    (0_usize..9).prop_flat_map(move |groups| proptest::collection::vec(sum.clone(), groups * GROUP))
}

fn floor() -> impl Strategy<Value = f32> {
    prop_oneof![Just(f32::MIN_POSITIVE), Just(7.0), Just(f32::MAX), Just(f32::NEG_INFINITY), 0.0_f32..20.0]
}

proptest! {
    #[test]
    fn every_implementation_finds_the_sums_that_are_high_enough(
        sums in sums(),
        floors in (floor(), floor()),
        start in 0_u32..1_000_000,
    ) {
        for one in available() {
            let reaching = |floor: f32| {
                let all = (start..).zip(sums.iter().copied());
                all.filter(move |(_, sum)| *sum >= floor).unzip::<u32, f32, Vec<_>, Vec<_>>()
            };
            let (docs, scores) = reaching(floors.0);
            prop_assert_eq!(one.count(&sums, floors.0), docs.len(), "{}", one.name);
            let mut rest = sums.clone();
            let mut found = Candidates::new(sums.len());
            // The second round has to replace the candidates of the first.
            for _ in 0..2 {
                rest.copy_from_slice(&sums);
                one.collect(&mut rest, floors.0, start, &mut found);
            }
            prop_assert_eq!(found.get(), (&docs[..], &scores[..]), "{}", one.name);
            prop_assert!(rest.iter().all(|sum| *sum == 0.0), "{}", one.name);
            let (docs, scores) = reaching(floors.0.max(floors.1));
            found.keep(floors.1);
            prop_assert_eq!(found.get(), (&docs[..], &scores[..]), "{}", one.name);
        }
    }
}
