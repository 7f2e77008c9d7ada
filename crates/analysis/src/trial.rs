//! Analysis for `_analyze` requests, which stops with the request. The analysis of documents being written is never
//! stopped.

use std::cell::RefCell;

use sparrow_runtime::work::{self, Stopped};

use super::chain::{Analyzer, Detail, Step, correct};
use super::char_filters::OffsetMap;
use super::token::{Token, Tokens, positioned};

impl Analyzer {
    /// Runs a text through the char filters.
    ///
    /// # Errors
    /// If the request of this thread is stopped.
    pub fn trial<'a>(&'a self, text: &'a str) -> Result<Trial<'a>, Unfinished> {
        let mut trial = Trial { analyzer: self, text, filtered: Vec::new(), offsets: Vec::new() };
        for (_, filter) in &self.char_filters {
            let next = filter.filter(trial.tokenized(), &work::is_stopped);
            work::check()?;
            trial.filtered.push(next.text);
            trial.offsets.push(next.offsets);
        }
        Ok(trial)
    }
}

/// Reason why a [`Trial`] has no result.
#[derive(Debug)]
pub enum Unfinished {
    /// The request was stopped.
    Stopped(Stopped),
    /// The text has more tokens than the limit.
    TooManyTokens,
}

impl From<Stopped> for Unfinished {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// A text after the char filters of an analyzer, made by [`Analyzer::trial`].
#[derive(Debug)]
pub struct Trial<'a> {
    analyzer: &'a Analyzer,
    text: &'a str,
    /// The text after each char filter.
    filtered: Vec<String>,
    offsets: Vec<OffsetMap>,
}

impl Trial<'_> {
    /// The text that the tokenizer gets: the output of the last char filter.
    fn tokenized(&self) -> &str {
        self.filtered.last().map_or(self.text, String::as_str)
    }

    /// The tokens of the tokenizer, with original offsets, until `open` stops them.
    fn cut<'t>(&'t self, open: &'t Gate) -> Tokens<'t> {
        let tokens = self.analyzer.tokenizer.1.tokens(self.tokenized());
        Box::new(tokens.take_while(|_| open.lets()).map(|mut token| {
            token.start = correct(&self.offsets, token.start, self.text);
            token.end = correct(&self.offsets, token.end, self.text).max(token.start);
            token
        }))
    }

    /// The tokens in the order of their positions, at most `limit`.
    ///
    /// # Errors
    /// If there are more, or the request is stopped.
    pub fn tokens(&self, limit: usize) -> Result<Vec<Token>, Unfinished> {
        let gate = Gate::default();
        let mut tokens = self.cut(&gate);
        for (_, filter) in &self.analyzer.filters {
            tokens = filter.apply(tokens);
        }
        collect(positioned(tokens), limit, &gate)
    }

    /// The output of each step separately, with at most `limit` tokens each.
    ///
    /// # Errors
    /// If there are more, or the request is stopped.
    pub fn detail(&self, limit: usize) -> Result<Detail, Unfinished> {
        let gate = Gate::default();
        let number =
            |tokens: &[Token]| -> Vec<Token> { positioned(Box::new(tokens.iter().cloned())).collect() };
        let mut tokens = collect(self.cut(&gate), limit, &gate)?;
        let tokenizer = Step { name: self.analyzer.tokenizer.0.clone(), tokens: number(&tokens) };
        let mut filters = Vec::with_capacity(self.analyzer.filters.len());
        for (name, filter) in &self.analyzer.filters {
            tokens = collect(filter.apply(Box::new(tokens.into_iter())), limit, &gate)?;
            filters.push(Step { name: name.clone(), tokens: number(&tokens) });
        }
        let names = self.analyzer.char_filters.iter().map(|(name, _)| name.clone());
        let char_filters = names.zip(self.filtered.iter().cloned()).collect();
        Ok(Detail { char_filters, tokenizer, filters })
    }
}

fn collect(tokens: Tokens<'_>, limit: usize, gate: &Gate) -> Result<Vec<Token>, Unfinished> {
    // A filter may make a long token of many.
    let tokens: Vec<Token> = tokens.take_while(|_| gate.lets()).take(limit + 1).collect();
    gate.closed.take().map_or(Ok(()), Err)?;
    if tokens.len() > limit { Err(Unfinished::TooManyTokens) } else { Ok(tokens) }
}

/// Lets tokens pass until the request is stopped.
#[derive(Debug, Default)]
struct Gate {
    closed: RefCell<Option<Unfinished>>,
}

impl Gate {
    /// Whether a token may pass.
    fn lets(&self) -> bool {
        let stopped = work::check().err();
        let may_pass = stopped.is_none();
        if let Some(stopped) = stopped {
            self.closed.replace(Some(stopped.into()));
        }
        may_pass
    }
}
