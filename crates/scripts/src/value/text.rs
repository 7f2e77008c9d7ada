//! Strings, and how many bytes the values of a thread hold.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

thread_local! {
    /// Bytes that texts and collections of this thread hold.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that the texts and collections of this thread hold. Only differences mean something.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// Counts bytes that a value holds from now on, or no longer if negative.
pub(crate) fn hold(bytes: isize) {
    HELD.set(HELD.get().wrapping_add(bytes));
}

/// A string. Java's positions count UTF-16 units, which are the bytes of a text in ASCII.
pub struct Text {
    text: String,
    is_ascii: bool,
    /// The units of a text with other characters, once a position in it was asked for.
    units: OnceCell<Box<[u16]>>,
}

impl Text {
    pub(crate) fn new(text: String) -> Rc<Self> {
        hold(text.capacity().cast_signed() + 64);
        Rc::new(Self { is_ascii: text.is_ascii(), text, units: OnceCell::new() })
    }

    fn units(&self) -> &[u16] {
        self.units.get_or_init(|| {
            let units: Box<[u16]> = self.text.encode_utf16().collect();
            hold(2 * units.len().cast_signed());
            units
        })
    }

    /// Length in UTF-16 units.
    pub(crate) fn length(&self) -> usize {
        if self.is_ascii { self.text.len() } else { self.units().len() }
    }

    /// The unit at a position.
    pub(crate) fn unit(&self, at: usize) -> Option<u16> {
        if self.is_ascii {
            self.text.as_bytes().get(at).map(|byte| u16::from(*byte))
        } else {
            self.units().get(at).copied()
        }
    }

    /// The part between two positions, of which the first is not greater and the second at most the length.
    pub(crate) fn part(&self, from: usize, to: usize) -> String {
        match self.is_ascii {
            true => self.text.get(from..to).unwrap_or_default().to_owned(),
            false => String::from_utf16_lossy(self.units().get(from..to).unwrap_or_default()),
        }
    }

    /// The byte at which a position begins; the length in bytes for one behind the end.
    pub(crate) fn byte_at(&self, position: usize) -> usize {
        if self.is_ascii {
            return position.min(self.text.len());
        }
        let mut units = 0;
        for (byte, char) in self.text.char_indices() {
            if units >= position {
                return byte;
            }
            units += char.len_utf16();
        }
        self.text.len()
    }

    /// The position of a byte.
    pub(crate) fn position(&self, byte: usize) -> usize {
        if self.is_ascii { byte } else { self.text[..byte].chars().map(char::len_utf16).sum() }
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let units = self.units.get().map_or(0, |units| 2 * units.len());
        hold(-(self.text.capacity() + 64 + units).cast_signed());
    }
}
