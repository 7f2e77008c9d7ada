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

    fn grams(&self, token: &Token, increment: u32, out: &mut Vec<Token>) {
        let mut ends: Vec<usize> = token.text.char_indices().map(|(at, _)| at).collect();
        ends.push(token.text.len());
        let count = ends.len() - 1;
        let first = out.len();
        let push = |from: usize, to: usize, out: &mut Vec<Token>| {
            let mut gram = token.with_text(&token.text[ends[from]..ends[to]]);
            gram.increment = if out.len() == first { increment } else { 0 };
            out.push(gram);
        };
        let long = self.max.min(count);
        if self.back {
            for length in self.min..=long {
                push(count - length, count, out);
            }
        } else {
            let starts = if self.edge { 1.min(count) } else { count };
            for from in 0..starts {
                for length in self.min..=self.max.min(count - from) {
                    push(from, from + length, out);
                }
            }
        }
        if self.preserve_original && !(self.min..=self.max).contains(&count) {
            let mut original = token.clone();
            original.increment = if out.len() == first { increment } else { 0 };
            out.push(original);
        }
    }
}

impl Filter for GramFilter {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let mut skipped = 0;
        Box::new(tokens.flat_map(move |token| {
            let mut out = Vec::new();
            self.grams(&token, token.increment + skipped, &mut out);
            // A token without grams leaves its position empty.
            skipped = if out.is_empty() { skipped + token.increment } else { 0 };
            out
        }))
    }

    fn in_rules(&self) -> InRules {
        InRules::Refused
    }
}
