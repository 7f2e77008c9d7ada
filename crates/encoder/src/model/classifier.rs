//! The head of a cross-encoder in a checkpoint: the layers of a `...ForSequenceClassification` model with one label after its encoder.

use crate::error::EncoderError;
use crate::scorer::{Activation, Scale, Scorer, States};

use super::checkpoint::Checkpoint;

/// Names of the tensors of a classifier head, and its activation.
struct HeadLayers {
    /// A layer before the last, as a name and whether it is one of the encoder's own.
    dense: &'static str,
    of_encoder: bool,
    last: &'static str,
    activation: Activation,
}

const BERT: HeadLayers =
    HeadLayers { dense: "pooler.dense", of_encoder: true, last: "classifier", activation: Activation::Tanh };
const ROBERTA: HeadLayers = HeadLayers {
    dense: "classifier.dense",
    of_encoder: false,
    last: "classifier.out_proj",
    activation: Activation::Tanh,
};
const DISTILBERT: HeadLayers = HeadLayers {
    dense: "pre_classifier",
    of_encoder: false,
    last: "classifier",
    activation: Activation::Relu,
};

/// Names of a ModernBERT classifier head, whose first layer has no bias and is followed by a normalisation.
const MODERN_BERT: HeadLayers =
    HeadLayers { dense: "head.dense", of_encoder: false, last: "classifier", activation: Activation::Gelu };

impl Checkpoint {
    /// The head that computes a score from the hidden states.
    ///
    /// # Errors
    /// [`EncoderError::Unsupported`] with the tensor that is missing or of another shape, a head of several labels among them.
    pub(super) fn scorer(&self) -> Result<Scorer, EncoderError> {
        let names = match self.model_type() {
            "bert" => BERT,
            "distilbert" => DISTILBERT,
            "modernbert" => MODERN_BERT,
            _ => ROBERTA,
        };
        let width = self.width();
        let dense = if names.of_encoder { self.own(names.dense) } else { names.dense.to_owned() };
        let weights = self.values(&self.matrix(&format!("{dense}.weight"), Some(width), width)?)?;
        let modern = self.is_modern();
        let bias = self.bias(&dense, width)?;
        let (states, norm) = if modern { self.modern_states()? } else { (States::First, None) };
        let (last, offset) = self.last(names.last)?;
        let factors = norm.as_ref().map_or(&[][..], |norm: &Scale| &norm.factors);
        let numbers = [&weights[..], &bias, factors, &last, &[offset]];
        if bias.len() != width || !numbers.iter().all(|some| some.iter().all(|number| number.is_finite())) {
            return Err(self.unsupported(format!("[{dense}] does not fit, or a number is not finite")));
        }
        Ok(Scorer { states, dense: weights, bias, activation: names.activation, norm, last, offset })
    }

    /// Which hidden states ModernBERT's head reads, and the scale of its normalisation.
    fn modern_states(&self) -> Result<(States, Option<Scale>), EncoderError> {
        let said = |name: &Option<String>| name.clone().unwrap_or_default();
        let states = match said(&self.architecture.classifier_pooling).as_str() {
            "" | "cls" => States::First,
            "mean" => States::Mean,
            other => return Err(self.unsupported(format!("classifier_pooling [{other}]"))),
        };
        let activation = said(&self.architecture.classifier_activation);
        if !["", "gelu"].contains(&activation.as_str()) {
            return Err(
                self.unsupported(format!("classifier_activation [{activation}]; it has to be [gelu]"))
            );
        }
        if self.find("head.norm.bias")?.is_some() {
            return Err(self.unsupported("its head's normalisation has summands".into()));
        }
        let factors = self.values(&self.tensor("head.norm.weight")?)?;
        if factors.len() != self.width() {
            return Err(self.unsupported("tensor [head.norm.weight] is of another length".into()));
        }
        Ok((states, Some(Scale { factors, epsilon: self.norm_epsilon() })))
    }

    /// The weights and the bias of the last layer, which has one output.
    fn last(&self, name: &str) -> Result<(Vec<f32>, f32), EncoderError> {
        let matrix = self.tensor(&format!("{name}.weight"))?;
        if let [labels, _] = matrix.shape[..]
            && labels != 1
        {
            return Err(self.unsupported(format!(
                "its head has [{labels}] labels; a cross-encoder that ranks texts has one"
            )));
        }
        let matrix = self.matrix(&format!("{name}.weight"), Some(1), self.width())?;
        let bias = self.values(&self.tensor(&format!("{name}.bias"))?)?;
        let [offset] = bias[..] else {
            return Err(self.unsupported(format!("[{name}.bias] has [{}] numbers", bias.len())));
        };
        Ok((self.values(&matrix)?, offset))
    }
}
