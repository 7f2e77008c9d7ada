//! Encoding with the models that run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_encoder::{Encoded, LoneText, PendingQueries, QueryOptions, Timings};
use sparrow_request::waits::{give_up, waiting};

use sparrow_wire::deprecation;

use super::language::seems_foreign;
use super::{ModelError, Models, Purpose, RegisteredModel, TextEncoder};

impl TextEncoder for Models {
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError> {
        self.encode_within(model_id, texts, purpose, cancel, None)
    }

    fn encode_queries(
        &self,
        queries: &[(&str, Vec<&str>)],
        cancel: Option<&AtomicBool>,
        timed: bool,
    ) -> Result<Vec<(Vec<Encoded>, Timings)>, ModelError> {
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        // A search with a text mostly takes longer than an attempt may.
        if give_up() {
            return Err(ModelError::Cancelled);
        }
        let running =
            queries.iter().map(|(model_id, _)| self.encoding(model_id)).collect::<Result<Vec<_>, _>>()?;
        for ((_, texts), (of_list, _)) in queries.iter().zip(&running) {
            warn_of_language(&of_list.model, texts);
        }
        let failed = |at: usize| move |error| ModelError::from_encoder(queries[at].0, error);
        waiting(|| {
            let mut results = Vec::with_capacity(queries.len());
            let mut begun: VecDeque<PendingQueries<'_>> = VecDeque::new();
            for (at, ((_, texts), (of_list, _))) in queries.iter().zip(&running).enumerate() {
                // Names of one deployment wait for each other: their texts would take each other's places in its queue, and those that
                // are the same would not be found in its cache.
                let waits = running[results.len()..at].iter().any(|(other, _)| Arc::ptr_eq(other, of_list));
                while waits && let Some(earlier) = begun.pop_front() {
                    results.push(earlier.finish().map_err(failed(results.len()))?);
                }
                let prefixed = of_list.model.prefixed(texts, true);
                let prefixed: Option<Vec<&str>> =
                    prefixed.as_ref().map(|texts| texts.iter().map(String::as_str).collect());
                let texts = prefixed.as_deref().unwrap_or(texts);
                // With a single core, a worker would only take it from this thread.
                let by_caller = at + 1 == queries.len() || self.cores() == 1;
                let lone_text = if by_caller { LoneText::ByCaller } else { LoneText::ByWorker };
                let options = QueryOptions { cancel, timed, lone_text };
                let deployment = &of_list.deployment;
                begun.push_back(deployment.begin_queries(texts, options).map_err(failed(at))?);
            }
            for last in begun {
                results.push(last.finish().map_err(failed(results.len()))?);
            }
            let wanted = results.into_iter().zip(&running);
            Ok(wanted.map(|((encoded, timings), (_, kinds))| (kinds.of(encoded), timings)).collect())
        })
    }

    fn fingerprint(&self, model_id: &str) -> Option<String> {
        self.model_fingerprint(model_id)
    }
}

/// Warns if a sparse model that reads only English is asked for something else.
fn warn_of_language(model: &RegisteredModel, texts: &[&str]) {
    let is_english =
        model.info().is_ok_and(|info| info.kind.is_sparse() && info.language.as_deref() == Some("en"));
    if is_english && texts.iter().any(|text| seems_foreign(text)) {
        deprecation::warn(format!(
            "the model [{}] reads only English, and the text of this search seems to be in another language: a search by words or a \
             multilingual model finds more",
            model.id
        ));
    }
}
