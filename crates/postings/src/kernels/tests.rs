use proptest::prelude::*;

use super::*;
use crate::layout::{RANKED, REGION};

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
        end in 0_u32..128,
        block in proptest::collection::vec(any::<u8>(), 16),
    ) {
        let groups = terms.first().map_or(0, |term| term.bitmap.len() / 8);
        let views: Vec<_> = terms
            .iter()
            .map(|term| DenseTerm { bitmap: &term.bitmap, impacts: &term.impacts, factor: term.factor })
            .collect();
        let block: &[u8; 16] = block.first_chunk().unwrap();
        let run = |one: &Implementation| {
            let mut sums = vec![7_u16; groups * GROUP];
            one.add_dense(&mut sums, &wanted[..groups], &views);
            let (mut nonzero, mut reached) = (vec![1; groups], vec![1; groups]);
            one.nonzero(&sums, &mut nonzero);
            one.at_least(&sums, floor, &mut reached);
            let mut lanes = sums.clone();
            one.to_lanes(&sums, &mut lanes);
            (sums, nonzero, reached, lanes, one.rank(block, end), one.count(&wanted))
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

proptest! {
    #[test]
    fn documents_are_found_in_dense_and_sparse_terms(
        documents in prop_oneof![
            proptest::collection::btree_set(0_u32..3000, 0..1500),
            proptest::collection::btree_set(0_u32..200_000, 0..40),
            // Far from where they would be if they lay evenly.
            proptest::collection::btree_set(0_u32..150, 0..150),
        ],
        asked in proptest::collection::vec(0_u32..200_000, 0..20),
        window in prop_oneof![Just(64_u32), Just(16_384), Just(1 << 16)],
        // What follows in the file.
        behind in proptest::collection::vec(prop_oneof![0_u16..64, any::<u16>()], 0..100),
        share in proptest::option::of(0_u32..1 << 16),
    ) {
        const DOCS: u32 = 200_064;
        let mut bitmap = vec![0_u8; DOCS.next_multiple_of(128) as usize / 8];
        documents.iter().for_each(|doc| bitmap[*doc as usize / 8] |= 1 << (doc % 8));
        let (mut ranks, mut regions, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        let before = |doc: u32| documents.range(..doc).count() as u32;
        for group in 0..DOCS.div_ceil(RANKED) {
            let region = group * RANKED / REGION * REGION;
            ranks.extend(((before(group * RANKED) - before(region)) as u16).to_le_bytes());
            if region == group * RANKED {
                regions.extend(before(region).to_le_bytes());
            }
        }
        (0..=DOCS.div_ceil(window)).for_each(|at| windows.extend(before(at * window).to_le_bytes()));
        let ids = documents.iter().map(|doc| ((doc % window) as u16).to_le_bytes());
        let ids: Vec<_> = ids.chain(behind.iter().map(|id| id.to_le_bytes())).collect();
        let list = SparseIds { windows: &windows, ids: &ids, count: documents.len() };
        let bitmap = Bitmap { bits: &bitmap, ranks: &ranks, regions: &regions };
        let place = |doc: u32| {
            let id = (doc % window) as u16;
            let share = share.unwrap_or((u32::from(id) << 10) / (window >> 6));
            Place { doc, window: doc / window, id, share }
        };
        let asked: Vec<u32> = asked.into_iter().chain(documents.iter().copied().step_by(3)).collect();
        let places: Vec<Place> = asked.iter().map(|doc| place(*doc)).collect();
        let expected = (0..).zip(&asked).filter(|(_, doc)| documents.contains(doc));
        let expected: Vec<_> = expected.map(|(place, doc)| Posting { of: 32 + place, position: before(*doc) }).collect();
        for one in available() {
            let mut found = vec![Posting::default(); places.len()];
            let count = one.find_dense(&bitmap, &places, 32, &mut found);
            prop_assert_eq!(&found[..count], &expected, "dense, {}", one.name());
            let count = one.find_sparse(&list, &places, 32, &mut found);
            prop_assert_eq!(&found[..count], &expected, "sparse, {}", one.name());
        }
    }

    /// Looks up documents in terms with arbitrary bytes: must return, whatever they say.
    #[test]
    fn looking_for_documents_in_damaged_terms_ends(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), at in 0_usize..400, doc in any::<u32>(),
        window in 0_u32..120, id in any::<u16>(), share in 0_u32..1 << 16, own in 0_usize..250,
    ) {
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        for one in available() {
            let mut found = [Posting::default(); 2];
            let places = [Place { doc, window, id, share }, Place { doc: doc % 4000, window: 0, id, share }];
            let bitmap = Bitmap { bits: first, ranks: second, regions: second };
            one.find_dense(&bitmap, &places, 32, &mut found);
            let list = SparseIds { windows: second, ids: first.as_chunks().0, count: own };
            let count = one.find_sparse(&list, &places, 0, &mut found);
            let most = own.min(first.len() / 2);
            prop_assert!(found[..count].iter().all(|found| (found.position as usize) < most));
        }
    }
}

#[test]
fn lanes_are_a_permutation_within_groups() {
    let mut seen: Vec<u16> = (0..=u16::MAX).map(lane).collect();
    assert_eq!((lane(0), lane(1), lane(2), lane(63), lane(64)), (0, 32, 1, 63, 64));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..=u16::MAX));
}

/// A dense term of whole chunks with owned bytes, its directory valid or nonsense.
#[derive(Debug)]
struct OwnedBlocks {
    bitmap: Vec<u8>,
    ranks: Vec<u8>,
    regions: Vec<u8>,
    levels: Vec<u8>,
    impacts: Vec<u8>,
    bounds: [u8; 16],
    factor: u16,
}

fn block_term(chunks: usize) -> impl Strategy<Value = OwnedBlocks> {
    let bytes = |len: usize| proptest::collection::vec(any::<u8>(), len);
    let word = prop_oneof![Just(0_u64), Just(u64::MAX), any::<u64>()];
    let bitmap = proptest::collection::vec(word, chunks * 16)
        .prop_map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    let numbers = (any::<[u8; 16]>(), any::<u16>(), any::<bool>());
    (bitmap, bytes(chunks * 16), bytes(4), bytes(chunks * 64), bytes(chunks * 1024 + 8), numbers).prop_map(
        |(bitmap, mut ranks, mut regions, levels, impacts, (bounds, factor, right))| {
            if right {
                regions.fill(0);
                let mut rank = 0;
                for (group, bits) in bitmap.as_chunks::<16>().0.iter().enumerate() {
                    ranks[group * 2..][..2].copy_from_slice(&(rank as u16).to_le_bytes());
                    rank += u128::from_le_bytes(*bits).count_ones();
                }
            }
            OwnedBlocks { bitmap, ranks, regions, levels, impacts, bounds, factor }
        },
    )
}

impl OwnedBlocks {
    fn term(&self) -> BlockTerm<'_> {
        let Self { bitmap: bits, ranks, regions, levels, impacts, bounds, factor } = self;
        BlockTerm {
            bitmap: Bitmap { bits, ranks, regions },
            levels,
            impacts,
            bounds: *bounds,
            factor: *factor,
        }
    }
}

proptest! {
    #[test]
    fn every_implementation_lists_and_bounds_documents_as_the_scalar_one(
        terms in (1_usize..4).prop_flat_map(|chunks| proptest::collection::vec(block_term(chunks), 0..5)),
        words in proptest::collection::vec(
            prop_oneof![Just(0_u64), Just(u64::MAX), any::<u64>(), (0..64_u32).prop_map(|bit| 1 << bit)], 0..16,
        ),
        sums in proptest::collection::vec(prop_oneof![Just(0), any::<u16>()], 1024),
        inverse in any::<u16>(),
    ) {
        let views: Vec<_> = terms.iter().map(OwnedBlocks::term).collect();
        let chunk = terms.first().map_or(1, |term| term.levels.len() / 64) - 1;
        let run = |one: &Implementation| {
            let mut ids = vec![7];
            one.list(&words, &mut ids);
            let sums = &sums[..ids.len().min(1024)];
            let mut totals = vec![5; sums.len() + 40];
            let (own, behind) = totals.split_at_mut(sums.len());
            let matched = one.bound_documents(&views, chunk, &ids, sums, inverse, own);
            assert!(behind.iter().all(|total| *total == 5));
            let mut highest = vec![9; 33];
            one.highest(&totals, &mut highest);
            (one.count(&words), ids, totals, matched, highest)
        };
        let expected = run(&scalar::implementation());
        prop_assert_eq!(expected.0 + 1, expected.1.len() as u64);
        for one in available() {
            prop_assert_eq!(&run(&one), &expected, "{}", one.name());
        }
    }
}

#[test]
fn documents_of_terms_with_short_slices_are_not_bounded() {
    let term = BlockTerm {
        bitmap: Bitmap { bits: &[255; 255], ranks: &[], regions: &[] },
        levels: &[17; 128],
        impacts: &[],
        bounds: [3; 16],
        factor: 1,
    };
    for one in available() {
        let mut totals = [0];
        assert_eq!(one.bound_documents(&[term], 1, &[1023], &[0], 1, &mut totals), 0, "{}", one.name());
        assert_eq!(one.bound_documents(&[term], 0, &[1023], &[0], 1, &mut totals), 1, "{}", one.name());
        assert_eq!(totals, [3], "{}", one.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_implementation_bounds_and_scores_blocks_as_the_scalar_one(
        terms in (1_usize..4).prop_flat_map(|chunks| proptest::collection::vec(block_term(chunks), 1..5)),
        seed in any::<u64>(),
        inverse in any::<u16>(),
        floor in any::<u16>(),
        unit in 1_u32..300,
        need in 0_u32..200_000,
        scope in prop_oneof![Just(Scope::All), Just(Scope::WantedSums), Just(Scope::Wanted)],
    ) {
        let chunks = terms[0].levels.len() / 64;
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u16
        };
        let sums: Vec<u16> = (0..chunks * 1024).map(|_| random() >> (random() % 16)).collect();
        let wanted: Vec<u8> = (0..chunks * 128).map(|_| (random() % 3 * 85) as u8).collect();
        let ids: Vec<[u8; 2]> = (0..random() % 100).map(|_| random().to_le_bytes()).collect();
        let impacts: Vec<u8> = ids.iter().map(|_| random() as u8).collect();
        let bounds: Vec<_> = terms.iter().map(OwnedBlocks::term).collect();
        let run = |one: &Implementation| {
            let (mut totals, mut highest) = (vec![1; chunks * 128], vec![1; chunks * 4]);
            // The last chunks by themselves.
            for range in [0..chunks / 2, chunks / 2..chunks] {
                one.bounds(
                    BoundTerms { terms: &bounds, first: range.start, scope },
                    &sums[range.start * 1024..],
                    inverse,
                    &wanted[range.start * 128..],
                    &mut totals[range.start * 128..range.end * 128],
                    &mut highest[range.start * 4..range.end * 4],
                );
            }
            let mut selected = vec![3];
            one.select(&totals, &highest, floor, 7, &mut selected);
            let mut first: Vec<u32> = (0..chunks as u32 * 4).rev().collect();
            one.first_highest(&totals, &highest, &mut first);
            let codes = terms[0].bounds;
            let unit = unit.max(2).max(((255 * u32::from(terms[0].factor)) >> 8).div_ceil(255));
            let coarse = one.coarse_bounds(&codes, terms[0].factor, unit);
            for (code, bound) in codes.iter().zip(coarse) {
                let fine = (u32::from(*code) * u32::from(terms[0].factor)) >> 8;
                assert_eq!(u32::from(bound), fine.div_ceil(unit), "{}", one.name());
            }
            let mut scattered = Box::new([0_u16; 1 << 16]);
            one.scatter(&ids, &impacts, terms[0].factor, &mut scattered);
            let ids: Vec<u32> = (0..chunks as u32 * 128).filter(|id| wanted[*id as usize] == 85).collect();
            let mut blocks = Blocks::default();
            terms[0].term().fetch(&ids);
            one.start(&ids, &totals, &sums, &wanted, scope, inverse, &mut blocks);
            for (i, term) in terms.iter().enumerate() {
                let next = terms.get(i + 1).map(OwnedBlocks::term);
                one.add_blocks(&term.term(), next.as_ref(), &mut blocks, unit, need);
            }
            let mut marked = vec![1; chunks * 16];
            one.mark(&sums, &mut marked);
            let mut masked = sums.clone();
            one.mask(&wanted, &mut masked);
            let marked = (marked, masked);
            let totals = (totals, marked, first);
            (totals, highest, selected, scattered, blocks.ids().to_vec(), (blocks.sums().to_vec(), blocks.tops().to_vec()))
        };
        let expected = run(&scalar::implementation());
        prop_assert_eq!(&expected.1, &expected.0.0.chunks(32).map(|totals| *totals.iter().max().unwrap()).collect::<Vec<_>>());
        for one in available() {
            prop_assert!(run(&one) == expected, "{}", one.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // Any number of blocks, of several regions, of which any documents are wanted.
    #[test]
    fn every_implementation_adds_terms_to_any_blocks_as_the_scalar_one(
        blocks in proptest::collection::btree_map(0_u32..160 * 128, any::<u8>(), 0..70),
        seed in any::<u64>(),
        factors in proptest::collection::vec(any::<u16>(), 1..4),
        unit in 1_u32..300,
        need in 0_u32..100_000,
        scope in prop_oneof![Just(Scope::All), Just(Scope::Wanted)],
    ) {
        const CHUNKS: usize = 160;
        let mut state = seed;
        let mut bytes = |len: usize, zeros: u64| -> Vec<u8> {
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if (state >> 50).is_multiple_of(zeros) { 0 } else { (state >> 40) as u8 }
            };
            (0..len).map(|_| byte()).collect()
        };
        let (bits, ranks) = (bytes(CHUNKS * 128, 3), bytes(CHUNKS * 16, 5));
        let (levels, impacts) = (bytes(CHUNKS * 64, 9), bytes(70_000, 9));
        let (mut wanted, sums) = (vec![0; CHUNKS * 128], bytes(CHUNKS * 1024, 2));
        let sums: Vec<u16> = sums.into_iter().map(|sum| u16::from(sum) * 99).collect();
        let totals: Vec<u16> = sums.as_chunks().0.iter().map(|sums: &[u16; 8]| sums[3] | 0x300).collect();
        blocks.iter().for_each(|(id, documents)| wanted[*id as usize] = *documents);
        let ids: Vec<u32> = blocks.keys().copied().collect();
        let regions = [0_u32, 30_000, 60_000].map(u32::to_le_bytes);
        let terms = factors.iter().map(|factor| BlockTerm {
            bitmap: Bitmap { bits: &bits, ranks: &ranks, regions: regions.as_flattened() },
            levels: &levels,
            impacts: &impacts,
            bounds: std::array::from_fn(|level| level as u8 * 3 + (factor % 5) as u8),
            factor: *factor,
        });
        let terms: Vec<BlockTerm<'_>> = terms.collect();
        let run = |one: &Implementation| {
            let mut blocks = Blocks::default();
            one.start(&ids, &totals, &sums, &wanted, scope, 1000, &mut blocks);
            let of = |blocks: &Blocks| {
                let (ids, sums, tops) = (blocks.ids.clone(), blocks.sums.clone(), blocks.tops.clone());
                (ids, sums, tops, blocks.rest.clone(), blocks.wanted.clone())
            };
            let each = terms.iter().enumerate().map(|(i, term)| {
                one.add_blocks(term, terms.get(i + 1), &mut blocks, unit, need);
                of(&blocks)
            });
            each.collect::<Vec<_>>()
        };
        let expected = run(&scalar::implementation());
        for one in available() {
            prop_assert_eq!(&run(&one), &expected, "{}", one.name());
        }
    }
}

#[test]
fn block_terms_with_short_slices_are_left_out() {
    let short = BlockTerm {
        bitmap: Bitmap { bits: &[255; 112], ranks: &[0; 16], regions: &[0; 4] },
        levels: &[0; 64],
        impacts: &[1; 2000],
        bounds: [0; 16],
        factor: 256,
    };
    for one in available() {
        let mut blocks = Blocks::default();
        one.start(&[5], &[0; 128], &[0; 1024], &[255; 128], Scope::All, 1, &mut blocks);
        one.add_blocks(&short, None, &mut blocks, 1, 0);
        assert_eq!(blocks.sums(), [[0; 8]], "{}", one.name());
        one.add_blocks(
            &BlockTerm { bitmap: Bitmap { bits: &[255; 128], ..short.bitmap }, ..short },
            None,
            &mut blocks,
            1,
            0,
        );
        assert_eq!(blocks.sums(), [[1; 8]], "{}", one.name());
    }
}
