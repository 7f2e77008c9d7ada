//! The parameters of an encoder, as files of models hold them.

use crate::packed::ModernShape;
use crate::stored::Stored;

use super::kernels::{MAX_DEPTH, Norm, STEP};

/// A layer normalisation's parameters.
#[derive(Debug, Default, Clone)]
pub(crate) struct NormWeights {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
    pub(crate) epsilon: f32,
}

impl NormWeights {
    pub(super) fn view(&self) -> Norm<'_> {
        Norm { scale: &self.scale, shift: &self.shift, epsilon: self.epsilon }
    }
}

/// A linear map as files hold it: `weights` is `[inputs][outputs]`, and stays in the file until it is packed.
#[derive(Debug, Default, Clone)]
pub(crate) struct LinearWeights {
    pub(crate) weights: Stored,
    pub(crate) bias: Vec<f32>,
}

/// One layer's parameters.
#[derive(Debug, Default, Clone)]
pub(crate) struct LayerWeights {
    pub(crate) query: LinearWeights,
    pub(crate) key: LinearWeights,
    pub(crate) value: LinearWeights,
    pub(crate) attended: LinearWeights,
    pub(crate) attention_norm: NormWeights,
    pub(crate) inner: LinearWeights,
    /// The gate, whose output the activated inner numbers are multiplied with; `None` in BERT.
    pub(crate) gate: Option<LinearWeights>,
    pub(crate) outer: LinearWeights,
    pub(crate) output_norm: NormWeights,
}

/// All parameters of an encoder.
#[derive(Debug, Default, Clone)]
pub(crate) struct Weights {
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Word embeddings, `[vocabulary][width]`.
    pub(crate) words: Stored,
    /// `[positions][width]`, with the first token type added.
    pub(crate) positions: Vec<f32>,
    /// The embedding of the second token type minus that of the first, `width` numbers; empty if types make no difference.
    pub(crate) second_type: Vec<f32>,
    pub(crate) embedding_norm: NormWeights,
    pub(crate) layers: Vec<LayerWeights>,
    /// The transform of a masked language model, after the last layer.
    pub(crate) transform: Option<(LinearWeights, NormWeights)>,
    /// What only ModernBERT has, which has no position embeddings.
    pub(crate) modern: Option<ModernWeights>,
}

/// The parameters that an encoder has above those of another one.
#[derive(Debug, Clone)]
pub(crate) struct Upper {
    pub(crate) layers: Vec<LayerWeights>,
    /// As in [`Weights`].
    pub(crate) transform: Option<(LinearWeights, NormWeights)>,
}

/// Parameters of an encoder that only ModernBERT has.
#[derive(Debug, Default, Clone)]
pub(crate) struct ModernWeights {
    /// The normalisation after the last layer.
    pub(crate) final_norm: NormWeights,
    pub(crate) shape: ModernShape,
}

/// Why an encoder cannot be packed: the kernels cannot compute it, or its files fail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{what} is [{width}], and has to be a multiple of [{STEP}]")]
    Width { what: String, width: usize },
    #[error("hidden states of [{width}] numbers cannot be divided among [{heads}] attention heads")]
    Heads { width: usize, heads: usize },
    #[error("its {what} of [{length}] numbers are not rows of [{width}]")]
    Rows { what: &'static str, length: usize, width: usize },
    #[error("[{length}] numbers are in {what} where [{wanted}] belong")]
    Length { what: String, length: usize, wanted: usize },
    #[error("a number that is not finite is in {0}")]
    NotFinite(String),
    /// What the variance is added to in a normalisation.
    #[error("a normalisation adds [{0}] to the variance; it has to be a number that is not negative")]
    Epsilon(f32),
    #[error("a scale of inputs that is not a positive number is in {0}")]
    Factors(String),
    #[error("a linear map of [{inputs}] inputs is in {what}; in 8 bits it may have at most [{MAX_DEPTH}]")]
    Inputs { what: String, inputs: usize },
    #[error("its layer [{0}] has a gate where its architecture has none, or none where it has one")]
    Gate(usize),
    #[error("the layers below it are not those of BERT")]
    Below,
    /// A weight cannot be read, or the packed weights cannot be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}
