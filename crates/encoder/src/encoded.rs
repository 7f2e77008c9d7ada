//! What a deployment answers for one text.

use std::sync::Arc;

use sparrow_runtime::TokenWeights;

/// The result of encoding one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The vector that the model gives.
    pub output: Output,
    /// Number of tokens that were encoded, special tokens included.
    pub token_count: u32,
    /// Number of tokens that were cut off; above 0 the text was truncated. For texts of many kilobytes this
    /// is a lower bound, as their far end is never tokenized.
    pub truncated_tokens: u32,
}

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A sparse vector: token weights; a '.' inside a token is written `__`.
    Sparse(Arc<TokenWeights>),
    /// A dense vector.
    Dense(Arc<[f32]>),
    /// Both, in one pass over the text: of a sparse model that is a head on a dense one, and of that one.
    Hybrid { sparse: Arc<TokenWeights>, dense: Arc<[f32]> },
}

impl Encoded {
    /// This without the vector of the model that the one that was asked is a head on.
    pub fn without_trunk(self) -> Self {
        match self.output {
            Output::Hybrid { sparse, .. } => Self { output: Output::Sparse(sparse), ..self },
            Output::Sparse(_) | Output::Dense(_) => self,
        }
    }
}

/// Score of how well a text answers a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The raw output of the model's head: any finite number, higher is better.
    pub score: f32,
    /// Number of tokens that were read, including those of the question and special ones.
    pub token_count: u32,
    /// Number of tokens of question and text that were cut off; a lower bound for texts of many kilobytes.
    pub truncated_tokens: u32,
}
