//! The analyzers for languages, as in Elasticsearch, as far as their stemmers are implemented.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::char_filters::{self, CharFilter};
use super::error::AnalysisError;
use super::filters::{
    self, FRENCH_ARTICLES, Filter, Stem, Stop, cjk, elision, lowercase_filter, normalization, protect,
    word_list,
};
use super::params::Params;

/// Char filters and token filters of a language analyzer, whose tokenizer is `standard`.
pub(super) type Parts = (Vec<(String, Arc<dyn CharFilter>)>, Vec<(String, Arc<dyn Filter>)>);

/// Names of analyzers that Elasticsearch has but that are not implemented here, for lack of a stemmer.
pub(super) const REFUSED: &[&str] = &[
    "armenian",
    "basque",
    "bengali",
    "brazilian",
    "catalan",
    "czech",
    "estonian",
    "galician",
    "greek",
    "hindi",
    "indonesian",
    "irish",
    "latvian",
    "lithuanian",
    "serbian",
    "sorani",
    "thai",
    "snowball",
];

/// The supported languages, each with the name of its stemmer, if it has one.
const STEMMERS: [(&str, Option<&str>); 19] = [
    ("arabic", Some("arabic")),
    ("bulgarian", Some("bulgarian")),
    ("cjk", None),
    ("danish", Some("danish")),
    ("dutch", Some("dutch")),
    ("english", Some("english")),
    ("finnish", Some("finnish")),
    ("french", Some("light_french")),
    ("german", Some("light_german")),
    ("hungarian", Some("hungarian")),
    ("italian", Some("light_italian")),
    ("norwegian", Some("norwegian")),
    ("persian", None),
    ("portuguese", Some("light_portuguese")),
    ("romanian", Some("romanian")),
    ("russian", Some("russian")),
    ("spanish", Some("light_spanish")),
    ("swedish", Some("swedish")),
    ("turkish", Some("turkish")),
];

const ITALIAN_ARTICLES: [&str; 23] = [
    "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl", "degl", "negl",
    "sugl", "un", "m", "t", "s", "v", "d", "i", "o",
];

/// Dutch words that the stemmer would get wrong, with their correct stems.
const DUTCH_EXCEPTIONS: [(&str, &str); 4] =
    [("fiets", "fiets"), ("bromfiets", "bromfiets"), ("ei", "eier"), ("kind", "kinder")];

/// The languages of which there is an analyzer.
pub(super) fn names<'a>() -> impl Iterator<Item = &'a str> {
    STEMMERS.iter().map(|(language, _)| *language)
}

/// Whether there is an analyzer of this language.
pub(super) fn is_language(name: &str) -> bool {
    STEMMERS.iter().any(|(language, _)| *language == name)
}

fn named(name: &str, filter: Arc<dyn Filter>) -> (String, Arc<dyn Filter>) {
    (name.to_owned(), filter)
}

fn words(list: &[&str]) -> FxHashSet<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

/// The char filters and token filters of a language's analyzer.
pub(super) fn parts(language: &str, params: &Params<'_>) -> Result<Parts, AnalysisError> {
    params.refuse(&["stopwords_path", "stem_exclusion_path"])?;
    let stop = named("stop", Arc::new(Stop::of(word_list(params, "stopwords", language)?)));
    let excluded = word_list(params, "stem_exclusion", "")?;
    let plain = named("lowercase", lowercase_filter(None)?);
    let normalize = |name: &str| normalization(name).map(|filter| named(name, filter));
    let mut char_filters = Vec::new();
    let mut chain: Vec<(String, Arc<dyn Filter>)> = Vec::new();
    match language {
        "english" => {
            chain.extend(Stem::named("possessive_english").map(|stem| named("possessive", Arc::new(stem))));
            chain.extend([plain, stop]);
        }
        "french" => {
            chain.push(named("elision", elision(words(&FRENCH_ARTICLES), true)));
            chain.extend([plain, stop]);
        }
        "italian" => {
            chain.push(named("elision", elision(words(&ITALIAN_ARTICLES), true)));
            chain.extend([plain, stop]);
        }
        "turkish" => {
            let none = serde_json::Map::new();
            let apostrophe = Params::new("filter", "apostrophe", &none);
            chain.extend(
                filters::simple_named("apostrophe", &apostrophe)?.map(|filter| named("apostrophe", filter)),
            );
            chain.extend([named("lowercase", lowercase_filter(Some("turkish"))?), stop]);
        }
        "arabic" => {
            chain.extend([plain, filters::decimal_digit(), stop]);
            chain.extend(normalize("arabic_normalization"));
        }
        "persian" => {
            char_filters.push(("persian".to_owned(), char_filters::persian()));
            chain.extend([plain, filters::decimal_digit()]);
            chain.extend(normalize("arabic_normalization"));
            chain.extend(normalize("persian_normalization"));
            chain.push(stop);
        }
        "cjk" => {
            chain.extend([
                named("cjk_width", cjk::width()),
                plain,
                named("cjk_bigram", Arc::new(cjk::Bigrams::default())),
                stop,
            ]);
        }
        _ => chain.extend([plain, stop]),
    }
    if !excluded.is_empty() {
        chain.push(named("keyword_marker", protect(excluded)));
    }
    if language == "german" {
        chain.extend(normalize("german_normalization"));
    }
    if language == "dutch" {
        chain.push(named("stemmer_override", filters::overrides(&DUTCH_EXCEPTIONS)));
    }
    let stemmer = STEMMERS.iter().find(|(known, _)| *known == language).and_then(|(_, stemmer)| *stemmer);
    if let Some(stem) = stemmer.and_then(Stem::named) {
        chain.push(named("stemmer", Arc::new(stem)));
    }
    Ok((char_filters, chain))
}
