//! Writing an answer for which the request of the thread pays.

use super::{Stopped, check, room_for};

/// Makes room for more bytes at the end of a list, for which the current thread's request pays.
///
/// # Errors
/// [`Stopped`], as [`room_for`].
pub fn grow(bytes: &mut Vec<u8>, more: usize) -> Result<(), Stopped> {
    let length = bytes.len().saturating_add(more);
    if length > bytes.capacity() {
        let capacity = length.max(2 * bytes.capacity());
        // The old list exists until it has been copied. A short answer is always written: it may be about what is done already.
        if capacity > OUTPUT_PIECE {
            room_for(capacity)?;
        }
        bytes.reserve(more);
    }
    Ok(())
}

/// Writes to a list of bytes as long as the current thread's request may use the memory for it and need not stop. Without it, a
/// long answer would be written to its end, and be copied by each doubling of the list, before anything noticed.
#[derive(Debug)]
pub struct Output<'a> {
    bytes: &'a mut Vec<u8>,
    /// Length at which to look at the request again.
    next_check: usize,
}

/// Bytes that [`Output`] writes between two checks.
const OUTPUT_PIECE: usize = 64 << 10;

impl<'a> Output<'a> {
    /// Writes to the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        let next_check = bytes.len() + OUTPUT_PIECE;
        Self { bytes, next_check }
    }
}

impl std::io::Write for Output<'_> {
    /// Writes all of the text, or fails because the request must stop; [`check`] then says why.
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let stopped = |_| std::io::Error::other("the request must stop");
        grow(self.bytes, text.len()).map_err(stopped)?;
        if self.bytes.len() >= self.next_check {
            check().map_err(stopped)?;
            self.next_check = self.bytes.len() + OUTPUT_PIECE;
        }
        self.bytes.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
