//! The token filters `synonym` and `synonym_graph`.

use std::collections::VecDeque;

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Token, Tokens};
use super::synonym_rules::{Outputs, RuleAnalyzer, Rules, SEPARATOR};
use super::{Filter, InRules};

const SYNONYM: &str = "SYNONYM";

#[derive(Debug)]
pub(super) struct Synonyms {
    rules: Rules,
    graph: bool,
}

impl Synonyms {
    pub fn new(params: &Params<'_>, graph: bool, analyzer: &RuleAnalyzer<'_>) -> Result<Self, AnalysisError> {
        params.refuse(&["synonyms_path", "synonyms_set", "tokenizer", "ignore_case"])?;
        if params.flag("updateable", false)? {
            return Err(AnalysisError::illegal(format!(
                "[updateable] is not supported on {} [{}]",
                params.part, params.name
            )));
        }
        match params.text("format")?.as_deref() {
            None | Some("" | "solr") => {}
            Some(other) => {
                return Err(AnalysisError::illegal(format!(
                    "[format] with value [{other}] is not supported on {} [{}]",
                    params.part, params.name
                )));
            }
        }
        let lines = params.lines("synonyms")?.ok_or_else(|| {
            AnalysisError::illegal(
                "synonym requires either `synonyms`, `synonyms_set` or `synonyms_path` to be configured",
            )
        })?;
        let expand = params.flag("expand", true)?;
        let lenient = params.flag("lenient", false)?;
        Ok(Self { rules: Rules::parse(&lines, expand, lenient, analyzer)?, graph })
    }
}

impl Filter for Synonyms {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(Synonymous {
            rules: &self.rules,
            graph: self.graph,
            input: tokens,
            ahead: VecDeque::new(),
            out: VecDeque::new(),
            later: VecDeque::new(),
            shift: 0,
            last: (0, 0),
        })
    }

    fn in_rules(&self) -> InRules {
        InRules::Skipped
    }
}

/// A synonym that is emitted at a later position.
struct Later {
    text: String,
    /// End offset in bytes; `None` for that of the token at the same position.
    end: Option<usize>,
    length: u32,
}

struct Synonymous<'a> {
    rules: &'a Rules,
    graph: bool,
    input: Tokens<'a>,
    /// Tokens read ahead to find the longest matching rule.
    ahead: VecDeque<Token>,
    out: VecDeque<Token>,
    /// Synonyms to be emitted, by position, from that of the next token on; unused for graphs.
    later: VecDeque<Vec<Later>>,
    /// Number of positions added to the increment of the next token, as a graph inserted them; unused without graphs.
    shift: u32,
    /// Start and end offset of the last token, in bytes.
    last: (usize, usize),
}

impl Iterator for Synonymous<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            if let Some(token) = self.out.pop_front() {
                return Some(token);
            }
            while self.ahead.len() < self.rules.longest.max(1) {
                match self.input.next() {
                    Some(token) => self.ahead.push_back(token),
                    None => break,
                }
            }
            if self.ahead.is_empty() && !self.words_left() {
                return None;
            }
            match self.longest() {
                Some((count, rule)) if self.graph => self.put_graph(count, rule),
                Some((count, rule)) => self.put_flat(count, rule),
                None if self.graph => {
                    let mut token = self.ahead.pop_front()?;
                    token.increment += std::mem::take(&mut self.shift);
                    return Some(token);
                }
                None => {
                    if let Some(token) = self.ahead.pop_front() {
                        self.put_beside(token, true);
                    }
                }
            }
        }
    }
}

impl<'a> Synonymous<'a> {
    /// The longest rule that matches the next tokens, and its number of words; `None` if no rule matches.
    fn longest(&self) -> Option<(usize, &'a Outputs)> {
        let mut key = String::new();
        let mut found = None;
        for (at, token) in self.ahead.iter().take(self.rules.longest).enumerate() {
            if at > 0 {
                key.push(SEPARATOR);
            }
            key.push_str(&token.text);
            if let Some(rule) = self.rules.by_words.get(&key) {
                found = Some((at + 1, rule));
            }
        }
        found
    }

    /// Emits synonyms whose positions lie after the last token; `false` if there are none left.
    fn words_left(&mut self) -> bool {
        let Some(words) = self.later.pop_front() else { return false };
        for (at, word) in words.into_iter().enumerate() {
            let mut token = Token::new(word.text, self.last.0, word.end.unwrap_or(self.last.1), SYNONYM);
            token.increment = u32::from(at == 0);
            self.out.push_back(token);
        }
        true
    }

    /// Emits the original token if it `stays`, and the synonyms due at its position.
    fn put_beside(&mut self, token: Token, stays: bool) {
        self.last = (token.start, token.end);
        let mut increment = token.increment;
        let words = self.later.pop_front().unwrap_or_default();
        let synonyms: Vec<Token> = words
            .into_iter()
            .map(|word| {
                let mut synonym = Token::new(word.text, token.start, word.end.unwrap_or(token.end), SYNONYM);
                synonym.length = word.length;
                synonym
            })
            .collect();
        let original = stays.then_some(token);
        for mut token in original.into_iter().chain(synonyms) {
            token.increment = std::mem::take(&mut increment);
            self.out.push_back(token);
        }
    }

    /// Schedules the synonyms of a rule at the positions of the matched tokens and, if longer, after them.
    fn put_flat(&mut self, count: usize, rule: &Outputs) {
        let end = self.ahead[count - 1].end;
        for path in &rule.paths {
            for (at, word) in path.iter().enumerate() {
                if self.later.len() <= at {
                    self.later.push_back(Vec::new());
                }
                let single = path.len() == 1;
                self.later[at].push(Later {
                    text: word.clone(),
                    end: single.then_some(end),
                    length: if single && rule.keeps { count as u32 } else { 1 },
                });
            }
        }
        for _ in 0..count {
            if let Some(token) = self.ahead.pop_front() {
                self.put_beside(token, rule.keeps);
            }
        }
    }

    /// Emits each synonym of a rule as a path of the token graph with positions of its own, between the start and the
    /// end of the matched tokens.
    fn put_graph(&mut self, count: usize, rule: &Outputs) {
        let originals: Vec<Token> = self.ahead.drain(..count).collect();
        let (Some(first), Some(last)) = (originals.first(), originals.last()) else { return };
        let (start, end, increment) = (first.start, last.end, first.increment);
        let mut paths: Vec<Vec<Token>> = rule
            .paths
            .iter()
            .map(|path| path.iter().map(|word| Token::new(word.clone(), start, end, SYNONYM)).collect())
            .collect();
        if rule.keeps {
            paths.push(originals);
        }
        let inner: usize = paths.iter().map(|path| path.len() - 1).sum();
        let end_node = inner + 1;
        let mut nodes = Vec::new();
        let mut next_node = 1;
        // First tokens of all paths, then the rest of each.
        let mut rests = Vec::new();
        for path in paths {
            let count = path.len();
            let first_inner = next_node;
            next_node += count - 1;
            for (at, token) in path.into_iter().enumerate() {
                let from = if at == 0 { 0 } else { first_inner + at - 1 };
                let to = if at + 1 == count { end_node } else { first_inner + at };
                if at == 0 { nodes.push((from, to, token)) } else { rests.push((from, to, token)) }
            }
        }
        nodes.extend(rests);
        let mut at = 0;
        let mut increment = increment + std::mem::take(&mut self.shift);
        for (from, to, mut token) in nodes {
            token.increment = increment + (from - at) as u32;
            token.length = (to - from) as u32;
            (increment, at) = (0, from);
            self.out.push_back(token);
        }
        // The next token's own increment counts one of the steps to the end.
        self.shift = (end_node - at - 1) as u32;
    }
}

/// Flattens a token graph so that it can be indexed: each node gets the position given by the longest path to it, so
/// that phrases along any single path match.
pub(super) fn flatten(mut tokens: Tokens<'_>) -> Tokens<'_> {
    // Tokens of one graph with the node they start at, counted from its first.
    let mut graph: Vec<(u32, Token)> = Vec::new();
    let mut out: VecDeque<Token> = VecDeque::new();
    let mut node = 0;
    let mut end = 0;
    let mut pending: Option<Token> = None;
    Box::new(std::iter::from_fn(move || {
        loop {
            if let Some(token) = out.pop_front() {
                return Some(token);
            }
            let Some(token) = pending.take().or_else(|| tokens.next()) else {
                if graph.is_empty() {
                    return None;
                }
                out.extend(level(&mut graph));
                continue;
            };
            if graph.is_empty() {
                (node, end) = (0, token.length);
                graph.push((0, token));
                continue;
            }
            let start = node + token.increment;
            if start >= end {
                let mut next = token;
                next.increment = 1 + start - end;
                pending = Some(next);
                out.extend(level(&mut graph));
                continue;
            }
            node = start;
            end = end.max(start + token.length);
            graph.push((start, token));
        }
    }))
}

/// Renumbers the nodes of a graph by the longest path to each.
fn level(graph: &mut Vec<(u32, Token)>) -> Vec<Token> {
    let mut levels: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::from([(0, 0)]);
    // Starts come in order, so that a node's level is known when a token leaves it.
    graph.sort_by_key(|(start, _)| *start);
    for (start, token) in graph.iter() {
        let from = levels.get(start).copied().unwrap_or(*start);
        let to = levels.entry(start + token.length).or_default();
        *to = (*to).max(from + 1);
    }
    let mut leveled: Vec<(u32, Token)> = graph
        .drain(..)
        .map(|(start, mut token)| {
            let from = levels.get(&start).copied().unwrap_or(start);
            let to = levels.get(&(start + token.length)).copied().unwrap_or(from + 1);
            token.length = to.saturating_sub(from).max(1);
            (from, token)
        })
        .collect();
    leveled.sort_by_key(|(level, _)| *level);
    let mut at = 0;
    let mut first = true;
    let mut tokens = Vec::with_capacity(leveled.len());
    for (level, mut token) in leveled {
        if !std::mem::take(&mut first) {
            token.increment = level - at;
        }
        at = level;
        tokens.push(token);
    }
    tokens
}
