//! Limits of a search that index settings set.

/// Limits of a search of one index. A setting that exceeds what any query may use is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Largest `from + size` (`index.max_result_window`).
    pub result_window: usize,
    /// Largest `from + size` of inner hits and `top_hits` (`index.max_inner_result_window`).
    pub inner_result_window: usize,
    /// Largest number of hits to rescore (`index.max_rescore_window`).
    pub rescore_window: usize,
    /// Largest number of fields in `docvalue_fields` (`index.max_docvalue_fields_search`).
    pub docvalue_fields: usize,
    /// Largest number of fields in `script_fields` (`index.max_script_fields`).
    pub script_fields: usize,
    /// Largest number of slices of a scroll (`index.max_slices_per_scroll`).
    pub slices_per_scroll: usize,
    /// Largest number of slices of a point in time (`index.max_slices_per_pit`).
    pub slices_per_pit: usize,
    /// Largest number of values in a `terms` query (`index.max_terms_count`).
    pub terms: usize,
    /// Largest number of characters in a `regexp` query (`index.max_regex_length`).
    pub regex_length: usize,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            result_window: 10_000,
            inner_result_window: 100,
            rescore_window: 10_000,
            docvalue_fields: 100,
            script_fields: 32,
            slices_per_scroll: 1024,
            slices_per_pit: 1024,
            terms: 65_536,
            regex_length: 1_000,
        }
    }
}
