//! What a model directory says of itself, for people to read.

use super::checkpoint::Checkpoint;
use super::layout::{Arithmetic, ForwardPass, Layout, Pooling};

/// Facts about a model that the files of its directory were found to describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// Name of the file whose parameters are computed with: `model.safetensors` or `model.onnx`.
    pub weights: &'static str,
    /// Type of the architecture, layers, width of a hidden state and heads; of a checkpoint, which names them.
    pub architecture: Option<(String, [usize; 3])>,
    /// How the states of tokens become what the model makes.
    pub pooling: &'static str,
    /// Whether vectors are scaled to length 1.
    pub normalized: bool,
    /// Whether linear maps are computed in 8 bits.
    pub int8: bool,
}

impl Layout {
    /// The facts that a directory read so is shown with.
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
            int8: self.arithmetic == Arithmetic::Int8,
        }
    }
}

impl Checkpoint {
    /// Its type, layers, width and heads.
    fn shape(&self) -> (String, [usize; 3]) {
        let of = &self.architecture;
        (self.model_type().to_owned(), [of.num_hidden_layers, self.width(), of.num_attention_heads])
    }
}
