//! Statistics of the lanes of workers that operations run in.

/// A lane as it is now.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct LaneStats {
    pub name: &'static str,
    pub workers: usize,
    pub active: usize,
    pub waiting: usize,
    /// Most operations that may wait.
    pub capacity: usize,
    pub rejected: u64,
    pub completed: u64,
    pub largest: usize,
}
