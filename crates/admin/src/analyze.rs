//! `_analyze`: shows the tokens that an analyzer produces of a text.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_analysis::{Analysis, Analyzer, CustomAnalyzer, Token, Unfinished};
use sparrow_mapping::FieldType;

use sparrow_catalog::IndexHandle;
use sparrow_catalog::Node;
use sparrow_catalog::settings::DEFAULT_ANALYZED_TOKENS;
use sparrow_request::body::{parse_object, token};
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::MOST_REPEATED;
use sparrow_wire::shape::{Shape, alike, either, flag, list, object, open, several, text};
use sparrow_wire::suggest::there_are;

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("analyze", Action::Analyze, Lane::Trial, analyze)
        .about("Shows what terms a text becomes.")
        .holds("AnalyzeRequest", AnalyzeRequest::shape)
        .stops()];

/// Positions between the texts of a request whose analyzer does not belong to an index.
const GAP_WITHOUT_INDEX: usize = 0;

/// A parsed `_analyze` request.
#[derive(Debug, Default)]
struct AnalyzeRequest {
    texts: Vec<String>,
    analyzer: Option<String>,
    normalizer: Option<String>,
    field: Option<String>,
    tokenizer: Option<Value>,
    filters: Vec<Value>,
    char_filters: Vec<Value>,
    explain: bool,
    /// Names of the attributes that `explain` shows, in lower case; none: all.
    attributes: Vec<String>,
}

/// Number of analyzer steps for which `explain` shows as many tokens as the limit allows; with more steps, it shows
/// fewer tokens of each.
const MOST_STEPS_SHOWN: usize = 20;

/// Settings of filters that the request defines and that stand in every token: each has at most [`MOST_REPEATED`] characters.
const REPEATED: [&str; 4] = ["separator", "token_separator", "filler_token", "replacement"];

/// `GET|POST /_analyze`, `GET|POST /{index}/_analyze`
fn analyze(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let wanted = AnalyzeRequest::parse(&parse_object(body)?)?;
    let index = Some(request.part("index")).filter(|index| !index.is_empty());
    wanted.validate(index)?;
    let handle = index.map(|index| node.indices.get(index, request.right())).transpose()?;
    let limit =
        handle.as_ref().map_or(DEFAULT_ANALYZED_TOKENS, |handle| handle.settings().max_analyzed_tokens());
    let (analyzer, gap) = wanted.analyzer(handle.as_deref())?;
    let reply = match wanted.explain {
        true => wanted.explained(&analyzer, gap, limit)?,
        false => wanted.plain(&analyzer, gap, limit)?,
    };
    Ok(Reply::ok(&reply))
}

fn parsing(reason: String) -> EngineError {
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}

impl AnalyzeRequest {
    fn shape() -> Shape {
        let part = || either([text(), open()]);
        object(alike("analyzer normalizer field", text()))
            .and([("text", several(text())), ("tokenizer", part()), ("explain", flag().preset(false))])
            .and(alike("filter char_filter", several(part())))
            .and([("attributes", list(text()))])
            .needs(&["text"])
    }

    fn parse(body: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut wanted = Self::default();
        let text = |key: &str, value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            _ => Err(parsing(format!(
                "[analyze_request] {key} doesn't support values of type: {}",
                token(value)
            ))),
        };
        let texts = |key: &str, value: &Value| -> Result<Vec<String>, EngineError> {
            match value {
                Value::Array(items) => items.iter().map(|item| text(key, item)).collect(),
                single => Ok(vec![text(key, single)?]),
            }
        };
        let parts = |key: &str, value: &Value| -> Result<Vec<Value>, EngineError> {
            let items = match value {
                Value::Array(items) => items.clone(),
                single => vec![single.clone()],
            };
            for (name, value) in items.iter().filter_map(Value::as_object).flatten() {
                let length = value.as_str().map_or(0, |text| text.chars().count());
                if REPEATED.contains(&name.as_str()) && length > MOST_REPEATED {
                    return Err(EngineError::illegal_argument(format!(
                        "[{name}] of a [{key}] is too long: at most [{MOST_REPEATED}] characters are possible, found \
                         [{length}]"
                    )));
                }
            }
            match items.iter().find(|item| !item.is_string() && !item.is_object()) {
                Some(bad) => Err(parsing(format!(
                    "[analyze_request] {key} doesn't support values of type: {}",
                    token(bad)
                ))),
                None => Ok(items),
            }
        };
        for (key, value) in body {
            match key.as_str() {
                "text" => wanted.texts = texts(key, value)?,
                "analyzer" => wanted.analyzer = Some(text(key, value)?),
                "normalizer" => wanted.normalizer = Some(text(key, value)?),
                "field" => wanted.field = Some(text(key, value)?),
                "tokenizer" => wanted.tokenizer = parts(key, value)?.into_iter().next(),
                "filter" => wanted.filters = parts(key, value)?,
                "char_filter" => wanted.char_filters = parts(key, value)?,
                "explain" => {
                    wanted.explain = value.as_bool().ok_or_else(|| {
                        parsing(format!(
                            "[analyze_request] explain doesn't support values of type: {}",
                            token(value)
                        ))
                    })?;
                }
                "attributes" => {
                    wanted.attributes = texts(key, value)?.iter().map(|name| name.to_lowercase()).collect();
                }
                other => {
                    return Err(parsing(format!("[analyze_request] {}", Self::shape().unknown(other))));
                }
            }
        }
        Ok(wanted)
    }

    fn validate(&self, index: Option<&str>) -> Result<(), EngineError> {
        let mut problems = Vec::new();
        if self.texts.is_empty() {
            problems.push("text is missing".to_owned());
        }
        if index.is_none() && self.normalizer.is_some() {
            problems.push("index is required if normalizer is specified".to_owned());
        }
        let components = !self.filters.is_empty() || !self.char_filters.is_empty();
        for (named, what) in [(&self.analyzer, "analyzer"), (&self.normalizer, "normalizer")] {
            if named.is_some() && (self.tokenizer.is_some() || components) {
                problems.push(format!("cannot define extra components on a named {what}"));
            }
        }
        if self.normalizer.is_some() && self.analyzer.is_some() {
            problems.push("cannot specify both a normalizer and an analyzer".to_owned());
        }
        if self.field.is_some() && (self.tokenizer.is_some() || components) {
            problems.push("cannot define extra components on a field-specific analyzer".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(EngineError::Validation { problems }) }
    }

    /// The analyzer of the request, and the number of positions between texts.
    fn analyzer(&self, handle: Option<&IndexHandle>) -> Result<(Arc<Analyzer>, usize), EngineError> {
        let snapshot = handle.map(IndexHandle::snapshot);
        let analysis =
            snapshot.as_ref().map_or_else(Analysis::built_in, |snapshot| snapshot.analysis().clone());
        let gap = |analyzer: &Analyzer| match handle {
            Some(_) => analyzer.position_increment_gap(),
            None => GAP_WITHOUT_INDEX,
        };
        if let Some(name) = &self.analyzer {
            let global = if handle.is_some() { "" } else { "global " };
            let analyzer = analysis.analyzer(name).ok_or_else(|| {
                let instead = there_are(name, &analysis.all_names());
                EngineError::illegal_argument(format!("failed to find {global}analyzer [{name}]{instead}"))
            })?;
            let gap = gap(&analyzer);
            return Ok((analyzer, gap));
        }
        if let Some(name) = &self.normalizer {
            let normalizer = analysis.normalizer(name).ok_or_else(|| {
                EngineError::illegal_argument(format!("failed to find normalizer under [{name}]"))
            })?;
            return Ok((normalizer, 0));
        }
        if self.tokenizer.is_some() || !self.filters.is_empty() || !self.char_filters.is_empty() {
            let parts = CustomAnalyzer {
                char_filters: self.char_filters.iter().collect(),
                tokenizer: self.tokenizer.as_ref(),
                filters: self.filters.iter().collect(),
            };
            let analyzer = Arc::new(analysis.custom(&parts)?);
            let gap = analyzer.position_increment_gap();
            return Ok((analyzer, gap));
        }
        if let Some(field) = &self.field {
            let Some(snapshot) = &snapshot else {
                return Err(EngineError::illegal_argument(
                    "analysis based on a specific field requires an index",
                ));
            };
            match snapshot.mapping().field(field) {
                Some(FieldType::Text { options }) => {
                    let analyzer = snapshot.index_analyzer(field).ok_or_else(|| {
                        EngineError::internal(format!("no analyzer [{}]", options.analyzer))
                    })?;
                    let gap = options.position_increment_gap.unwrap_or(analyzer.position_increment_gap());
                    return Ok((analyzer, gap));
                }
                Some(FieldType::Keyword { .. }) => {
                    let analyzer = snapshot.index_analyzer(field).or_else(|| analysis.analyzer("keyword"));
                    return analyzer
                        .map(|analyzer| (analyzer, 0))
                        .ok_or_else(|| EngineError::internal("no analyzer [keyword]"));
                }
                Some(_) => {
                    return Err(EngineError::illegal_argument(format!(
                        "Can't process field [{field}], Analysis requests are only supported on tokenized fields"
                    )));
                }
                None => {}
            }
        }
        let analyzer =
            analysis.analyzer("default").ok_or_else(|| EngineError::internal("no analyzer [default]"))?;
        let gap = gap(&analyzer);
        Ok((analyzer, gap))
    }

    fn plain(&self, analyzer: &Analyzer, gap: usize, limit: usize) -> Result<Value, EngineError> {
        let mut place = Place::default();
        let mut tokens = Vec::new();
        for text in &self.texts {
            let trial = analyzer.trial(text).map_err(|why| unfinished(why, limit))?;
            let offsets = Utf16::new(text);
            for token in trial.tokens(limit - tokens.len()).map_err(|why| unfinished(why, limit))? {
                tokens.push(Value::Object(place.show(&token, &offsets)));
            }
            place.next_text(gap, offsets.length());
        }
        Ok(json!({ "tokens": tokens }))
    }

    fn explained(&self, analyzer: &Analyzer, gap: usize, limit: usize) -> Result<Value, EngineError> {
        let mut filtered: Vec<(String, Vec<String>)> = Vec::new();
        let mut steps: Vec<(String, Vec<Value>, Place)> = Vec::new();
        let (mut count, mut shown_tokens) = (0, 0);
        for text in &self.texts {
            let trial = analyzer.trial(text).map_err(|why| unfinished(why, limit))?;
            let offsets = Utf16::new(text);
            let detail = trial.detail(limit - count).map_err(|why| unfinished(why, limit))?;
            for (at, (name, text)) in detail.char_filters.into_iter().enumerate() {
                if filtered.len() <= at {
                    filtered.push((name, Vec::new()));
                }
                filtered[at].1.push(text);
            }
            for (at, step) in std::iter::once(detail.tokenizer).chain(detail.filters).enumerate() {
                count = count.max(step.tokens.len());
                shown_tokens += step.tokens.len();
                if shown_tokens > limit.saturating_mul(MOST_STEPS_SHOWN) {
                    return Err(too_many(limit));
                }
                if steps.len() <= at {
                    steps.push((step.name, Vec::new(), Place::default()));
                }
                let (_, tokens, place) = &mut steps[at];
                for token in &step.tokens {
                    let mut shown = place.show(token, &offsets);
                    shown.extend(self.attributes(token));
                    tokens.push(Value::Object(shown));
                }
                place.next_text(gap, offsets.length());
            }
        }
        let show = |(name, tokens, _): (String, Vec<Value>, Place)| json!({"name": name, "tokens": tokens});
        if !analyzer.is_custom() {
            let last = steps.pop().map(|(_, tokens, _)| tokens).unwrap_or_default();
            let name = analyzer.name();
            return Ok(
                json!({"detail": {"custom_analyzer": false, "analyzer": {"name": name, "tokens": last}}}),
            );
        }
        let mut detail = Map::new();
        detail.insert("custom_analyzer".to_owned(), true.into());
        let char_filters =
            filtered.into_iter().map(|(name, texts)| json!({"name": name, "filtered_text": texts}));
        detail.insert("charfilters".to_owned(), char_filters.collect());
        let mut steps = steps.into_iter();
        detail.insert("tokenizer".to_owned(), steps.next().map_or(Value::Null, show));
        detail.insert("tokenfilters".to_owned(), steps.map(show).collect());
        Ok(json!({ "detail": detail }))
    }

    fn attributes(&self, token: &Token) -> Map<String, Value> {
        let bytes: Vec<String> = token.text.bytes().map(|byte| format!("{byte:x}")).collect();
        let all = [
            ("bytes", Value::from(format!("[{}]", bytes.join(" ")))),
            ("keyword", token.keyword.into()),
            ("positionLength", token.length.into()),
            ("termFrequency", 1.into()),
        ];
        let wanted = |name: &str| {
            self.attributes.is_empty() || self.attributes.iter().any(|wanted| *wanted == name.to_lowercase())
        };
        all.into_iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// Position and offset at which a text of the request begins, counted over all texts before it.
#[derive(Debug, Default)]
struct Place {
    position: usize,
    offset: usize,
    /// The highest position of a token so far; `None` if there was none.
    last: Option<usize>,
}

impl Place {
    fn show(&mut self, token: &Token, offsets: &Utf16) -> Map<String, Value> {
        let position = self.position + token.position;
        self.last = Some(position);
        let mut shown = Map::new();
        shown.insert("token".to_owned(), token.text.as_str().into());
        shown.insert("start_offset".to_owned(), (self.offset + offsets.of(token.start)).into());
        shown.insert("end_offset".to_owned(), (self.offset + offsets.of(token.end)).into());
        shown.insert("type".to_owned(), token.kind.into());
        shown.insert("position".to_owned(), position.into());
        if token.length > 1 {
            shown.insert("positionLength".to_owned(), token.length.into());
        }
        shown
    }

    fn next_text(&mut self, gap: usize, length: usize) {
        self.position = self.last.map_or(0, |last| last + 1) + gap;
        self.offset += length + 1;
    }
}

/// Maps byte offsets to offsets in UTF-16 code units, which Elasticsearch uses.
struct Utf16 {
    /// The UTF-16 offset for each byte offset; empty if the text is ASCII.
    units: Vec<u32>,
    length: usize,
}

impl Utf16 {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self { units: Vec::new(), length: text.len() };
        }
        let mut units = Vec::with_capacity(text.len() + 1);
        let mut at = 0;
        for c in text.chars() {
            units.extend(std::iter::repeat_n(at, c.len_utf8()));
            at += c.len_utf16() as u32;
        }
        units.push(at);
        Self { units, length: at as usize }
    }

    fn of(&self, byte: usize) -> usize {
        if self.units.is_empty() {
            return byte;
        }
        self.units.get(byte).map_or(self.length, |unit| *unit as usize)
    }

    fn length(&self) -> usize {
        self.length
    }
}

fn unfinished(why: Unfinished, limit: usize) -> EngineError {
    match why {
        Unfinished::Stopped(stopped) => stopped.into(),
        Unfinished::TooManyTokens => too_many(limit),
    }
}

/// The error for too many tokens. Elasticsearch returns the same message with status 500, but it is the request that is
/// wrong.
fn too_many(limit: usize) -> EngineError {
    EngineError::illegal_argument(format!(
        "The number of tokens produced by calling _analyze has exceeded the allowed maximum of [{limit}]. This limit can be \
         set by changing the [index.analyze.max_token_count] index level setting."
    ))
}
