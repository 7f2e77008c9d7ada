//! A decoder as files hold it.

use crate::fixed::Precision;
use crate::head::{Basis, Head, kernels};
use crate::stored::{Stored, transpose};

/// Where the weights of a decoder are.
#[derive(Debug)]
pub(super) struct Source {
    /// `[terms][dims]`, or `[dims][terms]` if it is transposed.
    pub(super) rows: Stored,
    pub(super) transposed: bool,
    /// One for each term.
    pub(super) bias: Stored,
    pub(super) terms: usize,
    pub(super) dims: usize,
}

impl Source {
    /// Reads and quantises the decoder; a basis saves work.
    ///
    /// # Errors
    /// What does not fit or cannot be read, in words.
    pub(super) fn load(&self, basis: Option<&Basis>, precision: Precision) -> Result<Head, String> {
        let read = |stored: &Stored| stored.read().map_err(|error| error.to_string());
        let mut rows = read(&self.rows)?;
        if self.transposed {
            rows = transpose(&rows, self.terms);
        }
        Head::new(kernels::chosen(), rows, read(&self.bias)?, self.dims, basis, precision)
    }
}
