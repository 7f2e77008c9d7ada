//! What was detected in a model directory, in a form for people to read.

use super::checkpoint::Checkpoint;
use super::info::Recognised;
use super::layout::{Arithmetic, ForwardPass, Layout, Pooling};

impl Layout {
    /// The kind of model that was detected in a model directory, its architecture and files, as text for people.
    pub(super) fn recognised(&self) -> Recognised {
        let (weights, architecture) = match &self.forward {
            ForwardPass::Graph { .. } => ("model.onnx", None),
            ForwardPass::Checkpoint(checkpoint) => ("model.safetensors", Some(checkpoint.shape())),
        };
        let pooling = match self.pooling {
            Pooling::Splade => "largest logit of each term",
            Pooling::Mean => "mean over tokens",
            Pooling::Cls => "first token",
            Pooling::Last => "last token",
            Pooling::Classifier => "classifier",
            Pooling::Done => "in the graph",
        };
        Recognised {
            weights,
            architecture,
            pooling,
            normalized: self.normalize && self.dims().is_some(),
            int8: self.arithmetic == Some(Arithmetic::Int8),
        }
    }
}

impl Checkpoint {
    /// The type of the architecture, and the numbers of layers, of numbers in a hidden state, and of attention heads.
    fn shape(&self) -> (String, [usize; 3]) {
        let of = &self.architecture;
        (self.model_type().to_owned(), [of.num_hidden_layers, self.width(), of.num_attention_heads])
    }
}
