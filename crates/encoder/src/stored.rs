//! Where the numbers of a weight are stored until they are needed. Weights are read one by one, so that those
//! of a model are never all in memory beside what is made of them.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use sparrow_file_system::File;

use crate::nibbles;

/// A matrix of 4-bit numbers whose bytes are in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredNibbles {
    /// The bytes, of two numbers each.
    pub(crate) bytes: Stored,
    /// Scales, one for each group.
    pub(crate) scales: Vec<f32>,
    pub(crate) columns: usize,
}

impl StoredNibbles {
    /// Reads the numbers, times their scales.
    ///
    /// # Errors
    /// As [`Stored::read`].
    pub(crate) fn read(&self) -> std::io::Result<Vec<f32>> {
        let mut values = Vec::with_capacity(2 * self.bytes.len());
        nibbles::append(&self.bytes.read_bytes()?, &self.scales, &mut values);
        Ok(values)
    }
}

/// Format in which a number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
    Bf16,
    /// A signed byte: an integer whose scale is stored elsewhere.
    I8,
    /// A byte of two 4-bit numbers.
    U8,
}

impl Kind {
    /// Size of a number, in bytes.
    pub(crate) fn width(self) -> usize {
        match self {
            Kind::F32 => 4,
            Kind::F16 | Kind::Bf16 => 2,
            Kind::I8 | Kind::U8 => 1,
        }
    }

    /// Decodes little-endian bytes and appends the numbers.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        let two = |b: &[u8]| u16::from_le_bytes([b[0], b[1]]);
        match self {
            Kind::F32 => {
                out.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
            }
            Kind::F16 => out.extend(bytes.chunks_exact(2).map(|b| half_to_f32(two(b)))),
            Kind::Bf16 => {
                out.extend(bytes.chunks_exact(2).map(|b| f32::from_bits(u32::from(two(b)) << 16)));
            }
            Kind::I8 => out.extend(bytes.iter().map(|b| f32::from(*b as i8))),
            Kind::U8 => out.extend(bytes.iter().map(|b| f32::from(*b))),
        }
    }
}

/// The numbers of a weight, in memory or in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stored {
    Here(Vec<f32>),
    File {
        path: PathBuf,
        offset: u64,
        count: usize,
        kind: Kind,
    },
    /// 8-bit integers times scales.
    Bytes(Box<StoredBytes>),
    /// 4-bit numbers times scales.
    Nibbles(Box<StoredNibbles>),
    /// The transpose of a matrix `[rows][columns]`.
    Transposed {
        matrix: Box<Stored>,
        columns: usize,
    },
}

/// A matrix of 8-bit integers, `[rows][columns]`, with a scale for each row or for each column, or for both.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredBytes {
    /// The integers.
    pub(crate) numbers: Stored,
    /// Scales, one for each row or one for each column.
    pub(crate) scales: Vec<f32>,
    pub(crate) columns: usize,
    /// Whether rows or columns have a scale.
    pub(crate) axis: Axis,
    /// Scales of the other axis; empty if it has none.
    pub(crate) across: Vec<f32>,
}

/// A dimension of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Rows,
    Columns,
}

impl Axis {
    fn other(self) -> Self {
        match self {
            Axis::Rows => Axis::Columns,
            Axis::Columns => Axis::Rows,
        }
    }
}

impl StoredBytes {
    /// Reads the integers without their scales.
    ///
    /// # Errors
    /// As [`Stored::read`].
    pub(crate) fn bytes(&self) -> std::io::Result<Vec<i8>> {
        Ok(self.numbers.read()?.into_iter().map(|number| number as i8).collect())
    }
}

impl Default for Stored {
    fn default() -> Self {
        Stored::Here(Vec::new())
    }
}

impl Stored {
    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Stored::Here(values) => values.len(),
            Stored::File { count, .. } => *count,
            Stored::Bytes(bytes) => bytes.numbers.len(),
            Stored::Nibbles(nibbles) => 2 * nibbles.bytes.len(),
            Stored::Transposed { matrix, .. } => matrix.len(),
        }
    }

    /// Whether they are floating-point numbers, so that nothing of them was rounded to a byte or less.
    pub(crate) fn are_floats(&self) -> bool {
        match self {
            Stored::Here(_) => true,
            Stored::File { kind, .. } => !matches!(kind, Kind::I8 | Kind::U8),
            Stored::Bytes(_) | Stored::Nibbles(_) => false,
            Stored::Transposed { matrix, .. } => matrix.are_floats(),
        }
    }

    /// A range of these numbers; `None` if it exceeds them, or if they do not lie in this order in the file.
    pub(crate) fn part(&self, start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length).filter(|end| *end <= self.len())?;
        match self {
            Stored::Here(values) => Some(Stored::Here(values[start..end].to_vec())),
            Stored::File { path, offset, kind, .. } => Some(Stored::File {
                path: path.clone(),
                offset: offset + (start * kind.width()) as u64,
                count: length,
                kind: *kind,
            }),
            Stored::Bytes(_) | Stored::Nibbles(_) | Stored::Transposed { .. } => None,
        }
    }

    /// The transpose of these numbers, taken as a matrix with `columns` columns.
    pub(crate) fn transposed(self, columns: usize) -> Self {
        match self {
            // They stay bytes, for kernels that compute with bytes.
            Stored::Bytes(bytes) => {
                let StoredBytes { numbers, scales, axis, across, .. } = *bytes;
                let rows = numbers.len().checked_div(columns).unwrap_or(0);
                let numbers = numbers.transposed(columns);
                let axis = axis.other();
                Stored::Bytes(Box::new(StoredBytes { numbers, scales, columns: rows, axis, across }))
            }
            matrix => Stored::Transposed { matrix: Box::new(matrix), columns },
        }
    }

    /// Reads the numbers in pieces, so that the bytes and the numbers are never both in memory as a whole.
    ///
    /// # Errors
    /// Errors of the operating system; `UnexpectedEof` if they are not in the file.
    pub(crate) fn read(&self) -> std::io::Result<Vec<f32>> {
        match self {
            Stored::Here(values) => Ok(values.clone()),
            Stored::Nibbles(nibbles) => nibbles.read(),
            Stored::Bytes(bytes) => {
                let mut values = bytes.numbers.read()?;
                for (row, values) in values.chunks_exact_mut(bytes.columns.max(1)).enumerate() {
                    for (column, value) in values.iter_mut().enumerate() {
                        let (along, across) =
                            if bytes.axis == Axis::Rows { (row, column) } else { (column, row) };
                        *value *= bytes.scales[along] * bytes.across.get(across).copied().unwrap_or(1.0);
                    }
                }
                Ok(values)
            }
            Stored::Transposed { matrix, columns } => Ok(transpose(&matrix.read()?, *columns)),
            Stored::File { count, kind, .. } => {
                let mut values = Vec::new();
                self.each_piece(|piece| {
                    values.reserve_exact(*count - values.len());
                    kind.decode(piece, &mut values);
                })?;
                Ok(values)
            }
        }
    }

    /// Reads what is stored in a file as bytes, without decoding it.
    ///
    /// # Errors
    /// As [`Stored::read`]; `InvalidInput` if it is not in a file.
    pub(crate) fn read_bytes(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.each_piece(|piece| bytes.extend_from_slice(piece))?;
        Ok(bytes)
    }

    /// Gives the bytes of a file one piece after another.
    fn each_piece(&self, mut take: impl FnMut(&[u8])) -> std::io::Result<()> {
        let Stored::File { path, offset, count, kind } = self else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let mut file = File::open(path)?;
        // Before memory is taken for them: a damaged file may announce any number.
        let length = count.checked_mul(kind.width()).map(|length| length as u64);
        let end = length.and_then(|length| length.checked_add(*offset));
        if end.is_none_or(|end| end > file.metadata().map_or(0, |file| file.len())) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        file.seek(SeekFrom::Start(*offset))?;
        let mut left = count * kind.width();
        let mut buffer = vec![0u8; left.min(1 << 18)];
        while left > 0 {
            let piece = &mut buffer[..left.min(1 << 18)];
            file.read_exact(piece)?;
            take(piece);
            left -= piece.len();
        }
        Ok(())
    }
}

/// The transpose of a matrix with `columns` columns.
pub(crate) fn transpose(matrix: &[f32], columns: usize) -> Vec<f32> {
    let rows = matrix.len().checked_div(columns).unwrap_or(0);
    let mut transposed = vec![0f32; matrix.len()];
    for (row, values) in matrix.chunks_exact(columns.max(1)).enumerate() {
        for (column, value) in values.iter().enumerate() {
            transposed[column * rows + row] = *value;
        }
    }
    transposed
}

/// Converts a half-precision number to f32, exactly.
fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let exponent = u32::from(half >> 10 & 0x1F);
    let mantissa = u32::from(half & 0x3FF);
    match exponent {
        // Subnormal halves are multiples of 2⁻²⁴.
        0 => f32::from_bits(sign | (mantissa as f32 * 2f32.powi(-24)).to_bits()),
        0x1F => f32::from_bits(sign | 0x7F80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Kind, Stored, StoredBytes, half_to_f32};

    #[test]
    fn numbers_come_from_their_place_in_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let numbers: Vec<f32> = (0..100_000).map(|at| at as f32).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(file.path(), [&[0; 3][..], &bytes].concat()).unwrap();
        let at = |offset, count| Stored::File { path: file.path().into(), offset, count, kind: Kind::F32 };
        assert_eq!(at(3, 100_000).read().unwrap(), numbers);
        assert_eq!(at(3 + 80, 5).read().unwrap(), &numbers[20..25]);
        assert_eq!(at(3 + 80, 50).part(7, 5).unwrap().read().unwrap(), &numbers[27..32]);
        assert_eq!(Stored::Here(vec![1.0, 2.0, 3.0]).part(1, 2), Some(Stored::Here(vec![2.0, 3.0])));
        assert!(at(3, 5).part(4, 2).is_none() && at(3, 5).part(usize::MAX, 1).is_none());
        for (offset, count) in [(4, 100_000), (u64::MAX, 1), (0, usize::MAX), (0, usize::MAX / 4)] {
            assert!(at(offset, count).read().is_err());
        }
    }

    #[test]
    fn bytes_are_multiplied_with_the_scale_of_their_row_or_column() {
        let numbers = [-128i8, 127, 0, 1, -1, 5];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), numbers.map(|number| number as u8)).unwrap();
        let place = Stored::File { path: file.path().into(), offset: 0, count: 6, kind: Kind::I8 };
        let of = |axis, scales: &[f32]| {
            let scales = scales.to_vec();
            let bytes = StoredBytes { numbers: place.clone(), scales, columns: 3, axis, across: Vec::new() };
            assert_eq!(bytes.bytes().unwrap(), numbers);
            let stored = Stored::Bytes(Box::new(bytes));
            assert_eq!(stored.len(), 6);
            stored.read().unwrap()
        };
        assert_eq!(of(Axis::Rows, &[0.5, 2.0]), [-64.0, 63.5, 0.0, 2.0, -2.0, 10.0]);
        assert_eq!(of(Axis::Columns, &[0.5, 2.0, 3.0]), [-64.0, 254.0, 0.0, 0.5, -2.0, 15.0]);
        let (scales, across) = (vec![0.5, 2.0], vec![1.0, 2.0, 4.0]);
        let matrix = StoredBytes { numbers: place.clone(), scales, columns: 3, axis: Axis::Rows, across };
        let matrix = Stored::Bytes(Box::new(matrix));
        assert_eq!(matrix.read().unwrap(), [-64.0, 127.0, 0.0, 2.0, -4.0, 40.0]);
        let turned = matrix.transposed(3);
        assert_eq!(turned.read().unwrap(), [-64.0, 2.0, 127.0, -4.0, 0.0, 40.0]);
        let Stored::Bytes(turned) = turned else { panic!("they are no bytes any more") };
        assert_eq!((turned.axis, turned.columns), (Axis::Columns, 2));
        assert_eq!(turned.bytes().unwrap(), [-128, 1, 127, -1, 0, 5]);
    }

    #[test]
    fn a_transpose_has_rows_for_columns() {
        let matrix = Stored::Here(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).transposed(3);
        assert_eq!(matrix.len(), 6);
        assert_eq!(matrix.read().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert!(Stored::default().transposed(0).read().unwrap().is_empty());
    }

    #[test]
    fn halves() {
        let cases = [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7BFF, 65504.0),
            (0x7C00, f32::INFINITY),
        ];
        for (half, expected) in cases {
            assert_eq!(half_to_f32(half), expected, "{half:#x}");
        }
        assert!(half_to_f32(0x7E00).is_nan());
        assert!(half_to_f32(0x8000).is_sign_negative());
    }
}
