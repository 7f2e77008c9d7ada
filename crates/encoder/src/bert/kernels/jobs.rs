//! What the kernels compute: products, normalisations, attention.

use super::linear::Linear;

/// What happens to a product before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    /// The product is stored as it is.
    None,
    /// The Gaussian error linear unit, the exact one with the error function.
    Gelu,
}

/// A product of rows and a linear map: the rows, and what is applied to the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gemm<'a> {
    pub(super) linear: &'a Linear,
    pub(super) input: &'a [f32],
    pub(super) rows: usize,
    pub(super) stride: usize,
    pub(super) epilogue: Epilogue,
}

/// Layer normalisation of rows.
#[derive(Debug, Clone)]
pub struct Norm<'a> {
    /// One factor per column.
    pub scale: &'a [f32],
    /// Summand of each column.
    pub shift: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
}

/// One text's queries, keys and values.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// `[tokens][3][width]`: queries (already scaled), keys, values.
    pub qkv: &'a [f32],
    /// Number of tokens.
    pub tokens: usize,
    /// Width of a query, in numbers.
    pub width: usize,
    /// Number of attention heads, which divide a query into equal parts.
    pub heads: usize,
    /// Number of tokens to each side that a token attends to; `usize::MAX` for all tokens.
    pub window: usize,
}

impl Attention<'_> {
    /// Makes a token's scores of the keys that it does not see minus infinity: of those beyond its window, and of padding after the last.
    pub(super) fn hide(&self, token: usize, scores: &mut [f32]) {
        let end = token.saturating_add(self.window).saturating_add(1).min(self.tokens);
        scores[..token.saturating_sub(self.window)].fill(f32::NEG_INFINITY);
        scores[end..].fill(f32::NEG_INFINITY);
    }
}

/// The functions of one number that the tests call by themselves.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) enum Function {
    Exp,
    Gelu,
}
