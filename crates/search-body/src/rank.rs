//! `rank`: how several result lists are fused into one.

use super::fusion::Method;
use super::shape::{Named, Shape, int, object};
use super::window::{MAX_WINDOW, Window};
use sparrow_query::dsl::value;
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// Default number of hits taken from each list. Elasticsearch had 100 as long as `sub_searches` were current, and 10 later; with
/// the larger number, the lists are more likely to share documents.
const DEFAULT_WINDOW: usize = 100;
/// Default of `rank_constant`.
pub const DEFAULT_RANK_CONSTANT: u32 = 60;

/// A parsed `rank` section, for reciprocal rank fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankFusion {
    /// Added to each rank, from 1: the higher it is, the smaller the advantage of the first ranks.
    pub rank_constant: u32,
    /// Number of hits taken from each list; `None` for the default.
    pub window: Option<usize>,
}

impl RankFusion {
    /// The method by which the lists are fused.
    pub fn method(&self) -> Method {
        Method::Rrf { rank_constant: self.rank_constant }
    }

    /// How many hits are taken from each list.
    pub fn window(&self) -> Window {
        self.window.map_or(Window::Default(DEFAULT_WINDOW), Window::Given)
    }
}

/// Checks a `rank_constant`.
///
/// # Errors
/// When it is not at least 1.
pub fn rank_constant(constant: i32) -> Result<u32, BodyError> {
    u32::try_from(constant)
        .ok()
        .filter(|constant| *constant >= 1)
        .ok_or_else(|| BodyError::illegal("[rank_constant] must be greater or equal to [1] for [rrf]"))
}

/// Checks the `rank_window_size` of a method.
///
/// # Errors
/// When it is less than 1, or more than the longest list that this server keeps.
pub fn window(method: &str, size: i32) -> Result<usize, BodyError> {
    match usize::try_from(size) {
        Ok(size @ 1..=MAX_WINDOW) => Ok(size),
        Ok(size) if size > MAX_WINDOW => Err(BodyError::illegal(format!(
            "[rank_window_size] must be less than or equal to [{MAX_WINDOW}] for [{method}], but was [{size}]"
        ))),
        Ok(_) | Err(_) => Err(BodyError::illegal(format!(
            "[rank_window_size] must be greater or equal to [1] for [{method}]"
        ))),
    }
}

/// The options of `rrf`.
pub(crate) fn shape() -> Shape {
    object([rank_constant_shape(), window_shape(), ("window_size", int())])
}

pub(crate) fn rank_constant_shape() -> Named {
    let about = "how little first places count more than later ones; 5 where a question stands alone";
    ("rank_constant", int().about(about).preset(DEFAULT_RANK_CONSTANT))
}

pub(crate) fn window_shape() -> Named {
    ("rank_window_size", int().about("first hits of each list that are fused"))
}

/// Reads the `rank` section.
///
/// # Errors
/// When it names another method than `rrf` or its values are out of range.
pub fn parse(node: &Node) -> Result<RankFusion, BodyError> {
    let Some(methods) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let [method] = methods else {
        return Err(BodyError::parsing(
            methods.get(1).map_or(node.end, |second| second.at),
            "expected one rank method",
        ));
    };
    if &*method.name != "rrf" {
        return Err(BodyError::parsing(method.value.at, format!("unknown rank method [{}]", method.name)));
    }
    let Some(members) = method.value.as_object() else {
        return Err(BodyError::parsing(
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
            _ => return Err(BodyError::unknown_field("rrf", member, shape().names())),
        }
    }
    let rank_constant = match rank_constant {
        None => DEFAULT_RANK_CONSTANT,
        Some(constant) => self::rank_constant(constant)?,
    };
    let window = match window {
        None => None,
        Some(size) => Some(self::window("rrf", size)?),
    };
    Ok(RankFusion { rank_constant, window })
}

#[cfg(test)]
mod tests {
    use super::{RankFusion, Window, parse};
    use sparrow_wire::json;

    fn rank(text: &str) -> Result<RankFusion, String> {
        let (node, _) = json::read(text.as_bytes()).expect("valid JSON");
        parse(&node).map_err(|error| error.exception().reason)
    }

    #[test]
    fn empty_options_mean_the_defaults() {
        let rank = rank(r#"{"rrf": {}}"#).expect("valid");
        assert_eq!(rank, RankFusion { rank_constant: 60, window: None });
        assert_eq!(rank.window(), Window::Default(100));
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
