//! `chunking_settings`: how a text longer than a model can read is cut into passages. Fields and inference endpoints
//! share these settings. Sizes are in words; the cutting itself is done where fields are filled.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_wire::shape::{Shape, either, int, list, object, one, text};

use super::MappingError;
use super::java::java_string;
use sparrow_analysis::JavaPattern;

/// Smallest allowed `max_chunk_size` of the sentence strategy, in words.
const LEAST_BY_SENTENCE: usize = 20;
/// Smallest allowed `max_chunk_size` of the word and recursive strategies, in words.
const LEAST_BY_WORD: usize = 10;
/// Largest allowed `max_chunk_size`, in words: beyond what any model reads, and small enough to be doubled without
/// overflow.
const MOST_WORDS: usize = 1 << 30;
/// Most separators of the recursive strategy.
const MOST_SEPARATORS: usize = 50;
const SCOPE: &str = "chunking_settings";

/// Strategy by which a text is cut into passages.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunking {
    /// Passages of whole sentences with at most `max_chunk_size` words together; if `sentence_overlap` is 1, the last
    /// sentence also begins the next passage.
    Sentence { max_chunk_size: usize, sentence_overlap: usize },
    /// Passages of `max_chunk_size` words, the last `overlap` of which also begin the next passage.
    Word { max_chunk_size: usize, overlap: usize },
    /// Parts between matches of the first separator, joined up to `max_chunk_size` words; a part that is longer is
    /// cut at the next separator.
    Recursive { max_chunk_size: usize, separators: Arc<[Separator]> },
    /// Each value is a passage.
    None,
}

impl Default for Chunking {
    fn default() -> Self {
        Self::Sentence { max_chunk_size: 250, sentence_overlap: 1 }
    }
}

/// A place where the recursive strategy cuts: a regular expression in Java's syntax, in which `^` and `$` match at
/// line ends.
#[derive(Debug, Clone)]
pub struct Separator {
    text: String,
    pattern: JavaPattern,
}

impl PartialEq for Separator {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Separator {
    fn parse(text: &str) -> Result<Self, String> {
        let pattern = JavaPattern::multi_line(text)?;
        Ok(Self { text: text.to_owned(), pattern })
    }

    /// Byte offsets in `text` where the separator matches, ascending.
    pub fn starts<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        self.pattern.starts(text)
    }
}

/// Reason why chunking settings are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkingError {
    /// A strategy that is missing or unknown: an `illegal_argument_exception`.
    Strategy(String),
    /// Everything that is wrong with the other settings, in one message: a `validation_exception`.
    Invalid(String),
}

impl From<ChunkingError> for MappingError {
    fn from(error: ChunkingError) -> Self {
        match error {
            ChunkingError::Strategy(reason) => Self::BadValue { reason },
            ChunkingError::Invalid(reason) => Self::Nested { causes: vec![("validation_exception", reason)] },
        }
    }
}

/// What chunking settings hold.
pub(super) fn chunking_shape() -> Shape {
    let by = |name| object([("strategy", one(&[name]))]);
    let sized = |name| by(name).and([("max_chunk_size", int().about("words of a passage"))]);
    let group = one(&["plaintext", "markdown"]).preset("plaintext");
    either([
        sized("sentence").and([("sentence_overlap", int().preset(1))]).needs(&["strategy", "max_chunk_size"]),
        sized("word").and([("overlap", int())]).needs(&["strategy", "max_chunk_size", "overlap"]),
        sized("recursive")
            .and([("separator_group", group), ("separators", list(text()))])
            .needs(&["strategy", "max_chunk_size"]),
        by("none"),
    ])
    .about("How a text is cut into passages; by sentences of 250 words where nothing is said.")
}

impl Chunking {
    /// Reads chunking settings; `None` for an empty object, which stands for the default.
    ///
    /// # Errors
    /// Everything that is wrong with the settings, in Elasticsearch's words.
    pub fn parse(given: &Map<String, Value>) -> Result<Option<Self>, ChunkingError> {
        if given.is_empty() {
            return Ok(None);
        }
        let strategy = match given.get("strategy") {
            None | Some(Value::Null) => {
                let reason = "Can't generate Chunker without ChunkingStrategy provided";
                return Err(ChunkingError::Strategy(reason.to_owned()));
            }
            Some(strategy) => java_string(strategy),
        };
        let mut reader = Reader { given, problems: Vec::new() };
        let read = match strategy.to_ascii_lowercase().as_str() {
            "sentence" => reader.sentence(),
            "word" => reader.word(),
            "recursive" => reader.recursive(),
            "none" => {
                reader.only(&[], "None");
                Some(Self::None)
            }
            _ => return Err(ChunkingError::Strategy(format!("Invalid chunkingStrategy {strategy}"))),
        };
        match read.filter(|_| reader.problems.is_empty()) {
            Some(read) => Ok(Some(read)),
            None => {
                let problems = reader.problems.iter().enumerate();
                let listed: String =
                    problems.map(|(at, problem)| format!("{}: {problem};", at + 1)).collect();
                Err(ChunkingError::Invalid(format!("Validation Failed: {listed}")))
            }
        }
    }

    /// The settings as JSON, in the form of requests, with defaults written out.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Sentence { max_chunk_size, sentence_overlap } => json!({
                "strategy": "sentence",
                "max_chunk_size": max_chunk_size,
                "sentence_overlap": sentence_overlap,
            }),
            Self::Word { max_chunk_size, overlap } => {
                json!({"strategy": "word", "max_chunk_size": max_chunk_size, "overlap": overlap})
            }
            Self::Recursive { max_chunk_size, separators } => {
                let separators: Vec<&str> = separators.iter().map(|one| one.text.as_str()).collect();
                json!({"strategy": "recursive", "max_chunk_size": max_chunk_size, "separators": separators})
            }
            Self::None => json!({"strategy": "none"}),
        }
    }
}

/// Chunking settings being read, and the problems found so far.
struct Reader<'g> {
    given: &'g Map<String, Value>,
    problems: Vec<String>,
}

impl<'g> Reader<'g> {
    fn sentence(&mut self) -> Option<Chunking> {
        self.only(&["max_chunk_size", "sentence_overlap"], "Sentence based");
        let size = self.size(LEAST_BY_SENTENCE);
        let overlap = match self.value("sentence_overlap") {
            None => Some(1),
            Some(value) => match value.as_i64() {
                Some(overlap @ (0 | 1)) => Some(usize::from(overlap == 1)),
                Some(overlap) => {
                    self.problems.push(format!("sentence_overlap[{overlap}] must be either 0 or 1"));
                    None
                }
                None => {
                    self.wrong_type("sentence_overlap", value, "Integer");
                    None
                }
            },
        };
        Some(Chunking::Sentence { max_chunk_size: size?, sentence_overlap: overlap? })
    }

    fn word(&mut self) -> Option<Chunking> {
        self.only(&["max_chunk_size", "overlap"], "Word based");
        let size = self.size(LEAST_BY_WORD)?;
        let overlap = self.positive("overlap")?;
        if overlap > size / 2 {
            self.problems.push(format!(
                "[{SCOPE}] Invalid value [{overlap}.0]. [overlap] must be a less than or equal to [{}.0]",
                size / 2
            ));
        }
        Some(Chunking::Word { max_chunk_size: size, overlap })
    }

    fn recursive(&mut self) -> Option<Chunking> {
        self.only(&["max_chunk_size", "separator_group", "separators"], "Recursive");
        let size = self.size(LEAST_BY_WORD);
        let group = self.group();
        let listed = self.separators();
        if listed.is_some() && group.is_some() {
            let problem = "Recursive chunking settings can not have both separators and separator_group";
            self.problems.push(problem.to_owned());
        }
        let texts = listed.unwrap_or_else(|| group.unwrap_or(PLAINTEXT).to_vec());
        let mut separators = Vec::with_capacity(texts.len());
        for text in texts {
            match Separator::parse(text) {
                Ok(separator) => separators.push(separator),
                Err(problem) => {
                    self.problems
                        .push(format!("[{SCOPE}] Invalid value [{text}] of [separators]: {problem}"));
                }
            }
        }
        Some(Chunking::Recursive { max_chunk_size: size?, separators: separators.into() })
    }

    fn group(&mut self) -> Option<&'static [&'static str]> {
        match self.value("separator_group")? {
            Value::String(name) => match name.to_ascii_lowercase().as_str() {
                "plaintext" => Some(PLAINTEXT),
                "markdown" => Some(MARKDOWN),
                _ => {
                    self.problems.push(format!(
                        "[{SCOPE}] Invalid value [{name}] received. [separator_group] must be one of [markdown, plaintext]"
                    ));
                    None
                }
            },
            other => {
                self.wrong_type("separator_group", other, "String");
                None
            }
        }
    }

    fn separators(&mut self) -> Option<Vec<&'g str>> {
        let given = self.given;
        match given.get("separators").filter(|value| !value.is_null())? {
            Value::Array(list) => {
                for value in list.iter().filter(|value| !value.is_string()) {
                    self.wrong_type("separators", value, "String");
                }
                if list.is_empty() {
                    let problem = "Recursive chunking settings can not have an empty list of separators";
                    self.problems.push(problem.to_owned());
                }
                if list.len() > MOST_SEPARATORS {
                    self.problems.push(format!(
                        "separators list size [{}] must not exceed [{MOST_SEPARATORS}]",
                        list.len()
                    ));
                }
                Some(list.iter().take(MOST_SEPARATORS).filter_map(Value::as_str).collect())
            }
            other => {
                self.wrong_type("separators", other, "List");
                None
            }
        }
    }

    fn value(&self, name: &str) -> Option<&'g Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn size(&mut self, least: usize) -> Option<usize> {
        let size = self.positive("max_chunk_size")?;
        if size < least {
            self.problems.push(format!(
                "[{SCOPE}] Invalid value [{size}.0]. [max_chunk_size] must be a greater than or equal to [{least}.0]"
            ));
            return None;
        }
        if size > MOST_WORDS {
            self.wrong_type("max_chunk_size", &size.into(), "Integer");
            return None;
        }
        Some(size)
    }

    /// Reads a required positive integer setting; notes a problem if it is missing or invalid.
    fn positive(&mut self, name: &str) -> Option<usize> {
        let Some(value) = self.value(name).cloned() else {
            self.problems.push(format!("[{SCOPE}] does not contain the required setting [{name}]"));
            return None;
        };
        match value.as_i64().filter(|number| i32::try_from(*number).is_ok()) {
            None => {
                self.wrong_type(name, &value, "Integer");
                None
            }
            Some(number @ 1..) => usize::try_from(number).ok(),
            Some(number) => {
                self.problems
                    .push(format!("[{SCOPE}] Invalid value [{number}]. [{name}] must be a positive integer"));
                None
            }
        }
    }

    fn wrong_type(&mut self, name: &str, value: &Value, expected: &str) {
        self.problems.push(format!(
            "field [{name}] is not of the expected type. The value [{}] cannot be converted to a [{expected}]",
            java_string(value)
        ));
    }

    fn only(&mut self, allowed: &[&str], strategy: &str) {
        let foreign: Vec<&str> = self
            .given
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "strategy" && !allowed.contains(name))
            .collect();
        if !foreign.is_empty() {
            self.problems.push(format!(
                "{strategy} chunking settings can not have the following settings: [{}]",
                foreign.join(", ")
            ));
        }
    }
}

/// Separators of the group `plaintext`: empty lines, then line breaks.
const PLAINTEXT: &[&str] = &["(?<!\\n)\\n\\n(?!\\n)", "(?<!\\n)\\n(?!\\n)"];
/// Separators of the group `markdown`: headings, from the largest to the smallest.
const MARKDOWN: &[&str] = &[
    "\n# ",
    "\n## ",
    "\n### ",
    "\n#### ",
    "\n##### ",
    "\n###### ",
    "\n^(?!\\s*$).*\\n-{1,}\\n",
    "\n^(?!\\s*$).*\\n={1,}\\n",
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Chunking, ChunkingError};

    fn parse(value: &Value) -> Result<Option<Chunking>, String> {
        Chunking::parse(value.as_object().unwrap()).map_err(|error| match error {
            ChunkingError::Strategy(reason) | ChunkingError::Invalid(reason) => reason,
        })
    }

    #[test]
    fn settings_are_read_and_written() {
        for value in [
            json!({"strategy": "sentence", "max_chunk_size": 20, "sentence_overlap": 0}),
            json!({"strategy": "word", "max_chunk_size": 10, "overlap": 5}),
            json!({"strategy": "recursive", "max_chunk_size": 10, "separators": ["(?<!a)b", "\n\n"]}),
            json!({"strategy": "none"}),
        ] {
            assert_eq!(parse(&value).unwrap().unwrap().to_json(), value);
        }
        assert_eq!(parse(&json!({})), Ok(None));
        let named =
            parse(&json!({"strategy": "recursive", "max_chunk_size": 10, "separator_group": "markdown"}));
        assert_eq!(named.unwrap().unwrap().to_json()["separators"][0], "\n# ");
        let bare = parse(&json!({"strategy": "RECURSIVE", "max_chunk_size": 10})).unwrap().unwrap();
        assert_eq!(bare.to_json()["separators"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (value, problem) in [
            (json!({"max_chunk_size": 20}), "Can't generate Chunker without ChunkingStrategy provided"),
            (json!({"strategy": "page", "max_chunk_size": 20}), "Invalid chunkingStrategy page"),
            (
                json!({"strategy": "sentence"}),
                "[chunking_settings] does not contain the required setting [max_chunk_size]",
            ),
            (
                json!({"strategy": "sentence", "max_chunk_size": 19}),
                "Invalid value [19.0]. [max_chunk_size] must be a greater than or equal to [20.0]",
            ),
            (
                json!({"strategy": "sentence", "max_chunk_size": -1}),
                "Invalid value [-1]. [max_chunk_size] must be a positive integer",
            ),
            (
                json!({"strategy": "sentence", "max_chunk_size": 20, "sentence_overlap": 2}),
                "sentence_overlap[2] must be either 0 or 1",
            ),
            (
                json!({"strategy": "sentence", "max_chunk_size": 20, "overlap": 2}),
                "Sentence based chunking settings can not have the following settings: [overlap]",
            ),
            (
                json!({"strategy": "word", "max_chunk_size": 20, "overlap": 11}),
                "Invalid value [11.0]. [overlap] must be a less than or equal to [10.0]",
            ),
            (
                json!({"strategy": "word", "max_chunk_size": "20", "overlap": 1}),
                "field [max_chunk_size] is not of the expected type. The value [20] cannot be converted to a [Integer]",
            ),
            (
                json!({"strategy": "recursive", "max_chunk_size": 20, "separators": []}),
                "Recursive chunking settings can not have an empty list of separators",
            ),
            (
                json!({"strategy": "recursive", "max_chunk_size": 20, "separators": ["x"], "separator_group": "markdown"}),
                "can not have both separators and separator_group",
            ),
            (
                json!({"strategy": "recursive", "max_chunk_size": 20, "separators": ["ok", "("]}),
                "Invalid value [(] of [separators]",
            ),
            (
                json!({"strategy": "recursive", "max_chunk_size": 20, "separator_group": "html"}),
                "[separator_group] must be one of [markdown, plaintext]",
            ),
            (
                json!({"strategy": "none", "overlap": 1}),
                "None chunking settings can not have the following settings: [overlap]",
            ),
        ] {
            let found = parse(&value).unwrap_err();
            assert!(found.contains(problem), "{value}: {found}");
        }
    }
}
