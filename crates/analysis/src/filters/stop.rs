//! The token filters `stop`, `keep` and `keep_types`, which remove words or all others.

use std::sync::{Arc, LazyLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::error::AnalysisError;
use super::super::params::Params;
use super::super::token::{Tokens, retain};
use super::super::unicode::lowercase;
use super::Filter;

/// Stop words by language, from Lucene. In the file, each language's section begins with `[name]`.
static LISTS: LazyLock<FxHashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut lists: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    let mut current = "";
    for line in include_str!("stopwords.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => current = name,
            None => lists.entry(current).or_default().extend(line.split_whitespace()),
        }
    }
    lists
});

/// Stop words of a language, which is named like its analyzer; `None` if there are none.
pub(crate) fn stop_words(language: &str) -> Option<&'static [&'static str]> {
    LISTS.get(language).map(Vec::as_slice)
}

/// Reads a list of words, in which `_english_` stands for the stop words of a language. `default` names the language
/// used without the parameter; if empty, there are no words then.
pub(crate) fn word_list(
    params: &Params<'_>,
    key: &'static str,
    default: &str,
) -> Result<FxHashSet<String>, AnalysisError> {
    let names = match params.list(key)? {
        Some(names) => names,
        None if default.is_empty() => return Ok(FxHashSet::default()),
        None => vec![format!("_{default}_")],
    };
    let mut words = FxHashSet::default();
    for name in names {
        match name.strip_prefix('_').and_then(|name| name.strip_suffix('_')) {
            Some("none") => {}
            Some(language) => match stop_words(language) {
                Some(list) => words.extend(list.iter().map(|&word| word.to_owned())),
                None => {
                    words.insert(name);
                }
            },
            None => {
                words.insert(name);
            }
        }
    }
    Ok(words)
}

#[derive(Debug)]
pub(crate) struct Stop {
    words: FxHashSet<String>,
    ignore_case: bool,
    /// Whether the words are kept and all others removed, instead of the reverse.
    keeps: bool,
    /// Whether the last token is kept in any case, as it may be the beginning of another word.
    keep_last: bool,
}

impl Stop {
    /// Reads the definition of a `stop` filter.
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        params.refuse(&["stopwords_path"])?;
        let words = word_list(params, "stopwords", "english")?;
        let ignore_case = params.flag("ignore_case", false)?;
        let keep_last = !params.flag("remove_trailing", true)?;
        Ok(Self::build(words, ignore_case, false, keep_last))
    }

    /// A filter without these words.
    pub fn of(words: FxHashSet<String>) -> Self {
        Self::build(words, false, false, false)
    }

    fn build(words: FxHashSet<String>, ignore_case: bool, keeps: bool, keep_last: bool) -> Self {
        let words = if ignore_case {
            words
                .into_iter()
                .map(|mut word| {
                    lowercase(&mut word);
                    word
                })
                .collect()
        } else {
            words
        };
        Self { words, ignore_case, keeps, keep_last }
    }

    fn has(&self, word: &str) -> bool {
        if self.ignore_case {
            let mut word = word.to_owned();
            lowercase(&mut word);
            return self.words.contains(&word);
        }
        self.words.contains(word)
    }
}

impl Filter for Stop {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        if self.keep_last {
            let mut tokens = tokens.peekable();
            let mut skipped = 0;
            return Box::new(std::iter::from_fn(move || {
                loop {
                    let mut token = tokens.next()?;
                    if tokens.peek().is_none() || !self.has(&token.text) {
                        token.increment += std::mem::take(&mut skipped);
                        return Some(token);
                    }
                    skipped += token.increment;
                }
            }));
        }
        retain(tokens, |token| self.has(&token.text) == self.keeps)
    }
}

/// Reads the definition of a `keep` filter, which keeps only listed words.
pub(super) fn keep(params: &Params<'_>) -> Result<Arc<dyn Filter>, AnalysisError> {
    params.refuse(&["keep_words_path"])?;
    let words = params.list("keep_words")?.ok_or_else(|| {
        AnalysisError::illegal("keep requires either `keep_words` or `keep_words_path` to be configured")
    })?;
    let ignore_case = params.flag("keep_words_case", false)?;
    Ok(Arc::new(Stop::build(words.into_iter().collect(), ignore_case, true, false)))
}

#[derive(Debug)]
struct KeepTypes {
    types: FxHashSet<String>,
    include: bool,
}

impl Filter for KeepTypes {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a> {
        retain(tokens, |token| self.types.contains(token.kind) == self.include)
    }
}

/// Reads the definition of a `keep_types` filter, which keeps or removes tokens of listed types.
pub(super) fn keep_types(params: &Params<'_>) -> Result<Arc<dyn Filter>, AnalysisError> {
    let types = params
        .list("types")?
        .filter(|types| !types.is_empty())
        .ok_or_else(|| AnalysisError::illegal("keep_types requires `types` to be configured"))?;
    let include = match params.text("mode")?.as_deref() {
        None | Some("include") => true,
        Some("exclude") => false,
        Some(other) => {
            return Err(AnalysisError::illegal(format!(
                "`keep_types` tokenfilter mode can only be [include] or [exclude] but was [{other}]."
            )));
        }
    };
    Ok(Arc::new(KeepTypes { types: types.into_iter().collect(), include }))
}
