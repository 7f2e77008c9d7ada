//! Checks searches against limits that are settings of the indices searched.

use serde_json::Value;
use sparrow_request::error::EngineError;

use super::error::{SearchError, Shard};
use super::slices;
use super::target::Target;
use sparrow_catalog::SearchLimits;
use sparrow_query::walk::visit;
use sparrow_query::{Query, QueryKind, TermsQuery};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::paging;
use sparrow_search_body::retriever::{Fusion, Retriever};

/// Most searches for further hits of groups in one search: one for each hit of the largest result window.
const MOST_INNER_SEARCHES: usize = 10_000;

/// Checks a search against the bounds of all its indices.
///
/// # Errors
/// That of the first index whose bound it goes over.
pub fn check(targets: &[Target], body: &SearchBody) -> Result<(), SearchError> {
    for target in targets {
        target.limits.check(body, &target.shard)?;
        let default = SearchLimits::default();
        // Values and expressions over these are refused by the index itself.
        if target.limits.terms < default.terms || target.limits.regex_length < default.regex_length {
            body.queries().try_for_each(|query| target.limits.check_query(query, &target.shard))?;
        }
    }
    Ok(())
}

/// Checks of a search against the limits of one index.
pub(super) trait Bounds {
    /// Checks the sections of a search, without its queries.
    ///
    /// # Errors
    /// The first limit that is exceeded.
    fn check(&self, body: &SearchBody, shard: &Shard) -> Result<(), SearchError>;

    /// Checks the clauses of a query.
    ///
    /// # Errors
    /// The first limit that a clause exceeds.
    fn check_query(&self, query: &Query, shard: &Shard) -> Result<(), SearchError>;
}

impl Bounds for SearchLimits {
    fn check(&self, body: &SearchBody, shard: &Shard) -> Result<(), SearchError> {
        let over = |actual: usize, limit: usize, reason: &dyn Fn() -> String| match actual > limit {
            true => Err(refused(shard, reason())),
            false => Ok(()),
        };
        let asked = body.from.saturating_add(body.size);
        if asked > self.result_window {
            let shard = Box::new(shard.clone());
            return Err(SearchError::WindowTooLarge { limit: self.result_window, asked, shard });
        }
        over(body.docvalue_fields.len(), self.docvalue_fields, &|| {
            format!(
                "Trying to retrieve too many docvalue_fields. Must be less than or equal to: [{}] but was [{}]. This \
                 limit can be set by changing the [index.max_docvalue_fields_search] index level setting.",
                self.docvalue_fields,
                body.docvalue_fields.len()
            )
        })?;
        let over_scripts = |asked: usize| {
            over(asked, self.script_fields, &|| {
                format!(
                    "Trying to retrieve too many script_fields. Must be less than or equal to: [{}] but was [{asked}]. \
                     This limit can be set by changing the [index.max_script_fields] index level setting.",
                    self.script_fields
                )
            })
        };
        over_scripts(body.script_fields.len())?;
        if let Some(slice) = &body.slice {
            let (limit, setting) = match body.pit.is_some() {
                true => (self.slices_per_pit, "max_slices_per_pit"),
                false => (self.slices_per_scroll, "max_slices_per_scroll"),
            };
            over(slice.slices(), limit, &|| {
                format!(
                    "The number of slices [{}] is too large. It must be less than [{limit}]. This limit can be set by \
                     changing the [index.{setting}] index level setting.",
                    slice.slices()
                )
            })?;
        }
        let fused = body.fusion.iter().flat_map(rescore_windows);
        for window in body.rescore.iter().map(|rescore| rescore.window).chain(fused) {
            over(window, self.rescore_window, &|| {
                format!(
                    "Rescore window [{window}] is too large. It must be less than [{}]. This prevents allocating \
                     massive heaps for storing the results to be rescored. This limit can be set by changing the \
                     [index.max_rescore_window] index level setting.",
                    self.rescore_window
                )
            })?;
        }
        let lists = body.collapse.as_ref().map_or(0, |collapse| collapse.inner_hits.len());
        let searches = body.size.saturating_mul(lists);
        over(searches, MOST_INNER_SEARCHES, &|| {
            format!(
                "[{}] groups with [{lists}] [inner_hits] each would take [{searches}] searches, at most \
                 [{MOST_INNER_SEARCHES}] are possible on this server",
                body.size
            )
        })?;
        let nested = body.nested_hits()?;
        let of_each = nested.iter().map(|nested| nested.searches(body.size));
        let searches = of_each.fold(0, usize::saturating_add);
        over(searches, MOST_INNER_SEARCHES, &|| {
            format!(
                "[{}] hits with [{}] [inner_hits] each would take [{searches}] searches, at most \
                 [{MOST_INNER_SEARCHES}] are possible on this server",
                body.size,
                nested.len()
            )
        })?;
        let nested = nested.iter().map(|nested| &nested.hits);
        for inner in body.collapse.iter().flat_map(|collapse| &collapse.inner_hits).chain(nested) {
            over_scripts(inner.body.script_fields.len())?;
            let asked = inner.body.from.saturating_add(inner.body.size);
            over(asked, self.inner_result_window, &|| {
                format!(
                    "Inner result window is too large, the inner hit definition's [{}]'s from + size must be less \
                     than or equal to: [{}] but was [{asked}]. This limit can be set by changing the \
                     [index.max_inner_result_window] index level setting.",
                    inner.name, self.inner_result_window
                )
            })?;
        }
        for (name, asked) in body.aggs.iter().flat_map(|aggs| aggs.hit_windows()) {
            over(asked, self.inner_result_window, &|| {
                format!(
                    "Top hits result window is too large, the top hits aggregator [{name}]'s from + size must be less \
                     than or equal to: [{}] but was [{asked}]. This limit can be set by changing the \
                     [index.max_inner_result_window] index level setting.",
                    self.inner_result_window
                )
            })?;
        }
        Ok(())
    }

    fn check_query(&self, query: &Query, shard: &Shard) -> Result<(), SearchError> {
        let mut outcome = Ok(());
        visit(query, &mut |clause| {
            let reason = match &clause.kind {
                QueryKind::Terms(TermsQuery { values, .. }) if values.len() > self.terms => format!(
                    "The number of terms [{}] used in the Terms Query request has exceeded the allowed maximum of \
                     [{}]. This maximum can be set by changing the [index.max_terms_count] index level setting.",
                    values.len(),
                    self.terms
                ),
                QueryKind::Regexp(regexp) if regexp.value.chars().count() > self.regex_length => format!(
                    "The length of regex [{}] used in the Regexp Query request has exceeded the allowed maximum of \
                     [{}]. This maximum can be set by changing the [index.max_regex_length] index level setting.",
                    regexp.value.chars().count(),
                    self.regex_length
                ),
                _ => return,
            };
            if outcome.is_ok() {
                outcome = Err(refused(shard, reason));
            }
        });
        outcome
    }
}

fn rescore_windows(fusion: &Fusion) -> Vec<usize> {
    let mut windows = Vec::new();
    for input in &fusion.inputs {
        windows.extend(input.rescore.iter().map(|rescore| rescore.window));
        if let Retriever::Fused(inner) = &input.retriever {
            windows.extend(rescore_windows(inner));
        }
    }
    windows
}

fn refused(shard: &Shard, reason: String) -> SearchError {
    SearchError::OfShard { shard: Box::new(shard.clone()), kind: "illegal_argument_exception", reason }
}

/// Parses a `slice` section that divides documents by their ids; gives the number of the slice and the number of slices.
///
/// # Errors
/// As for a search with this slice; illegal argument for one that divides by a field.
pub fn parse_slice(slice: &Value) -> Result<(u32, u32), EngineError> {
    let bytes = slice.to_string();
    let (node, _) = sparrow_wire::json::read(bytes.as_bytes()).map_err(SearchError::from)?;
    let (part, parts) = slices::by_id(&paging::parse_slice(&node)?)?;
    let most = SearchLimits::default().slices_per_scroll;
    if parts as usize > most {
        return Err(EngineError::illegal_argument(format!(
            "The number of slices [{parts}] is too large. It must be less than [{most}]. This limit can be set by \
             changing the [index.max_slices_per_scroll] index level setting."
        )));
    }
    Ok((part, parts))
}
