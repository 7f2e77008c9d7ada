//! Algorithms that find the hits of a search, as profiles name them.

use std::cell::Cell;

/// An algorithm that finds hits. One search may use several, in different segments or for different parts of
/// its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// A disjunction of words: windows of posting lists, those with the highest block-max bounds first,
    /// MaxScore within a window.
    BlockMaxMaxScore,
    /// A conjunction of words, or a phrase: the rarest word leads, and positions are read last.
    Conjunction,
    /// A sum of clauses with known upper bounds, document at a time.
    MaxScoreDisjunction,
    /// The maximum of several sums of clauses with known upper bounds.
    DisjunctionMax,
    /// A sparse clause: scores the blocks of documents whose upper bound reaches the threshold.
    SparseBlockMax,
    /// A sparse clause under a strict filter: scores the documents whose own upper bound reaches the
    /// threshold.
    SparseDocumentBounds,
    /// A sparse clause: scans every window of documents with estimated scores.
    SparseWindowAtATime,
    /// A sparse clause under a very strict filter: looks up every document that passes the filter.
    SparseFilterDriven,
    /// A sparse clause: scores every match.
    SparseExhaustive,
    /// Sparse and text clauses: the best documents of the sparse clause first, then text matches window by
    /// window, as far as they can make up for a low sparse score.
    SparseAndTextWindowAtATime,
    /// Sparse and other clauses: the best documents of the sparse clause first, then every match of the other
    /// clauses.
    SparseAndOthersDocumentAtATime,
    /// Compares every permitted vector exactly.
    ExactVectorScan,
    /// Compares every permitted vector by its 8-bit codes, and the best of them exactly.
    QuantizedVectorScan,
    /// Walks an HNSW graph.
    GraphWalk,
    /// Computes sets of documents, without scores.
    Bitset,
    /// Scores every match of the whole query, document by document.
    DocumentAtATime,
}

impl Executor {
    const ALL: [(Self, &'static str); 16] = [
        (Self::BlockMaxMaxScore, "block_max_max_score"),
        (Self::Conjunction, "conjunction"),
        (Self::MaxScoreDisjunction, "max_score_disjunction"),
        (Self::DisjunctionMax, "disjunction_max"),
        (Self::SparseBlockMax, "sparse_block_max"),
        (Self::SparseDocumentBounds, "sparse_document_bounds"),
        (Self::SparseWindowAtATime, "sparse_window_at_a_time"),
        (Self::SparseFilterDriven, "sparse_filter_driven"),
        (Self::SparseExhaustive, "sparse_exhaustive"),
        (Self::SparseAndTextWindowAtATime, "sparse_and_text_window_at_a_time"),
        (Self::SparseAndOthersDocumentAtATime, "sparse_and_others_document_at_a_time"),
        (Self::ExactVectorScan, "exact_vector_scan"),
        (Self::QuantizedVectorScan, "quantized_vector_scan"),
        (Self::GraphWalk, "graph_walk"),
        (Self::Bitset, "bitset"),
        (Self::DocumentAtATime, "document_at_a_time"),
    ];
}

/// A set of algorithms that took part in a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Executors(u16);

impl Executors {
    /// Adds an algorithm.
    pub fn insert(&mut self, executor: Executor) {
        self.0 |= 1 << executor as u16;
    }

    /// Adds all algorithms of another set.
    pub fn extend(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Names of the algorithms as in a profile, in a fixed order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let took_part = move |(executor, _): &(Executor, _)| self.0 >> *executor as u16 & 1 == 1;
        Executor::ALL.into_iter().filter(took_part).map(|(_, name)| name)
    }
}

/// Collects the algorithms that take part in a search while it runs.
#[derive(Debug, Default)]
pub struct ExecutorLog(Cell<Executors>);

impl ExecutorLog {
    /// Adds one or several algorithms.
    pub fn note(&self, executors: impl Into<Executors>) {
        let mut noted = self.noted();
        noted.extend(executors.into());
        self.0.set(noted);
    }

    /// The algorithms collected so far.
    pub fn noted(&self) -> Executors {
        self.0.get()
    }
}

impl From<Executor> for Executors {
    fn from(executor: Executor) -> Self {
        let mut executors = Self::default();
        executors.insert(executor);
        executors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_place_and_a_name_of_its_own() {
        let mut all = Executors::default();
        for (number, (executor, name)) in Executor::ALL.into_iter().enumerate() {
            assert_eq!(executor as usize, number, "{name}");
            assert_eq!(Executors::from(executor).names().collect::<Vec<_>>(), [name]);
            all.insert(executor);
        }
        let mut names: Vec<_> = all.names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Executor::ALL.len());
        let log = ExecutorLog::default();
        log.note(Executor::Bitset);
        log.note(Executors::from(Executor::GraphWalk));
        assert_eq!(log.noted().names().collect::<Vec<_>>(), ["graph_walk", "bitset"]);
    }
}
