//! The field type `completion`: texts that are completed while somebody types them, each with a weight.

use serde_json::Value;
use sparrow_wire::shape::{Named, int, several, switch, text};

use super::completion_contexts::{self, Context};
use super::error::MappingError;
use super::java::java_string;
use super::parameters::{Params, bad};

/// Most UTF-16 units of an input that may be kept: an input is part of a term, and terms have a bound.
const LONGEST_INPUT: u64 = 5_000;

/// The parameters of a `completion` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Name of the analyzer of inputs.
    pub analyzer: String,
    /// Name of the analyzer of what is completed, if the mapping names another one.
    pub search_analyzer: Option<String>,
    /// Whether the words of an input stay apart.
    pub preserve_separators: bool,
    /// Whether words that the analyzer removes leave a gap.
    pub preserve_position_increments: bool,
    /// Number of UTF-16 units of an input that are kept.
    pub max_input_length: usize,
    /// What inputs belong to: none, or at least one value of them for each input.
    pub contexts: Vec<Context>,
}

impl Default for Completion {
    fn default() -> Self {
        Self {
            analyzer: "simple".to_owned(),
            search_analyzer: None,
            preserve_separators: true,
            preserve_position_increments: true,
            max_input_length: 50,
            contexts: Vec::new(),
        }
    }
}

impl Completion {
    /// Name of the analyzer of what is completed.
    pub fn search_analyzer(&self) -> &str {
        self.search_analyzer.as_ref().unwrap_or(&self.analyzer)
    }

    /// The part of an input that is kept. A character of two units is kept whole.
    pub(crate) fn kept<'i>(&self, input: &'i str) -> &'i str {
        // A text has at least as many bytes.
        if input.len() <= self.max_input_length {
            return input;
        }
        let mut units = 0;
        for (at, character) in input.char_indices() {
            if units >= self.max_input_length {
                return &input[..at];
            }
            units += character.len_utf16();
        }
        input
    }

    pub(crate) fn parse(params: &mut Params<'_>) -> Result<Self, MappingError> {
        let mut parsed = Self::default();
        let mut name = |key| params.take(key).map(java_string);
        if let Some(analyzer) = name("analyzer") {
            parsed.analyzer = analyzer;
        }
        parsed.search_analyzer = name("search_analyzer");
        parsed.preserve_separators = params.flag("preserve_separators", true)?;
        parsed.preserve_position_increments = params.flag("preserve_position_increments", true)?;
        parsed.max_input_length = max_input_length(params)?;
        parsed.contexts = completion_contexts::parse(params)?;
        params.only("copy_to", &[Value::Array(Vec::new())])?;
        // Elasticsearch shows these of every such field.
        let shown: [(&str, Value); 4] = [
            ("analyzer", parsed.analyzer.as_str().into()),
            ("preserve_separators", parsed.preserve_separators.into()),
            ("preserve_position_increments", parsed.preserve_position_increments.into()),
            ("max_input_length", parsed.max_input_length.into()),
        ];
        params.kept.extend(shown.map(|(name, value)| (name.to_owned(), value)));
        if let Some(analyzer) = &parsed.search_analyzer {
            params.kept.insert("search_analyzer".to_owned(), analyzer.as_str().into());
        }
        Ok(parsed)
    }
}

pub(crate) fn members() -> Vec<Named> {
    let kept = "characters of an input that are kept";
    let context = completion_contexts::shape();
    vec![
        ("analyzer", text().preset("simple")),
        ("search_analyzer", text()),
        ("preserve_separators", switch().preset(true)),
        ("preserve_position_increments", switch().preset(true)),
        ("max_input_length", int().about(kept).preset(Completion::default().max_input_length)),
        ("contexts", several(context)),
    ]
}

fn max_input_length(params: &mut Params<'_>) -> Result<usize, MappingError> {
    let field = params.field;
    let Some(value) = params.take("max_input_length") else {
        return Ok(Completion::default().max_input_length);
    };
    let length = value.as_i64().or_else(|| value.as_str()?.parse().ok()).ok_or_else(|| {
        bad(format!(
            "Failed to parse value [{}] for parameter [max_input_length] on field [{field}]",
            java_string(value)
        ))
    })?;
    match u64::try_from(length) {
        Ok(length @ 1..=LONGEST_INPUT) => Ok(length as usize),
        Ok(1..) => Err(bad(format!("[max_input_length] must be at most {LONGEST_INPUT} but was [{length}]"))),
        _ => Err(bad(format!("[max_input_length] must be > 0 but was [{length}]"))),
    }
}

/// An input of a document as a value of its field, before it is analyzed: its weight, and the text, behind a context if it has some.
pub(crate) fn value(input: &str, weight: u32) -> String {
    format!("{weight} {input}")
}

/// The text and the weight of a value that a document has for a `completion` field ([`crate::ParsedDocument::keywords`]).
pub(crate) fn input_of(value: &str) -> Option<(&str, u32)> {
    let (weight, input) = value.split_once(' ')?;
    Some((input, weight.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Completion, input_of};
    use crate::{FieldType, Limits, Mapping, ParsedDocument};

    fn mapping(definition: Value) -> Mapping {
        Mapping::parse(&json!({"properties": {"c": definition}})).unwrap()
    }

    fn read(mapping: &Mapping, value: &Value) -> Result<ParsedDocument, String> {
        let read = mapping.parse_document("1", &json!({"c": value}), &Limits::default());
        let reason =
            |causes: Vec<(&str, String)>| causes.last().map(|cause| cause.1.clone()).unwrap_or_default();
        read.map(|(parsed, _)| parsed).map_err(|error| reason(error.locate(b"{}").causes().to_vec()))
    }

    /// The values of a document, each as its field, input and weight.
    fn values(mapping: &Mapping, value: &Value) -> Vec<String> {
        let parsed = read(mapping, value).unwrap();
        let shown = |(path, value): &(String, String)| match input_of(value) {
            Some((input, weight)) if mapping.field(path).is_some_and(|it| it.name() == "completion") => {
                format!("{path} {input} {weight}")
            }
            _ => format!("{path}={value}"),
        };
        parsed.keywords.iter().map(shown).collect()
    }

    #[test]
    fn a_mapping_shows_all_that_elasticsearch_shows() {
        let plain = mapping(json!({"type": "completion"}));
        let shown = json!({
            "type": "completion", "analyzer": "simple", "preserve_separators": true,
            "preserve_position_increments": true, "max_input_length": 50,
        });
        assert_eq!(plain.to_json()["properties"]["c"], shown);
        assert_eq!(Mapping::stored(&plain.to_json()).unwrap(), plain);
        let other = json!({
            "type": "completion", "analyzer": "english", "search_analyzer": "standard", "preserve_separators": false,
            "preserve_position_increments": false, "max_input_length": 7, "fields": {"raw": {"type": "keyword"}},
        });
        let parsed = mapping(other.clone());
        assert_eq!(parsed.to_json()["properties"]["c"], other);
        let Some(FieldType::Completion(field)) = parsed.field("c") else { panic!("no completion") };
        assert_eq!(field.search_analyzer(), "standard");
        assert_eq!((field.max_input_length, field.preserve_separators), (7, false));
    }

    #[test]
    fn what_may_be_updated_is_what_documents_do_not_hold() {
        let old = mapping(json!({"type": "completion", "analyzer": "english"}));
        let update = |definition: Value| {
            old.merge_update(&json!({"properties": {"c": definition}}))
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        let same = json!({"type": "completion", "analyzer": "english", "search_analyzer": "standard", "max_input_length": 9});
        assert_eq!(update(same), Ok(()));
        let refused = "Mapper for [c] conflicts with existing mapper:\n\tCannot update parameter [analyzer] from [english] to [simple]";
        assert_eq!(update(json!({"type": "completion"})), Err(refused.to_owned()));
    }

    #[test]
    fn malformed_definitions_are_named() {
        for (definition, reason) in [
            (json!({"max_input_length": 0}), "[max_input_length] must be > 0 but was [0]"),
            (json!({"max_input_length": 5001}), "[max_input_length] must be at most 5000 but was [5001]"),
            (json!({"index": false}), "unknown parameter [index] on mapper [c] of type [completion]"),
            (json!({"contexts": [{"name": "a"}]}), "type is missing in context"),
            (json!({"contexts": {"name": "a", "type": "colour"}}), "No context type for [colour]"),
            (
                json!({"contexts": {"name": "a", "type": "category", "precision": 3}}),
                "unknown parameter [precision]",
            ),
            (
                json!({"contexts": {"name": "a", "type": "geo", "precision": 13}}),
                "precision must be between 1 and 12",
            ),
            (
                json!({"contexts": vec![json!({"name": "a", "type": "category"}); 11]}),
                "Limit of completion field contexts [10] has been exceeded",
            ),
            (json!({"copy_to": "d"}), "parameter [copy_to] with value [d]"),
        ] {
            let mut definition = definition;
            definition["type"] = json!("completion");
            let error = Mapping::parse(&json!({"properties": {"c": definition}})).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let nested =
            json!({"properties": {"n": {"type": "nested", "properties": {"c": {"type": "completion"}}}}});
        let error = Mapping::parse(&nested).unwrap_err().to_string();
        assert!(
            error.contains("Field [n.c] of type [completion] cannot be inside a [nested] field"),
            "{error}"
        );
    }

    #[test]
    fn documents_have_inputs_with_weights() {
        let plain = mapping(json!({"type": "completion"}));
        for (value, expected) in [
            (json!("one"), &["c one 1"][..]),
            (json!(["one", "two"]), &["c one 1", "c two 1"]),
            (json!({"input": ["one", "two"], "weight": 3}), &["c one 3", "c two 3"]),
            (json!([{"input": "one", "weight": "4"}, "two"]), &["c one 4", "c two 1"]),
            (json!([{"input": "one", "weight": 4}, {"input": "one", "weight": 2}]), &["c one 4"]),
            (json!({"weight": 4}), &[]),
            (json!(null), &[]),
            (json!([]), &[]),
            (json!(["", " \t"]), &["_ignored=c"]),
        ] {
            assert_eq!(values(&plain, &value), expected, "{value}");
        }
        let with_fields = mapping(json!({"type": "completion", "max_input_length": 3, "fields": {
            "raw": {"type": "keyword"}, "c": {"type": "completion"},
        }}));
        let read = values(&with_fields, &json!({"input": "one two", "weight": 5}));
        assert_eq!(read, ["c one 5", "c.c one two 5", "c.raw=one two"]);
        assert!(read_names(&plain, &json!("")).contains(&"c".to_owned()));
        assert!(!read_names(&plain, &json!(null)).contains(&"c".to_owned()));
    }

    #[test]
    fn inputs_are_kept_once_for_each_of_their_contexts() {
        let contexts = json!([
            {"name": "colour", "type": "category", "path": "paint"},
            {"name": "place", "type": "geo", "precision": 3},
        ]);
        let both = Mapping::parse(&json!({"properties": {
            "c": {"type": "completion", "contexts": contexts}, "paint": {"type": "keyword"},
        }}))
        .unwrap();
        let kept = |source: Value| -> Result<Vec<String>, String> {
            let (parsed, _) = both
                .parse_document("1", &source, &Limits::default())
                .map_err(|error| error.locate(b"{}").causes().last().expect("a cause").1.clone())?;
            let of_field = parsed.keywords.into_iter().filter(|(path, _)| path == "c");
            Ok(of_field.map(|(_, value)| value.replace('\u{1d}', "|")).collect())
        };
        let at = json!({"lat": 52.22, "lon": 4.53});
        let input = |contexts: Value| json!({"c": {"input": "x", "weight": 2, "contexts": contexts}});
        assert_eq!(
            kept(input(json!({"colour": ["red", 7], "place": at}))).unwrap(),
            ["2 07|x", "2 0red|x", "2 1u17|x"]
        );
        assert_eq!(kept(json!({"c": "x", "paint": "red"})).unwrap(), ["1 0red|x"]);
        let none = "Contexts are mandatory in context enabled completion field [c]";
        assert_eq!(kept(json!({"c": "x"})).unwrap_err(), none);
        assert_eq!(kept(input(json!({"colour": []}))).unwrap_err(), none);
        let unknown = "Unknown context name [size], must be one of [colour, place]";
        assert_eq!(kept(input(json!({"size": "s"}))).unwrap_err(), unknown);
        assert_eq!(Mapping::stored(&both.to_json()).unwrap(), both);
    }

    fn read_names(mapping: &Mapping, value: &Value) -> Vec<String> {
        read(mapping, value).unwrap().field_names
    }

    #[test]
    fn malformed_values_are_named_as_elasticsearch_does() {
        let plain = mapping(json!({"type": "completion"}));
        for (value, reason) in [
            (json!(7), "failed to parse [c]: expected text or object, but got VALUE_NUMBER"),
            (json!(["a", null]), "failed to parse [c]: expected text or object, but got VALUE_NULL"),
            (json!({"input": 7}), "input must be a string or array, but was [VALUE_NUMBER]"),
            (json!({"input": ["a", 7]}), "input array must have string values, but was [VALUE_NUMBER]"),
            (json!({"input": "a", "weight": 1.5}), "weight must be an integer, but was [1.5]"),
            (json!({"input": "a", "weight": "x"}), "weight must be an integer, but was [x]"),
            (
                json!({"input": "a", "weight": true}),
                "weight must be a number or string, but was [VALUE_BOOLEAN]",
            ),
            (
                json!({"input": "a", "weight": -1}),
                "weight must be in the interval [0..2147483647], but was [-1]",
            ),
            (
                json!({"input": "a", "weight": "2147483648"}),
                "weight must be in the interval [0..2147483647], but was [2147483648]",
            ),
            (json!({"nope": "a"}), "unknown field name [nope], must be one of [input, weight, contexts]"),
            (json!({"input": "a", "contexts": {}}), "contexts field is not supported for field: [c]"),
            (
                json!("a\u{1f642}\u{1f}b"),
                "Illegal input [a\u{1f642}\u{1f}b] UTF-16 codepoint [0x1f] at position 3 is a reserved character",
            ),
        ] {
            assert_eq!(read(&plain, &value).unwrap_err(), reason, "{value}");
        }
    }

    #[test]
    fn long_inputs_are_cut_between_characters() {
        let field = Completion { max_input_length: 3, ..Completion::default() };
        // As in Elasticsearch, a character of two units that begins in time is kept whole.
        for (input, kept) in
            [("abc", "abc"), ("abcd", "abc"), ("äöüx", "äöü"), ("ab\u{1f642}c", "ab\u{1f642}")]
        {
            assert_eq!(field.kept(input), kept);
        }
    }
}
