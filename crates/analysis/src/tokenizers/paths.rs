//! `path_hierarchy`: a path and each of its parents.

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens, WORD};
use super::Tokenizer;

#[derive(Debug)]
pub(super) struct Paths {
    delimiter: char,
    replacement: char,
    skip: usize,
    reverse: bool,
}

impl Paths {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        params.number("buffer_size", 1024)?;
        let one = |key: &'static str| -> Result<Option<char>, AnalysisError> {
            let Some(text) = params.text(key)?.filter(|text| !text.is_empty()) else { return Ok(None) };
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(Some(c)),
                _ => Err(AnalysisError::illegal(format!("{key} must be a one char value"))),
            }
        };
        let delimiter = one("delimiter")?.unwrap_or('/');
        let replacement = one("replacement")?.unwrap_or(delimiter);
        let skip = usize::try_from(params.number("skip", 0)?)
            .map_err(|_| AnalysisError::illegal("skip cannot be negative"))?;
        Ok(Self { delimiter, replacement, skip, reverse: params.flag("reverse", false)? })
    }

    fn token(&self, text: &str, start: usize, end: usize, first: bool) -> Token {
        let part = &text[start..end];
        let part = if self.delimiter == self.replacement {
            part.to_owned()
        } else {
            part.replace(self.delimiter, self.replacement.encode_utf8(&mut [0; 4]))
        };
        let mut token = Token::new(part, start, end, WORD);
        token.increment = u32::from(first);
        token
    }
}

impl Tokenizer for Paths {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        if text.is_empty() {
            return Box::new(std::iter::empty());
        }
        let delimiters: Vec<usize> = text.match_indices(self.delimiter).map(|(at, _)| at).collect();
        let width = self.delimiter.len_utf8();
        let mut first = true;
        if self.reverse {
            // From the whole to the last part; `skip` leaves parts off at the end.
            let mut starts = vec![0];
            starts.extend(delimiters.iter().map(|at| at + width).filter(|at| *at < text.len()));
            if self.skip >= starts.len() {
                return Box::new(std::iter::empty());
            }
            let end = if self.skip == 0 { text.len() } else { starts[starts.len() - self.skip] };
            starts.truncate(starts.len() - self.skip);
            return Box::new(
                starts.into_iter().map(move |start| self.token(text, start, end, std::mem::take(&mut first))),
            );
        }
        // Ends of the parts; a path that begins with the delimiter has no empty first part.
        let mut ends: Vec<usize> = delimiters.iter().copied().filter(|at| *at > 0).collect();
        ends.push(text.len());
        let start = match self.skip {
            0 => 0,
            skip if skip > ends.len() => return Box::new(std::iter::empty()),
            skip => ends[skip - 1],
        };
        ends.retain(|end| *end > start);
        // A delimiter at the end is a part of its own.
        Box::new(ends.into_iter().map(move |end| self.token(text, start, end, std::mem::take(&mut first))))
    }
}
