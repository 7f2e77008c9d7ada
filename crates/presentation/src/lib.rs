//! Output options that apply to every operation's answer: `filter_path`, `pretty`, `human`, `error_trace`,
//! YAML.
//!
//! Works over the bytes of answers, most of it without building a tree. Scalars stay the slices of text they came as: `1.0`
//! stays `1.0`, and a long integer keeps its digits.

mod filter;
mod layout;
mod scan;
mod tree;

use std::sync::Arc;

use serde::Deserialize;
use sparrow_runtime::work::{self, Memory, Stopped, Work};

use self::scan::Malformed;

/// Output options of a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Comma-separated dot paths to keep, or with `-` to leave out.
    pub filter_path: Option<String>,
    /// Whether to indent the output.
    pub pretty: bool,
    /// Whether to add a readable form beside sizes and times, as `1kb` beside a number of bytes.
    pub human: bool,
    /// Method and path of the request, `METHOD /path`, to name in error traces; `None` for no traces.
    pub trace: Option<String>,
    /// Whether to write YAML instead of JSON.
    pub yaml: bool,
    /// Bytes that the process may still allocate; `None` for no limit.
    pub room: Option<usize>,
}

/// Why an answer cannot be formatted as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The answer is not JSON, which is a bug of the server.
    #[error("the answer is not JSON")]
    Malformed,
    /// The paths of `filter_path` take more matching steps on this answer than allowed.
    #[error("filter_path takes too many steps on this answer")]
    TooMuchWork,
    /// The formatted answer exceeds the length limit; indentation multiplies the size of deeply nested
    /// values.
    #[error("the answer is too long to be laid out with pretty or as YAML")]
    TooLong,
    /// What the process may still allocate is not enough for the formatted answer.
    #[error("there is no memory left for another form of the answer")]
    NoRoom,
}

impl From<Stopped> for Problem {
    fn from(_: Stopped) -> Self {
        Problem::NoRoom
    }
}

impl From<Malformed> for Problem {
    fn from(_: Malformed) -> Self {
        Problem::Malformed
    }
}

/// Formats a JSON answer as its request wants. Takes time proportional to the answer, whatever the options.
///
/// # Errors
/// See [`Problem`].
pub fn shaped(answer: &[u8], shape: &Shape) -> Result<Vec<u8>, Problem> {
    let memory = shape.room.map(|room| Arc::new(Memory::with_room(room)));
    let _entered = work::enter(memory.map(|memory| Work::new(Arc::default(), memory, "<answer>")));
    let mut shown = None;
    if (shape.human || shape.trace.is_some())
        && let Some(mut json) = tree::read(answer)?
    {
        if let Some(request) = &shape.trace {
            tree::trace(&mut json, request);
        }
        if shape.human {
            tree::humanize(&mut json);
        }
        let mut out = Vec::new();
        work::grow(&mut out, answer.len() * 2)?;
        tree::write(&json, &mut out);
        shown = Some(out);
    }
    // Without paths everything is kept, and the space between goes.
    if shape.filter_path.is_some() || (shown.is_none() && !shape.pretty && !shape.yaml) {
        let filter = shape.filter_path.as_deref().unwrap_or_default();
        shown = Some(filter::filtered(shown.as_deref().unwrap_or(answer), filter)?);
    }
    let bytes = shown.as_deref().unwrap_or(answer);
    if shape.yaml {
        return layout::yaml(bytes);
    }
    if shape.pretty {
        return layout::pretty(bytes);
    }
    Ok(shown.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: &str, shape: &Shape) -> String {
        String::from_utf8(shaped(answer.as_bytes(), shape).unwrap()).unwrap()
    }

    fn filtered(answer: &str, paths: &str) -> String {
        text(answer, &Shape { filter_path: Some(paths.to_owned()), ..Shape::default() })
    }

    #[test]
    fn all_that_paths_do_not_name_goes_away() {
        let whole = r#"{"took":6,"hits":{"total":{"value":2},"hits":[{"_id":"1","_source":{"n":1.0}},{"_id":"2","_source":{"n":2}}]}}"#;
        for (paths, expected) in [
            ("hits.hits._id,took", r#"{"took":6,"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}"#),
            ("**._id", r#"{"hits":{"hits":[{"_id":"1"},{"_id":"2"}]}}"#),
            ("hits.**.value", r#"{"hits":{"total":{"value":2}}}"#),
            ("-**", "{}"),
            ("took,hits.*,-**.hits.hits", r#"{"took":6,"hits":{"total":{"value":2}}}"#),
            ("took.deeper", "{}"),
        ] {
            assert_eq!(filtered(whole, paths), expected, "{paths}");
        }
        assert_eq!(filtered(r#"{"a.b":1,"a":{"b":2}}"#, r"a\.b"), r#"{"a.b":1}"#);
        assert_eq!(filtered("{ \"a\" : [ 1 , { } ],\n\"b\":[ ] }", ""), r#"{"a":[1,{}],"b":[]}"#);
        assert_eq!(filtered(r#"{"\u0061":{"x":1,"y":[]}}"#, "a,-a.z"), r#"{"\u0061":{"x":1,"y":[]}}"#);
    }

    /// Without a limit on steps this goes on for hours.
    #[test]
    fn patterns_made_to_take_long_end_soon() {
        let names: Vec<String> =
            (0..200_000).map(|number| format!("\"{number}aaaaaaaa\":{{\"b\":1}}")).collect();
        let answer = format!("{{{}}}", names.join(","));
        let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        for paths in [format!("{}b", "**.".repeat(5000)), format!("{}b", "*a".repeat(7000))] {
            for answer in [&answer, &deep] {
                let shape = Shape { filter_path: Some(paths.clone()), ..Shape::default() };
                let shown = shaped(answer.as_bytes(), &shape);
                assert!(matches!(&shown, Ok(_) | Err(Problem::TooMuchWork)), "{shown:?}");
            }
        }
    }

    #[test]
    fn nesting_takes_no_stack() {
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(filtered(&deep, "a,-b"), "{}");
        assert_eq!(filtered(&deep, ""), deep);
    }

    #[test]
    fn yaml_and_pretty_have_the_layout_of_the_original() {
        let json = r#"{"a":{"b":[1,{"c":2,"d":[[3],[]]}]},"no":"x\u00e9","e":{}}"#;
        let shape = Shape { yaml: true, ..Shape::default() };
        assert_eq!(
            text(json, &shape),
            "---\na:\n  b:\n  - 1\n  - c: 2\n    d:\n    - - 3\n    - []\n\"no\": \"xé\"\ne: {}\n"
        );
        let shape = Shape { pretty: true, ..Shape::default() };
        assert_eq!(
            text(r#"{"a":[1,{"c":[]}]}"#, &shape),
            "{\n  \"a\" : [\n    1,\n    {\n      \"c\" : [ ]\n    }\n  ]\n}\n"
        );
    }

    #[test]
    fn what_is_no_json_is_said_to_be_none() {
        for broken in ["", "{", "{\"a\":1", "[1}", "\"x"] {
            let shape = Shape { pretty: true, ..Shape::default() };
            assert_eq!(shaped(broken.as_bytes(), &shape), Err(Problem::Malformed), "{broken}");
        }
    }
}
