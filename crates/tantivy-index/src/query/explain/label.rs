//! Clauses as Lucene prints them, and what the weight of each kind of clause gives as explanation.

use serde_json::Value;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use super::convert::CONSTANT_TAG;
use crate::query::kinds::{Explained, meaning};
use sparrow_query::{Query, QueryKind, printed};
use sparrow_runtime::work;
use sparrow_scoring::{error, weights};

/// Wraps the weight of a clause so that it gives the explanation of its kind.
pub(crate) fn labelled(kind: &QueryKind, weight: Box<dyn Weight>, scoring: bool) -> Box<dyn Weight> {
    let explained = match scoring {
        true => meaning(kind).explained(),
        // Where nothing is scored, all that matches counts 1.
        false => Explained::Constant,
    };
    match explained {
        Explained::Itself => weight,
        Explained::Constant => {
            Box::new(Labelled { inner: weight, text: printed(kind.clause()), constant: true, scoring })
        }
        Explained::Sentence(text) => {
            Box::new(Labelled { inner: weight, text: text.to_owned(), constant: false, scoring })
        }
    }
}

/// The explanation of a document that does not match a query.
pub(super) fn no_match(query: &Query, doc: DocId) -> String {
    let meaning = meaning(&query.kind);
    match (meaning.no_match(), meaning.explained()) {
        (Some(sentence), _) => sentence.to_owned(),
        (None, Explained::Constant) => format!("{} doesn't match id {doc}", printed(query.kind.clause())),
        (None, _) => "no matching term".to_owned(),
    }
}

struct Labelled {
    inner: Box<dyn Weight>,
    text: String,
    constant: bool,
    scoring: bool,
}

impl Weight for Labelled {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        // A query may have thousands of clauses, each of which is opened anew for each document.
        work::check().map_err(|_| error::stopped())?;
        let score = weights::explain(self.scorer(reader, 1.0), doc, "")?.value();
        let score = if self.scoring { score } else { 1.0 };
        let mut explanation = Explanation::new_with_string(self.text.clone(), score);
        if self.constant {
            explanation.add_context(CONSTANT_TAG.to_owned());
        }
        Ok(explanation)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

/// A weight whose explanation has another description, such as `max of:`.
pub(crate) fn described(inner: Box<dyn Weight>, description: String) -> Box<dyn Weight> {
    Box::new(Described { inner, description })
}

struct Described {
    inner: Box<dyn Weight>,
    description: String,
}

impl Weight for Described {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.inner.explain(reader, doc).map(|inner| renamed(&inner, &self.description))
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

/// A copy of an explanation with another description; its details can only be read by way of JSON.
fn renamed(inner: &Explanation, description: &str) -> Explanation {
    fn rebuilt(raw: &Value, description: Option<&str>) -> Explanation {
        let text = description.or(raw["description"].as_str()).unwrap_or_default();
        let mut out =
            Explanation::new_with_string(text.to_owned(), raw["value"].as_f64().unwrap_or_default() as f32);
        for detail in raw["details"].as_array().into_iter().flatten() {
            out.add_detail(rebuilt(detail, None));
        }
        for context in raw["context"].as_array().into_iter().flatten() {
            out.add_context(context.as_str().unwrap_or_default().to_owned());
        }
        out
    }
    rebuilt(&serde_json::to_value(inner).unwrap_or_default(), Some(description))
}
