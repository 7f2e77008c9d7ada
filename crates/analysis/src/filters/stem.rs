//! Stemmers, and the filters that protect words from them.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use rust_stemmers::Algorithm;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::Tokens;
use super::super::unicode::lowercase;
use super::super::{light, porter};
use super::Filter;

type Change = Box<dyn Fn(&mut String) + Send + Sync>;

/// A filter that stems the tokens not marked as keywords.
pub(crate) struct Stem {
    name: String,
    change: Change,
}

impl fmt::Debug for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stemmer {}", self.name)
    }
}

impl Filter for Stem {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.map(|mut token| {
            if !token.keyword {
                (self.change)(&mut token.text);
            }
            token
        }))
    }
}

impl Stem {
    /// The stemmer with the given name in `stemmer` filters; `None` if it is not implemented.
    pub fn named(language: &str) -> Option<Self> {
        let own = |change: fn(&mut String)| Some(Box::new(change) as Change);
        let change = match language {
            "english" | "porter" => own(porter::stem),
            "possessive_english" | "possessiveEnglish" => own(remove_possessive),
            "minimal_english" | "minimalEnglish" => own(light::minimal_english),
            "arabic" => own(light::arabic),
            "light_french" | "lightFrench" => own(light::french),
            "minimal_french" | "minimalFrench" => own(light::minimal_french),
            "light_german" | "lightGerman" => own(light::german),
            "minimal_german" | "minimalGerman" => own(light::minimal_german),
            "light_italian" | "lightItalian" => own(light::italian),
            "light_portuguese" | "lightPortuguese" => own(light::portuguese),
            "light_spanish" | "lightSpanish" => own(light::spanish),
            "light_swedish" | "lightSwedish" => own(light::swedish),
            "bulgarian" => own(light::bulgarian),
            "sorani" => None,
            other => algorithm(other).map(snowball),
        }?;
        Some(Self { name: language.to_owned(), change })
    }
}

/// Snowball's algorithm for a language, as `stemmer` and `snowball` filters name it; `None` for other languages.
fn algorithm(language: &str) -> Option<Algorithm> {
    Some(match language {
        "danish" => Algorithm::Danish,
        "dutch" => Algorithm::Dutch,
        "porter2" => Algorithm::English,
        "finnish" => Algorithm::Finnish,
        "french" => Algorithm::French,
        "german" => Algorithm::German,
        "hungarian" => Algorithm::Hungarian,
        "italian" => Algorithm::Italian,
        "norwegian" => Algorithm::Norwegian,
        "portuguese" => Algorithm::Portuguese,
        "romanian" => Algorithm::Romanian,
        "russian" => Algorithm::Russian,
        "spanish" => Algorithm::Spanish,
        "swedish" => Algorithm::Swedish,
        "turkish" => Algorithm::Turkish,
        _ => return None,
    })
}

fn snowball(algorithm: Algorithm) -> Change {
    let russian = matches!(algorithm, Algorithm::Russian);
    Box::new(move |text| {
        // Lucene's is a later edition, for which the two are one letter.
        if russian && text.contains('ё') {
            *text = text.replace('ё', "е");
        }
        let stemmer = rust_stemmers::Stemmer::create(algorithm);
        let stemmed = match stemmer.stem(text) {
            std::borrow::Cow::Borrowed(stem) if stem.len() == text.len() => return,
            stem => stem.into_owned(),
        };
        *text = stemmed;
    })
}

/// Drops a final `'s`, with any of the three apostrophes Lucene knows.
pub(crate) fn remove_possessive(word: &mut String) {
    for suffix in ["'s", "\u{2019}s", "\u{FF07}s", "'S", "\u{2019}S", "\u{FF07}S"] {
        if let Some(stripped) = word.strip_suffix(suffix) {
            let len = stripped.len();
            word.truncate(len);
            return;
        }
    }
}

/// The `keyword_marker` filter: marks words as keywords, which stemmers leave unchanged.
struct Marker {
    words: FxHashSet<String>,
    ignore_case: bool,
    pattern: Option<fancy_regex::Regex>,
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keyword_marker")
    }
}

impl Filter for Marker {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        let scratch = RefCell::new(String::new());
        Box::new(tokens.map(move |mut token| {
            token.keyword |= match &self.pattern {
                Some(pattern) => pattern.is_match(&token.text).unwrap_or(false),
                None if self.ignore_case => {
                    let mut word = scratch.borrow_mut();
                    word.clone_from(&token.text);
                    lowercase(&mut word);
                    self.words.contains(word.as_str())
                }
                None => self.words.contains(&token.text),
            };
            token
        }))
    }
}

/// A filter that marks the given words as keywords, which stemmers leave unchanged.
pub(crate) fn protect(words: FxHashSet<String>) -> Arc<dyn Filter> {
    Arc::new(Marker { words, ignore_case: false, pattern: None })
}

/// The `stemmer_override` filter: replaces words by given stems, which stemmers then leave unchanged.
#[derive(Debug)]
struct Override(FxHashMap<String, String>);

impl Filter for Override {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.map(|mut token| {
            if !token.keyword
                && let Some(stem) = self.0.get(&token.text)
            {
                token.text.clone_from(stem);
                token.keyword = true;
            }
            token
        }))
    }
}

/// A filter that replaces the given words by the given stems.
pub(super) fn overrides(rules: &[(&str, &str)]) -> Arc<dyn Filter> {
    Arc::new(Override(rules.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()))
}

/// `keyword_repeat`: each token twice, first as a keyword.
#[derive(Debug)]
struct Repeat;

impl Filter for Repeat {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        Box::new(tokens.flat_map(|token| {
            let mut keyword = token.clone();
            keyword.keyword = true;
            let mut second = token;
            second.keyword = false;
            second.increment = 0;
            [keyword, second]
        }))
    }
}

pub(super) fn build(kind: &str, params: &Params<'_>) -> Result<Arc<dyn Filter>, AnalysisError> {
    let stemmer = |name: &str| -> Result<Arc<dyn Filter>, AnalysisError> {
        match Stem::named(name) {
            Some(stem) => Ok(Arc::new(stem)),
            None => Err(AnalysisError::illegal(format!("Invalid stemmer class specified: {name}"))),
        }
    };
    Ok(match kind {
        "stemmer" => {
            let (language, name) = (params.text("language")?, params.text("name")?);
            stemmer(&language.or(name).unwrap_or_else(|| "porter".to_owned()).to_lowercase())?
        }
        "porter_stem" | "porterStem" => stemmer("porter")?,
        "arabic_stem" => stemmer("arabic")?,
        "german_stem" => stemmer("german")?,
        "french_stem" => stemmer("french")?,
        "russian_stem" => stemmer("russian")?,
        "snowball" => {
            let language = params.text("language")?.unwrap_or_else(|| "English".to_owned());
            match language.to_lowercase().as_str() {
                "english" => stemmer("porter2")?,
                "porter" => stemmer("porter")?,
                // Names of `stemmer` that are not Snowball's.
                name if algorithm(name).is_some() && name != "porter2" => stemmer(name)?,
                _ => {
                    return Err(AnalysisError::illegal(format!(
                        "Invalid stemmer class specified: {language}"
                    )));
                }
            }
        }
        "keyword_repeat" => Arc::new(Repeat),
        "keyword_marker" => {
            params.refuse(&["keywords_path"])?;
            let ignore_case = params.flag("ignore_case", false)?;
            let (keywords, pattern) = (params.list("keywords")?, params.text("keywords_pattern")?);
            match (keywords, pattern) {
                (Some(_), Some(_)) => {
                    return Err(AnalysisError::illegal(
                        "cannot specify both `keywords_pattern` and `keywords` or `keywords_path`",
                    ));
                }
                (None, Some(pattern)) => {
                    let whole = format!("^(?:{pattern})$");
                    let pattern = Some(super::super::pattern::compile(&whole, "")?);
                    Arc::new(Marker { words: FxHashSet::default(), ignore_case: false, pattern })
                }
                (Some(words), None) => {
                    let fold = |word: String| if ignore_case { word.to_lowercase() } else { word };
                    let words = words.into_iter().map(fold).collect();
                    Arc::new(Marker { words, ignore_case, pattern: None })
                }
                (None, None) => {
                    return Err(AnalysisError::illegal(
                        "keyword filter requires either `keywords`, `keywords_path`, or `keywords_pattern` to be \
                         configured",
                    ));
                }
            }
        }
        _ => {
            params.refuse(&["rules_path"])?;
            let rules = params.lines("rules")?.ok_or_else(|| {
                AnalysisError::illegal(
                    "stemmer override filter requires either `rules` or `rules_path` to be configured",
                )
            })?;
            let mut map = FxHashMap::default();
            for rule in rules {
                let bad = || AnalysisError::illegal(format!("Invalid Keyword override Rule:{rule}"));
                let (from, to) = rule.split_once("=>").ok_or_else(bad)?;
                let to = to.trim();
                for from in from.split(',').map(str::trim) {
                    if from.is_empty() || to.is_empty() || to.contains("=>") {
                        return Err(bad());
                    }
                    map.entry(from.to_owned()).or_insert_with(|| to.to_owned());
                }
            }
            Arc::new(Override(map))
        }
    })
}
