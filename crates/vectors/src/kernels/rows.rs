//! Rows of stored vectors, with prefetching.

/// Vectors of the same size, stored one after another.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    width: usize,
    order: ReadOrder,
}

/// Order in which rows are read; it decides whether software prefetching is worthwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOrder {
    /// Random order: rows are prefetched by software.
    Scattered,
    /// A few interleaved ascending streams: the processor prefetches by itself, and software prefetches would
    /// only interfere (figures in docs/design/vectors/hnsw.md).
    Streams,
}

impl<'a> Rows<'a> {
    /// Rows of `width` bytes that are read in random order.
    pub(crate) fn new(bytes: &'a [u8], width: usize) -> Self {
        Self { bytes, width, order: ReadOrder::Scattered }
    }

    /// The same rows, to be read in `order`.
    pub(crate) fn read(self, order: ReadOrder) -> Self {
        Self { order, ..self }
    }

    /// Number of rows to prefetch ahead: `scattered` in random order, otherwise 0.
    pub(super) fn asked_ahead(&self, scattered: usize) -> usize {
        match self.order {
            ReadOrder::Scattered => scattered,
            ReadOrder::Streams => 0,
        }
    }

    pub(crate) fn row(&self, number: u32) -> &'a [u8] {
        let start = number as usize * self.width;
        &self.bytes[start..start + self.width]
    }
}

/// Rows prefetched ahead in random order.
const AHEAD: usize = 4;

/// Iterates over row numbers, prefetching the rows ahead where the read order needs that.
#[inline(always)]
pub(super) fn with_prefetch<'a>(rows: Rows<'a>, numbers: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    let ahead = rows.asked_ahead(AHEAD);
    numbers.iter().take(ahead).for_each(|number| prefetch(rows.row(*number)));
    numbers.iter().enumerate().map(move |(at, number)| {
        if ahead > 0
            && let Some(number) = numbers.get(at + ahead)
        {
            prefetch(rows.row(*number));
        }
        *number
    })
}

/// Number of rows that are compared at a time where that lets additions to different sums overlap.
#[cfg(target_arch = "x86_64")]
pub(super) const TOGETHER: usize = 4;

/// Writes what `compare` returns for four rows at a time, prefetching the next four where the read order needs
/// that. Where fewer than four are left, the last one is repeated.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn in_fours(
    rows: Rows<'_>,
    numbers: &[u32],
    out: &mut [i32],
    mut compare: impl FnMut([&[u8]; TOGETHER]) -> [i32; TOGETHER],
) {
    let ahead = rows.asked_ahead(TOGETHER);
    numbers.iter().take(ahead).for_each(|number| prefetch(rows.row(*number)));
    for (group, (numbers_of, out)) in numbers.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)).enumerate() {
        for number in numbers.iter().skip((group + 1) * TOGETHER).take(ahead) {
            prefetch(rows.row(*number));
        }
        let last = numbers_of.len() - 1;
        let sums = compare(std::array::from_fn(|at| rows.row(numbers_of[at.min(last)])));
        out.iter_mut().zip(sums).take(numbers_of.len()).for_each(|(out, sum)| *out = sum);
    }
}

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Prefetches the cache lines of `bytes`.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    let start = bytes.as_ptr();
    for line in 0..bytes.len().div_ceil(LINE) {
        prefetch_line(start.wrapping_add(line * LINE));
    }
    // A row need not begin with a line.
    prefetch_line(start.wrapping_add(bytes.len().saturating_sub(1)));
}

#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing that a program could see and takes any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
