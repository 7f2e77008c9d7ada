//! `intervals`: rules about the positions of words in a text.

use std::fmt;
use std::ops::Bound;

use super::dsl::{Common, Context, members, single_field, value};
use super::no_children;
use super::shape::{
    Named, Shape, common, flag, int, list, named, object, of_field, one_member, scalar, text,
};
use super::text::fuzziness;
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// An `intervals` query.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsQuery {
    /// Path of a text field.
    pub field: String,
    /// The rule that an interval of the text has to satisfy.
    pub rule: IntervalsRule,
}

/// A rule that selects intervals, which are ranges of word positions in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsRule {
    /// Which intervals the rule selects.
    pub source: IntervalsSource,
    /// A condition on the intervals' positions relative to those of another rule.
    pub filter: Option<Box<IntervalsFilter>>,
}

/// The kinds of rules that select intervals.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalsSource {
    /// Intervals that contain all words of a text.
    Match {
        /// The text that is analysed into words.
        text: String,
        /// Largest number of words in between, and whether their order counts.
        order: IntervalsOrder,
        /// Analyzer and field for the words.
        words: IntervalsWords,
    },
    /// Words that start with this prefix.
    Prefix(String, IntervalsWords),
    /// Words that match a pattern of `*` and `?`.
    Wildcard(String, IntervalsWords),
    /// Words that a regular expression matches.
    Regexp(String, IntervalsWords),
    /// Words between two bounds, in byte order.
    Range(Bound<String>, Bound<String>, IntervalsWords),
    /// Words within an edit distance of a given one.
    Fuzzy {
        /// The given word.
        term: String,
        /// Largest number of edits: `AUTO`, `0`, `1` or `2`.
        fuzziness: String,
        /// Number of letters at the start that have to be equal.
        prefix_length: usize,
        /// Whether swapping two neighbouring letters counts as two edits instead of one.
        without_transpositions: bool,
        /// Analyzer and field for the word.
        words: IntervalsWords,
    },
    /// Intervals that combine one of each rule.
    AllOf(Vec<IntervalsRule>, IntervalsOrder),
    /// Intervals of any of the rules.
    AnyOf(Vec<IntervalsRule>),
}

/// How the parts of a combined interval may be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalsOrder {
    /// Largest number of words between the parts; `None` for no limit.
    pub max_gaps: Option<u32>,
    /// Whether the parts have to be in the order of the request and must not overlap.
    pub ordered: bool,
}

/// Analyzer and field for the words of a rule, where they differ from those of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalsWords {
    /// Analyzer instead of the field's own.
    pub analyzer: Option<String>,
    /// Path of another field in which the words are searched.
    pub use_field: Option<String>,
}

/// A condition on the positions of intervals relative to those of another rule.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalsFilter {
    /// The required relation to the other rule's intervals.
    pub relation: IntervalsRelation,
    /// The rule that selects the other intervals.
    pub rule: IntervalsRule,
}

/// How an interval has to be placed relative to other intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalsRelation {
    /// It comes after one of them.
    After,
    /// It comes before one of them.
    Before,
    /// It lies inside one of them.
    ContainedBy,
    /// It contains one of them.
    Containing,
    /// It lies inside none of them.
    NotContainedBy,
    /// It contains none of them.
    NotContaining,
    /// It shares no position with any of them.
    NotOverlapping,
    /// It shares a position with one of them.
    Overlapping,
}

const CLAUSE: &str = "intervals";
const RULES: &[&str] = &["match", "any_of", "all_of", "prefix", "wildcard", "regexp", "fuzzy", "range"];

/// What the body of an `intervals` query holds.
pub(super) fn intervals_shape() -> Shape {
    of_field(object(intervals_members().into_iter().chain(common())))
}

/// What a rule of `intervals` is.
pub(super) fn rule_shape() -> Shape {
    one_member(intervals_members()).about("Where words stand in a text.")
}

fn intervals_members() -> Vec<Named> {
    let rule = || named("IntervalsRule");
    let filter = || {
        let relations = [
            "after",
            "before",
            "contained_by",
            "containing",
            "not_contained_by",
            "not_containing",
            "not_overlapping",
            "overlapping",
        ];
        one_member(relations.map(|name| (name, rule()))).about("a relation to other intervals")
    };
    let ordered =
        || [("max_gaps", int().preset(-1)), ("ordered", flag().preset(false)), ("filter", filter())];
    let with_words = |members: Vec<Named>| {
        object(members.into_iter().chain([("analyzer", text()), ("use_field", text())]))
    };
    let with_order = |first: Named| [first].into_iter().chain(ordered());
    let bounds = ["gte", "gt", "lte", "lt"].map(|name| (name, scalar()));
    let fuzzy =
        [("term", text()), ("fuzziness", fuzziness()), ("prefix_length", int()), ("transpositions", flag())];
    vec![
        ("match", with_words(with_order(("query", text())).collect()).needs(&["query"])),
        ("any_of", object([("intervals", list(rule())), ("filter", filter())]).needs(&["intervals"])),
        ("all_of", object(with_order(("intervals", list(rule())))).needs(&["intervals"])),
        ("prefix", with_words(vec![("prefix", text())]).needs(&["prefix"])),
        ("wildcard", with_words(vec![("pattern", text())]).needs(&["pattern"])),
        ("regexp", with_words(vec![("pattern", text())]).needs(&["pattern"])),
        ("fuzzy", with_words(fuzzy.to_vec()).needs(&["term"])),
        ("range", with_words(bounds.to_vec())),
    ]
}

/// Reads an `intervals` query.
pub(super) fn intervals(body: &Node, context: Context) -> Result<Query, BodyError> {
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let mut rule: Option<(&str, IntervalsRule)> = None;
    for member in members(&field.value, CLAUSE)? {
        if member.value.is_scalar() && common.take(CLAUSE, member)? {
            continue;
        }
        if let Some((first, _)) = &rule {
            return Err(BodyError::parsing(
                member.at,
                format!("Only one interval rule can be specified, found [{first}] and [{}]", member.name),
            ));
        }
        rule = Some((&member.name, one_rule(member, context)?));
    }
    let Some((_, rule)) = rule else {
        return Err(BodyError::parsing(field.value.end, "Missing intervals from interval query definition"));
    };
    Ok(common.query(QueryKind::Intervals(IntervalsQuery { field: field.name.to_string(), rule })))
}

/// Reads a rule: an object whose single key names its kind.
fn rule(node: &Node, context: Context) -> Result<IntervalsRule, BodyError> {
    match members(node, CLAUSE)? {
        [member] => one_rule(member, context.nested()?),
        [] => Err(BodyError::parsing(node.end, "Expected [FIELD_NAME] but got [END_OBJECT]")),
        [_, second, ..] => Err(BodyError::parsing(second.at, "Expected [END_OBJECT] but got [FIELD_NAME]")),
    }
}

fn one_rule(member: &Member, context: Context) -> Result<IntervalsRule, BodyError> {
    let node = &member.value;
    let name: &'static str = match RULES.iter().find(|known| **known == &*member.name) {
        Some(known) => known,
        None => {
            return Err(BodyError::parsing(
                member.at,
                format!("Unknown interval type [{}], expecting one of [{}]", member.name, RULES.join(", ")),
            ));
        }
    };
    let parts = members(node, name)?;
    let mut words = IntervalsWords::default();
    let mut order = IntervalsOrder { max_gaps: None, ordered: false };
    let (mut text, mut rules, mut filter) = (None, None, None);
    let mut ends = Ends::default();
    let (mut fuzziness, mut prefix_length, mut transpositions) = ("AUTO".to_owned(), 0, true);
    let text_key = match name {
        "match" => "query",
        "prefix" => "prefix",
        "wildcard" | "regexp" => "pattern",
        "range" => "",
        _ => "term",
    };
    for part in parts {
        let combines = matches!(name, "any_of" | "all_of");
        match (&*part.name, name) {
            (key, _) if key == text_key && !combines => text = Some(value::text(&part.value)?),
            ("intervals", "any_of" | "all_of") => {
                let Json::Array(items) = &part.value.json else {
                    return Err(BodyError::ValueType {
                        parser: name,
                        field: "intervals".to_owned(),
                        token: part.value.token(),
                        at: part.value.at,
                    });
                };
                rules = Some(items.iter().map(|item| rule(item, context)).collect::<Result<Vec<_>, _>>()?);
            }
            ("max_gaps", "match" | "all_of") => {
                // Any negative number is no limit.
                order.max_gaps = u32::try_from(value::int(&part.value)?).ok();
            }
            ("ordered", "match" | "all_of") => order.ordered = value::boolean(&part.value)?,
            ("filter", "match" | "any_of" | "all_of") => {
                filter = Some(Box::new(one_filter(&part.value, context)?))
            }
            ("analyzer", _) if !combines => words.analyzer = Some(value::text(&part.value)?),
            ("use_field", _) if !combines => words.use_field = Some(value::text(&part.value)?),
            ("gte", "range") => ends.gte = Some(value::text(&part.value)?),
            ("gt", "range") => ends.gt = Some(value::text(&part.value)?),
            ("lte", "range") => ends.lte = Some(value::text(&part.value)?),
            ("lt", "range") => ends.lt = Some(value::text(&part.value)?),
            ("fuzziness", "fuzzy") => fuzziness = value::text(&part.value)?,
            ("prefix_length", "fuzzy") => prefix_length = value::unsigned(&part.value, "prefix_length")?,
            ("transpositions", "fuzzy") => transpositions = value::boolean(&part.value)?,
            _ => {
                let known: &[&'static str] = match name {
                    "match" => &["query", "max_gaps", "ordered", "analyzer", "use_field", "filter"],
                    "any_of" => &["intervals", "filter"],
                    "all_of" => &["intervals", "max_gaps", "ordered", "filter"],
                    "prefix" => &["prefix", "analyzer", "use_field"],
                    "wildcard" | "regexp" => &["pattern", "analyzer", "use_field"],
                    "range" => &["gte", "gt", "lte", "lt", "analyzer", "use_field"],
                    _ => &["term", "fuzziness", "prefix_length", "transpositions", "analyzer", "use_field"],
                };
                return Err(BodyError::unknown_field(name, part, known));
            }
        }
    }
    let needed = || text.ok_or(BodyError::Required { field: text_key });
    let rules = || rules.ok_or(BodyError::Required { field: "intervals" });
    let source = match name {
        "match" => IntervalsSource::Match { text: needed()?, order, words },
        "prefix" => IntervalsSource::Prefix(needed()?, words),
        "wildcard" => IntervalsSource::Wildcard(needed()?, words),
        "regexp" => IntervalsSource::Regexp(needed()?, words),
        "range" => ends.range(words)?,
        "fuzzy" => IntervalsSource::Fuzzy {
            term: needed()?,
            fuzziness,
            prefix_length,
            without_transpositions: !transpositions,
            words,
        },
        "all_of" => IntervalsSource::AllOf(rules()?, order),
        _ => IntervalsSource::AnyOf(rules()?),
    };
    Ok(IntervalsRule { source, filter })
}

/// The bounds of a `range` rule, which needs one lower and one upper bound.
#[derive(Default)]
struct Ends {
    gte: Option<String>,
    gt: Option<String>,
    lte: Option<String>,
    lt: Option<String>,
}

impl Ends {
    fn range(self, words: IntervalsWords) -> Result<IntervalsSource, BodyError> {
        let one = |included: Option<String>, excluded: Option<String>, names: &str| match (included, excluded)
        {
            (Some(end), None) => Ok(Bound::Included(end)),
            (None, Some(end)) => Ok(Bound::Excluded(end)),
            _ => Err(BodyError::illegal(format!("Either {names}, one of them must be provided"))),
        };
        let lower = one(self.gte, self.gt, "[gte] or [gt]")?;
        Ok(IntervalsSource::Range(lower, one(self.lte, self.lt, "[lte] or [lt]")?, words))
    }
}

fn one_filter(node: &Node, context: Context) -> Result<IntervalsFilter, BodyError> {
    let [member] = members(node, "filter")? else {
        return Err(BodyError::parsing(node.at, "Expected exactly one rule in [filter] of [intervals]"));
    };
    let relation = match &*member.name {
        "after" => IntervalsRelation::After,
        "before" => IntervalsRelation::Before,
        "contained_by" => IntervalsRelation::ContainedBy,
        "containing" => IntervalsRelation::Containing,
        "not_contained_by" => IntervalsRelation::NotContainedBy,
        "not_containing" => IntervalsRelation::NotContaining,
        "not_overlapping" => IntervalsRelation::NotOverlapping,
        "overlapping" => IntervalsRelation::Overlapping,
        "script" => {
            return Err(BodyError::parsing(
                member.at,
                "[script] in [filter] of [intervals] is not supported by this server",
            ));
        }
        other => {
            return Err(BodyError::illegal(format!("filter type [{other}] not supported")));
        }
    };
    Ok(IntervalsFilter { relation, rule: rule(&member.value, context)? })
}

impl Clause for IntervalsQuery {
    fn lucene_name(&self) -> &'static str {
        "IntervalsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "intervals({})", self.field)
    }

    no_children!();
}
