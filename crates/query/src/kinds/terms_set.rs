//! `terms_set`: documents with several exact values, of which each document says how many it needs.

use std::fmt;

use serde_json::Value;

use super::dsl::{Common, Context, not_supported, single_field, unknown_token, value};
use super::no_children;
use super::script_score::script_shape;
use super::shape::{Shape, clause, list, of_field, scalar, text};
use super::term::write_values;
use super::text::minimum;
use crate::script::{QueryScript, ScriptUse};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// A `terms_set` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TermsSetQuery {
    /// Path of the field to search.
    pub field: String,
    /// The values: strings, numbers or booleans.
    pub values: Vec<Value>,
    /// How many of the values a document has to have.
    pub minimum: TermsSetMinimum,
}

/// How many values of a `terms_set` a document has to have.
#[derive(Debug, Clone, PartialEq)]
pub enum TermsSetMinimum {
    /// As many as this numeric field of the document says.
    Field(String),
    /// As many as a script says.
    Script(QueryScript),
    /// As [`super::MatchQuery::minimum_should_match`].
    Spec(String),
}

impl Default for TermsSetMinimum {
    fn default() -> Self {
        TermsSetMinimum::Spec("1".to_owned())
    }
}

/// What the body of a `terms_set` query holds.
pub(super) fn terms_set_shape() -> Shape {
    of_field(
        clause([
            ("terms", list(scalar())),
            ("minimum_should_match_field", text()),
            ("minimum_should_match_script", script_shape()),
            ("minimum_should_match", minimum()),
        ])
        .needs(&["terms"]),
    )
}

/// Reads a `terms_set` query.
pub(super) fn terms_set(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "terms_set";
    let field = single_field(body, CLAUSE)?;
    let Some(options) = field.value.as_object() else { return Err(unknown_token(CLAUSE, field)) };
    let mut common = Common::default();
    let mut values = None;
    let mut minimum = None;
    let set = |slot: &mut Option<TermsSetMinimum>, new| match slot.replace(new) {
        None => Ok(()),
        Some(_) => Err(BodyError::illegal(
            "[terms_set] takes one of minimum_should_match, \
             minimum_should_match_field and minimum_should_match_script",
        )),
    };
    for member in options {
        let node = &member.value;
        match &*member.name {
            "terms" => {
                let Some(items) = node.as_array() else { return Err(unknown_token(CLAUSE, member)) };
                if let Some(item) = items.iter().find(|item| !item.is_scalar() || item.json == Json::Null) {
                    return Err(BodyError::parsing(item.at, "No value specified for terms_set query"));
                }
                values = Some(items.iter().map(Node::to_value).collect());
            }
            "minimum_should_match_script" => {
                let script = QueryScript::read(node, ScriptUse::TermsSet)?;
                set(&mut minimum, TermsSetMinimum::Script(script))?;
            }
            _ if !node.is_scalar() => return Err(unknown_token(CLAUSE, member)),
            "minimum_should_match_field" => set(&mut minimum, TermsSetMinimum::Field(value::text(node)?))?,
            "minimum_should_match" => set(&mut minimum, TermsSetMinimum::Spec(value::text(node)?))?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let Some(values) = values else { return Err(BodyError::illegal("no terms provided")) };
    if let Some(TermsSetMinimum::Script(script)) = &mut minimum {
        let mut params = script.params.as_deref().cloned().unwrap_or_default();
        params.insert("num_terms".to_owned(), Vec::len(&values).into());
        script.params = Some(params.into());
    }
    let Some(minimum) = minimum else {
        return Err(BodyError::illegal("No minimum should match has been specified"));
    };
    let field = field.name.to_string();
    Ok(common.query(QueryKind::TermsSet(TermsSetQuery { field, values, minimum })))
}

impl Clause for TermsSetQuery {
    fn lucene_name(&self) -> &'static str {
        "TermsSetQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_values(out, &self.field, &self.values)
    }

    no_children!();
}
