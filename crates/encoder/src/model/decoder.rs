//! Where the files of a model keep the decoder of its masked language model, and reading it.

use crate::fixed::Precision;
use crate::head::{Basis, Head, kernels};
use crate::stored::{Stored, transpose};

/// The shape of a decoder and the places of its weights in files.
#[derive(Debug)]
pub(super) struct Source {
    /// The weights, `[terms][dims]`, or `[dims][terms]` if `transposed`.
    pub(super) rows: Stored,
    pub(super) transposed: bool,
    /// One for each term.
    pub(super) bias: Stored,
    pub(super) terms: usize,
    pub(super) dims: usize,
}

impl Source {
    /// Reads the decoder and quantises it; with a basis, the head rules out most terms by a few dimensions.
    ///
    /// # Errors
    /// A message that says what cannot be read or does not fit.
    pub(super) fn load(&self, basis: Option<&Basis>, precision: Precision) -> Result<Head, String> {
        let read = |stored: &Stored| stored.read().map_err(|error| error.to_string());
        let mut rows = read(&self.rows)?;
        if self.transposed {
            rows = transpose(&rows, self.terms);
        }
        Head::new(kernels::chosen(), rows, read(&self.bias)?, self.dims, basis, precision)
    }
}
