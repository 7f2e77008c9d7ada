//! Where the files of a model keep the decoder of its masked language model, and reading it.

use crate::fixed::Precision;
use crate::head::{Basis, Head, kernels};
use crate::stored::Stored;

/// The shape of a decoder and the places of its weights in files.
#[derive(Debug)]
pub(super) struct Source {
    /// The weights, `[terms][dims]`.
    pub(super) rows: Stored,
    /// One for each term.
    pub(super) bias: Stored,
    pub(super) dims: usize,
}

impl Source {
    /// Reads the decoder and quantises it; with a basis, the head rules out most terms by a few dimensions.
    ///
    /// # Errors
    /// A message that says what cannot be read or does not fit.
    pub(super) fn load(&self, basis: Option<&Basis>, precision: Precision) -> Result<Head, String> {
        let read = |stored: &Stored| stored.read().map_err(|error| error.to_string());
        let rows = read(&self.rows)?;
        Head::new(kernels::chosen(), rows, read(&self.bias)?, self.dims, basis, precision)
    }
}
