//! Numbers that kernels read: in memory, or in a file that is mapped. Both begin at a cache line.
//!
//! The only file beside the kernels that is allowed `unsafe`: a mapping is memory that the kernel takes back when it is short
//! of it and reads again when it is needed.
#![expect(unsafe_code, reason = "mapping a file, bytes as numbers, asking for a cache line")]

use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;

/// Bytes of a cache line: the kernels' widest loads never cross one.
pub(crate) const LINE: usize = 64;

/// Numbers of which any bytes are one.
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

/// A slice of numbers.
#[derive(Debug)]
pub(crate) struct AlignedSlice<T>(Memory<T>);

#[derive(Debug)]
enum Memory<T> {
    /// `lead` numbers come before the first cache line.
    Own { values: Vec<T>, lead: usize },
    /// Bytes of a file, a whole number of `T` at a multiple of [`LINE`].
    Mapped { file: Arc<Mapping>, start: usize, end: usize },
}

impl<T: Plain> AlignedSlice<T> {
    /// As many zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let line = LINE / size_of::<T>();
        let mut values = vec![T::default(); length + line];
        let lead = values.as_ptr().align_offset(LINE).min(line);
        values.truncate(lead + length);
        Self(Memory::Own { values, lead })
    }

    /// The numbers, to change them; none if they are in a file.
    pub(crate) fn own(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Own { values, lead } => &mut values[*lead..],
            Memory::Mapped { .. } => &mut [],
        }
    }

    /// Some bytes of a mapped file; `None` if they are not in it, or no whole numbers at the start of a cache line.
    pub(crate) fn mapped(file: &Arc<Mapping>, start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?;
        let fits = end <= file.0.len() && start.is_multiple_of(LINE) && length.is_multiple_of(size_of::<T>());
        fits.then(|| Self(Memory::Mapped { file: Arc::clone(file), start, end }))
    }
}

/// Without alignment: for tables that are read row by row.
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

/// Makes place for as many numbers in a vector of scratch memory. One that is too short is given back first, with what is in it, so
/// that what it grows from is no hole in the heap.
pub(crate) fn reserve(scratch: &mut Vec<f32>, length: usize) {
    if scratch.capacity() < length {
        *scratch = Vec::new();
        scratch.reserve_exact(length);
    }
}

/// The first numbers of a vector of scratch memory, which [`reserve`] makes long enough; what is in them is anything.
pub(crate) fn room(scratch: &mut Vec<f32>, length: usize) -> &mut [f32] {
    reserve(scratch, length);
    scratch.resize(length.max(scratch.len()), 0.0);
    &mut scratch[..length]
}

impl<T: Plain + PartialEq> PartialEq for AlignedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

/// Asks for the cache line at an address, which may be anything: into the first-level cache (`NEAR`) or the second. Where the compiler
/// has no such instruction, nothing happens.
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

/// The bytes of numbers, as this machine orders them.
pub(crate) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: numbers have no padding, by the trait's promise, and a byte needs no alignment.
    unsafe { values.align_to::<u8>().1 }
}

/// A file as memory, read-only.
#[derive(Debug)]
pub(crate) struct Mapping(Mmap);

impl Mapping {
    /// Maps all of a file that nobody changes: one in the data directory, which a process owns alone and where files are
    /// replaced, never written over.
    ///
    /// # Errors
    /// What the system says.
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
