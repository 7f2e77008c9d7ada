//! The built-in analyzers, which every index has.

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::chain::{Analyzer, Fast, POSITION_INCREMENT_GAP};
use super::char_filters::CharFilter;
use super::error::AnalysisError;
use super::filters::{self, Context, Fingerprint, RuleAnalyzer, Stop, lowercase_filter, word_list};
use super::languages;
use super::params::Params;
use super::pattern::compile;
use super::tokenizers::{Keyword, Pattern, Runs, Standard, Tokenizer, max_token_length};
use super::words::MAX_CHARS;

/// Result of building a component: its name and the component, or `None` if nothing has that name.
pub(super) type Lookup<T> = Result<Option<(String, Arc<T>)>, AnalysisError>;

/// Builds an analyzer from char filters, a tokenizer and token filters.
pub(super) fn chain(
    name: &str,
    char_filters: Vec<(String, Arc<dyn CharFilter>)>,
    tokenizer: (&str, Arc<dyn Tokenizer>),
    filters: Vec<(String, Arc<dyn filters::Filter>)>,
) -> Analyzer {
    Analyzer {
        name: name.to_owned(),
        custom: false,
        char_filters,
        tokenizer: (tokenizer.0.to_owned(), tokenizer.1),
        filters,
        gap: POSITION_INCREMENT_GAP,
        fast: None,
    }
}

/// Names of the built-in analyzers, without those of languages.
const PLAIN: [&str; 7] = ["fingerprint", "keyword", "pattern", "simple", "standard", "stop", "whitespace"];

/// Names of the built-in analyzers.
pub(super) fn names<'a>() -> impl Iterator<Item = &'a str> {
    PLAIN.into_iter().chain(languages::names())
}

/// Builds an analyzer of a built-in type such as `stop`, with parameters; `None` if there is no such type.
pub(super) fn typed(kind: &str, name: &str, params: &Params<'_>) -> Result<Option<Analyzer>, AnalysisError> {
    let standard =
        |max_chars| -> (&str, Arc<dyn Tokenizer>) { ("standard", Arc::new(Standard { max_chars })) };
    let lowercase = || -> Result<_, AnalysisError> { Ok(("lowercase".to_owned(), lowercase_filter(None)?)) };
    let stop = |default: &str| -> Lookup<dyn filters::Filter> {
        params.refuse(&["stopwords_path"])?;
        let words = word_list(params, "stopwords", default)?;
        let filter = (!words.is_empty()).then(|| Arc::new(Stop::of(words)) as Arc<dyn filters::Filter>);
        Ok(filter.map(|filter| ("stop".to_owned(), filter)))
    };
    let analyzer = match kind {
        "standard" | "default" => {
            let mut filters = vec![lowercase()?];
            filters.extend(stop("")?);
            let max_chars = max_token_length(params)?;
            let mut analyzer = chain(name, Vec::new(), standard(max_chars), filters);
            analyzer.fast = (analyzer.filters.len() == 1 && max_chars == MAX_CHARS).then_some(Fast::Standard);
            analyzer
        }
        "simple" => {
            chain(name, Vec::new(), ("lowercase", Arc::new(Runs::letters(MAX_CHARS, true))), Vec::new())
        }
        "whitespace" => {
            chain(name, Vec::new(), ("whitespace", Arc::new(Runs::whitespace(MAX_CHARS))), Vec::new())
        }
        "keyword" => chain(name, Vec::new(), ("keyword", Arc::new(Keyword)), Vec::new()),
        "stop" => {
            let filters = stop("english")?.into_iter().collect();
            chain(name, Vec::new(), ("lowercase", Arc::new(Runs::letters(MAX_CHARS, true))), filters)
        }
        "pattern" => {
            let pattern = params.text("pattern")?.unwrap_or_else(|| "\\W+".to_owned());
            let regex = compile(&pattern, &params.text("flags")?.unwrap_or_default())?;
            let mut filters = Vec::new();
            if params.flag("lowercase", true)? {
                filters.push(lowercase()?);
            }
            filters.extend(stop("")?);
            chain(name, Vec::new(), ("pattern", Arc::new(Pattern::split(regex))), filters)
        }
        "fingerprint" => {
            let none = Map::new();
            let mut filters = vec![lowercase()?];
            filters.extend(filters_named("asciifolding", &none)?);
            filters.extend(stop("")?);
            filters.push(("fingerprint".to_owned(), Arc::new(Fingerprint::new(params)?)));
            chain(name, Vec::new(), standard(MAX_CHARS), filters)
        }
        language if languages::is_language(language) => {
            let plain = !params.has("stopwords") && !params.has("stem_exclusion");
            let (char_filters, filters) = languages::parts(language, params)?;
            let mut analyzer = chain(name, char_filters, standard(MAX_CHARS), filters);
            analyzer.fast = (language == "english" && plain).then_some(Fast::English);
            analyzer
        }
        _ => return Ok(None),
    };
    Ok(Some(analyzer))
}

/// Builds a token filter of a given type, without parameters.
fn filters_named(kind: &str, none: &Map<String, Value>) -> Lookup<dyn filters::Filter> {
    let rules = RuleAnalyzer(Box::new(|_| Ok(Vec::new())));
    let context = Context { rules: &rules, max_ngram_diff: 1, max_shingle_diff: 3 };
    let filter = filters::build(kind, &Params::new("filter", kind, none), &context)?;
    Ok(filter.map(|filter| (kind.to_owned(), filter)))
}

/// The built-in analyzer called `name`, which is built on first use and then cached; `None` for an unknown name.
pub(super) fn built_in(name: &str) -> Option<Arc<Analyzer>> {
    static MADE: LazyLock<Mutex<FxHashMap<String, Arc<Analyzer>>>> = LazyLock::new(Mutex::default);
    if let Some(analyzer) = MADE.lock().get(name) {
        return Some(analyzer.clone());
    }
    let none = Map::new();
    let analyzer = Arc::new(typed(name, name, &Params::new("analyzer", name, &none)).ok()??);
    MADE.lock().insert(name.to_owned(), analyzer.clone());
    Some(analyzer)
}
