//! Vectors and texts of documents and questions, row by row.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value, json};
use sparrow_query::{MatchQuery, Query, QueryKind, SparseQuery};

use crate::Arguments;

/// A sparse matrix by rows.
struct Rows {
    ptr: Vec<usize>,
    idx: Vec<u32>,
    val: Vec<f32>,
}

impl Rows {
    fn read(prefix: &str, limit: usize) -> Result<Self, Box<dyn Error>> {
        let words = |ending: &str, most: usize| -> Result<Vec<[u8; 4]>, Box<dyn Error>> {
            let name = format!("{prefix}.{ending}");
            let bytes = fs::read(&name).map_err(|error| format!("{name}: {error}"))?;
            let words = bytes.as_chunks::<4>().0;
            Ok(words[..words.len().min(most)].to_vec())
        };
        let ptr: Vec<usize> = words("ptr", limit.saturating_add(1))?
            .into_iter()
            .map(|w| u32::from_le_bytes(w) as usize)
            .collect();
        let most = *ptr.last().ok_or("no rows")?;
        let idx: Vec<u32> = words("idx", most)?.into_iter().map(u32::from_le_bytes).collect();
        let val: Vec<f32> = words("val", most)?.into_iter().map(f32::from_le_bytes).collect();
        if ptr.len() < 2 || idx.len() < most || val.len() < most {
            return Err(format!("{prefix}: the files do not fit together").into());
        }
        Ok(Self { ptr, idx, val })
    }

    fn len(&self) -> usize {
        self.ptr.len() - 1
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> {
        let range = self.ptr[row]..self.ptr[row + 1];
        self.idx[range.clone()].iter().copied().zip(self.val[range].iter().copied())
    }
}

/// The documents to index and the questions to ask.
pub struct Corpus {
    docs: Rows,
    questions: Rows,
    texts: Vec<(String, String)>,
    question_texts: Vec<String>,
}

impl Corpus {
    pub fn read(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let docs = Rows::read(&arguments.docs, arguments.limit)?;
        let questions = Rows::read(&arguments.queries, arguments.questions)?;
        let texts = match &arguments.texts {
            Some(path) => lines(path, docs.len())?,
            None => (0..docs.len()).map(|row| synthetic(&docs, row, 90)).collect(),
        };
        let question_texts: Vec<String> = match &arguments.question_texts {
            Some(path) => lines(path, questions.len())?.into_iter().map(|(_, text)| text).collect(),
            None => (0..questions.len()).map(|row| synthetic(&questions, row, 8).1).collect(),
        };
        if texts.len() < docs.len() || question_texts.len() < questions.len() {
            return Err("fewer texts than vectors".into());
        }
        Ok(Self { docs, questions, texts, question_texts })
    }

    pub fn len(&self) -> usize {
        self.docs.len()
    }

    pub fn questions(&self) -> usize {
        self.questions.len()
    }

    /// The document of a row as JSON, without and with its sparse vector.
    pub fn document(&self, row: usize) -> (Value, Value) {
        let (title, text) = &self.texts[row];
        let spread = spread(row as u64);
        let source = json!({
            "title": title,
            "text": text,
            "half": format!("half-{}", spread % 2),
            "twentieth": format!("twentieth-{}", spread % 20),
            "rare": format!("rare-{}", spread % 200),
            "number": spread % 1000,
        });
        let mut whole = source.clone();
        let tokens: Map<String, Value> =
            self.docs.row(row).map(|(term, weight)| (token(term), json!(weight))).collect();
        whole["v"] = Value::Object(tokens);
        (source, whole)
    }

    /// A question as a sparse clause.
    pub fn sparse(&self, question: usize) -> Query {
        let tokens =
            self.questions.row(question).map(|(term, weight)| (token(term).into(), weight)).collect();
        QueryKind::Sparse(SparseQuery { field: "v".to_owned(), tokens, ..SparseQuery::default() }).into()
    }

    /// Tokens and weights of a question, for searching the postings directly.
    pub fn tokens(&self, question: usize) -> Vec<(String, f32)> {
        self.questions.row(question).map(|(term, weight)| (token(term), weight)).collect()
    }

    /// A question as text.
    pub fn question_text(&self, question: usize) -> String {
        self.question_texts[question].clone()
    }

    /// A question as a text clause.
    pub fn words(&self, question: usize) -> Query {
        let text = self.question_text(question);
        QueryKind::Match(MatchQuery { field: "text".to_owned(), text, ..MatchQuery::default() }).into()
    }
}

/// A pseudo-random number for each document, from which the values of its filter fields are derived.
pub fn spread(row: u64) -> u64 {
    (row.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % 1_000_003
}

fn token(term: u32) -> String {
    format!("##{:05}", term.wrapping_mul(2_654_435_761) % 100_003 * 30_522 + term % 30_522)
}

/// Title and text made of synthetic words, which are named after the terms of a row.
fn synthetic(rows: &Rows, row: usize, words: usize) -> (String, String) {
    let terms: Vec<u32> = rows.row(row).map(|(term, _)| term).collect();
    let word = |at: usize| format!("word{}", terms.get(at % terms.len().max(1)).copied().unwrap_or(0));
    let text: Vec<String> = (0..words).map(word).collect();
    (text[..words.min(6)].join(" "), text.join(" "))
}

fn lines(path: &Path, most: usize) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    BufReader::new(file)
        .lines()
        .take(most)
        .map(|line| {
            let line: Value = serde_json::from_str(&line?)?;
            let part = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            Ok((part("title"), part("text")))
        })
        .collect()
}
