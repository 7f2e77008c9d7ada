//! A checkpoint of 4-bit numbers against one of the same numbers in f32.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, json};

use super::{Files, encode, weights};
use crate::encoded::{Encoded, Output};
use crate::fixed::Precision;
use crate::model::safetensors::Tensors;
use crate::model::{Model, weights::Keep};
use crate::nibbles::GROUP;
use crate::stored::Stored;
use crate::table::Table;

pub(super) const FILES: [&str; 3] = ["model.safetensors", "tokenizer.json", "config.json"];

/// Tensors by name: type, shape and bytes.
pub(super) type All = BTreeMap<String, (&'static str, Vec<usize>, Vec<u8>)>;

pub(super) fn fixture() -> Files {
    let files =
        Files::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint-bert"), &FILES);
    fs::write(files.model().join("sparrow.json"), r#"{"arithmetic": "float32"}"#).unwrap();
    files
}

pub(super) fn write(files: &Files, tensors: &All) {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, (kind, shape, bytes)) in tensors {
        let place = [data.len(), data.len() + bytes.len()];
        header.insert(name.clone(), json!({"dtype": kind, "shape": shape, "data_offsets": place}));
        data.extend_from_slice(bytes);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    fs::write(files.model().join(FILES[0]), [&length[..], &header, &data].concat()).unwrap();
}

pub(super) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The fixture with its matrices in 4 bits, and with what these bits stand for in f32. Positions and token types stay as they are.
fn both() -> (Files, Files) {
    let (in_bits, in_floats) = (fixture(), fixture());
    let tensors = Tensors::open(&in_bits.model().join(FILES[0])).unwrap();
    let (mut bits, mut plain) = (All::new(), All::new());
    for name in tensors.names() {
        let tensor = tensors.find(name).unwrap().unwrap();
        let mut values = tensor.values.read().unwrap();
        if let [rows, columns] = tensor.shape[..]
            && !name.contains("position")
            && !name.contains("type")
        {
            let (mut bytes, mut scales) = (Vec::new(), Vec::new());
            for group in values.chunks_exact_mut(GROUP) {
                let scale = group.iter().fold(0f32, |most, value| most.max(value.abs())) / 7.0;
                let whole: Vec<i8> = group.iter().map(|value| (value / scale).round() as i8).collect();
                group.iter_mut().zip(&whole).for_each(|(value, whole)| *value = f32::from(*whole) * scale);
                let half = |at: usize| (whole[at] + 8) as u8;
                bytes.extend((0..GROUP / 2).map(|at| half(at) | half(at + GROUP / 2) << 4));
                scales.push(scale);
            }
            bits.insert(name.to_owned(), ("U8", vec![rows, columns / 2], bytes));
            bits.insert(format!("{name}_scale"), ("F32", vec![rows, columns / GROUP], floats(&scales)));
        } else {
            bits.insert(name.to_owned(), ("F32", tensor.shape.clone(), floats(&values)));
        }
        plain.insert(name.to_owned(), ("F32", tensor.shape, floats(&values)));
    }
    write(&in_bits, &bits);
    write(&in_floats, &plain);
    (in_bits, in_floats)
}

#[test]
fn numbers_of_four_bits_are_those_that_they_stand_for() {
    let (bits, floats) = both();
    let of = |files: &Files| encode(Model::load(&files.model()).unwrap());
    assert_eq!(of(&bits), of(&floats));
    let found = weights(&bits.model());
    assert!(matches!(found.words, Stored::Nibbles(_)));
    assert_eq!(found.words.read().unwrap(), weights(&floats.model()).words.read().unwrap());
}

#[test]
fn words_of_four_bits_stay_so_beside_maps_of_eight() {
    let (bits, floats) = both();
    for files in [&bits, &floats] {
        fs::write(files.model().join("sparrow.json"), r#"{"arithmetic": "int8"}"#).unwrap();
    }
    let words = weights(&bits.model()).words;
    let table = Table::of_words(&words, 32, Precision::Int8).unwrap().unwrap();
    assert_eq!(table.values()[..], words.read().unwrap());
    let in_memory = encode(Model::load(&bits.model()).unwrap());
    for made in [true, false] {
        let model = Model::read(&bits.model(), Some(Keep::any(&bits.packed()))).unwrap();
        assert!(model.is_mapped(), "{made}");
        assert_eq!(encode(model), in_memory);
    }
    // Bytes have a scale for each row: a little is lost.
    let vector = |encoded: &Encoded| match &encoded.output {
        Output::Dense(vector) => vector.to_vec(),
        other => panic!("{other:?}"),
    };
    for (one, other) in in_memory.iter().zip(encode(Model::load(&floats.model()).unwrap())) {
        let cosine: f32 = vector(one).iter().zip(vector(&other)).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.99, "{cosine}");
    }
}

#[test]
fn scales_have_to_fit_the_groups() {
    let (files, _) = both();
    let name = "embeddings.word_embeddings.weight";
    let mut tensors = All::new();
    let refused = |tensors: &All| {
        write(&files, tensors);
        Tensors::open(&files.model().join(FILES[0])).unwrap().find(name).unwrap_err().to_string()
    };
    let reason =
        "tensor [embeddings.word_embeddings.weight] of type U8 has no scale for each 32 numbers of its rows";
    tensors.insert(name.into(), ("U8", vec![2, 16], vec![0; 32]));
    assert!(refused(&tensors).contains(reason));
    for (rows, columns) in [(1, 1), (3, 1)] {
        tensors.insert(
            format!("{name}_scale"),
            ("F32", vec![rows, columns], floats(&vec![1.0; rows * columns])),
        );
        assert!(refused(&tensors).contains(reason));
    }
    tensors.insert(format!("{name}_scale"), ("F32", vec![2, 1], floats(&[1.0; 2])));
    for shape in [vec![32], vec![4, 8], vec![1, 16]] {
        let bytes = vec![0; shape.iter().product()];
        tensors.insert(name.into(), ("U8", shape, bytes));
        assert!(refused(&tensors).contains(reason));
    }
}
