//! The tokenizers `pattern`, `simple_pattern` and `simple_pattern_split`.

use fancy_regex::Regex;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::pattern::compile;
use super::super::token::{Token, Tokens, WORD};
use super::Tokenizer;

#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The capture group whose matches are tokens (0 is the whole match); `None` if tokens are what lies between
    /// matches.
    group: Option<usize>,
}

impl Pattern {
    /// Reads the definition of a `pattern` tokenizer.
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let pattern = params.text("pattern")?.unwrap_or_else(|| "\\W+".to_owned());
        let regex = compile(&pattern, &params.text("flags")?.unwrap_or_default())?;
        let group = params.number("group", -1)?;
        if group >= regex.captures_len() as i64 {
            return Err(AnalysisError::illegal(format!(
                "invalid group specified: pattern only has: {} capturing groups",
                regex.captures_len() - 1
            )));
        }
        Ok(Self { regex, group: usize::try_from(group).ok() })
    }

    /// A tokenizer whose tokens are the parts of a text between matches.
    pub fn split(regex: Regex) -> Self {
        Self { regex, group: None }
    }

    /// Reads the definition of a `simple_pattern` tokenizer, whose tokens are the matches.
    pub fn matching(params: &Params<'_>) -> Result<Self, AnalysisError> {
        Ok(Self { regex: compile(&params.text("pattern")?.unwrap_or_default(), "")?, group: Some(0) })
    }

    /// Reads the definition of a `simple_pattern_split` tokenizer, whose tokens are the parts between matches.
    pub fn splitting(params: &Params<'_>) -> Result<Self, AnalysisError> {
        Ok(Self { regex: compile(&params.text("pattern")?.unwrap_or_default(), "")?, group: None })
    }
}

impl Tokenizer for Pattern {
    fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        let token = |start: usize, end: usize| Token::new(&text[start..end], start, end, WORD);
        // A pattern that needs too many steps ends the search: what is left is one token, or none.
        if let Some(group) = self.group {
            let found = self.regex.captures_iter(text).map_while(Result::ok);
            return Box::new(found.filter_map(move |captures| {
                let found = captures.get(group)?;
                (!found.as_str().is_empty()).then(|| token(found.start(), found.end()))
            }));
        }
        let mut matches = self.regex.find_iter(text).map_while(Result::ok);
        let mut last = Some(0);
        Box::new(std::iter::from_fn(move || {
            loop {
                let start = last?;
                let end = match matches.next() {
                    Some(found) => {
                        last = Some(found.end());
                        found.start()
                    }
                    None => {
                        last = None;
                        text.len()
                    }
                };
                if end > start {
                    return Some(token(start, end));
                }
            }
        }))
    }
}
