//! A position in a JSON text that was parsed before. Values are walked over byte by byte, without recursion and without being built.

/// Moves forward through a JSON text. Methods that find the text to end too early, or another byte than they need, return `None`.
pub(crate) struct JsonCursor<'a> {
    pub text: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
}

impl<'a> JsonCursor<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte.
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The text from an offset up to the cursor.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.at]
    }

    /// Moves past whitespace.
    pub fn blank(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Moves past whitespace and one `byte` behind it.
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        self.blank();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Moves past a string, which begins at the cursor.
    pub fn skip_string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Moves past whitespace and the value behind it.
    pub fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.blank();
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    while self.peek().is_some_and(|byte| {
                        !matches!(byte, b',' | b'}' | b']' | b':') && !byte.is_ascii_whitespace()
                    }) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}
