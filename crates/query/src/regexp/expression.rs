//! Terms of regular expressions, each stored once, and their derivatives: the expression that the rest of a text has to match after
//! its first character.

use rustc_hash::FxHashMap;
use sparrow_runtime::work;

/// A term of a [`Builder`].
pub(super) type Id = u32;
/// The term that matches nothing.
pub(super) const NEVER: Id = 0;
/// The term that matches only the empty text.
pub(super) const EMPTY: Id = 1;
/// The term that matches every text.
pub(super) const EVERYTHING: Id = 2;

/// One more than the highest code point.
const END: u32 = char::MAX as u32 + 1;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Term {
    Never,
    Empty,
    /// One character in these ranges, which are sorted, do not touch, and exclude their ends.
    Class(Box<[(u32, u32)]>),
    Cat(Id, Id),
    Or(Box<[Id]>),
    And(Box<[Id]>),
    Not(Id),
    Repeat(Id, u32, Option<u32>),
}

/// Makes terms and stores each once, so that equal terms have equal numbers.
pub(super) struct Builder {
    terms: Vec<Term>,
    nullable: Vec<bool>,
    ids: FxHashMap<Term, Id>,
    derivatives: FxHashMap<(Id, u32), Id>,
    limit: usize,
    /// Work done so far, in parts of terms that were examined.
    steps: usize,
    /// How many of the steps were charged to the request so far.
    spent: usize,
    /// Approximate size of the terms in bytes.
    bytes: usize,
}

/// Most bytes that the terms of an expression may take.
const MOST_BYTES: usize = 64 << 20;

/// Most steps that deriving the states of an expression may take: a second or so.
const MOST_STEPS: usize = 40_000_000;

impl Builder {
    /// A builder for approximately `limit` terms at most.
    pub(super) fn new(limit: usize) -> Self {
        let mut builder = Self {
            terms: Vec::new(),
            nullable: Vec::new(),
            ids: FxHashMap::default(),
            derivatives: FxHashMap::default(),
            limit,
            steps: 0,
            spent: 0,
            bytes: 0,
        };
        builder.add(Term::Never);
        builder.add(Term::Empty);
        builder.add(Term::Not(NEVER));
        builder
    }

    /// Charges the steps since the last call to the request.
    pub(super) fn spend(&mut self) -> Result<(), work::TooMuchEffort> {
        let more = self.steps - self.spent;
        self.spent = self.steps;
        work::spend(more as u64)
    }

    fn add(&mut self, term: Term) -> Id {
        if let Some(known) = self.ids.get(&term) {
            return *known;
        }
        let nullable = match &term {
            Term::Never | Term::Class(_) => false,
            Term::Empty => true,
            Term::Cat(first, rest) => self.nullable(*first) && self.nullable(*rest),
            Term::Or(parts) => parts.iter().any(|part| self.nullable(*part)),
            Term::And(parts) => parts.iter().all(|part| self.nullable(*part)),
            Term::Not(inner) => !self.nullable(*inner),
            Term::Repeat(inner, least, _) => *least == 0 || self.nullable(*inner),
        };
        let parts = match &term {
            Term::Class(ranges) => size_of_val(&ranges[..]),
            Term::Or(parts) | Term::And(parts) => size_of_val(&parts[..]),
            _ => 0,
        };
        // Once in the list, once as a key.
        self.bytes += 2 * (size_of::<Term>() + parts);
        let id = self.terms.len() as Id;
        self.terms.push(term.clone());
        self.nullable.push(nullable);
        self.ids.insert(term, id);
        id
    }

    /// Whether the empty text matches.
    pub(super) fn nullable(&self, id: Id) -> bool {
        self.nullable[id as usize]
    }

    /// A term for one character in these ranges, both ends included.
    pub(super) fn class(&mut self, ranges: &[(char, char)]) -> Id {
        let ranges: Vec<(u32, u32)> =
            ranges.iter().map(|(first, last)| (*first as u32, *last as u32 + 1)).collect();
        self.class_of(ranges)
    }

    /// A term for one character outside of these ranges, both ends included.
    pub(super) fn class_without(&mut self, ranges: &[(char, char)]) -> Id {
        let mut sorted: Vec<(u32, u32)> =
            ranges.iter().map(|(first, last)| (*first as u32, *last as u32 + 1)).collect();
        sorted.sort_unstable();
        let mut rest = Vec::new();
        let mut from = 0;
        for (first, end) in sorted {
            if first > from {
                rest.push((from, first));
            }
            from = from.max(end);
        }
        if from < END {
            rest.push((from, END));
        }
        self.class_of(rest)
    }

    fn class_of(&mut self, mut ranges: Vec<(u32, u32)>) -> Id {
        ranges.retain(|(first, end)| first < end);
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, end) in ranges {
            match merged.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((first, end)),
            }
        }
        if merged.is_empty() {
            return NEVER;
        }
        self.add(Term::Class(merged.into()))
    }

    /// A term for `first` followed by `rest`.
    pub(super) fn cat(&mut self, first: Id, rest: Id) -> Id {
        self.steps += 1;
        match (first, rest) {
            (NEVER, _) | (_, NEVER) => NEVER,
            (EMPTY, other) | (other, EMPTY) => other,
            _ => {
                if let Term::Cat(head, tail) = self.terms[first as usize] {
                    let tail = self.cat(tail, rest);
                    return self.cat(head, tail);
                }
                self.add(Term::Cat(first, rest))
            }
        }
    }

    /// A term for texts that any of the parts matches.
    pub(super) fn or(&mut self, parts: impl IntoIterator<Item = Id>) -> Id {
        let mut flat = Vec::new();
        for part in parts {
            match &self.terms[part as usize] {
                Term::Or(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        self.steps += flat.len();
        flat.retain(|part| *part != NEVER);
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&EVERYTHING) {
            return EVERYTHING;
        }
        match flat[..] {
            [] => NEVER,
            [one] => one,
            _ => self.add(Term::Or(flat.into())),
        }
    }

    /// A term for texts that all of the parts match.
    pub(super) fn and(&mut self, parts: impl IntoIterator<Item = Id>) -> Id {
        let mut flat = Vec::new();
        for part in parts {
            match &self.terms[part as usize] {
                Term::And(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        self.steps += flat.len();
        flat.retain(|part| *part != EVERYTHING);
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&NEVER) {
            return NEVER;
        }
        match flat[..] {
            [] => EVERYTHING,
            [one] => one,
            _ => self.add(Term::And(flat.into())),
        }
    }

    /// A term for texts that `inner` does not match.
    pub(super) fn not(&mut self, inner: Id) -> Id {
        match self.terms[inner as usize] {
            Term::Not(inner) => inner,
            _ => self.add(Term::Not(inner)),
        }
    }

    /// A term for at least `least` and at most `most` repetitions of `inner`, `None` for no upper limit.
    pub(super) fn repeat(&mut self, inner: Id, least: u32, most: Option<u32>) -> Id {
        match (inner, least, most) {
            (_, _, Some(0)) | (EMPTY, _, _) => EMPTY,
            (NEVER, 0, _) => EMPTY,
            (NEVER, _, _) => NEVER,
            (_, 1, Some(1)) => inner,
            _ => self.add(Term::Repeat(inner, least, most)),
        }
    }

    /// The derivative of a term: what has to match after the character. `None` when there are too many terms, or it takes too long
    /// to make them.
    pub(super) fn derivative(&mut self, id: Id, character: u32) -> Option<Id> {
        if let Some(known) = self.derivatives.get(&(id, character)) {
            return Some(*known);
        }
        self.steps += 1;
        if self.terms.len() > self.limit || self.steps > MOST_STEPS || self.bytes > MOST_BYTES {
            return None;
        }
        let derived = match self.terms[id as usize].clone() {
            Term::Never | Term::Empty => NEVER,
            Term::Class(ranges) => {
                let inside = ranges.iter().any(|(first, end)| (*first..*end).contains(&character));
                if inside { EMPTY } else { NEVER }
            }
            Term::Cat(first, rest) => {
                let left = self.derivative(first, character)?;
                let through = self.cat(left, rest);
                if self.nullable(first) {
                    let behind = self.derivative(rest, character)?;
                    self.or([through, behind])
                } else {
                    through
                }
            }
            Term::Or(parts) => {
                let parts = self.derivatives(&parts, character)?;
                self.or(parts)
            }
            Term::And(parts) => {
                let parts = self.derivatives(&parts, character)?;
                self.and(parts)
            }
            Term::Not(inner) => {
                let inner = self.derivative(inner, character)?;
                self.not(inner)
            }
            Term::Repeat(inner, least, most) => {
                let left = self.derivative(inner, character)?;
                let again = self.repeat(inner, least.saturating_sub(1), most.map(|most| most - 1));
                self.cat(left, again)
            }
        };
        self.derivatives.insert((id, character), derived);
        Some(derived)
    }

    fn derivatives(&mut self, parts: &[Id], character: u32) -> Option<Vec<Id>> {
        parts.iter().map(|part| self.derivative(*part, character)).collect()
    }

    /// Ranges of characters that no term distinguishes: the first character of each and the number of its class. Also gives the
    /// number of classes.
    pub(super) fn stretches(&self) -> (Vec<(u32, u32)>, usize) {
        let sets: Vec<&[(u32, u32)]> = self
            .terms
            .iter()
            .filter_map(|term| match term {
                Term::Class(ranges) => Some(&ranges[..]),
                _ => None,
            })
            .collect();
        let mut starts: Vec<u32> = vec![0];
        starts.extend(sets.iter().flat_map(|set| set.iter().flat_map(|(first, end)| [*first, *end])));
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|start| *start < END);
        let mut classes: FxHashMap<Vec<bool>, u32> = FxHashMap::default();
        let stretches = starts
            .into_iter()
            .map(|start| {
                let inside = sets
                    .iter()
                    .map(|set| set.iter().any(|(first, end)| (*first..*end).contains(&start)))
                    .collect();
                let next = classes.len() as u32;
                (start, *classes.entry(inside).or_insert(next))
            })
            .collect();
        (stretches, classes.len())
    }
}
