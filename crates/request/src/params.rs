//! Typed access to query string parameters, with Elasticsearch's messages for invalid values.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{EngineError, Exception};

/// The parameters of one request.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a>(&'a BTreeMap<String, String>);

impl<'a> Params<'a> {
    /// Wraps the parameters of a parsed query string.
    pub fn new(parameters: &'a BTreeMap<String, String>) -> Self {
        Self(parameters)
    }

    /// The raw text of a parameter.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(String::as_str)
    }

    /// The parameter `routing` of a request for documents; `None` if it is absent or empty.
    pub fn routing(self) -> Option<String> {
        self.get("routing").filter(|routing| !routing.is_empty()).map(str::to_owned)
    }

    /// Refuses an unknown `search_type`. The two existing types rank alike, as term statistics always cover the whole
    /// index.
    ///
    /// # Errors
    /// An illegal argument error (400) that names the type.
    pub fn check_search_type(self) -> Result<(), EngineError> {
        match self.get("search_type") {
            None | Some("query_then_fetch" | "dfs_query_then_fetch") => Ok(()),
            Some(other) => Err(EngineError::illegal_argument(format!("No search type for [{other}]"))),
        }
    }

    /// A switch: present without a value means true.
    ///
    /// # Errors
    /// Illegal argument when the value is neither `true` nor `false`.
    pub fn bool(&self, name: &str, default: bool) -> Result<bool, EngineError> {
        match self.get(name) {
            None => Ok(default),
            Some("true" | "") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(EngineError::illegal_argument(format!(
                "Failed to parse value [{other}] as only [true] or [false] are allowed."
            ))),
        }
    }

    /// An integer parameter, if present.
    ///
    /// # Errors
    /// An illegal argument error that names the parameter.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, EngineError> {
        self.number(name, "int")
    }

    /// A floating-point parameter, if present.
    ///
    /// # Errors
    /// An illegal argument error that names the parameter.
    pub fn float(&self, name: &str) -> Result<Option<f64>, EngineError> {
        self.number(name, "float")
    }

    /// A duration parameter such as `30s`, `1m` or `500ms`; `None` if absent or `-1`, which means unlimited.
    ///
    /// # Errors
    /// An illegal argument error that names the parameter.
    pub fn duration(&self, name: &str) -> Result<Option<Duration>, EngineError> {
        self.get(name).map_or(Ok(None), |value| parse_duration(name, value))
    }

    /// When the written documents become searchable.
    ///
    /// # Errors
    /// Illegal argument for an unknown policy.
    pub fn refresh(&self) -> Result<RefreshPolicy, EngineError> {
        match self.get("refresh") {
            None | Some("false") => Ok(RefreshPolicy::None),
            Some("true" | "") => Ok(RefreshPolicy::Immediate),
            Some("wait_for") => Ok(RefreshPolicy::WaitFor),
            Some(other) => {
                Err(EngineError::illegal_argument(format!("Unknown value for refresh: [{other}].")))
            }
        }
    }

    fn number<T: std::str::FromStr>(&self, name: &str, kind: &str) -> Result<Option<T>, EngineError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let reason = format!("Failed to parse {kind} parameter [{name}] with value [{text}]");
            let cause = Exception::new("number_format_exception", format!("For input string: \"{text}\""));
            EngineError::api(400, Exception::new("illegal_argument_exception", reason).because(cause))
        })
    }
}

/// The `refresh` policy of a write: when the written documents become searchable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshPolicy {
    /// With the next periodic refresh; the response does not wait for it.
    None,
    /// Immediately: the write forces a refresh.
    Immediate,
    /// With the next periodic refresh, for which the response waits.
    WaitFor,
}

/// Parses the duration in a parameter; see [`Params::duration`].
pub fn parse_duration(name: &str, value: &str) -> Result<Option<Duration>, EngineError> {
    const UNITS: [(&str, f64); 7] = [
        ("nanos", 1e-9),
        ("micros", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let text = value.trim().to_ascii_lowercase();
    if text == "-1" {
        return Ok(None);
    }
    if text == "0" {
        return Ok(Some(Duration::ZERO));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| seconds);
    match (number.parse::<u32>(), seconds) {
        (Ok(number), Some(seconds)) => Ok(Some(Duration::from_secs_f64(f64::from(number) * seconds))),
        _ => Err(EngineError::illegal_argument(format!(
            "failed to parse setting [{name}] with value [{value}] as a time value: unit is missing or unrecognized"
        ))),
    }
}

/// Reads how long a scroll or a point in time is kept.
///
/// # Errors
/// When it is not a positive time value, or longer than `most`.
pub fn keep_alive_of(name: &str, text: &str, most: &str) -> Result<Duration, EngineError> {
    let keep_alive = parse_duration(name, text)?.filter(|keep_alive| !keep_alive.is_zero());
    let keep_alive = keep_alive.ok_or_else(|| {
        EngineError::illegal_argument(format!("[{name}] has to be a time longer than zero but was [{text}]"))
    })?;
    if parse_duration("search.max_keep_alive", most)?.is_some_and(|most| keep_alive > most) {
        return Err(EngineError::illegal_argument(format!(
            "Keep alive for request ({text}) is too large. It must be less than ({most}). This limit can be set by \
             changing the [search.max_keep_alive] cluster level setting."
        )));
    }
    Ok(keep_alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_typed_and_bad_ones_are_named() {
        let map =
            parameters(&[("a", ""), ("b", "no"), ("n", "12"), ("x", "abc"), ("t", "1500ms"), ("u", "5")]);
        let params = Params::new(&map);
        assert!(params.bool("a", false).unwrap());
        assert!(params.bool("absent", true).unwrap());
        assert!(params.bool("b", false).unwrap_err().reason().contains("[no]"));
        assert_eq!(params.integer("n").unwrap(), Some(12));
        let error = params.integer("x").unwrap_err();
        assert_eq!(error.reason(), "Failed to parse int parameter [x] with value [abc]");
        assert_eq!(error.status(), 400);
        assert_eq!(params.duration("t").unwrap(), Some(Duration::from_millis(1500)));
        assert!(params.duration("u").unwrap_err().reason().contains("unit is missing"));
    }
}
