//! The files of a segment, byte for byte those that tantivy writes by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sparrow_mapping::Mapping;
use sparrow_postings::Format;
use tantivy::schema::{
    INDEXED, IndexRecordOption, STORED, Schema, SchemaBuilder, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, IndexWriter, TantivyDocument};

use super::{TextInverter, read_vint, write_vint};
use crate::directory::LazyDirectory;
use crate::plugins::{InFlightLimiter, SegmentParts, VectorSettings};

/// A text field for each kind of records, with and without norms, between fields that tantivy indexes.
fn schema() -> Schema {
    let mut builder: SchemaBuilder = Schema::builder();
    let raw = || TextFieldIndexing::default().set_tokenizer("raw");
    let text = |records, norms| {
        TextOptions::default().set_indexing_options(raw().set_index_option(records).set_fieldnorms(norms))
    };
    builder.add_text_field("_id", text(IndexRecordOption::Basic, false) | STORED);
    builder.add_text_field("t:docs", text(IndexRecordOption::Basic, true));
    builder.add_text_field("t:freqs", text(IndexRecordOption::WithFreqs, false));
    builder.add_u64_field("number", INDEXED);
    builder.add_text_field("t:positions", text(IndexRecordOption::WithFreqsAndPositions, true));
    builder.add_text_field("t:rare", text(IndexRecordOption::WithFreqsAndPositions, true));
    builder.add_text_field("own", text(IndexRecordOption::WithFreqs, true));
    builder.build()
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Tokens of a text: few words are frequent, some are long, and positions have gaps, repeats and steps back.
fn tokens(random: &mut Random) -> Vec<(String, u32)> {
    let len = match random.below(12) {
        0 => 0,
        1 => random.below(3000),
        _ => random.below(80),
    };
    let mut position = 0;
    (0..len)
        .map(|_| {
            let bits = random.below(14);
            let rank = random.below(1 << bits);
            let word = match random.below(200) {
                0 => format!("{}{rank}", "long".repeat(8 + rank as usize % 40)),
                1 => String::new(),
                2 => "x".repeat(65_530 + rank as usize % 3),
                _ => format!("w{rank}"),
            };
            position += [1, 1, 1, 1, 2, 0, 300][random.below(7) as usize];
            let back = if random.below(50) == 0 { 1 } else { 0 };
            (word, position - back.min(position))
        })
        .collect()
}

type Document = BTreeMap<&'static str, Vec<(String, u32)>>;

fn documents(count: usize) -> Vec<Document> {
    let mut random = Random(7);
    (0..count)
        .map(|number| {
            let mut document = Document::new();
            for name in ["t:docs", "t:freqs", "t:positions"] {
                if random.below(10) > 0 {
                    document.insert(name, tokens(&mut random));
                }
            }
            if number == count / 2 {
                document.insert("t:rare", tokens(&mut random));
            }
            document
        })
        .collect()
}

/// Writes one segment, and returns the bytes of its files by extension.
fn written(
    folder: &Path,
    documents: &[Document],
    add: impl Fn(&mut TantivyDocument, tantivy::schema::Field, IndexRecordOption, &[(String, u32)]),
) -> BTreeMap<String, Vec<u8>> {
    let directory = LazyDirectory::open(folder).unwrap();
    let schema = schema();
    let index = Index::builder()
        .schema(schema.clone())
        .register_plugin(Arc::new(SegmentParts {
            format: Format::V3,
            limiter: Arc::new(InFlightLimiter::default()),
            vectors: Arc::new(VectorSettings::new(&Mapping::default(), 10_000)),
        }))
        .open_or_create(directory)
        .unwrap();
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 200_000_000).unwrap();
    for (number, document) in documents.iter().enumerate() {
        let mut out = TantivyDocument::new();
        out.add_text(schema.get_field("_id").unwrap(), format!("id{number}"));
        out.add_u64(schema.get_field("number").unwrap(), number as u64 % 300);
        out.add_text(schema.get_field("own").unwrap(), "the same");
        for (name, tokens) in document {
            let field = schema.get_field(name).unwrap();
            let records = schema.get_field_entry(field).field_type().index_record_option().unwrap();
            add(&mut out, field, records, tokens);
        }
        writer.add_document(out).unwrap();
    }
    writer.commit().unwrap();
    writer.wait_merging_threads().unwrap();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if let Some(extension) = path.extension().and_then(|extension| extension.to_str())
            && ["term", "idx", "pos", "fieldnorm"].contains(&extension)
        {
            assert!(files.insert(extension.to_owned(), fs::read(&path).unwrap()).is_none(), "one segment");
        }
    }
    files
}

fn by_tantivy(documents: &[Document]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), documents, |out, field, _, tokens| {
        let tokens = tokens
            .iter()
            .map(|(text, position)| Token {
                position: *position as usize,
                text: text.clone(),
                ..Token::default()
            })
            .collect();
        out.add_pre_tokenized_text(field, PreTokenizedString { text: String::new(), tokens });
    })
}

fn by_terms(documents: &[Document]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let inverter = std::cell::RefCell::new(TextInverter::default());
    written(folder.path(), documents, |out, field, records, tokens| {
        let mut inverter = inverter.borrow_mut();
        for (term, position) in tokens {
            assert!(inverter.push(term, *position, usize::MAX));
        }
        out.add_custom(field, &inverter.finish(records));
    })
}

#[test]
fn files_are_those_that_tantivy_writes() {
    let documents = documents(1500);
    let (theirs, ours) = (by_tantivy(&documents), by_terms(&documents));
    assert_eq!(theirs.len(), 4);
    for (extension, bytes) in &theirs {
        assert!(
            *bytes == ours[extension],
            "{extension}: {} and {} bytes",
            bytes.len(),
            ours[extension].len()
        );
    }
    assert!(theirs["pos"].len() > 100_000, "there is something to compare");
}

#[test]
fn without_terms_the_files_stay_as_they_are() {
    let empty = vec![Document::from([("t:docs", Vec::new())]), Document::new()];
    assert_eq!(by_terms(&empty), by_tantivy(&empty));
}

#[test]
fn numbers_of_seven_bits_a_byte() {
    for number in [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX] {
        let mut bytes = Vec::new();
        write_vint(number, &mut bytes);
        bytes.push(9);
        let mut rest = &bytes[..];
        assert_eq!((read_vint(&mut rest), rest), (number, &[9][..]));
    }
}

#[test]
fn terms_beyond_the_limit_are_left_out() {
    let mut inverter = TextInverter::default();
    let taken = (0..).take_while(|number| inverter.push(&format!("term{number}"), *number, 10_000)).count();
    assert!((200..400).contains(&taken), "{taken}");
    let terms = inverter.finish(IndexRecordOption::WithFreqsAndPositions);
    assert!((2_000..10_000).contains(&terms.len()));
    // Terms beyond tantivy's longest are not kept, and their bytes count all the same, as an analyzer has made them.
    let long = "x".repeat(70_000);
    assert!(inverter.push(&long, 0, 100_000) && !inverter.push(&long, 1, 100_000));
    inverter.clear();
    // The next text begins with nothing.
    inverter.push("alone", 0, 10_000);
    assert!(inverter.finish(IndexRecordOption::WithFreqsAndPositions).len() < 20);
}
