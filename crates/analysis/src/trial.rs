//! Analysis for `_analyze` requests, charged to the request's memory and stopped with it. The analysis of documents
//! being written is never stopped.

use std::cell::{Cell, RefCell};

use sparrow_types::work::{self, Growing, MemoryReservation, Stopped, TooMuch};

use super::chain::{Analyzer, Detail, Step, correct};
use super::char_filters::OffsetMap;
use super::token::{Token, Tokens, positioned};

/// Label for the memory in the request's account.
const LABEL: &str = "<analyze>";
/// Number of tokens between two checks of whether the request has been stopped.
const TOKENS_BETWEEN: usize = 256;

impl Analyzer {
    /// Runs a text through the char filters, charged to the request of this thread.
    ///
    /// # Errors
    /// If the char filters' output takes too much memory, or the request is stopped.
    pub fn trial<'a>(&'a self, text: &'a str) -> Result<Trial<'a>, Unfinished> {
        let mut trial =
            Trial { analyzer: self, text, filtered: Vec::new(), offsets: Vec::new(), held: Vec::new() };
        for (_, filter) in &self.char_filters {
            let next = filter.filter(trial.tokenized(), &work::is_stopped);
            work::check()?;
            trial.held.push(work::hold(LABEL, next.text.len() + next.offsets.bytes())?);
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
    /// The analysis would take more memory than allowed.
    TooMuch(TooMuch),
    /// The text has more tokens than the limit.
    TooManyTokens,
}

impl From<Stopped> for Unfinished {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<TooMuch> for Unfinished {
    fn from(error: TooMuch) -> Self {
        Self::TooMuch(error)
    }
}

/// A text after the char filters of an analyzer, made by [`Analyzer::trial`]. The memory charged for it is released
/// when it is dropped.
#[derive(Debug)]
pub struct Trial<'a> {
    analyzer: &'a Analyzer,
    text: &'a str,
    /// The text after each char filter.
    filtered: Vec<String>,
    offsets: Vec<OffsetMap>,
    held: Vec<MemoryReservation>,
}

impl Trial<'_> {
    /// The text that the tokenizer gets: the output of the last char filter.
    fn tokenized(&self) -> &str {
        self.filtered.last().map_or(self.text, String::as_str)
    }

    /// The tokens of the tokenizer, with original offsets, until `open` stops them.
    fn cut<'t>(&'t self, open: &'t Gate) -> Tokens<'t> {
        let tokens = self.analyzer.tokenizer.1.tokens(self.tokenized());
        Box::new(tokens.take_while(|token| open.lets(size_of::<Token>() + token.text.len())).map(
            |mut token| {
                token.start = correct(&self.offsets, token.start, self.text);
                token.end = correct(&self.offsets, token.end, self.text).max(token.start);
                token
            },
        ))
    }

    /// The tokens in the order of their positions, at most `limit`.
    ///
    /// # Errors
    /// If there are more, they take too much memory, or the request is stopped.
    pub fn tokens(&self, limit: usize) -> Result<Vec<Token>, Unfinished> {
        let gate = Gate::new();
        let mut tokens = self.cut(&gate);
        for (_, filter) in &self.analyzer.filters {
            tokens = filter.apply(tokens);
        }
        collect(positioned(tokens), limit, &gate)
    }

    /// The output of each step separately, with at most `limit` tokens each.
    ///
    /// # Errors
    /// If there are more, they take too much memory, or the request is stopped.
    pub fn detail(&self, limit: usize) -> Result<Detail, Unfinished> {
        let gate = Gate::new();
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
    let tokens: Vec<Token> = tokens.take(limit + 1).collect();
    gate.closed.take().map_or(Ok(()), Err)?;
    if tokens.len() > limit { Err(Unfinished::TooManyTokens) } else { Ok(tokens) }
}

/// Lets tokens pass until the request is stopped or has used too much memory.
#[derive(Debug)]
struct Gate {
    passed: Cell<usize>,
    memory: RefCell<Growing>,
    closed: RefCell<Option<Unfinished>>,
}

impl Gate {
    fn new() -> Self {
        Self { passed: Cell::new(0), memory: RefCell::new(Growing::new(LABEL)), closed: RefCell::new(None) }
    }

    /// Whether a token of `bytes` bytes may pass; charges its memory.
    fn lets(&self, bytes: usize) -> bool {
        let passed = self.passed.get();
        self.passed.set(passed + 1);
        let stopped = if passed.is_multiple_of(TOKENS_BETWEEN) {
            work::check().map_err(Unfinished::from)
        } else {
            Ok(())
        };
        let counted = stopped.and_then(|()| Ok(self.memory.borrow_mut().add(bytes)?));
        counted.map_err(|why| self.closed.replace(Some(why))).is_ok()
    }
}
