//! Scoring texts by how well they answer a question, with a cross-encoder.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sparrow_encoder::{ModelKind, Scored};
use sparrow_request::waits::waiting;

use crate::{ModelError, Models};

/// Number of texts that are queued at once: enough for all workers, and few enough for the questions of other callers to be answered in
/// between.
const PORTION: usize = 64;

impl Models {
    /// Scores of texts, in the order of the texts: the output of the model's head, higher for better answers. The question and a text are
    /// read as one sequence, with the model's prefixes for queries and documents.
    ///
    /// At most 64 of the texts wait in the model's queue at once.
    ///
    /// # Errors
    /// If the model does not exist, is not deployed, or makes vectors; if the queue is full, the time is over, the caller went
    /// away, or the model fails.
    pub fn rerank(
        &self,
        model_id: &str,
        question: &str,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Scored>, ModelError> {
        let running = self.running(model_id)?;
        let made = match running.deployment.model().info().kind {
            ModelKind::CrossEncoder => None,
            kind if kind.is_sparse() => Some("sparse"),
            _ => Some("dense"),
        };
        if let Some(made) = made {
            return Err(ModelError::MakesNoScores { id: model_id.to_owned(), made });
        }
        let questions = running.model.prefixed(&[question], true);
        let question = questions.as_ref().and_then(|one| one.first()).map_or(question, String::as_str);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let portion = running.settings().queue_capacity.clamp(1, PORTION);
        let mut scores = Vec::with_capacity(texts.len());
        for texts in texts.chunks(portion) {
            let prefixed = running.model.prefixed(texts, false);
            let prefixed: Option<Vec<&str>> =
                prefixed.as_ref().map(|texts| texts.iter().map(String::as_str).collect());
            let texts = prefixed.as_deref().unwrap_or(texts);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let scored =
                waiting(|| running.deployment.score(question, texts, cancel, left)).map_err(|error| {
                    match (ModelError::from_encoder(model_id, error), timeout) {
                        // What was left of the time is nobody's number.
                        (ModelError::Timeout { .. }, Some(timeout)) => ModelError::timeout(timeout),
                        (error, _) => error,
                    }
                })?;
            scores.extend(scored);
        }
        Ok(scores)
    }
}
