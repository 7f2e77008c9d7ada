//! Parses the `highlight` section: options for all fields, and for each.

use crate::shape::{Named, Shape, either, flag, int, list, map, object, one, open, query, several, text};
use sparrow_query::Query;

use sparrow_query::dsl::{self, Context, value};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};
use sparrow_wire::version::has_forms_of_8;

/// Highest number of fields in a `highlight` section: each takes a pass over every hit.
const MOST_FIELDS: usize = 256;

/// Which highlighter makes the fragments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Whole sentences, with each phrase marked as a unit.
    #[default]
    Unified,
    /// Stretches of about the same length, with each word marked by itself.
    Plain,
    /// The passages that made a semantic or sparse clause match: the best ones of a `semantic_text` field, or
    /// those around the words that sparse tokens come from.
    Semantic,
}

/// Where the unified highlighter begins and ends fragments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scanner {
    /// At sentence boundaries, with as many sentences as fit.
    #[default]
    Sentence,
    /// At word boundaries.
    Word,
    /// At certain characters, for the `fvh` type only.
    Chars,
}

/// Options as a request states them; those of the whole section apply where a field sets none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    kind: Option<String>,
    pre_tags: Option<Vec<String>>,
    post_tags: Option<Vec<String>>,
    order: Option<String>,
    fragment_size: Option<i64>,
    number_of_fragments: Option<i64>,
    no_match_size: Option<i64>,
    require_field_match: Option<bool>,
    highlight_query: Option<Query>,
    scanner: Option<Scanner>,
    fragmenter: Option<String>,
    max_analyzed_offset: Option<i64>,
    html: bool,
    matched_fields: Vec<String>,
}

/// The `highlight` section of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Highlight {
    global: Options,
    /// Field names or patterns, as the request spells them.
    fields: Vec<(String, Options)>,
}

/// Effective options of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldOptions<'a> {
    pub kind: Kind,
    /// Whether the request names a highlighter type.
    pub kind_given: bool,
    /// Whether the `fvh` type was asked for, which needs term vectors in the mapping.
    pub fast_vectors: bool,
    pub pre: &'a str,
    pub post: &'a str,
    pub by_score: bool,
    /// Length of a fragment in characters; 0 for the whole field.
    pub fragment_size: usize,
    /// Highest number of fragments; 0 for the whole field.
    pub number_of_fragments: usize,
    pub no_match_size: usize,
    pub require_field_match: bool,
    pub query: Option<&'a Query>,
    pub scanner: Scanner,
    /// Whether fragments of the plain highlighter may end inside a phrase.
    pub simple: bool,
    pub max_analyzed_offset: Option<usize>,
    pub html: bool,
    pub matched_fields: &'a [String],
}

pub(crate) fn shape() -> Shape {
    let fields = either([map(field_shape()), list(map(field_shape()))]);
    object(common()).and([
        ("encoder", one(&["default", "html"]).preset("default")),
        ("fields", fields),
        ("tags_schema", one(&["default", "styled"])),
    ])
}

fn field_shape() -> Shape {
    object(common()).and([("fragment_offset", int()), ("matched_fields", several(text()))])
}

/// The options that fields and the whole section share.
fn common() -> Vec<Named> {
    let texts = ["boundary_chars", "boundary_scanner_locale"].map(|name| (name, text()));
    let flags = ["force_source", "highlight_filter"].map(|name| (name, flag()));
    let numbers = ["boundary_max_scan", "max_analyzed_offset", "phrase_limit"].map(|name| (name, int()));
    let tags = ["pre_tags", "post_tags"].map(|name| (name, several(text())));
    let own = [
        ("boundary_scanner", one(&["sentence", "word", "chars"])),
        ("fragment_size", int().about("characters").preset(100)),
        ("fragmenter", one(&["simple", "span"])),
        ("highlight_query", query()),
        ("no_match_size", int().preset(0)),
        ("number_of_fragments", int().about("0 shows the whole text").preset(5)),
        ("options", open()),
        ("order", one(&["none", "score"])),
        ("require_field_match", flag().preset(true)),
        ("type", one(&["unified", "plain", "fvh", "semantic"])),
    ];
    own.into_iter().chain(texts).chain(flags).chain(numbers).chain(tags).collect()
}

/// The error for an option that there is not, with those spelled alike that the request may use.
fn unknown(parser: &'static str, member: &Member, options: &Shape) -> BodyError {
    let is_there = |option: &&str| has_forms_of_8() || *option != "force_source";
    let names: Vec<&str> = options.names().iter().copied().filter(is_there).collect();
    BodyError::unknown_field(parser, member, &names)
}

impl Highlight {
    /// Reads a `highlight` section.
    ///
    /// # Errors
    /// On unknown options and values of the wrong type.
    pub fn parse(node: &Node, context: Context) -> Result<Self, BodyError> {
        const PARSER: &str = "highlight";
        let mut highlight = Self { global: Options::default(), fields: Vec::new() };
        for member in node.as_object().unwrap_or_default() {
            let at = member.value.at;
            let mut read = || -> Result<bool, BodyError> {
                match &*member.name {
                    "fields" => highlight.fields = fields(&member.value, context)?,
                    "encoder" => highlight.global.html = encoder(&value::text(&member.value)?)?,
                    "tags_schema" => highlight.global.schema(&value::text(&member.value)?)?,
                    _ => return highlight.global.take(member, context),
                }
                Ok(true)
            };
            match read() {
                Ok(true) => {}
                Ok(false) => return Err(unknown(PARSER, member, &shape())),
                Err(error) => return Err(error.within(PARSER, &member.name, at)),
            }
        }
        highlight.global.check()?;
        if highlight.fields.len() > MOST_FIELDS {
            return Err(BodyError::illegal(format!(
                "[highlight] has [{}] fields, at most [{MOST_FIELDS}] are possible on this server",
                highlight.fields.len()
            )));
        }
        for (name, options) in &highlight.fields {
            options.check()?;
            highlight.resolve(name, options)?;
        }
        Ok(highlight)
    }

    /// Field names or patterns, each with its effective options.
    ///
    /// # Errors
    /// None but those that [`Highlight::parse`] would have found.
    pub fn fields(&self) -> Result<Vec<(&str, FieldOptions<'_>)>, BodyError> {
        self.fields.iter().map(|(name, options)| Ok((name.as_str(), self.resolve(name, options)?))).collect()
    }

    /// All `highlight_query` clauses, which replace the search's own query for highlighting.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        let fields = self.fields.iter_mut().filter_map(|(_, options)| options.highlight_query.as_mut());
        self.global.highlight_query.iter_mut().chain(fields)
    }

    fn resolve<'a>(&'a self, name: &str, field: &'a Options) -> Result<FieldOptions<'a>, BodyError> {
        let all = &self.global;
        let size = |field: Option<i64>, all: Option<i64>, default: usize| {
            field.or(all).map_or(default, |size| usize::try_from(size).unwrap_or(0))
        };
        let tag = |field: &'a Option<Vec<String>>, all: &'a Option<Vec<String>>, default: &'a str| {
            field.as_ref().or(all.as_ref()).and_then(|tags| tags.first()).map_or(default, String::as_str)
        };
        let kind_name = field.kind.as_deref().or(all.kind.as_deref()).unwrap_or("unified");
        let (kind, fast_vectors) = match kind_name {
            "unified" => (Kind::Unified, false),
            "fvh" => (Kind::Unified, true),
            "plain" => (Kind::Plain, false),
            "semantic" => (Kind::Semantic, false),
            other => {
                return Err(BodyError::illegal(format!(
                    "unknown highlighter type [{other}] for the field [{name}]"
                )));
            }
        };
        let scanner = field.scanner.or(all.scanner).unwrap_or_default();
        if kind == Kind::Unified && !fast_vectors && scanner == Scanner::Chars {
            return Err(BodyError::illegal("Invalid boundary scanner type: CHARS"));
        }
        let simple = match field.fragmenter.as_deref().or(all.fragmenter.as_deref()) {
            None | Some("span") => false,
            Some("simple") => true,
            Some(other) if kind == Kind::Plain => {
                return Err(BodyError::illegal(format!(
                    "unknown fragmenter option [{other}] for the field [{name}]"
                )));
            }
            Some(_) => false,
        };
        let require_field_match = field.require_field_match.or(all.require_field_match).unwrap_or(true);
        if kind == Kind::Unified && !fast_vectors && !require_field_match && !field.matched_fields.is_empty()
        {
            return Err(BodyError::illegal(
                "Matched fields are not supported when [require_field_match] is set to [false]",
            ));
        }
        Ok(FieldOptions {
            kind,
            kind_given: field.kind.is_some() || all.kind.is_some(),
            fast_vectors,
            pre: tag(&field.pre_tags, &all.pre_tags, "<em>"),
            post: tag(&field.post_tags, &all.post_tags, "</em>"),
            by_score: field.order.as_deref().or(all.order.as_deref()) == Some("score"),
            fragment_size: size(field.fragment_size, all.fragment_size, 100),
            number_of_fragments: size(field.number_of_fragments, all.number_of_fragments, 5),
            no_match_size: size(field.no_match_size, all.no_match_size, 0),
            require_field_match,
            query: field.highlight_query.as_ref().or(all.highlight_query.as_ref()),
            scanner,
            simple,
            max_analyzed_offset: field
                .max_analyzed_offset
                .or(all.max_analyzed_offset)
                .and_then(|limit| usize::try_from(limit).ok()),
            html: all.html,
            matched_fields: &field.matched_fields,
        })
    }
}

impl Options {
    /// Reads an option that fields and the whole section share; returns `false` if there is no such option.
    fn take(&mut self, member: &Member, context: Context) -> Result<bool, BodyError> {
        let node = &member.value;
        match &*member.name {
            "type" => self.kind = Some(value::text(node)?),
            name @ ("pre_tags" | "post_tags") => {
                let tags = value::texts(node)?;
                for tag in &tags {
                    value::check_length(&format!("[{name}]"), tag, sparrow_wire::MOST_REPEATED)?;
                }
                *(if name == "pre_tags" { &mut self.pre_tags } else { &mut self.post_tags }) = Some(tags);
            }
            "order" => self.order = Some(value::text(node)?.to_lowercase()),
            "fragment_size" => self.fragment_size = Some(value::int(node)?.into()),
            "number_of_fragments" => self.number_of_fragments = Some(value::int(node)?.into()),
            "no_match_size" => self.no_match_size = Some(value::int(node)?.into()),
            "require_field_match" => self.require_field_match = Some(value::boolean(node)?),
            "fragmenter" => self.fragmenter = Some(value::text(node)?),
            "boundary_scanner" => self.scanner = Some(scanner(&value::text(node)?)?),
            "highlight_query" => self.highlight_query = Some(dsl::parse_query(node, context)?),
            "max_analyzed_offset" => {
                let limit: i64 = value::int(node)?.into();
                if limit < -1 || limit == 0 {
                    return Err(BodyError::illegal(
                        "[max_analyzed_offset] must be a positive integer, or -1",
                    ));
                }
                self.max_analyzed_offset = Some(limit);
            }
            // They bound the work of `fvh`, which is done by the unified kind here, or choose among ways that come to
            // the same.
            "phrase_limit" | "boundary_max_scan" => {
                value::int(node)?;
            }
            "force_source" if !has_forms_of_8() => return Ok(false),
            "force_source" | "highlight_filter" => {
                value::boolean(node)?;
            }
            "boundary_chars" | "boundary_scanner_locale" => {
                value::text(node)?;
            }
            "options" if node.as_object().is_some() => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn schema(&mut self, name: &str) -> Result<(), BodyError> {
        match name {
            "default" => {}
            "styled" => {
                self.pre_tags = Some((1..=10).map(|n| format!("<em class=\"hlt{n}\">")).collect());
                self.post_tags = Some(vec!["</em>".to_owned()]);
            }
            other => return Err(BodyError::illegal(format!("Unknown tag schema [{other}]"))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BodyError> {
        if self.pre_tags.is_some() && self.post_tags.is_none() {
            return Err(BodyError::illegal("pre_tags are set but post_tags are not set"));
        }
        Ok(())
    }
}

/// Reads `fields`: an object, or an array of objects with one field each.
fn fields(node: &Node, context: Context) -> Result<Vec<(String, Options)>, BodyError> {
    let single = || {
        BodyError::illegal(
            "[highlight] can be a single object with any number of fields or an array where each entry is an \
             object with a single field",
        )
    };
    let members: Vec<&Member> = match &node.json {
        Json::Object(members) => members.iter().collect(),
        Json::Array(items) => {
            let mut members = Vec::with_capacity(items.len());
            for item in items {
                let [member] = item.as_object().unwrap_or_default() else { return Err(single()) };
                members.push(member);
            }
            members
        }
        _ => return Err(single()),
    };
    let mut fields = Vec::with_capacity(members.len());
    for field in members {
        const PARSER: &str = "highlight_field";
        let Some(members) = field.value.as_object() else {
            return Err(BodyError::parsing(
                field.value.at,
                format!("[{PARSER}] Expected START_OBJECT but was: {}", field.value.token()),
            ));
        };
        let mut options = Options::default();
        for member in members {
            let at = member.value.at;
            let mut read = || -> Result<bool, BodyError> {
                match &*member.name {
                    "matched_fields" => options.matched_fields = value::texts(&member.value)?,
                    "fragment_offset" => {
                        value::int(&member.value)?;
                    }
                    _ => return options.take(member, context),
                }
                Ok(true)
            };
            match read() {
                Ok(true) => {}
                Ok(false) => return Err(unknown(PARSER, member, &field_shape())),
                Err(error) => return Err(error.within(PARSER, &member.name, at)),
            }
        }
        fields.push((field.name.to_string(), options));
    }
    Ok(fields)
}

fn encoder(name: &str) -> Result<bool, BodyError> {
    match name {
        "html" => Ok(true),
        "default" => Ok(false),
        other => Err(BodyError::illegal(format!("unknown encoder [{other}]"))),
    }
}

fn scanner(name: &str) -> Result<Scanner, BodyError> {
    match name.to_lowercase().as_str() {
        "sentence" => Ok(Scanner::Sentence),
        "word" => Ok(Scanner::Word),
        "chars" => Ok(Scanner::Chars),
        _ => Err(BodyError::illegal(format!("unknown boundary scanner [{name}]"))),
    }
}
