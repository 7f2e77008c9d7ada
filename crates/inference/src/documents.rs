//! Encoding the texts of documents being written, which may be more texts than the queue has places.

use std::sync::atomic::AtomicBool;

use sparrow_encoder::Encoded;

use crate::{ModelError, Purpose, TextEncoder};

/// Encodes texts, each given with the number of its document, in document order. Returns the vectors of the leading
/// texts, and the reason why the remaining ones, if any, have none.
///
/// More texts than the queue holds even when empty would be refused on every attempt. So the leading documents are
/// encoded and only the rest refused: a client that retries the rest makes progress. A single document with more
/// texts than the queue has places is encoded in several calls.
pub fn encode_documents(
    encoder: &dyn TextEncoder,
    model_id: &str,
    texts: &[(usize, &str)],
    purpose: Purpose,
    cancel: Option<&AtomicBool>,
) -> (Vec<Encoded>, Option<ModelError>) {
    let encode = |texts: &[(usize, &str)]| {
        let texts: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
        encoder.encode(model_id, &texts, purpose, cancel)
    };
    let (capacity, full) = match encode(texts) {
        Ok(encoded) => return (encoded, None),
        Err(ModelError::QueueFull { capacity, requested }) if requested > capacity => {
            (capacity.max(1), ModelError::QueueFull { capacity, requested })
        }
        Err(error) => return (Vec::new(), Some(error)),
    };
    let front = texts
        .chunk_by(|one, other| one.0 == other.0)
        .scan(0, |end, document| {
            *end += document.len();
            Some(*end)
        })
        .enumerate()
        .take_while(|(number, end)| *number == 0 || *end <= capacity)
        .last()
        .map_or(0, |(_, end)| end);
    let mut encoded = Vec::with_capacity(front);
    for portion in texts[..front].chunks(capacity) {
        match encode(portion) {
            Ok(more) => encoded.extend(more),
            Err(error) => return (Vec::new(), Some(error)),
        }
    }
    (encoded, (front < texts.len()).then_some(full))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use sparrow_encoder::Output;

    use super::*;

    /// An encoder with an otherwise unused queue of three places; records the number of texts of each call.
    #[derive(Default)]
    struct Three(Mutex<Vec<usize>>);

    impl TextEncoder for Three {
        fn encode(
            &self,
            _: &str,
            texts: &[&str],
            _: Purpose,
            _: Option<&AtomicBool>,
        ) -> Result<Vec<Encoded>, ModelError> {
            if texts.len() > 3 {
                return Err(ModelError::QueueFull { capacity: 3, requested: texts.len() });
            }
            self.0.lock().push(texts.len());
            let vector = |text: &&str| Output::Dense(Arc::from([text.len() as f32].as_slice()));
            let encoded = |text: &&str| Encoded { output: vector(text), token_count: 1, truncated_tokens: 0 };
            Ok(texts.iter().map(encoded).collect())
        }

        fn fingerprint(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn run(documents: &[usize]) -> (usize, bool, Vec<usize>) {
        let texts: Vec<(usize, &str)> = documents.iter().map(|document| (*document, "text")).collect();
        let queue = Three::default();
        let (encoded, error) = encode_documents(&queue, "m", &texts, Purpose::Ingest, None);
        (encoded.len(), error.is_some(), queue.0.into_inner())
    }

    #[test]
    fn whole_documents_at_the_front_get_on() {
        assert_eq!(run(&[0, 1, 2]), (3, false, vec![3]));
        assert_eq!(run(&[0, 1, 2, 3]), (3, true, vec![3]));
        assert_eq!(run(&[0, 0, 1, 1]), (2, true, vec![2]));
        assert_eq!(run(&[0, 0, 0, 0, 0]), (5, false, vec![3, 2]));
        assert_eq!(run(&[0, 0, 0, 0, 1]), (4, true, vec![3, 1]));
        assert_eq!(run(&[]), (0, false, vec![0]));
    }
}
