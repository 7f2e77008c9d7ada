//! Rules of `intervals` with the words that they look for in an index.

use tantivy::Term;

use sparrow_query::{IntervalsOrder, IntervalsRelation};

/// Highest number of words of texts, and of rules that stand for words: the positions of each are looked at in every document.
pub(super) const MOST_PARTS: usize = 1_024;

/// A rule with the words that it looks for in an index.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// Any of several words. `before` positions without a word precede it and belong to its interval.
    Words {
        terms: Vec<Term>,
        before: u32,
    },
    All {
        parts: Vec<Node>,
        order: IntervalsOrder,
    },
    Any(Vec<Node>),
    /// A rule as often as it stands among others: each time by an interval of its own.
    Repeated {
        part: Box<Node>,
        times: usize,
    },
    Filtered {
        inner: Box<Node>,
        relation: IntervalsRelation,
        other: Box<Node>,
    },
}

impl Node {
    /// Rules that all have to match, as Lucene combines them: of equal ones, each needs an interval of its own, and a rule alone is what it
    /// is. In an ordered rule, equal neighbours are taken together, unless all have to follow each other without a gap.
    pub(super) fn all(mut rules: Vec<Node>, order: IntervalsOrder) -> Self {
        if rules.len() == 1 {
            return rules.remove(0);
        }
        let is_phrase = order.ordered && order.max_gaps == Some(0);
        // More are refused before any document is looked at.
        if is_phrase || rules.len() > MOST_PARTS {
            return Node::All { parts: rules, order };
        }
        if !order.ordered {
            rules = rules.into_iter().flat_map(Node::unordered).collect();
        }
        let mut parts: Vec<(Node, usize)> = Vec::with_capacity(rules.len());
        for rule in rules {
            let from = if order.ordered { parts.len().saturating_sub(1) } else { 0 };
            match parts[from..].iter_mut().find(|(part, _)| *part == rule) {
                Some((_, times)) => *times += 1,
                None => parts.push((rule, 1)),
            }
        }
        let of = |(part, times): (Node, usize)| match times {
            1 => part,
            _ => Node::Repeated { part: Box::new(part), times },
        };
        Node::All { parts: parts.into_iter().map(of).collect(), order }
    }

    /// The rules that it consists of, if it wants all of them in any order and with any gaps, and itself otherwise.
    fn unordered(self) -> Vec<Node> {
        match self {
            Node::All { parts, order: IntervalsOrder { ordered: false, max_gaps: None } } => {
                parts.into_iter().flat_map(Node::unordered).collect()
            }
            Node::Repeated { part, times } => vec![*part; times],
            other => vec![other],
        }
    }

    /// Length of the shortest interval that the rule can match, in positions.
    pub(super) fn shortest(&self) -> u32 {
        match self {
            Node::Words { before, .. } => before + 1,
            Node::All { parts, order: IntervalsOrder { ordered: true, .. } } => {
                parts.iter().map(Node::shortest).sum()
            }
            Node::All { parts, .. } => parts.iter().map(Node::shortest).max().unwrap_or(1),
            Node::Any(parts) => parts.iter().map(Node::shortest).min().unwrap_or(1),
            // As Lucene has it, however often it stands.
            Node::Repeated { part, .. } => part.shortest(),
            Node::Filtered { inner, .. } => inner.shortest(),
        }
    }

    /// Number of its words and of rules that stand for words.
    pub(super) fn parts(&self) -> usize {
        match self {
            Node::Words { .. } => 1,
            Node::All { parts, .. } | Node::Any(parts) => parts.iter().map(Node::parts).sum(),
            Node::Repeated { part, times } => part.parts() * times,
            Node::Filtered { inner, other, .. } => inner.parts() + other.parts(),
        }
    }
}
