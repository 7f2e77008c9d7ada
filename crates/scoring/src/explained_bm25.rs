//! Explanations of BM25 scores, step by step.

use serde_json::Value;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::schema::Type;
use tantivy::{DocId, Score, Searcher, SegmentReader, Term};

use crate::statistics::{FieldStatistics, idf};
use crate::weights;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// A weight that scores one term or phrase by BM25 and can explain the score.
struct Bm25Explained {
    inner: Box<dyn Weight>,
    /// Label in explanations: `field:term` or `field:"a phrase"`.
    label: String,
    /// Document frequency of each term.
    frequencies: Vec<u64>,
    /// Number of documents that have the field and of tokens in it.
    statistics: FieldStatistics,
}

/// Wraps the weight of a term or phrase so that it explains its score.
pub fn explained(
    inner: Box<dyn Weight>,
    searcher: &Searcher,
    terms: &[Term],
    frequencies: Vec<u64>,
    statistics: FieldStatistics,
) -> Box<dyn Weight> {
    let label = match terms {
        [term] => format!("{}:{}", path_of(searcher, term), text_of(term)),
        terms => {
            let words: Vec<String> = terms.iter().map(text_of).collect();
            let path = terms.first().map(|term| path_of(searcher, term)).unwrap_or_default();
            format!("{path}:\"{}\"", words.join(" "))
        }
    };
    Box::new(Bm25Explained { inner, label, frequencies, statistics })
}

/// Path of the mapped field that a term belongs to.
fn path_of(searcher: &Searcher, term: &Term) -> String {
    match keyword(term) {
        Some((path, _)) => path,
        None => {
            let name = searcher.schema().get_field_name(term.field());
            name.strip_prefix("t:").unwrap_or(name).to_owned()
        }
    }
}

fn text_of(term: &Term) -> String {
    match keyword(term) {
        Some((_, value)) => value,
        None => term.value().as_str().unwrap_or_default().to_owned(),
    }
}

/// Splits the term of a keyword into path and value: all keywords share one field, whose terms begin with the
/// path and a zero byte, followed by one byte for the type of the value.
fn keyword(term: &Term) -> Option<(String, String)> {
    if term.typ() != Type::Json {
        return None;
    }
    let bytes = term.serialized_value_bytes();
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let value = bytes.get(end + 2..)?;
    Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), String::from_utf8_lossy(value).into_owned()))
}

impl Weight for Bm25Explained {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let score = weights::explain(self.scorer(reader, 1.0), doc, "")?.value();
        let raw = serde_json::to_value(self.inner.explain(reader, doc)?).unwrap_or_default();
        let phrase = self.frequencies.len() > 1;
        let find = |description: &str| detail(&raw, description, 0);
        let freq = find("freq, occurrences of term within document").unwrap_or(1.0);
        let length = find("dl, length of field").unwrap_or(1.0);
        let average = self.statistics.tokens as f32 / self.statistics.docs as f32;

        let mut boost_idf = Explanation::new_with_string(
            if phrase {
                "idf, sum of:".to_owned()
            } else {
                "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:".to_owned()
            },
            self.frequencies.iter().map(|n| idf(*n, self.statistics.docs)).sum::<f64>() as f32,
        );
        for n in &self.frequencies {
            let mut one = Explanation::new(
                "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
                idf(*n, self.statistics.docs) as f32,
            );
            let target = if phrase { &mut one } else { &mut boost_idf };
            target.add_const("n, number of documents containing term", *n as f32);
            target.add_const("N, total number of documents with field", self.statistics.docs as f32);
            if phrase {
                boost_idf.add_detail(one);
            }
        }
        let norm = 1.0 / (K1 * ((1.0 - B) + B * length / average));
        let mut tf = Explanation::new(
            "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
            1.0 - 1.0 / (1.0 + freq * norm),
        );
        match phrase {
            true => tf.add_detail(Explanation::new_with_string(format!("phraseFreq={freq:?}"), freq)),
            false => tf.add_const("freq, occurrences of term within document", freq),
        }
        tf.add_const("k1, term saturation parameter", K1);
        tf.add_const("b, length normalization parameter", B);
        // Lengths above are kept with three significant bits.
        let length_text =
            if length > 40.0 { "dl, length of field (approximate)" } else { "dl, length of field" };
        tf.add_const(length_text, length);
        tf.add_const("avgdl, average length of field", average);

        let mut computed = Explanation::new_with_string(
            format!("score(freq={freq:?}), computed as boost * idf * tf from:"),
            score,
        );
        computed.add_const("boost", K1 + 1.0);
        computed.add_detail(boost_idf);
        computed.add_detail(tf);
        let mut weight = Explanation::new_with_string(
            format!("weight({} in {doc}) [PerFieldSimilarity], result of:", self.label),
            score,
        );
        weight.add_detail(computed);
        Ok(weight)
    }
}

/// Value of the first detail with this description, at any depth.
fn detail(raw: &Value, description: &str, depth: usize) -> Option<f32> {
    if raw["description"].as_str() == Some(description) {
        return raw["value"].as_f64().map(|value| value as f32);
    }
    if depth > 8 {
        return None;
    }
    raw["details"].as_array()?.iter().find_map(|inner| detail(inner, description, depth + 1))
}
