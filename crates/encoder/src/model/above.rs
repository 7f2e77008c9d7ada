//! What the directory of a head on another model has: layers above those of that model, and the transform of a masked language model.

use crate::bert::{Bert, Upper};
use crate::error::EncoderError;

use super::checkpoint::{Checkpoint, MAX_LAYERS};

/// Name of the weights that tokens of a text have as terms of its vector, in a head on another model.
const OWN_TOKENS: &str = "token_weights";

impl Checkpoint {
    /// What a head has of its own above an encoder of the same form: its layers, and the transform after them.
    ///
    /// # Errors
    /// As [`Checkpoint::weights`].
    pub(super) fn above(&self, trunk: &Bert) -> Result<Upper, EncoderError> {
        let layers = self.architecture.num_hidden_layers;
        let (below, width, heads) = (trunk.depth(), trunk.width(), trunk.heads());
        let is_alike = self.width() == width && self.architecture.num_attention_heads == heads;
        if !(below..=MAX_LAYERS).contains(&layers) || self.is_modern() || !is_alike {
            return Err(self.unsupported(format!(
                "it does not fit on [{below}] layers of BERT with hidden states of [{width}] numbers and [{heads}] attention heads"
            )));
        }
        if let Some(head) = self.head()
            && self.find(head.decoder)?.is_some()
        {
            let reason = format!(
                "its tensor [{}] would not be used: the decoder is the word embeddings below",
                head.decoder
            );
            return Err(self.unsupported(reason));
        }
        let layers = (below..layers).map(|number| self.layer(number)).collect::<Result<_, _>>()?;
        Ok(Upper { layers, transform: self.transform(true)? })
    }

    /// What a token of a text adds to the weight of the term that it is, by term; `None` if a head says nothing of it.
    ///
    /// # Errors
    /// As [`Checkpoint::weights`]; also if a number is negative or not finite.
    pub(super) fn weights_of_own_tokens(&self, terms: usize) -> Result<Option<Vec<f32>>, EncoderError> {
        let Some(tensor) = self.find(OWN_TOKENS)? else { return Ok(None) };
        let weights = self.values(&tensor)?;
        if weights.len() != terms || !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) {
            let reason =
                format!("tensor [{OWN_TOKENS}] has to hold {terms} numbers that are finite and not negative");
            return Err(self.unsupported(reason));
        }
        Ok(Some(weights))
    }
}
