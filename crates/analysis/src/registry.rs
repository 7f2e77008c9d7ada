//! The analyzers of an index: the built-in ones, and those that its settings define.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use sparrow_runtime::work::{self, Kept};

use super::built_in::{self, Lookup, built_in, chain, typed};
use super::chain::{Analyzer, POSITION_INCREMENT_GAP};
use super::char_filters::{self, CharFilter};
use super::error::AnalysisError;
use super::filters::{self, Context, RuleAnalyzer, lowercase_filter};
use super::languages;
use super::params::Params;
use super::parts::{
    Built, Definitions, already, each_name, is_synonym, locate, rule_tokens, shown, synonym_key, unknown,
};
use super::tokenizers::{self, Keyword, Runs, Tokenizer};
use super::words::MAX_CHARS;

/// Separates the name of an analyzer from the number of its neighbouring words that are joined.
const SHINGLES: char = '\u{1}';

/// Name of the analyzer that joins so many neighbouring terms of another.
pub fn shingles(analyzer: &str, size: usize) -> String {
    format!("{analyzer}{SHINGLES}{size}")
}

/// Limits from the index settings that definitions are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysisLimits {
    /// `index.max_ngram_diff`: largest allowed difference between `max_gram` and `min_gram`.
    pub max_ngram_diff: i64,
    /// `index.max_shingle_diff`: largest allowed difference between the sizes of shingles.
    pub max_shingle_diff: i64,
}

impl Default for AnalysisLimits {
    fn default() -> Self {
        Self { max_ngram_diff: 1, max_shingle_diff: 3 }
    }
}

/// The analyzers, normalizers and components available in an index. Immutable, because these settings can only be
/// chosen when an index is created.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    limits: AnalysisLimits,
    tokenizers: Definitions,
    filters: Definitions,
    char_filters: Definitions,
    analyzers: BTreeMap<String, Arc<Analyzer>>,
    normalizers: BTreeMap<String, Arc<Analyzer>>,
    built: Built,
    /// Analyzers that [`shingles`] names, made when they are first asked for.
    derived: Arc<Mutex<BTreeMap<String, Arc<Analyzer>>>>,
    /// The memory of all this.
    kept: Option<Arc<Kept>>,
}

/// A custom analyzer given in a request: the name or the inline definition of each component.
#[derive(Debug, Clone, Default)]
pub struct CustomAnalyzer<'a> {
    pub char_filters: Vec<&'a Value>,
    pub tokenizer: Option<&'a Value>,
    pub filters: Vec<&'a Value>,
}

impl Analysis {
    /// The analysis of an index without `analysis` settings: only what is built in.
    pub fn built_in() -> Arc<Self> {
        static BUILT_IN: LazyLock<Arc<Analysis>> = LazyLock::new(Arc::default);
        BUILT_IN.clone()
    }

    /// Reads the `analysis` object of index settings: `analyzer`, `normalizer`, `tokenizer`, `filter` and
    /// `char_filter`, each with definitions by name.
    ///
    /// # Errors
    /// For the first definition that cannot be used, also if nothing uses it; when the request must stop, or the definitions of
    /// all indices would keep more memory than they may.
    pub fn parse(settings: &Map<String, Value>, limits: AnalysisLimits) -> Result<Self, AnalysisError> {
        let (mut analysis, kept) = Kept::by(|| Self::read(settings, limits))?;
        analysis.kept = Some(Arc::new(kept));
        Ok(analysis)
    }

    fn read(settings: &Map<String, Value>, limits: AnalysisLimits) -> Result<Self, AnalysisError> {
        let mut analysis = Self { limits, ..Self::default() };
        let mut analyzers = Definitions::new();
        let mut normalizers = Definitions::new();
        for (kind, definitions) in settings {
            let target = match kind.as_str() {
                "analyzer" => &mut analyzers,
                "normalizer" => &mut normalizers,
                "tokenizer" => &mut analysis.tokenizers,
                "filter" => &mut analysis.filters,
                "char_filter" => &mut analysis.char_filters,
                other => {
                    return Err(AnalysisError::illegal(format!(
                        "unknown setting [index.analysis.{other}] please check that any required plugins are \
                         installed, or check the breaking changes documentation for removed settings"
                    )));
                }
            };
            let bad = |name: &str| {
                AnalysisError::illegal(format!("[index.analysis.{kind}{name}] must be an object"))
            };
            for (name, definition) in definitions.as_object().ok_or_else(|| bad(""))? {
                let definition = definition.as_object().ok_or_else(|| bad(&format!(".{name}")))?;
                target.insert(name.clone(), definition.clone());
            }
        }
        analysis.build_parts()?;
        for (name, definition) in &analyzers {
            if name.starts_with('_') {
                return Err(AnalysisError::illegal(format!(
                    "analyzer name must not start with '_'. got \"{name}\""
                )));
            }
            let analyzer = analysis.define_analyzer(name, definition)?;
            analysis.analyzers.insert(name.clone(), Arc::new(analyzer));
        }
        for (name, definition) in &normalizers {
            let normalizer = analysis.define_normalizer(name, definition)?;
            analysis.normalizers.insert(name.clone(), Arc::new(normalizer));
        }
        Ok(analysis)
    }

    /// Whether the settings define neither analyzers nor normalizers.
    pub fn is_built_in(&self) -> bool {
        self.analyzers.is_empty() && self.normalizers.is_empty()
    }

    /// The analyzer called `name`, defined or built in. `default` is the analyzer of fields that do not name one.
    pub fn analyzer(&self, name: &str) -> Option<Arc<Analyzer>> {
        match self.analyzers.get(name) {
            Some(analyzer) => Some(analyzer.clone()),
            None if name.contains(SHINGLES) => self.of_shingles(name),
            None => built_in(if name == "default" { "standard" } else { name }),
        }
    }

    /// The analyzer that [`shingles`] names.
    fn of_shingles(&self, name: &str) -> Option<Arc<Analyzer>> {
        if let Some(analyzer) = self.derived.lock().get(name) {
            return Some(Arc::clone(analyzer));
        }
        let (base, size) = name.split_once(SHINGLES)?;
        // Requests name analyzers too, and what they name is kept.
        let size = ["2", "3", "4"].iter().position(|known| *known == size)? + 2;
        let shingle = serde_json::json!({
            "type": "shingle", "min_shingle_size": size, "max_shingle_size": size, "output_unigrams": false,
            "filler_token": "",
        });
        let mut analyzer = Analyzer { name: name.to_owned(), fast: None, ..(*self.analyzer(base)?).clone() };
        // Not as a request builds what it defines: the analyzer is there even for one that has to stop.
        let shingle = self.build_filter(&shingle, &analyzer).ok()??;
        analyzer.filters.push(shingle);
        let analyzer = Arc::new(analyzer);
        self.derived.lock().insert(name.to_owned(), Arc::clone(&analyzer));
        Some(analyzer)
    }

    /// The analyzer for queries on fields that do not name one: `default_search` or, if that is not defined,
    /// `default`.
    pub fn default_search(&self) -> Option<Arc<Analyzer>> {
        self.analyzers.get("default_search").cloned().or_else(|| self.analyzer("default"))
    }

    /// The normalizer called `name`, defined or built in.
    pub fn normalizer(&self, name: &str) -> Option<Arc<Analyzer>> {
        if let Some(normalizer) = self.normalizers.get(name) {
            return Some(normalizer.clone());
        }
        static LOWERCASE: LazyLock<Option<Arc<Analyzer>>> = LazyLock::new(|| {
            let filters = vec![("lowercase".to_owned(), lowercase_filter(None).ok()?)];
            let tokenizer: Arc<dyn Tokenizer> = Arc::new(Keyword);
            Some(Arc::new(chain("lowercase", Vec::new(), ("keyword", tokenizer), filters)))
        });
        if name == "lowercase" { LOWERCASE.clone() } else { None }
    }

    /// Names of the analyzers that the settings define.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.analyzers.keys().map(String::as_str)
    }

    /// Names of all analyzers: those that the settings define, and those that are always there.
    pub fn all_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.names().chain(built_in::names()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Builds an analyzer from components; without a tokenizer, it is a normalizer.
    ///
    /// # Errors
    /// If a component does not exist, or is not allowed in a normalizer.
    pub fn custom(&self, parts: &CustomAnalyzer<'_>) -> Result<Analyzer, AnalysisError> {
        let missing = |part: &'static str, name: &str| {
            AnalysisError::illegal(format!("failed to find global {part} under [{name}]"))
        };
        let tokenizer = match parts.tokenizer {
            Some(tokenizer) => {
                self.tokenizer(tokenizer)?.ok_or_else(|| missing("tokenizer", &shown(tokenizer)))?
            }
            None => ("keyword_for_normalizer".to_owned(), Arc::new(Keyword) as Arc<dyn Tokenizer>),
        };
        let mut char_filters = Vec::new();
        for part in &parts.char_filters {
            let filter = self.char_filter(part)?.ok_or_else(|| missing("char_filter", &shown(part)))?;
            if parts.tokenizer.is_none() && !filter.1.normalizes() {
                return Err(AnalysisError::illegal(format!(
                    "Custom normalizer may not use char filter [{}]",
                    filter.0
                )));
            }
            char_filters.push(filter);
        }
        let mut chain = chain("", char_filters, (&tokenizer.0, tokenizer.1), Vec::new());
        chain.custom = true;
        for part in &parts.filters {
            let filter = self.filter(part, &chain)?.ok_or_else(|| missing("filter", &shown(part)))?;
            if parts.tokenizer.is_none() && !filter.1.normalizes() {
                return Err(AnalysisError::illegal(format!(
                    "Custom normalizer may not use filter [{}]",
                    filter.0
                )));
            }
            chain.filters.push(filter);
        }
        Ok(chain)
    }

    /// Builds every component once, so that errors in components that nothing uses are found too.
    fn build_parts(&mut self) -> Result<(), AnalysisError> {
        let whitespace: Arc<dyn Tokenizer> = Arc::new(Runs::whitespace(MAX_CHARS));
        let before = chain("", Vec::new(), ("whitespace", whitespace), Vec::new());
        let mut built = Built::default();
        for name in self.tokenizers.keys() {
            built.tokenizers.extend(self.tokenizer(&Value::String(name.clone()))?);
        }
        for name in self.char_filters.keys() {
            built.char_filters.extend(self.char_filter(&Value::String(name.clone()))?);
        }
        for (name, definition) in &self.filters {
            // Synonyms mean something only in a chain.
            if !is_synonym(Some(definition)) {
                built.filters.extend(self.filter(&Value::String(name.clone()), &before)?);
            }
        }
        self.built = built;
        Ok(())
    }

    fn tokenizer(&self, part: &Value) -> Lookup<dyn Tokenizer> {
        if let Some(built) = already(&self.built.tokenizers, part) {
            return Ok(Some(built));
        }
        work::check()?;
        let Some((name, kind, map)) = locate(part, "tokenizer", &self.tokenizers, tokenizers::BUILT_IN)?
        else {
            return Ok(None);
        };
        let params = Params::new("tokenizer", &name, map);
        match tokenizers::build(&kind, &params, self.limits.max_ngram_diff)? {
            Some(tokenizer) => Ok(Some((name, tokenizer))),
            None => Err(unknown("tokenizer", &kind, &name, part)),
        }
    }

    fn char_filter(&self, part: &Value) -> Lookup<dyn CharFilter> {
        if let Some(built) = already(&self.built.char_filters, part) {
            return Ok(Some(built));
        }
        work::check()?;
        let located = locate(part, "char_filter", &self.char_filters, char_filters::BUILT_IN)?;
        let Some((name, kind, map)) = located else { return Ok(None) };
        let params = Params::new("char_filter", &name, map);
        match char_filters::build(&kind, &params)? {
            Some(filter) => Ok(Some((name, filter))),
            None => Err(unknown("char_filter", &kind, &name, part)),
        }
    }

    /// Builds a token filter; `before` is the chain in front of it.
    fn filter(&self, part: &Value, before: &Analyzer) -> Lookup<dyn filters::Filter> {
        if let Some(built) = already(&self.built.filters, part) {
            return Ok(Some(built));
        }
        if let Some(key) = synonym_key(part, before)
            && let Some(filter) = self.built.synonyms.get(&key)
        {
            return Ok(Some((key.0, Arc::clone(filter))));
        }
        work::check()?;
        self.build_filter(part, before)
    }

    fn build_filter(&self, part: &Value, before: &Analyzer) -> Lookup<dyn filters::Filter> {
        let Some((name, kind, map)) = locate(part, "filter", &self.filters, filters::BUILT_IN)? else {
            return Ok(None);
        };
        let params = Params::new("filter", &name, map);
        let rules = RuleAnalyzer(Box::new(|text| rule_tokens(before, text)));
        let context = Context {
            rules: &rules,
            max_ngram_diff: self.limits.max_ngram_diff,
            max_shingle_diff: self.limits.max_shingle_diff,
        };
        match filters::build(&kind, &params, &context)? {
            Some(filter) => Ok(Some((name, filter))),
            None => Err(unknown("filter", &kind, &name, part)),
        }
    }

    fn define_analyzer(
        &mut self,
        name: &str,
        definition: &Map<String, Value>,
    ) -> Result<Analyzer, AnalysisError> {
        let params = Params::new("analyzer", name, definition);
        let kind = params.text("type")?;
        let analyzer = match kind.as_deref() {
            None if !params.has("tokenizer") => {
                return Err(AnalysisError::illegal(format!(
                    "analyzer [{name}] must specify either an analyzer type, or a tokenizer"
                )));
            }
            None | Some("custom") => self.define_custom(name, &params)?,
            Some(kind) => match typed(kind, name, &params)? {
                Some(mut analyzer) => {
                    analyzer.gap = gap(&params)?;
                    analyzer
                }
                None if languages::REFUSED.contains(&kind) => {
                    return Err(AnalysisError::illegal(format!(
                        "analyzer type [{kind}] of [{name}] is not supported"
                    )));
                }
                None => {
                    return Err(AnalysisError::illegal(format!(
                        "Unknown analyzer type [{kind}] for [{name}]"
                    )));
                }
            },
        };
        params.finish()?;
        Ok(analyzer)
    }

    fn define_custom(&mut self, name: &str, params: &Params<'_>) -> Result<Analyzer, AnalysisError> {
        let missing = |part: &str, wanted: &Value| {
            AnalysisError::illegal(format!(
                "Custom Analyzer [{name}] failed to find {part} under name [{}]",
                shown(wanted)
            ))
        };
        let Some(tokenizer) = params.parts("tokenizer").first().copied() else {
            return Err(AnalysisError::illegal(format!(
                "analyzer [{name}] must be configured with a tokenizer"
            )));
        };
        let tokenizer = self.tokenizer(tokenizer)?.ok_or_else(|| missing("tokenizer", tokenizer))?;
        let mut char_filters = Vec::new();
        for part in each_name(&params.parts("char_filter")) {
            char_filters.push(self.char_filter(&part)?.ok_or_else(|| missing("char_filter", &part))?);
        }
        let mut analyzer = chain(name, char_filters, (&tokenizer.0, tokenizer.1), Vec::new());
        analyzer.custom = true;
        for part in each_name(&params.parts("filter")) {
            let filter = self.filter(&part, &analyzer)?.ok_or_else(|| missing("filter", &part))?;
            if is_synonym(self.filters.get(&filter.0))
                && let Some(key) = synonym_key(&part, &analyzer)
            {
                self.built.synonyms.insert(key, Arc::clone(&filter.1));
            }
            analyzer.filters.push(filter);
        }
        analyzer.gap = gap(params)?;
        Ok(analyzer)
    }

    fn define_normalizer(
        &self,
        name: &str,
        definition: &Map<String, Value>,
    ) -> Result<Analyzer, AnalysisError> {
        let params = Params::new("normalizer", name, definition);
        let kind = params.text("type")?;
        if params.has("tokenizer") {
            return Err(AnalysisError::illegal(format!(
                "Custom normalizer [{name}] cannot configure a tokenizer"
            )));
        }
        match kind.as_deref() {
            None | Some("custom") => {}
            Some("lowercase") => {
                params.finish()?;
                return self
                    .normalizer("lowercase")
                    .map(|normalizer| Analyzer { name: name.to_owned(), ..(*normalizer).clone() })
                    .ok_or_else(|| AnalysisError::illegal("no lowercase normalizer"));
            }
            Some(kind) => {
                return Err(AnalysisError::illegal(format!("Unknown normalizer type [{kind}] for [{name}]")));
            }
        }
        let missing = |part: &str, wanted: &Value| {
            AnalysisError::illegal(format!(
                "Custom normalizer [{name}] failed to find {part} under name [{}]",
                shown(wanted)
            ))
        };
        let mut char_filters = Vec::new();
        for part in each_name(&params.parts("char_filter")) {
            let filter = self.char_filter(&part)?.ok_or_else(|| missing("char_filter", &part))?;
            if !filter.1.normalizes() {
                return Err(AnalysisError::illegal(format!(
                    "Custom normalizer [{name}] may not use char filter [{}]",
                    filter.0
                )));
            }
            char_filters.push(filter);
        }
        let tokenizer: Arc<dyn Tokenizer> = Arc::new(Keyword);
        let mut normalizer = chain(name, char_filters, ("keyword", tokenizer), Vec::new());
        normalizer.custom = true;
        for part in each_name(&params.parts("filter")) {
            let filter = self.filter(&part, &normalizer)?.ok_or_else(|| missing("filter", &part))?;
            if !filter.1.normalizes() {
                return Err(AnalysisError::illegal(format!(
                    "Custom normalizer [{name}] may not use filter [{}]",
                    filter.0
                )));
            }
            normalizer.filters.push(filter);
        }
        params.finish()?;
        Ok(normalizer)
    }
}

fn gap(params: &Params<'_>) -> Result<usize, AnalysisError> {
    usize::try_from(params.number("position_increment_gap", POSITION_INCREMENT_GAP as i64)?)
        .map_err(|_| AnalysisError::illegal("[position_increment_gap] must be positive, or 0"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn analyzers_share_the_components_that_they_name() {
        let settings = json!({
            "filter": {
                "same": {"type": "synonym_graph", "synonyms": ["quick, fast"]},
                "replaced": {"type": "pattern_replace", "pattern": "a", "replacement": "b"},
            },
            "analyzer": {
                "one": {"tokenizer": "standard", "filter": ["replaced", "lowercase", "same"]},
                "two": {"tokenizer": "standard", "filter": ["replaced", "lowercase", "same"]},
                "other": {"tokenizer": "keyword", "filter": ["replaced", "lowercase", "same"]},
                "inline": {"tokenizer": "standard", "filter": [{"type": "lowercase"}, "same"]},
                "inlined": {"tokenizer": "standard", "filter": [{"type": "lowercase"}, "same"]},
            },
        });
        let analysis = Analysis::parse(settings.as_object().unwrap(), AnalysisLimits::default()).unwrap();
        let filter = |analyzer: &str, at: usize| analysis.analyzers[analyzer].filters[at].1.clone();
        assert!(Arc::ptr_eq(&filter("one", 0), &filter("other", 0)));
        assert!(Arc::ptr_eq(&filter("one", 2), &filter("two", 2)));
        // Another tokenizer reads the rules in another way, and inline definitions do not say by their name what they are.
        assert!(!Arc::ptr_eq(&filter("one", 2), &filter("other", 2)));
        assert!(!Arc::ptr_eq(&filter("inline", 1), &filter("inlined", 1)));
    }

    #[test]
    fn building_ends_when_the_request_must_stop() {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let memory = Arc::new(work::Memory::new(usize::MAX, usize::MAX));
        let _entered = work::enter(Some(work::Work::new(stop, memory, "<test>")));
        let settings = json!({"filter": {"f": {"type": "pattern_replace", "pattern": "a"}}});
        let error = Analysis::parse(settings.as_object().unwrap(), AnalysisLimits::default()).unwrap_err();
        assert_eq!(error.stopped.as_deref(), Some(&work::Stopped::Cancelled));
    }
}
