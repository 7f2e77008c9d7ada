//! Tables of weights whose rows are looked up one by one: a decoder's, or word embeddings.

use std::borrow::Cow;

use crate::fixed::{self, Fixed, Precision};
use crate::nibbles;
use crate::numbers::AlignedSlice;
use crate::packed::{Packed, Packer, Unusable};
use crate::stored::{Axis, Stored};

/// Number of integers in a group of [`Fixed`]; the length of a row must be a multiple of it.
pub(crate) const GROUP: usize = 32;

/// A matrix of rows of the same width, in f32, in 20-bit fixed point, in bytes or in 4-bit numbers.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    width: usize,
    rows: Rows,
}

#[derive(Debug, PartialEq)]
enum Rows {
    F32(AlignedSlice<f32>),
    Fixed {
        numbers: Fixed,
        /// Scales, one for each row.
        scales: AlignedSlice<f32>,
    },
    /// `numbers` is `[rows][width]`, with a scale for each row.
    Bytes {
        numbers: AlignedSlice<i8>,
        scales: AlignedSlice<f32>,
    },
    /// `bytes` are those of [`nibbles`], with a scale for each group of a row.
    Nibbles {
        bytes: AlignedSlice<u8>,
        scales: AlignedSlice<f32>,
    },
}

/// A row of a table, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row<'a> {
    F32(&'a [f32]),
    Fixed { high: &'a [i16], low: &'a [u8], scale: f32 },
    Bytes { numbers: &'a [i8], scale: f32 },
    Nibbles { bytes: &'a [u8], scales: &'a [f32] },
}

impl Table {
    /// A table of `[rows][width]` numbers. If `width` is not a multiple of [`GROUP`] they stay f32.
    pub(crate) fn new(values: Vec<f32>, width: usize, precision: Precision) -> Self {
        if precision != Precision::Fixed || !width.is_multiple_of(GROUP) || width == 0 {
            return Self { width, rows: Rows::F32(values.into()) };
        }
        let mut numbers = Fixed::zeros(values.len());
        let mut scales = AlignedSlice::zeros(values.len() / width);
        for ((at, row), scale) in values.chunks_exact(width).enumerate().zip(scales.own()) {
            *scale = fixed::scale(row.iter().copied());
            for (group, values) in row.chunks_exact(GROUP).enumerate() {
                let mut whole = [0; GROUP];
                whole.iter_mut().zip(values).for_each(|(whole, value)| *whole = fixed::whole(*value, *scale));
                numbers.set(at * width + group * GROUP, &whole);
            }
        }
        Self { width, rows: Rows::Fixed { numbers, scales } }
    }

    /// Word embeddings, `[rows][width]`; `None` if a number is not finite. Where linear maps are of 8 bits, they become bytes, or stay the bytes
    /// or 4-bit numbers that they are stored as.
    ///
    /// # Errors
    /// The error of reading the embeddings.
    pub(crate) fn of_words(
        words: &Stored,
        width: usize,
        precision: Precision,
    ) -> std::io::Result<Option<Self>> {
        if precision == Precision::Int8
            && let Stored::Bytes(bytes) = words
            && (bytes.axis, bytes.columns) == (Axis::Rows, width)
            && bytes.across.is_empty()
        {
            let finite = bytes.scales.iter().all(|scale| scale.is_finite());
            let (numbers, scales) = (bytes.bytes()?.into(), bytes.scales.clone().into());
            return Ok(finite.then_some(Self { width, rows: Rows::Bytes { numbers, scales } }));
        }
        if precision == Precision::Int8
            && let Stored::Nibbles(stored) = words
            && stored.columns == width
        {
            let finite = stored.scales.iter().all(|scale| scale.is_finite());
            let (bytes, scales) = (stored.bytes.read_bytes()?.into(), stored.scales.clone().into());
            return Ok(finite.then_some(Self { width, rows: Rows::Nibbles { bytes, scales } }));
        }
        let values = words.read()?;
        if !values.iter().all(|value| value.is_finite()) {
            return Ok(None);
        }
        if precision != Precision::Int8 {
            return Ok(Some(Self::new(values, width, precision)));
        }
        let scale = |row: &[f32]| fixed::byte_scale(row.iter().copied());
        let scales: Vec<f32> = values.chunks_exact(width).map(scale).collect();
        let byte = |(at, value): (usize, &f32)| fixed::byte(*value, scales[at / width]);
        let numbers: Vec<i8> = values.iter().enumerate().map(byte).collect();
        Ok(Some(Self { width, rows: Rows::Bytes { numbers: numbers.into(), scales: scales.into() } }))
    }

    /// Number of numbers in all rows.
    pub(crate) fn len(&self) -> usize {
        match &self.rows {
            Rows::F32(numbers) => numbers.len(),
            Rows::Fixed { numbers, .. } => numbers.high.len(),
            Rows::Bytes { numbers, .. } => numbers.len(),
            Rows::Nibbles { bytes, .. } => 2 * bytes.len(),
        }
    }

    /// The row of this number; `None` past the last row.
    pub(crate) fn get(&self, row: usize) -> Option<Row<'_>> {
        let start = row.checked_mul(self.width)?;
        let range = start..start.checked_add(self.width)?;
        Some(match &self.rows {
            Rows::F32(numbers) => Row::F32(numbers.get(range)?),
            Rows::Fixed { numbers, scales } => Row::Fixed {
                low: numbers.low.get(range.start / 2..range.end / 2)?,
                high: numbers.high.get(range)?,
                scale: *scales.get(row)?,
            },
            Rows::Bytes { numbers, scales } => {
                Row::Bytes { numbers: numbers.get(range)?, scale: *scales.get(row)? }
            }
            Rows::Nibbles { bytes, scales } => Row::Nibbles {
                bytes: bytes.get(range.start / 2..range.end / 2)?,
                scales: scales.get(range.start / nibbles::GROUP..range.end / nibbles::GROUP)?,
            },
        })
    }

    /// All numbers as f32, in the precision in which they are stored.
    pub(crate) fn values(&self) -> Cow<'_, [f32]> {
        if let Rows::F32(numbers) = &self.rows {
            return Cow::Borrowed(numbers);
        }
        let mut values = Vec::with_capacity(self.len());
        (0..self.len() / self.width.max(1))
            .filter_map(|row| self.get(row))
            .for_each(|row| row.append(&mut values));
        Cow::Owned(values)
    }

    /// Writes the rows as sections of a packed file.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(crate) fn store(&self, name: &str, file: &mut Packer) -> std::io::Result<()> {
        match &self.rows {
            Rows::F32(numbers) => file.put(name, numbers),
            Rows::Fixed { numbers, scales } => {
                file.put_fixed(name, numbers)?;
                file.put(&format!("{name}.scales"), scales)
            }
            Rows::Bytes { numbers, scales } => {
                file.put(&format!("{name}.bytes"), numbers)?;
                file.put(&format!("{name}.scales"), scales)
            }
            Rows::Nibbles { bytes, scales } => {
                file.put(&format!("{name}.nibbles"), bytes)?;
                file.put(&format!("{name}.scales"), scales)
            }
        }
    }

    /// Opens a table that [`Table::store`] wrote: of 20-bit numbers, or of bytes or 4-bit numbers if `int8`.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing or of another length.
    pub(crate) fn open(name: &str, width: usize, int8: bool, packed: &Packed) -> Result<Self, Unusable> {
        const UNFIT: Unusable = Unusable::Damaged("rows are of another length");
        let scales: AlignedSlice<f32> = packed.get(&format!("{name}.scales"))?;
        if int8 && let Ok(bytes) = packed.get::<u8>(&format!("{name}.nibbles")) {
            let fits = width.is_multiple_of(nibbles::GROUP)
                && scales.len().checked_mul(nibbles::BYTES) == Some(bytes.len());
            return fits.then_some(Self { width, rows: Rows::Nibbles { bytes, scales } }).ok_or(UNFIT);
        }
        let length = scales.len().checked_mul(width).filter(|_| width.is_multiple_of(GROUP)).ok_or(UNFIT)?;
        if int8 {
            let numbers: AlignedSlice<i8> = packed.get(&format!("{name}.bytes"))?;
            let rows = Rows::Bytes { numbers, scales };
            return Some(Self { width, rows }).filter(|table| table.len() == length).ok_or(UNFIT);
        }
        let numbers = packed.get_fixed(name, length)?;
        Ok(Self { width, rows: Rows::Fixed { numbers, scales } })
    }
}

impl Row<'_> {
    /// Appends the row's numbers, as f32.
    pub(crate) fn append(&self, out: &mut Vec<f32>) {
        match *self {
            Row::F32(row) => out.extend_from_slice(row),
            Row::Fixed { high, low, scale } => fixed::append(high, low, GROUP, scale, out),
            Row::Bytes { numbers, scale } => {
                out.extend(numbers.iter().map(|number| f32::from(*number) * scale))
            }
            Row::Nibbles { bytes, scales } => nibbles::append(bytes, scales, out),
        }
    }
}
