//! The word embeddings of an encoder.

use std::sync::Arc;

use crate::fixed::{self, Precision};
use crate::numbers::AlignedSlice;
use crate::packed::{Packed, Packer, Unusable};
use crate::stored::{Axis, Stored};
use crate::table::Table;

/// The word embeddings, a row of numbers for each token id.
#[derive(Debug)]
pub(super) enum Words {
    /// The decoder's rows, if embeddings are tied, or a table of its own with numbers of the same types.
    Table(Arc<Table>),
    /// Weights of 8 bits with a scale for each row; `numbers` is `[vocabulary][width]`.
    Bytes { width: usize, numbers: AlignedSlice<i8>, scales: AlignedSlice<f32> },
}

impl Words {
    /// Packs `[rows][width]` embeddings; `None` if a number is not finite.
    ///
    /// # Errors
    /// The error of reading the embeddings.
    pub(super) fn new(words: &Stored, width: usize, precision: Precision) -> std::io::Result<Option<Self>> {
        if precision == Precision::Int8
            && let Stored::Bytes(bytes) = words
            && (bytes.axis, bytes.columns) == (Axis::Rows, width)
        {
            let finite = bytes.scales.iter().all(|scale| scale.is_finite());
            let (numbers, scales) = (bytes.bytes()?.into(), bytes.scales.clone().into());
            return Ok(finite.then_some(Self::Bytes { width, numbers, scales }));
        }
        let values = words.read()?;
        if !values.iter().all(|value| value.is_finite()) {
            return Ok(None);
        }
        if precision != Precision::Int8 {
            return Ok(Some(Self::Table(Arc::new(Table::new(values, width, precision)))));
        }
        let scale = |row: &[f32]| fixed::byte_scale(row.iter().copied());
        let scales: Vec<f32> = values.chunks_exact(width).map(scale).collect();
        let byte = |(at, value): (usize, &f32)| fixed::byte(*value, scales[at / width]);
        let numbers: Vec<i8> = values.iter().enumerate().map(byte).collect();
        Ok(Some(Self::Bytes { width, numbers: numbers.into(), scales: scales.into() }))
    }

    /// Numbers of all rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Words::Table(table) => table.len(),
            Words::Bytes { numbers, .. } => numbers.len(),
        }
    }

    /// Appends the numbers of a row, if it is there.
    pub(super) fn append(&self, row: usize, out: &mut Vec<f32>) -> Option<()> {
        match self {
            Words::Table(table) => table.get(row)?.append(out),
            Words::Bytes { width, numbers, scales } => {
                let start = row.checked_mul(*width)?;
                let numbers = numbers.get(start..start.checked_add(*width)?)?;
                let scale = *scales.get(row)?;
                out.extend(numbers.iter().map(|number| f32::from(*number) * scale));
            }
        }
        Some(())
    }

    /// Writes them as sections of a file.
    ///
    /// # Errors
    /// The error of writing the file.
    pub(super) fn store(&self, file: &mut Packer) -> std::io::Result<()> {
        match self {
            Words::Table(table) => table.store("words", file),
            Words::Bytes { numbers, scales, .. } => {
                file.put("words.bytes", numbers)?;
                file.put("words.scales", scales)
            }
        }
    }

    /// Opens the embeddings that [`Words::store`] wrote in 20 bits or 8 bits.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another length.
    pub(super) fn open(width: usize, precision: Precision, packed: &Packed) -> Result<Self, Unusable> {
        if precision != Precision::Int8 {
            return Ok(Self::Table(Arc::new(Table::open("words", width, packed)?)));
        }
        let (numbers, scales): (AlignedSlice<i8>, AlignedSlice<f32>) =
            (packed.get("words.bytes")?, packed.get("words.scales")?);
        if scales.len().checked_mul(width) != Some(numbers.len()) {
            return Err(Unusable::Damaged("rows are of another length"));
        }
        Ok(Self::Bytes { width, numbers, scales })
    }
}
