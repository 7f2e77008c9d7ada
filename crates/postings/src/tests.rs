//! Round trips in both formats, through merges and with damaged bytes.

use proptest::prelude::*;

use crate::frame::{FOOTER_BYTES, Footer};
use crate::record::Kind;
use crate::testing::{Model, Reader, random_bits, random_query};
use crate::{
    DROPPED, Format, MergeSource, PostingsBuilder, PostingsError, PostingsReader, SharedThreshold,
    SparseCursor, TERMINATED, TopKRequest, merge_postings,
};

fn check_contents(model: &Model, reader: &Reader) {
    reader.verify().unwrap();
    assert_eq!(reader.num_docs() as usize, model.docs.len());
    assert_eq!(reader.docs_with_field() as usize, model.docs.iter().flatten().count());
    let expected: Vec<_> = (0..model.docs.len()).map(|doc| model.stored(doc)).collect();
    let postings: usize = expected.iter().flatten().map(Vec::len).sum();
    assert_eq!(reader.posting_count(), postings as u64);
    let named = |tokens: &[(u32, f32)]| -> Vec<(String, f32)> {
        tokens.iter().map(|(term, weight)| (reader.token(*term).to_owned(), *weight)).collect()
    };
    let mut next = 0;
    reader.for_each_doc(|doc, tokens| {
        (next..doc).for_each(|doc| assert_eq!(expected[doc as usize], None));
        assert_eq!(Some(named(tokens)), expected[doc as usize], "document {doc}");
        next = doc + 1;
    });
    (next as usize..expected.len()).for_each(|doc| assert_eq!(expected[doc], None));
    for doc in (0..expected.len()).step_by(expected.len() / 40 + 1) {
        let mut tokens = Vec::new();
        reader.doc_tokens(doc as u32, &mut tokens);
        assert_eq!(named(&tokens), expected[doc].clone().unwrap_or_default());
        assert_eq!(reader.has_value(doc as u32), expected[doc].is_some());
    }
    for term in 0..reader.term_count() {
        assert_eq!(reader.term(reader.token(term)), Some(term));
        let df =
            expected.iter().flatten().filter(|doc| doc.iter().any(|(token, _)| *token == reader.token(term)));
        assert_eq!(reader.doc_freq(term) as usize, df.count());
    }
    assert_eq!(reader.term("absent"), None);
}

/// Asserts that the cursor's scores equal the exhaustive ones, whether it steps or seeks.
fn check_cursor(reader: &Reader, query: &[(u32, f32)], seed: u64) {
    let everything = reader.top_k_exhaustive(&TopKRequest {
        query,
        k: usize::MAX,
        min_score: None,
        threshold: &SharedThreshold::new(),
        live: None,
        filter: None,
        count_limit: u64::MAX,
        tie: &|doc| u64::from(doc),
        cancel: None,
    });
    let mut expected = everything.hits;
    expected.sort_by_key(|hit| hit.0);
    let mut walked = Vec::new();
    let mut cursor = SparseCursor::new(reader, query);
    while cursor.doc() != TERMINATED {
        walked.push((cursor.doc(), cursor.score()));
        cursor.advance();
    }
    assert_eq!((cursor.advance(), cursor.seek(3)), (TERMINATED, TERMINATED));
    assert_eq!(walked, expected);
    let mut cursor = SparseCursor::new(reader, query);
    let targets = random_bits(seed, reader.num_docs() as usize + 5, 0.01);
    for target in (0..reader.num_docs() + 5).filter(|doc| targets[*doc as usize / 64] >> (doc % 64) & 1 == 1)
    {
        let before = cursor.doc();
        let wanted = expected.iter().find(|hit| hit.0 >= target.max(before));
        assert_eq!(cursor.seek(target), wanted.map_or(TERMINATED, |hit| hit.0));
        if let Some(hit) = wanted {
            assert_eq!(cursor.score(), hit.1);
        }
    }
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1_usize..200, 2 => 200_usize..3000, 1 => 8_100_usize..18_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn fields_are_read_back(seed in any::<u64>(), num_docs in sizes(), vocabulary in 1_usize..40) {
        let model = Model::random(seed, num_docs, vocabulary);
        for format in [Format::V1, Format::V3] {
            let reader = model.reader(format);
            prop_assert_eq!(reader.format(), format);
            check_contents(&model, &reader);
            check_cursor(&reader, &random_query(seed, &reader), seed);
        }
    }

    #[test]
    fn fields_with_the_windows_of_earlier_builds_are_read_back(
        seed in any::<u64>(), num_docs in 16_385_usize..40_000, vocabulary in 1_usize..20,
    ) {
        let model = Model::random(seed, num_docs, vocabulary);
        let former = model.former_reader().unwrap();
        prop_assert_eq!(former.window(), 16_384);
        check_contents(&model, &former);
        check_cursor(&former, &random_query(seed, &former), seed);
        // A merge rewrites them.
        let mut merged = Vec::new();
        let doc_map: Vec<u32> = (0..num_docs as u32).collect();
        merge_postings(&[MergeSource { reader: &former, doc_map: &doc_map }], num_docs as u32, Format::V3, &mut merged).unwrap();
        prop_assert!(merged == model.bytes(Format::V3));
    }

    #[test]
    fn merged_segments_are_one_segment(
        seed in any::<u64>(), sizes in proptest::collection::vec(sizes(), 1..4), density in 0.0_f64..=1.0,
    ) {
        let models: Vec<_> =
            sizes.iter().zip(seed..=u64::MAX).map(|(size, seed)| Model::random(seed, *size, 20)).collect();
        let mut whole = Model { docs: Vec::new() };
        let maps: Vec<Vec<u32>> = models
            .iter()
            .map(|model| {
                let live = random_bits(seed, model.docs.len(), density);
                model.docs.iter().enumerate().map(|(doc, tokens)| {
                    if live[doc / 64] >> (doc % 64) & 1 == 0 {
                        return DROPPED;
                    }
                    whole.docs.push(tokens.clone());
                    whole.docs.len() as u32 - 1
                }).collect()
            })
            .collect();
        let formats = [Format::V1, Format::V3];
        let readers: Vec<_> = models.iter().zip(formats.iter().cycle()).map(|(model, format)| model.reader(*format)).collect();
        let sources: Vec<_> =
            readers.iter().zip(&maps).map(|(reader, doc_map)| MergeSource { reader, doc_map }).collect();
        for format in formats {
            let mut merged = Vec::new();
            merge_postings(&sources, whole.docs.len() as u32, format, &mut merged).unwrap();
            prop_assert!(merged == whole.bytes(format), "merged bytes differ from built ones");
        }
    }

    #[test]
    fn damaged_bytes_never_panic(
        seed in any::<u64>(), num_docs in sizes(), at in any::<usize>(), flip in 1_u8..=255, cut in any::<usize>(),
        truncate in any::<bool>(), mend in any::<bool>(), format in prop_oneof![Just(Format::V1), Just(Format::V3)],
    ) {
        let model = Model::random(seed, num_docs, 12);
        let mut bytes = model.bytes(format);
        let len = bytes.len();
        // Every other time hit the directory, which is small.
        let presence = Footer::decode(&bytes).unwrap().presence as usize;
        let at = if mend { presence + at % (len - presence) } else { at % len };
        bytes[at] ^= flip;
        if truncate {
            bytes.truncate(cut % len);
        }
        if mend && !truncate {
            mend_checksums(&mut bytes);
        }
        match PostingsReader::<std::sync::Arc<[u8]>>::open(bytes.into()) {
            Ok(reader) => {
                if !mend {
                    prop_assert!(reader.verify().is_err());
                }
                exercise(&reader, seed);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn damaged_postings_never_panic(seed in any::<u64>(), num_docs in sizes(), flips in 1_usize..300) {
        let model = Model::random(seed, num_docs, 12);
        let mut bytes = model.bytes(Format::V3);
        let footer = Footer::decode(&bytes).unwrap();
        let mut state = seed;
        for _ in 0..flips {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = 16 + (state >> 20) as usize % (footer.presence as usize - 16);
            bytes[at] = (state >> 8) as u8 | 1;
        }
        let reader = PostingsReader::<std::sync::Arc<[u8]>>::open(bytes.into()).unwrap();
        prop_assert!(reader.verify().is_err());
        exercise(&reader, seed);
    }
}

/// Recomputes the checksums over changed bytes, as an attacker would.
fn mend_checksums(bytes: &mut [u8]) {
    let start = bytes.len() - FOOTER_BYTES;
    let presence = u64::from_le_bytes(*bytes[start + 48..].first_chunk().unwrap()) as usize;
    if presence <= start {
        let crc = crc32fast::hash(&bytes[presence..start]);
        bytes[start + 24..start + 28].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes[start..start + FOOTER_BYTES - 8]);
    bytes[start + FOOTER_BYTES - 8..start + FOOTER_BYTES - 4].copy_from_slice(&crc.to_le_bytes());
}

/// Calls every reading method on bytes whose contents may be nonsense.
fn exercise(reader: &Reader, seed: u64) {
    for round in 0..4 {
        let query = random_query(seed.wrapping_add(round), reader);
        let filter = random_bits(seed, reader.num_docs() as usize, [1.0, 0.5, 0.01, 0.001][round as usize]);
        for filter in [None, Some(&filter[..])] {
            let request = TopKRequest {
                query: &query,
                k: 10,
                min_score: (round == 1).then_some(1.0),
                threshold: &SharedThreshold::new(),
                live: None,
                filter,
                count_limit: 10_000,
                tie: &|doc| {
                    assert!(doc < reader.num_docs());
                    u64::from(doc)
                },
                cancel: None,
            };
            reader.top_k(&request);
            reader.top_k_exhaustive(&request);
        }
        let mut cursor = SparseCursor::new(reader, &query);
        while cursor.doc() != TERMINATED {
            assert!(cursor.doc() < reader.num_docs());
            cursor.score();
            cursor.seek(cursor.doc() + 7);
        }
    }
    let mut last = 0;
    reader.for_each_doc(|doc, _| last = doc);
    reader.doc_tokens(last, &mut Vec::new());
    let doc_map: Vec<u32> = (0..reader.num_docs()).collect();
    let source = MergeSource { reader, doc_map: &doc_map };
    // Damaged lists may not ascend, which is an error.
    let _ = merge_postings(&[source], reader.num_docs(), Format::V3, &mut Vec::new());
}

#[test]
fn every_damaged_byte_is_noticed() {
    for format in [Format::V1, Format::V3] {
        let bytes = Model::random(3, 130, 8).bytes(format);
        let presence = Footer::decode(&bytes).unwrap().presence as usize;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            match PostingsReader::<std::sync::Arc<[u8]>>::open(damaged.into()) {
                Ok(reader) => assert!(at < presence && reader.verify().is_err(), "byte {at} of {format:?}"),
                // The header is read, and checked again by the checksum of the postings.
                Err(error) => assert!(at >= presence || at < 16, "byte {at} of {format:?}: {error}"),
            }
        }
    }
}

#[test]
fn any_range_of_documents_is_read_back() {
    let model = Model::random(9, 9_000, 15);
    for format in [Format::V1, Format::V3] {
        let reader = model.reader(format);
        for range in [0..1, 1..2, 63..65, 100..777, 8_190..8_195, 8_193..9_000, 8_999..20_000, 5..5] {
            let mut found = Vec::new();
            reader.for_each_doc_in(range.clone(), &mut |doc, tokens: &[(u32, f32)]| {
                let tokens = tokens.iter().map(|(term, weight)| (reader.token(*term).to_owned(), *weight));
                found.push((doc as usize, tokens.collect::<Vec<_>>()));
            });
            let expected: Vec<_> = (range.start as usize..(range.end as usize).min(9_000))
                .filter_map(|doc| Some((doc, model.stored(doc)?)))
                .collect();
            assert_eq!(found, expected, "{range:?} of {format:?}");
        }
    }
}

#[test]
fn other_versions_and_files_are_refused() {
    let bytes = Model::random(1, 10, 5).bytes(Format::V3);
    let open = |bytes: Vec<u8>| PostingsReader::<std::sync::Arc<[u8]>>::open(bytes.into()).err();
    assert_eq!(open(bytes.clone()), None);
    for version in [2, 4] {
        let mut foreign = bytes.clone();
        foreign[8] = version;
        assert_eq!(open(foreign), Some(PostingsError::UnknownVersion { version: version.into() }));
    }
    let mut other = bytes.clone();
    other[0] = b'X';
    assert_eq!(open(other), Some(PostingsError::BadMagic));
    assert!(matches!(open(bytes[..40].to_vec()), Some(PostingsError::Truncated { actual: 40, .. })));
    assert!(open(bytes[..bytes.len() - 1].to_vec()).is_some());
    assert!(open(Vec::new()).is_some());
}

#[test]
fn fields_without_documents_and_repeated_tokens() {
    for format in [Format::V1, Format::V3] {
        for num_docs in [0, 3] {
            let bytes = PostingsBuilder::new().finish(num_docs, format);
            let reader = PostingsReader::open(&bytes[..]).unwrap();
            assert_eq!((reader.num_docs(), reader.docs_with_field(), reader.term_count()), (num_docs, 0, 0));
            assert_eq!(SparseCursor::new(&reader, &[(0, 1.0)]).doc(), TERMINATED);
        }
        let mut builder = PostingsBuilder::new();
        builder.add(1, [("a", 1.0), ("b", -1.0), ("a", 2.0), ("a", 0.5), ("c", f32::NAN)]);
        builder.add(2, std::iter::empty::<(&str, f32)>());
        let bytes = builder.finish(4, format);
        let reader = PostingsReader::open(&bytes[..]).unwrap();
        assert_eq!((reader.docs_with_field(), reader.term_count()), (2, 1));
        assert_eq!((reader.stored_weight(0, 1), reader.stored_weight(0, 2)), (Some(2.0), None));
        assert!(reader.has_value(2) && !reader.has_value(3) && !reader.has_value(400));
    }
}

#[test]
fn memory_is_accounted_for() {
    let mut builder = PostingsBuilder::new();
    let before = builder.mem_usage();
    for doc in 0..10_000 {
        builder.add(doc, [("a", 1.0), ("b", 1.0)]);
    }
    let per_posting = (builder.mem_usage() - before) as f64 / 20_000.0;
    assert!((3.0..7.0).contains(&per_posting), "{per_posting}");
}

#[test]
fn documents_of_damaged_terms_stay_inside_their_range() {
    let mut docs = vec![None; 70_000];
    for doc in [100, 200, 300] {
        docs[doc] = Some(vec![("a".to_owned(), 1.0)]);
    }
    let mut bytes = Model { docs }.bytes(Format::V3);
    let record = PostingsReader::open(&bytes[..]).unwrap().resolve(0).unwrap().record;
    let last = record.blob as usize + 8;
    assert_eq!((record.kind, &bytes[last..last + 4]), (Kind::Rare, &300_u32.to_le_bytes()[..]));
    bytes[last..last + 4].copy_from_slice(&7_u32.to_le_bytes());
    let reader = PostingsReader::open(&bytes[..]).unwrap();
    let mut found = Vec::new();
    reader.postings(0).for_range(64, 1000, |doc, _| found.push(doc));
    assert_eq!(found, [100, 200]);
}
