//! Linear maps, packed for the order.

use crate::fixed::{self, Fixed, Precision};
use crate::numbers::AlignedSlice;
use crate::packed::{Packed, Packer, Unusable};

/// All dimensions of a model are multiples of this: the widest panel of any instruction set.
pub const STEP: usize = 32;

/// Longest row, in numbers: a power of two for which `255 · 128 · MAX_DEPTH`, the largest sum of products, fits 32 bits.
pub const MAX_DEPTH: usize = 1 << 16;

/// The order in which an instruction set reads packed weights.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// Numbers in a vector of f32; a panel of columns is two vectors wide.
    pub(super) lanes: usize,
    /// Consecutive numbers of a row that one word holds when weights are of 8 bits; `shift` is subtracted from each of them.
    pub(super) group: usize,
    pub(super) shift: u8,
}

/// A linear map, its weights in the order in which the kernels read them.
#[derive(Debug)]
pub struct Linear {
    pub(super) panels: Panels,
    pub(super) bias: Vec<f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
    pub(super) panel: usize,
}

/// `[columns / panel][depth][panel]` weights, where a panel is two vectors wide.
#[derive(Debug)]
pub(super) enum Panels {
    F32(AlignedSlice<f32>),
    Fixed {
        /// Numbers of 20 bits, in groups of one row of a panel.
        numbers: Fixed,
        /// One for each column.
        scales: Vec<f32>,
    },
    Bytes(Bytes),
}

/// Weights of 8 bits, with precomputed sums of their columns.
#[derive(Debug)]
pub(super) struct Bytes {
    /// `[columns / panel][depth / group][panel][group]`.
    pub(super) numbers: AlignedSlice<i8>,
    /// What each number of a row is multiplied with before the row is rounded, `[depth]`: 1 unless the weights were divided by it.
    pub(super) factors: Vec<f32>,
    pub(super) scales: Vec<f32>,
    /// Sum of a column's weights, times its scale.
    pub(super) totals: Vec<f32>,
    /// Initial value of each column's integer sum: the sum of its weights, times the number that is subtracted from each quantised number
    /// of a row.
    pub(super) start: Vec<i32>,
}

impl Bytes {
    /// Precomputes the sums of columns; `numbers` are the weights in their packed order.
    fn new(order: Order, depth: usize, numbers: AlignedSlice<i8>, scales: Vec<f32>) -> Self {
        let (panel, group) = (2 * order.lanes, order.group);
        let mut sums = vec![0i32; scales.len()];
        for (sums, numbers) in sums.chunks_exact_mut(panel).zip(numbers.chunks_exact((depth * panel).max(1)))
        {
            for step in numbers.chunks_exact(panel * group) {
                for (sum, some) in sums.iter_mut().zip(step.chunks_exact(group)) {
                    *sum += some.iter().copied().map(i32::from).sum::<i32>();
                }
            }
        }
        // An f32 holds all of these whole numbers: `128 · MAX_DEPTH` has 24 bits.
        let totals = scales.iter().zip(&sums).map(|(scale, sum)| scale * *sum as f32).collect();
        sums.iter_mut().for_each(|sum| *sum *= i32::from(order.shift));
        Self { numbers, factors: vec![1.0; depth], scales, totals, start: sums }
    }
}

impl Linear {
    /// The same map with weights of bytes that were divided by a factor for each number of a row, `[depth]`; the numbers of a row are
    /// multiplied with them before the row is rounded.
    ///
    /// # Panics
    /// If there is not a factor for each number of a row.
    pub fn with_factors(mut self, factors: Vec<f32>) -> Self {
        assert_eq!(factors.len(), self.depth, "there is a factor for each number of a row");
        if let Panels::Bytes(bytes) = &mut self.panels {
            bytes.factors = factors;
        }
        self
    }

    /// Whether numbers of a row can be multiplied with these before it is rounded, and weights divided by them.
    pub fn are_factors(factors: &[f32]) -> bool {
        factors.iter().all(|factor| factor.is_normal() && *factor > 0.0)
    }

    /// Whether its weights are bytes.
    pub fn is_int8(&self) -> bool {
        matches!(self.panels, Panels::Bytes(_))
    }

    /// Packs `[depth][columns]` weights, given as `weight(row, column)`, for one instruction set.
    ///
    /// # Panics
    /// If `columns`, the length of the bias, is not a multiple of [`STEP`], or as [`Linear::of_bytes`] for bytes.
    pub fn new(
        order: Order,
        depth: usize,
        bias: Vec<f32>,
        precision: Precision,
        weight: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let columns = bias.len();
        let panel = 2 * order.lanes;
        assert!(columns.is_multiple_of(STEP) && STEP.is_multiple_of(panel), "columns are not whole panels");
        // A row of a panel: its first column, and the row.
        let groups = (0..columns).step_by(panel).flat_map(|first| (0..depth).map(move |row| (first, row)));
        let panels = match precision {
            Precision::F32 => {
                let mut numbers = AlignedSlice::zeros(depth * columns);
                for ((first, row), out) in groups.zip(numbers.own().chunks_exact_mut(panel)) {
                    out.iter_mut().zip(first..).for_each(|(out, column)| *out = weight(row, column));
                }
                Panels::F32(numbers)
            }
            Precision::Int8 => {
                let scale = |column| fixed::byte_scale((0..depth).map(|row| weight(row, column)));
                let scales: Vec<f32> = (0..columns).map(scale).collect();
                let byte = |row: usize, column: usize| fixed::byte(weight(row, column), scales[column]);
                return Self::of_bytes(order, depth, bias, scales.clone(), byte);
            }
            Precision::Fixed => {
                let scale = |column| fixed::scale((0..depth).map(|row| weight(row, column)));
                let scales: Vec<f32> = (0..columns).map(scale).collect();
                let mut numbers = Fixed::zeros(depth * columns);
                let mut whole = [0; STEP];
                for (at, (first, row)) in groups.enumerate() {
                    let whole = &mut whole[..panel];
                    for (whole, column) in whole.iter_mut().zip(first..) {
                        *whole = fixed::whole(weight(row, column), scales[column]);
                    }
                    numbers.set(at * panel, whole);
                }
                Panels::Fixed { numbers, scales }
            }
        };
        Self { panels, bias, depth, columns, panel }
    }

    /// Packs `[depth][columns]` weights of a byte each, given as `weight(row, column)`, with a scale for each column.
    ///
    /// # Panics
    /// If `depth` or `columns`, the length of bias and scales, is not a multiple of [`STEP`], or if sums of `depth` products may overflow
    /// 32 bits.
    pub fn of_bytes(
        order: Order,
        depth: usize,
        bias: Vec<f32>,
        scales: Vec<f32>,
        weight: impl Fn(usize, usize) -> i8,
    ) -> Self {
        let (columns, panel, group) = (bias.len(), 2 * order.lanes, order.group);
        assert!(columns.is_multiple_of(STEP) && scales.len() == columns, "columns are not whole panels");
        assert!(depth.is_multiple_of(STEP) && depth <= MAX_DEPTH, "rows of {depth} are not whole words");
        let mut numbers = AlignedSlice::zeros(depth * columns);
        let places = (0..columns)
            .step_by(panel)
            .flat_map(|first| (0..depth).step_by(group).map(move |row| (first, row)));
        for ((first, row), step) in places.zip(numbers.own().chunks_exact_mut(panel * group)) {
            for (some, column) in step.chunks_exact_mut(group).zip(first..) {
                some.iter_mut().zip(row..).for_each(|(out, row)| *out = weight(row, column));
            }
        }
        let panels = Panels::Bytes(Bytes::new(order, depth, numbers, scales));
        Self { panels, bias, depth, columns, panel }
    }

    /// Packs columns of `depth` weights, without a bias; fills up with columns of zeros to a multiple of [`STEP`].
    ///
    /// # Panics
    /// If a column is shorter.
    pub fn from_columns<'a>(
        order: Order,
        depth: usize,
        columns: impl ExactSizeIterator<Item = &'a [f32]>,
    ) -> Self {
        let count = columns.len().next_multiple_of(STEP);
        let panel = 2 * order.lanes;
        let mut panels = AlignedSlice::zeros(depth * count);
        for (column, values) in columns.enumerate() {
            let start = column / panel * depth * panel + column % panel;
            let out = panels.own()[start..].iter_mut().step_by(panel);
            out.zip(&values[..depth]).for_each(|(out, value)| *out = *value);
        }
        Self { panels: Panels::F32(panels), bias: vec![0.0; count], depth, columns: count, panel }
    }

    /// Writes a map of 20 bits or bytes as sections of a file.
    ///
    /// # Errors
    /// The error of writing the file; `InvalidInput` if its weights are f32.
    pub fn store(&self, name: &str, file: &mut Packer) -> std::io::Result<()> {
        let scales = match &self.panels {
            Panels::F32(_) => return Err(std::io::ErrorKind::InvalidInput.into()),
            Panels::Fixed { numbers, scales } => {
                file.put_fixed(name, numbers)?;
                scales
            }
            Panels::Bytes(bytes) => {
                file.put(&format!("{name}.bytes"), &bytes.numbers)?;
                file.put(&format!("{name}.factors"), &bytes.factors)?;
                &bytes.scales
            }
        };
        file.put(&format!("{name}.scales"), scales)?;
        file.put(&format!("{name}.bias"), &self.bias)
    }

    /// Opens the linear map that [`Linear::store`] wrote for the same implementation.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if a part is missing, or the weights are not `depth` × whole panels.
    pub fn open(
        order: Order,
        name: &str,
        depth: usize,
        precision: Precision,
        packed: &Packed,
    ) -> Result<Self, Unusable> {
        const UNFIT: Unusable = Unusable::Damaged("weights are of another length, or are not finite");
        let bias: AlignedSlice<f32> = packed.get(&format!("{name}.bias"))?;
        let scales: AlignedSlice<f32> = packed.get(&format!("{name}.scales"))?;
        let (columns, panel) = (bias.len(), 2 * order.lanes);
        let length = depth.checked_mul(columns).ok_or(UNFIT)?;
        let are_finite = scales.iter().chain(&*bias).all(|number| number.is_finite());
        if !columns.is_multiple_of(STEP) || scales.len() != columns || !are_finite {
            return Err(UNFIT);
        }
        let panels = if precision == Precision::Int8 {
            let numbers: AlignedSlice<i8> = packed.get(&format!("{name}.bytes"))?;
            let factors: AlignedSlice<f32> = packed.get(&format!("{name}.factors"))?;
            let fits = numbers.len() == length && factors.len() == depth && Self::are_factors(&factors);
            if !fits || !depth.is_multiple_of(STEP) || depth > MAX_DEPTH {
                return Err(UNFIT);
            }
            let bytes = Bytes::new(order, depth, numbers, scales.to_vec());
            Panels::Bytes(Bytes { factors: factors.to_vec(), ..bytes })
        } else {
            let numbers = packed.get_fixed(name, length)?;
            Panels::Fixed { numbers, scales: scales.to_vec() }
        };
        Ok(Self { panels, bias: bias.to_vec(), depth, columns, panel })
    }

    /// Number of outputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers of the weights.
    pub fn size(&self) -> usize {
        self.depth * self.columns
    }
}
