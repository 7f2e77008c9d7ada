//! The functions that scripts of scores may call, which a [`Host`](crate::Host) carries out.

use crate::context::Function;

/// A function of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreFunction {
    CosineSimilarity,
    DotProduct,
    L1Norm,
    L2Norm,
    Saturation,
    Sigmoid,
    DecayNumericExp,
    DecayNumericGauss,
    DecayNumericLinear,
}

impl ScoreFunction {
    /// The functions, in the order of [`ScoreFunction::DECLARED`].
    pub const ALL: [Self; 9] = [
        Self::CosineSimilarity,
        Self::DotProduct,
        Self::L1Norm,
        Self::L2Norm,
        Self::Saturation,
        Self::Sigmoid,
        Self::DecayNumericExp,
        Self::DecayNumericGauss,
        Self::DecayNumericLinear,
    ];

    /// Their declarations for a [`Context`](crate::Context).
    pub const DECLARED: [Function; 9] = [
        Function { name: "cosineSimilarity", arguments: &[2] },
        Function { name: "dotProduct", arguments: &[2] },
        Function { name: "l1norm", arguments: &[2] },
        Function { name: "l2norm", arguments: &[2] },
        Function { name: "saturation", arguments: &[2] },
        Function { name: "sigmoid", arguments: &[3] },
        Function { name: "decayNumericExp", arguments: &[5] },
        Function { name: "decayNumericGauss", arguments: &[5] },
        Function { name: "decayNumericLinear", arguments: &[5] },
    ];
}
