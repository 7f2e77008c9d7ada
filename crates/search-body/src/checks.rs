//! Checks which sections of a search may be combined, and derives what several sections together mean.

use sparrow_tantivy_index::query::TotalHits;

use super::body::SearchBody;
use super::fields::StoredFields;
use super::nested_hits::has_inner_hits;
use super::retriever::MAX_LISTS;
use super::sort::{Sort, SortField};
use super::window::Window;
use sparrow_mapping::SourceSelection;
use sparrow_wire::BodyError;

impl SearchBody {
    /// Checks what depends on several sections of the request.
    ///
    /// # Errors
    /// When sections contradict each other.
    pub fn validate(&self) -> Result<(), BodyError> {
        if self.query.is_some() && !self.sub_searches.is_empty() {
            return Err(BodyError::illegal("cannot specify field [query] and field [sub_searches]"));
        }
        self.check_combinations()?;
        self.nested_hits()?;
        if self.post_filter.as_ref().is_some_and(has_inner_hits) {
            return Err(BodyError::illegal("[inner_hits] in [post_filter] is not supported by this server"));
        }
        let mut messages = self.paging_problems();
        if self.sub_searches.len() >= 2 && self.rank.is_none() {
            messages.push("[sub_searches] requires [rank]".to_owned());
        }
        if let Some(rank) = &self.rank {
            let lists = usize::from(self.query.is_some()) + self.sub_searches.len() + self.knn.len();
            if self.size == 0 {
                messages.push("[rank] requires [size] greater than [0]".to_owned());
            }
            if let Window::Given(window) = rank.window()
                && window < self.size
            {
                messages.push(format!(
                    "[rank] requires [rank_window_size: {window}] be greater than or equal to \
                     [size: {}]",
                    self.size
                ));
            }
            if lists < 2 {
                messages.push(
                    "[rank] requires a minimum of [2] result sets using a combination of sub \
                     searches and/or knn searches"
                        .to_owned(),
                );
            }
            if lists > MAX_LISTS {
                messages.push(format!("[rank] takes at most [{MAX_LISTS}] result sets, but was [{lists}]"));
            }
            let unsupported = [("collapse", self.collapse.is_some()), ("suggest", self.suggest.is_some())];
            let unsupported = unsupported.into_iter().filter_map(|(name, used)| used.then_some(name));
            for name in self.unfusable().into_iter().chain(unsupported) {
                messages.push(format!("[rank] cannot be used with [{name}]"));
            }
        }
        if let Some(fusion) = &self.fusion {
            // Sections of the body are checked where it is read; these come from the address.
            let mut beside = Vec::new();
            beside.extend(self.query.is_some().then_some("query"));
            beside.extend(self.unfusable());
            beside.extend(self.min_score.is_some().then_some("min_score"));
            if !beside.is_empty() {
                messages.push(format!("cannot specify [retriever] and [{}]", beside.join(", ")));
            }
            fusion.validate(self.size, &mut messages);
        }
        match messages.is_empty() {
            true => Ok(()),
            false => Err(BodyError::Validation { messages }),
        }
    }

    /// Names of the sections in the request that fused lists do not support.
    fn unfusable(&self) -> Vec<&'static str> {
        let asked = [
            ("sort", self.sort != Sort::Score),
            ("search_after", self.search_after.is_some()),
            ("slice", self.slice.is_some()),
            ("rescore", !self.rescore.is_empty()),
            ("scroll", self.scroll.is_some()),
            ("terminate_after", self.terminate_after > 0),
        ];
        asked.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect()
    }

    fn check_combinations(&self) -> Result<(), BodyError> {
        if self.search_after.is_some() && self.sort == Sort::Score {
            return Err(BodyError::illegal("Sort must contain at least one field."));
        }
        if !self.rescore.is_empty() && self.sort != Sort::Score {
            return Err(BodyError::illegal("Cannot use [sort] option in conjunction with [rescore]."));
        }
        if let Some(collapse) = &self.collapse {
            let by_group = match &self.sort {
                Sort::By(keys) => keys.len() == 1 && keys[0].name == collapse.field,
                Sort::Score => false,
            };
            if self.search_after.is_some() && !by_group {
                return Err(BodyError::illegal(
                    "Cannot use [collapse] in conjunction with [search_after] unless the search is sorted on the \
                     same field. Multiple sort fields are not allowed.",
                ));
            }
        }
        let by_place = |sort: &Sort| match sort {
            Sort::By(keys) => keys.iter().any(|key| key.name == "_shard_doc"),
            Sort::Score => false,
        };
        if self.pit.is_none() && by_place(&self.sort) {
            return Err(BodyError::illegal("[_shard_doc] sort field cannot be used without [point in time]"));
        }
        Ok(())
    }

    /// What is wrong with the sections that select a page of the hits, as messages.
    fn paging_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.scroll.is_some() {
            if !matches!(self.track_total_hits, None | Some(TotalHits::Exact)) {
                problems.push("disabling [track_total_hits] is not allowed in a scroll context");
            }
            if self.from > 0 {
                problems.push("using [from] is not allowed in a scroll context");
            }
            if self.size == 0 {
                problems.push("[size] cannot be [0] in a scroll context");
            }
            if !self.rescore.is_empty() {
                problems.push("using [rescore] is not allowed in a scroll context");
            }
            if self.search_after.is_some() {
                problems.push("[search_after] cannot be used in a scroll context");
            }
            if self.collapse.is_some() {
                problems.push("cannot use `collapse` in a scroll context");
            }
            if self.request_cache {
                problems.push("[request_cache] cannot be used in a scroll context");
            }
            if self.pit.is_some() {
                problems.push("using [point in time] is not allowed in a scroll context");
            }
        }
        if self.slice.is_some() && self.scroll.is_none() && self.pit.is_none() {
            problems.push("[slice] can only be used with [scroll] or [point-in-time] requests");
        }
        if self.from > 0 && self.search_after.is_some() {
            problems.push("[from] parameter must be set to 0 when [search_after] is used");
        }
        if self.stored_fields == Some(StoredFields::Nothing) {
            if self.source_given && self.source != SourceSelection::Nothing {
                problems.push("[stored_fields] cannot be disabled if [_source] is requested");
            }
            if !self.fields.is_empty() {
                problems.push("[stored_fields] cannot be disabled when using the [fields] option");
            }
        }
        problems.into_iter().map(str::to_owned).collect()
    }

    /// Whether the hits are ordered or restricted in a way that a plain list by score does not support.
    pub fn is_sorted(&self) -> bool {
        self.sort != Sort::Score
            || self.scroll.is_some()
            || self.slice.is_some()
            || self.collapse.is_some()
            || self.terminate_after > 0
    }

    /// Makes the order explicit for a search with a point in time, so that hits return their sort values, even if sorted by score:
    /// with the position of the hit as the last one.
    pub(super) fn order_of_pit(&mut self) {
        let is_plain = self.fusion.is_none() && self.rank.is_none() && self.rescore.is_empty();
        if self.pit.is_some() && is_plain {
            self.sort = Sort::By(self.sort.keys());
        }
    }

    /// The sort keys, including the one that is added to tell hits of a point in time apart.
    pub fn sort_keys(&self) -> Vec<SortField> {
        let mut keys = self.sort.keys();
        if self.ends_with_place() && keys.iter().all(|key| key.name != "_shard_doc") {
            keys.push(SortField { name: "_shard_doc".to_owned(), ..SortField::default() });
        }
        keys
    }

    /// Whether a last sort key is added that tells all hits apart, as for sorted hits of a point in time.
    fn ends_with_place(&self) -> bool {
        self.pit.is_some() && self.sort != Sort::Score
    }

    /// Whether hits contain their sort values.
    pub fn shows_sort(&self) -> bool {
        self.sort != Sort::Score
    }
}
