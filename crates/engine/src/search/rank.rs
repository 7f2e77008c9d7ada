//! `rank`: how several result lists become one.

use super::dsl::value;
use super::error::SearchError;
use super::json::Node;
use super::suggest::suggestions;

/// Window of each list when the request names none. The interface had 100 while `sub_searches` were
/// current and 10 later; the larger one lets the lists meet.
const DEFAULT_WINDOW: usize = 100;
const DEFAULT_RANK_CONSTANT: u32 = 60;
/// Longest window: each list is held in memory.
const MAX_WINDOW: usize = 10_000;
const KEYS: &[&str] = &["rank_constant", "rank_window_size", "window_size"];

/// Reciprocal rank fusion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankFusion {
    /// Added to each rank; the higher, the less the first places stand out.
    pub rank_constant: u32,
    /// Hits taken from each list; `None` unless the request says it.
    pub window: Option<usize>,
}

impl RankFusion {
    /// Hits taken from each list of a request for `wanted` hits.
    pub fn window_for(&self, wanted: usize) -> usize {
        self.window.unwrap_or_else(|| wanted.max(DEFAULT_WINDOW))
    }
}

/// Reads the `rank` section.
///
/// # Errors
/// When it names another method than `rrf` or its values are out of range.
pub fn parse(node: &Node) -> Result<RankFusion, SearchError> {
    let Some(methods) = node.as_object() else {
        return Err(SearchError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let [method] = methods else {
        return Err(SearchError::parsing(
            methods.get(1).map_or(node.end, |second| second.at),
            "expected one rank method",
        ));
    };
    if &*method.name != "rrf" {
        return Err(SearchError::parsing(method.value.at, format!("unknown rank method [{}]", method.name)));
    }
    let Some(members) = method.value.as_object() else {
        return Err(SearchError::parsing(
            method.value.at,
            format!("Expected [START_OBJECT] but found [{}]", method.value.token()),
        ));
    };
    let mut rank_constant = None;
    let mut window = None;
    for member in members {
        let number = || value::int(&member.value);
        match &*member.name {
            "rank_constant" => rank_constant = Some(number()?),
            "rank_window_size" | "window_size" => window = Some(number()?),
            _ => {
                return Err(SearchError::UnknownField {
                    parser: "rrf",
                    field: member.name.to_string(),
                    suggestions: suggestions(&member.name, KEYS),
                    at: member.at,
                });
            }
        }
    }
    let rank_constant = match rank_constant {
        None => DEFAULT_RANK_CONSTANT,
        Some(constant) => {
            u32::try_from(constant).ok().filter(|constant| *constant >= 1).ok_or_else(|| {
                SearchError::illegal("[rank_constant] must be greater or equal to [1] for [rrf]")
            })?
        }
    };
    let window = match window {
        None => None,
        Some(size) => match usize::try_from(size) {
            Ok(size @ 1..=MAX_WINDOW) => Some(size),
            Ok(size) if size > MAX_WINDOW => {
                return Err(SearchError::illegal(format!(
                    "[rank_window_size] must be less than or equal to [{MAX_WINDOW}] for [rrf], but was [{size}]"
                )));
            }
            Ok(_) | Err(_) => {
                return Err(SearchError::illegal(
                    "[rank_window_size] must be greater or equal to [1] for [rrf]",
                ));
            }
        },
    };
    Ok(RankFusion { rank_constant, window })
}

#[cfg(test)]
mod tests {
    use super::{RankFusion, parse};
    use crate::search::json;

    fn rank(text: &str) -> Result<RankFusion, String> {
        let (node, _) = json::read(text.as_bytes()).expect("valid JSON");
        parse(&node).map_err(|error| error.exception().reason)
    }

    #[test]
    fn empty_options_mean_the_defaults() {
        let rank = rank(r#"{"rrf": {}}"#).expect("valid");
        assert_eq!(rank, RankFusion { rank_constant: 60, window: None });
        assert_eq!((rank.window_for(10), rank.window_for(500)), (100, 500));
    }

    #[test]
    fn both_names_of_the_window_are_known() {
        for name in ["window_size", "rank_window_size"] {
            let rank = rank(&format!(r#"{{"rrf": {{"{name}": 7, "rank_constant": 1}}}}"#));
            assert_eq!(rank, Ok(RankFusion { rank_constant: 1, window: Some(7) }));
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, reason) in [
            (r#"{"rrf": {"rank_constant": 0}}"#, "[rank_constant] must be greater or equal"),
            (
                r#"{"rrf": {"window_size": 10001}}"#,
                "[rank_window_size] must be less than or equal to [10000]",
            ),
            (r#"{"rrf": {"window_size": 0}}"#, "[rank_window_size] must be greater or equal"),
            (
                r#"{"rrf": {"windowsize": 5}}"#,
                "unknown field [windowsize] did you mean any of [window_size, rank_window_size]?",
            ),
            (r#"{"linear": {}}"#, "unknown rank method [linear]"),
            (r#"{}"#, "expected one rank method"),
            (r#"[]"#, "Expected [START_OBJECT] but found [START_ARRAY]"),
        ] {
            let error = rank(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
