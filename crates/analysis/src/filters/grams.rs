//! The token filters `ngram` and `edge_ngram`.

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::{Filter, InRules};

#[derive(Debug)]
pub(super) struct GramFilter {
    min: usize,
    max: usize,
    edge: bool,
    back: bool,
    preserve_original: bool,
}

impl GramFilter {
    pub fn new(params: &Params<'_>, edge: bool, max_diff: i64) -> Result<Self, AnalysisError> {
        let (min, max) = params.gram_bounds(edge, max_diff)?;
        let back = match params.text("side")?.as_deref() {
            _ if !edge && params.has("side") => {
                return Err(AnalysisError::illegal("[side] is only for [edge_ngram]"));
            }
            None | Some("front") => false,
            Some("back") => true,
            Some(other) => {
                return Err(AnalysisError::illegal(format!("invalid side: {other}")));
            }
        };
        Ok(Self { min, max, edge, back, preserve_original: params.flag("preserve_original", false)? })
    }

    /// Grams of a token with `increment`, which only the first of them gets. They are made one by one: together they may be thousands
    /// of times as long as the token.
    fn grams<'a>(&'a self, token: Token, increment: u32) -> impl Iterator<Item = Token> + 'a {
        let mut ends: Vec<usize> = token.text.char_indices().map(|(at, _)| at).collect();
        ends.push(token.text.len());
        let count = ends.len() - 1;
        let (min, max) = (self.min, self.max);
        let backwards = (min..=max.min(count)).map(move |length| (count - length, count));
        let starts = if self.edge { 1.min(count) } else { count };
        let forwards = (0..starts)
            .flat_map(move |from| (min..=max.min(count - from)).map(move |length| (from, from + length)));
        let (back, front) = if self.back { (usize::MAX, 0) } else { (0, usize::MAX) };
        let original = self.preserve_original && !(min..=max).contains(&count);
        let places = backwards.take(back).chain(forwards.take(front)).chain(original.then_some((0, count)));
        places.enumerate().map(move |(number, (from, to))| {
            let mut gram = token.with_text(&token.text[ends[from]..ends[to]]);
            gram.increment = if number == 0 { increment } else { 0 };
            gram
        })
    }
}

impl Filter for GramFilter {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut skipped = 0;
        Box::new(tokens.flat_map(move |token| {
            let own = token.increment;
            let mut grams = self.grams(token, own + skipped).peekable();
            // A token without grams leaves its position empty.
            skipped = if grams.peek().is_none() { skipped + own } else { 0 };
            grams
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}
