//! The interface through which ingest, searches and fields have texts encoded by a model, known to them only by its
//! id.
//!
//! The engine's models stand behind [`TextEncoder`], with their deployments and queues.

mod documents;
mod error;
mod json;

use std::sync::atomic::AtomicBool;

use sparrow_encoder::{Encoded, Timings};

pub use self::documents::encode_documents;
pub use self::error::ModelError;
pub use self::json::{vector_to_json, weight_to_json};

/// Whether a text holds no word. The text of a search that is blank matches nothing, whatever a model makes of it.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control())
}

/// Purpose for which a text is encoded: decides its priority in the queue, and what happens if the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The text of a search. Goes first; fails if the queue is full.
    Query,
    /// A text whose caller waits, to be encoded as a document. Goes first; fails if the queue is full.
    Direct,
    /// A document that is written. Fails if the queue is full.
    Ingest,
    /// A document that a job writes: waits for room.
    PacedIngest,
}

/// An encoder of texts: the engine's models, or a test double.
pub trait TextEncoder: Sync {
    /// Encodes texts with a deployed model, in the order given.
    ///
    /// # Errors
    /// If the model does not exist or is not deployed, or the encoder fails.
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError>;

    /// Encodes the texts of a search, a list for each model, the models at the same time where cores are idle. With `timed`, says
    /// where the time of each model went, as far as that is known.
    ///
    /// # Errors
    /// As [`TextEncoder::encode`].
    fn encode_queries(
        &self,
        queries: &[(&str, Vec<&str>)],
        cancel: Option<&AtomicBool>,
        _timed: bool,
    ) -> Result<Vec<(Vec<Encoded>, Timings)>, ModelError> {
        let encode = |(model_id, texts): &(&str, Vec<&str>)| {
            Ok((self.encode(model_id, texts, Purpose::Query, cancel)?, Timings::default()))
        };
        queries.iter().map(encode).collect()
    }

    /// Fingerprint of a model, as hexadecimal digits: differs between models whose vectors differ.
    fn fingerprint(&self, model_id: &str) -> Option<String>;
}
