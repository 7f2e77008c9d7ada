//! Slices of numbers that kernels read, in memory or in a mapped file. Either begins at a cache line.
//!
//! This is the only file besides the kernels in which `unsafe` is allowed. A mapping is memory that the
//! operating system reclaims when memory is short, and reads again when it is needed.
#![expect(unsafe_code, reason = "mapping a file, bytes as numbers, asking for a cache line")]

use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;

/// Size of a cache line in bytes; the kernels' widest loads never cross one.
pub(crate) const LINE: usize = 64;

/// Number types for which any bytes are a valid value.
///
/// # Safety
/// Every pattern of bits is a value, there is no padding, and a cache line is a whole number of them.
pub(crate) unsafe trait Plain: Copy + Default + 'static {}

// SAFETY: any four bytes are a number (perhaps not a finite one).
unsafe impl Plain for f32 {}
// SAFETY: any two bytes are one.
unsafe impl Plain for i16 {}
// SAFETY: any byte is one.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}

/// A slice of numbers that begins at a cache line.
#[derive(Debug)]
pub(crate) struct AlignedSlice<T>(Memory<T>);

#[derive(Debug)]
enum Memory<T> {
    /// Numbers in memory; the first `lead` of them come before the first cache line and are not used.
    Own { values: Vec<T>, lead: usize },
    /// Bytes of a file, a whole number of `T` at a multiple of [`LINE`].
    Mapped { file: Arc<Mapping>, start: usize, end: usize },
}

impl<T: Plain> AlignedSlice<T> {
    /// A slice of `length` zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let line = LINE / size_of::<T>();
        let mut values = vec![T::default(); length + line];
        let lead = values.as_ptr().align_offset(LINE).min(line);
        values.truncate(lead + length);
        Self(Memory::Own { values, lead })
    }

    /// The numbers, for modification; empty if they are in a mapped file.
    pub(crate) fn own(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Own { values, lead } => &mut values[*lead..],
            Memory::Mapped { .. } => &mut [],
        }
    }

    /// The numbers in some bytes of a mapped file; `None` if the range is outside the file, does not begin at
    /// a cache line, or is not a whole number of numbers.
    pub(crate) fn mapped(file: &Arc<Mapping>, start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?;
        let fits = end <= file.0.len() && start.is_multiple_of(LINE) && length.is_multiple_of(size_of::<T>());
        fits.then(|| Self(Memory::Mapped { file: Arc::clone(file), start, end }))
    }
}

/// Takes a vector as it is, without aligning it: for tables that are read row by row.
impl<T: Plain> From<Vec<T>> for AlignedSlice<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Memory::Own { values, lead: 0 })
    }
}

impl<T: Plain> Default for AlignedSlice<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T: Plain> Deref for AlignedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Own { values, lead } => &values[*lead..],
            Memory::Mapped { file, start, end } => {
                // SAFETY: any bytes are numbers, by the trait's promise.
                let (before, values, after) = unsafe { file.0[*start..*end].align_to::<T>() };
                debug_assert!(before.is_empty() && after.is_empty(), "a mapping begins at a page");
                values
            }
        }
    }
}

/// Makes sure that a scratch vector has room for `length` numbers. If it is too short, it is freed with its
/// content first, so that growing it leaves no hole in the heap.
pub(crate) fn reserve(scratch: &mut Vec<f32>, length: usize) {
    if scratch.capacity() < length {
        *scratch = Vec::new();
        scratch.reserve_exact(length);
    }
}

/// The first `length` numbers of a scratch vector, which is made longer if needed; their content is
/// arbitrary.
pub(crate) fn room(scratch: &mut Vec<f32>, length: usize) -> &mut [f32] {
    reserve(scratch, length);
    scratch.resize(length.max(scratch.len()), 0.0);
    &mut scratch[..length]
}

/// As [`room`], from a cache line on.
pub(crate) fn aligned_room(scratch: &mut Vec<f32>, length: usize) -> &mut [f32] {
    let line = LINE / size_of::<f32>();
    let scratch = room(scratch, length + line);
    let lead = scratch.as_ptr().align_offset(LINE).min(line);
    &mut scratch[lead..lead + length]
}

impl<T: Plain + PartialEq> PartialEq for AlignedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

/// Prefetches the cache line at any address, valid or not: into the first-level cache (`NEAR`) or the second.
/// Does nothing where the compiler has no such instruction.
#[inline(always)]
pub(crate) fn prefetch_line<const NEAR: bool>(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instructions, and they read nothing.
        unsafe {
            if NEAR {
                _mm_prefetch::<_MM_HINT_T0>(at.cast());
            } else {
                _mm_prefetch::<_MM_HINT_T1>(at.cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The bytes of numbers, in the byte order of this machine.
pub(crate) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: numbers have no padding, by the trait's promise, and a byte needs no alignment.
    unsafe { values.align_to::<u8>().1 }
}

/// A read-only memory mapping of a file.
#[derive(Debug)]
pub(crate) struct Mapping(Mmap);

impl Mapping {
    /// Maps a whole file that must not be modified: one in the data directory, which belongs to a single
    /// process and where files are replaced, never overwritten.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(crate) fn new(file: &File) -> std::io::Result<Arc<Self>> {
        // SAFETY: the file does not change as long as it is mapped, by the rule above. Should someone write over it all the
        // same, numbers change; should they shorten it, the process ends, as with any mapped file.
        Ok(Arc::new(Self(unsafe { Mmap::map(file)? })))
    }
}

#[cfg(test)]
mod tests {
    use super::{AlignedSlice, LINE, Mapping, bytes};

    #[test]
    fn numbers_begin_at_a_cache_line() {
        for length in [0, 1, 7, 100] {
            let mut numbers = AlignedSlice::<f32>::zeros(length);
            numbers.own().fill(1.5);
            assert_eq!(&*numbers, vec![1.5; length]);
            assert_eq!(numbers.as_ptr().align_offset(LINE), 0);
        }
    }

    #[test]
    fn a_part_of_a_file_is_mapped_if_it_is_there_and_aligned() {
        let values: Vec<f32> = (0..48).map(|at| at as f32).collect();
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), bytes(&values)).unwrap();
        let file = Mapping::new(path.as_file()).unwrap();
        assert_eq!(&*AlignedSlice::<f32>::mapped(&file, 64, 32).unwrap(), &values[16..24]);
        assert_eq!(AlignedSlice::<i8>::mapped(&file, 128, 64).unwrap().len(), 64);
        assert!(AlignedSlice::<f32>::mapped(&file, 192, 0).unwrap().is_empty());
        for (start, length) in [(32, 4), (64, 3), (128, 68), (192, 4), (usize::MAX - 63, 64)] {
            assert!(AlignedSlice::<f32>::mapped(&file, start, length).is_none());
        }
    }
}
