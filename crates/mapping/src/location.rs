//! Line and column of a value inside a JSON text.
//!
//! Documents are parsed into values without positions, since only errors need them; an error keeps the
//! steps that lead to its value, and this walks the text again.

use super::json_cursor::JsonCursor;

/// One step from a JSON value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
    /// The name of an entry instead of its value.
    Name(String),
    /// The closing bracket of the value.
    End,
}

/// Position in a JSON text: line and column, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

/// Position of the value that `steps` lead to; `None` if the text has no such value.
pub(crate) fn locate(raw: &[u8], steps: &[Step]) -> Option<Position> {
    let mut cursor = JsonCursor::new(raw);
    cursor.blank();
    for step in steps {
        match step {
            Step::Key(key) => cursor.at = cursor.find_key(key)?.1,
            Step::Name(key) => cursor.at = cursor.find_key(key)?.0,
            Step::Index(index) => cursor.enter_index(*index)?,
            Step::End => {
                cursor.skip_value()?;
                cursor.at = cursor.at.checked_sub(1)?;
            }
        }
    }
    let before = raw.get(..cursor.at)?;
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    Some(Position {
        line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
        column: 1 + cursor.at - line_start,
    })
}

impl JsonCursor<'_> {
    /// Byte offsets of the name and the value of an object's **last** member called `key`: the one that counts.
    fn find_key(&mut self, key: &str) -> Option<(usize, usize)> {
        let mut place = None;
        self.expect(b'{')?;
        self.blank();
        while self.peek()? != b'}' {
            let start = self.at;
            self.skip_string()?;
            let name: Option<String> = serde_json::from_slice(self.since(start)).ok();
            self.expect(b':')?;
            self.blank();
            if name.as_deref() == Some(key) {
                place = Some((start, self.at));
            }
            self.skip_value()?;
            self.blank();
            if self.peek()? == b',' {
                self.at += 1;
                self.blank();
            }
        }
        place
    }

    fn enter_index(&mut self, index: usize) -> Option<()> {
        self.expect(b'[')?;
        self.blank();
        for _ in 0..index {
            self.skip_value()?;
            self.expect(b',')?;
            self.blank();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, steps: &[Step], expected: Option<(usize, usize)>) {
        let found = locate(raw.as_bytes(), steps).map(|p| (p.line, p.column));
        assert_eq!(found, expected, "{raw} {steps:?}");
    }

    fn key(name: &str) -> Step {
        Step::Key(name.to_owned())
    }

    #[test]
    fn values_are_found() {
        check(r#"{"n": "x"}"#, &[key("n")], Some((1, 7)));
        check(r#"{"v": {"alpha": -1}}"#, &[key("v"), key("alpha")], Some((1, 17)));
        check(r#"{"a\"b":[1,{"c":[]} , "d,]" ,5]}"#, &[key("a\"b"), Step::Index(3)], Some((1, 30)));
        check("{\n \"a\" : true}", &[key("a")], Some((2, 8)));
        check(r#"{"a":1,"a":22}"#, &[key("a")], Some((1, 12)));
        check(r#"{"a":{"b":1}}"#, &[key("a"), Step::End], Some((1, 12)));
        check(r#"{"a":{"b":1}}"#, &[key("a"), Step::Name("b".to_owned())], Some((1, 7)));
        check(r#"{"a":1}"#, &[key("b")], None);
        check(r#"{"a":"#, &[key("a")], None);
        check(r#"{"a":1}"#, &[Step::Index(0)], None);
    }
}
