//! Many stored vectors at once: rows of one width, and asking for those that come next.

/// Vectors of one width, one after another.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    width: usize,
    order: ReadOrder,
}

/// In which order rows are read, which decides who asks memory for the next ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOrder {
    /// Any: the program asks, some rows ahead.
    Scattered,
    /// In turn from a few places, from each in ascending order: the processor asks by itself. Requests of the program would only
    /// be in its way (docs/design/vectors/hnsw.md has figures).
    Streams,
}

impl<'a> Rows<'a> {
    /// Rows that are read in any order.
    pub(crate) fn new(bytes: &'a [u8], width: usize) -> Self {
        Self { bytes, width, order: ReadOrder::Scattered }
    }

    /// These vectors, to be read in `order`.
    pub(crate) fn read(self, order: ReadOrder) -> Self {
        Self { order, ..self }
    }

    /// Of how many rows memory is asked before they are read, if `scattered` are where the program has to.
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

/// Rows that are asked for before they are read.
const AHEAD: usize = 4;

/// The numbers of rows that are read one after another; scattered ones that follow are asked for meanwhile.
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

/// Bytes that come with one request to memory.
const LINE: usize = 64;

/// Asks for bytes that are read soon. Changes nothing but the time that reading them takes.
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
