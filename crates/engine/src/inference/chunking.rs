//! How a text that is longer than a model can read is cut: the settings, their bounds and their JSON.
//!
//! Sizes count words. The cutting itself is done where fields are filled.

use serde_json::{Map, Value, json};

use super::problems::Problems;
use crate::error::EngineError;

/// Words of a chunk where nothing is said.
const DEFAULT_SIZE: usize = 250;
/// Fewest words of a chunk of whole sentences.
const LEAST_BY_SENTENCE: usize = 20;
/// Fewest words of a chunk otherwise.
const LEAST_BY_WORD: usize = 10;
/// Most separators of the recursive strategy.
const MOST_SEPARATORS: usize = 50;
/// Largest chunk: beyond any model, small enough that twice of it is a number.
const MOST_WORDS: usize = 1 << 30;
const SCOPE: &str = "chunking_settings";

/// How texts are cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkingSettings {
    /// Whole sentences, up to `max_chunk_size` words; the last `sentence_overlap` (0 or 1) of a chunk starts the next.
    Sentence { max_chunk_size: usize, sentence_overlap: usize },
    /// `max_chunk_size` words; the last `overlap` of a chunk start the next.
    Word { max_chunk_size: usize, overlap: usize },
    /// At the first separator (a regular expression) that gives parts of up to `max_chunk_size` words, then at the next.
    Recursive { max_chunk_size: usize, separators: Vec<String> },
    /// Not at all.
    None,
}

impl Default for ChunkingSettings {
    fn default() -> Self {
        Self::Sentence { max_chunk_size: DEFAULT_SIZE, sentence_overlap: 1 }
    }
}

impl ChunkingSettings {
    /// Reads the settings; an empty object stands for the default.
    ///
    /// # Errors
    /// `illegal_argument_exception` for a strategy that is missing or unknown, `validation_exception` for the rest.
    pub fn parse(given: &Map<String, Value>) -> Result<Self, EngineError> {
        if given.is_empty() {
            return Ok(Self::default());
        }
        let strategy = match given.get("strategy") {
            Some(Value::String(strategy)) => strategy.as_str(),
            Some(Value::Null) | None => {
                return Err(EngineError::illegal_argument(
                    "Can't generate Chunker without ChunkingStrategy provided",
                ));
            }
            Some(other) => {
                return Err(EngineError::illegal_argument(format!("Invalid chunkingStrategy {other}")));
            }
        };
        let mut problems = Problems::default();
        let read = match strategy.to_ascii_lowercase().as_str() {
            "sentence" => sentence(given, &mut problems),
            "word" => word(given, &mut problems),
            "recursive" => recursive(given, &mut problems),
            "none" => {
                only(given, &[], "None", &mut problems);
                Some(Self::None)
            }
            _ => return Err(EngineError::illegal_argument(format!("Invalid chunkingStrategy {strategy}"))),
        };
        problems.done()?;
        read.ok_or_else(|| EngineError::internal("chunking settings without a problem and without a result"))
    }

    /// As requests write it, with everything said.
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
            Self::Recursive { max_chunk_size, separators } => json!({
                "strategy": "recursive",
                "max_chunk_size": max_chunk_size,
                "separators": separators,
            }),
            Self::None => json!({"strategy": "none"}),
        }
    }
}

fn sentence(given: &Map<String, Value>, problems: &mut Problems) -> Option<ChunkingSettings> {
    only(given, &["max_chunk_size", "sentence_overlap"], "Sentence based", problems);
    let size = size(given, LEAST_BY_SENTENCE, problems);
    let overlap = match given.get("sentence_overlap") {
        None | Some(Value::Null) => Some(1),
        Some(value) => match value.as_i64() {
            Some(overlap @ (0 | 1)) => Some(usize::from(overlap == 1)),
            Some(overlap) => {
                problems.add(format!("sentence_overlap[{overlap}] must be either 0 or 1"));
                None
            }
            None => {
                problems.wrong_type("sentence_overlap", value, "Integer");
                None
            }
        },
    };
    Some(ChunkingSettings::Sentence { max_chunk_size: size?, sentence_overlap: overlap? })
}

fn word(given: &Map<String, Value>, problems: &mut Problems) -> Option<ChunkingSettings> {
    only(given, &["max_chunk_size", "overlap"], "Word based", problems);
    let size = size(given, LEAST_BY_WORD, problems)?;
    let overlap = problems.required_positive(given, "overlap", SCOPE)?;
    if overlap > size / 2 {
        problems.add(format!(
            "[{SCOPE}] Invalid value [{overlap}.0]. [overlap] must be less than or equal to [{}.0]",
            size / 2
        ));
    }
    Some(ChunkingSettings::Word { max_chunk_size: size, overlap })
}

fn recursive(given: &Map<String, Value>, problems: &mut Problems) -> Option<ChunkingSettings> {
    only(given, &["max_chunk_size", "separator_group", "separators"], "Recursive", problems);
    let size = size(given, LEAST_BY_WORD, problems);
    let group = match given.get("separator_group") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => match separator_group(name) {
            Some(separators) => Some(separators),
            None => {
                problems.add(format!(
                    "[{SCOPE}] Invalid value [{name}] received. [separator_group] must be one of [markdown, plaintext]"
                ));
                None
            }
        },
        Some(other) => {
            problems.wrong_type("separator_group", other, "String");
            None
        }
    };
    let separators = match given.get("separators") {
        None | Some(Value::Null) => None,
        Some(Value::Array(list)) => {
            for value in list.iter().filter(|value| !value.is_string()) {
                problems.wrong_type("separators", value, "String");
            }
            if list.is_empty() {
                problems.add("Recursive chunking settings can not have an empty list of separators".into());
            }
            if list.len() > MOST_SEPARATORS {
                problems.add(format!(
                    "separators list size [{}] must not exceed [{MOST_SEPARATORS}]",
                    list.len()
                ));
            }
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        }
        Some(other) => {
            problems.wrong_type("separators", other, "List");
            None
        }
    };
    if given.contains_key("separators") && given.contains_key("separator_group") {
        problems.add("Recursive chunking settings can not have both separators and separator_set".into());
    }
    let separators = separators.or(group).or_else(|| separator_group("plaintext"))?;
    Some(ChunkingSettings::Recursive { max_chunk_size: size?, separators })
}

/// Separators that go by a name.
fn separator_group(name: &str) -> Option<Vec<String>> {
    let separators: &[&str] = match name.trim().to_ascii_lowercase().as_str() {
        "plaintext" => &["(?<!\\n)\\n\\n(?!\\n)", "(?<!\\n)\\n(?!\\n)"],
        "markdown" => &[
            "\n# ",
            "\n## ",
            "\n### ",
            "\n#### ",
            "\n##### ",
            "\n###### ",
            "\n^(?!\\s*$).*\\n-{1,}\\n",
            "\n^(?!\\s*$).*\\n={1,}\\n",
        ],
        _ => return None,
    };
    Some(separators.iter().map(|separator| (*separator).to_owned()).collect())
}

fn size(given: &Map<String, Value>, least: usize, problems: &mut Problems) -> Option<usize> {
    let size = problems.required_positive(given, "max_chunk_size", SCOPE)?;
    if size < least {
        problems.add(format!(
            "[{SCOPE}] Invalid value [{size}.0]. [max_chunk_size] must be greater than or equal to [{least}.0]"
        ));
        return None;
    }
    if size > MOST_WORDS {
        problems.wrong_type("max_chunk_size", &size.into(), "Integer");
        return None;
    }
    Some(size)
}

fn only(given: &Map<String, Value>, known: &[&str], strategy: &str, problems: &mut Problems) {
    let foreign: Vec<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "strategy" && !known.contains(name))
        .collect();
    if !foreign.is_empty() {
        problems.add(format!(
            "{strategy} chunking settings can not have the following settings: [{}]",
            foreign.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ChunkingSettings;

    fn parse(value: &Value) -> Result<ChunkingSettings, String> {
        ChunkingSettings::parse(value.as_object().unwrap()).map_err(|error| error.reason())
    }

    #[test]
    fn settings_are_read_and_written() {
        for value in [
            json!({"strategy": "sentence", "max_chunk_size": 20, "sentence_overlap": 0}),
            json!({"strategy": "word", "max_chunk_size": 10, "overlap": 5}),
            json!({"strategy": "recursive", "max_chunk_size": 10, "separators": ["\n\n"]}),
            json!({"strategy": "none"}),
        ] {
            assert_eq!(parse(&value).unwrap().to_json(), value);
        }
        assert_eq!(
            parse(&json!({})).unwrap().to_json(),
            json!({"strategy": "sentence", "max_chunk_size": 250, "sentence_overlap": 1})
        );
        let named =
            parse(&json!({"strategy": "recursive", "max_chunk_size": 10, "separator_group": "markdown"}));
        assert_eq!(named.unwrap().to_json()["separators"][0], "\n# ");
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
                "Invalid value [19.0]. [max_chunk_size] must be greater than or equal to [20.0]",
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
                "Invalid value [11.0]. [overlap] must be less than or equal to [10.0]",
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
