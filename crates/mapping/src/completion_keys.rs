//! How inputs of `completion` fields are kept: as terms that begin with the words of an input as they are analyzed, followed by the input
//! and its weight. So what begins with some text is one stretch of the dictionary, and its postings are the documents to suggest.

use std::collections::{BTreeMap, BTreeSet};

use super::completion::{Completion, input_of};
use super::completion_contexts::CONTEXT_END;
use sparrow_analysis::{Analysis, Analyzer};

/// Stands between the words of a key.
const SEPARATOR: char = '\u{1f}';
/// Stands between the parts of a term.
const END: char = '\0';
/// Most keys of one text: synonyms of several words multiply.
const MOST_KEYS: usize = 1_000;
/// Longest key in bytes. What is behind is not compared.
const LONGEST_KEY: usize = 16 << 10;
/// Most bytes of all keys of one text together.
const MOST_BYTES: usize = 256 << 10;

/// One term of a `completion` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletionEntry<'t> {
    /// The analyzed input, which is compared with what is to be completed.
    pub key: &'t str,
    /// The input as it was written.
    pub input: &'t str,
    /// The weight that a document gives it.
    pub weight: u32,
}

impl<'t> CompletionEntry<'t> {
    /// Reads a term.
    pub fn read(term: &'t str) -> Option<Self> {
        // No input has the character between the parts; a key might, from an unusual analyzer.
        let (rest, weight) = term.rsplit_once(END)?;
        let (key, input) = rest.rsplit_once(END)?;
        Some(Self { key, input, weight: weight.parse().ok()? })
    }

    fn term(self) -> String {
        let Self { key, input, weight } = self;
        format!("{key}{END}{input}{END}{weight}")
    }
}

/// The terms for a value that a document has for a field.
pub fn terms(field: &Completion, analysis: &Analysis, value: &str) -> Vec<String> {
    let parts = input_of(value).zip(analysis.analyzer(&field.analyzer));
    let Some(((input, weight), analyzer)) = parts else { return Vec::new() };
    let (context, input) = split_context(field, input);
    let keys = keys(field, &analyzer, input).into_iter().map(|key| format!("{context}{key}"));
    keys.map(|key| CompletionEntry { key: &key, input, weight }.term()).collect()
}

/// The context that an input or a key begins with, with its end, and what is behind it.
pub fn split_context<'t>(field: &Completion, text: &'t str) -> (&'t str, &'t str) {
    match text.find(CONTEXT_END) {
        Some(end) if !field.contexts.is_empty() => text.split_at(end + CONTEXT_END.len_utf8()),
        _ => ("", text),
    }
}

/// What a text becomes when it is analyzed for a field, as Lucene's `ConcatenateGraphFilter` has it: its words one after the other, with a
/// separator for each step between their positions. There are several where words stand beside one another, none without words.
pub fn keys(field: &Completion, analyzer: &Analyzer, text: &str) -> Vec<String> {
    let graph = Graph::read(field, analyzer, text);
    let separator = if field.preserve_separators { Some(SEPARATOR) } else { None };
    let mut keys = Vec::new();
    let mut bytes = 0;
    let mut open = vec![(0, String::new())];
    while let Some((position, mut key)) = open.pop() {
        let is_end = position > graph.last && graph.arrivals.contains(&position);
        if is_end && graph.ends_behind {
            key.extend(separator);
        }
        if is_end || key.len() >= LONGEST_KEY {
            let most = LONGEST_KEY.min(key.len());
            key.truncate((0..=most).rev().find(|at| key.is_char_boundary(*at)).unwrap_or_default());
            bytes += key.len();
            keys.push(key);
            if keys.len() == MOST_KEYS || bytes >= MOST_BYTES {
                break;
            }
            continue;
        }
        if position > 0 {
            key.extend(separator);
        }
        for (end, word) in graph.words.get(&position).into_iter().flatten().rev() {
            open.push((*end, format!("{key}{word}")));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The words of a text by the positions where they begin, each with the position where it ends.
#[derive(Default)]
struct Graph {
    words: BTreeMap<usize, Vec<(usize, String)>>,
    /// Positions where a word or a gap ends.
    arrivals: BTreeSet<usize>,
    /// Position where the last word begins.
    last: usize,
    /// Whether the text goes on behind the last word: with a space, or with a word that the analyzer removed.
    ends_behind: bool,
}

impl Graph {
    fn read(field: &Completion, analyzer: &Analyzer, text: &str) -> Self {
        let mut graph = Self::default();
        let (mut next, mut end_of_text) = (0, 0);
        for token in analyzer.tokens(text) {
            let step = match token.increment as usize {
                step if field.preserve_position_increments => step,
                step => step.min(1),
            };
            next += step;
            let position = next.saturating_sub(1);
            if step > 1 || step == 1 && !graph.arrivals.contains(&position) {
                graph.fill_gap(position);
            }
            graph.last = position;
            graph.add(position, position + token.length.max(1) as usize, token.text);
            end_of_text = end_of_text.max(token.end);
        }
        graph.ends_behind = text.len() > end_of_text;
        graph
    }

    /// Leads to a position that no word ends at, through gaps.
    fn fill_gap(&mut self, mut position: usize) {
        while position > 0 && !(self.arrivals.contains(&position) && self.words.contains_key(&(position - 1)))
        {
            self.add(position - 1, position, String::new());
            position -= 1;
        }
    }

    fn add(&mut self, position: usize, end: usize, word: String) {
        self.words.entry(position).or_default().push((end, word));
        self.arrivals.insert(end);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sparrow_analysis::{Analysis, AnalysisLimits};

    use super::{Completion, CompletionEntry, MOST_KEYS, keys, terms};

    fn analysis() -> Analysis {
        let settings = json!({
            "filter": {
                "two": {"type": "synonym_graph", "synonyms": ["tv => television, small screen"]},
                "many": {"type": "synonym", "synonyms": ["a, b, c, d, e, f, g, h"]},
            },
            "analyzer": {
                "graph": {"tokenizer": "whitespace", "filter": ["two"]},
                "wide": {"tokenizer": "whitespace", "filter": ["many"]},
            },
        });
        let settings = settings.as_object().expect("an object").clone();
        Analysis::parse(&settings, AnalysisLimits::default()).expect("analyzers")
    }

    fn shown(field: &Completion, analyzer: &str, text: &str) -> Vec<String> {
        let analyzer = analysis().analyzer(analyzer).expect("an analyzer");
        keys(field, &analyzer, text).into_iter().map(|key| key.replace('\u{1f}', "|")).collect()
    }

    #[test]
    fn keys_are_those_of_lucene() {
        let usual = Completion::default();
        let joined = Completion { preserve_separators: false, ..Completion::default() };
        let closed = Completion { preserve_position_increments: false, ..Completion::default() };
        for (field, analyzer, text, expected) in [
            (&usual, "simple", "Foo Fighters", &["foo|fighters"][..]),
            (&usual, "simple", "foo ", &["foo|"]),
            (&usual, "simple", "Foo2Bar!", &["foo|bar|"]),
            (&usual, "simple", "42 !?", &[]),
            (&usual, "simple", "", &[]),
            (&usual, "keyword", "Foo Fighters ", &["Foo Fighters "]),
            (&joined, "simple", "Foo Fighters ", &["foofighters"]),
            (&usual, "stop", "the who", &["|who"]),
            (&usual, "stop", "king of the road", &["king|||road"]),
            (&closed, "stop", "king of the road", &["king|road"]),
            (&usual, "stop", "who the", &["who|"]),
            (&usual, "graph", "old tv set", &["old|small|screen|set", "old|television|set"]),
            (&joined, "graph", "tv", &["smallscreen", "television"]),
        ] {
            assert_eq!(shown(field, analyzer, text), expected, "{analyzer} {text:?}");
        }
        // Eight words at each of eight positions.
        assert!(shown(&usual, "wide", "a b c d e f g h").len() <= MOST_KEYS);
    }

    #[test]
    fn a_term_has_key_input_and_weight() {
        let of = |value| terms(&Completion::default(), &analysis(), value);
        let made = of("12 Dark Side 7");
        assert_eq!(made, ["dark\u{1f}side\u{1f}\0Dark Side 7\x0012"]);
        let read = CompletionEntry::read(&made[0]).expect("a term");
        assert_eq!((read.key, read.input, read.weight), ("dark\u{1f}side\u{1f}", "Dark Side 7", 12));
        assert_eq!(of("1 7"), Vec::<String>::new());
        assert_eq!(CompletionEntry::read("nothing"), None);
    }
}
