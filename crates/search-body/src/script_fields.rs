//! `script_fields`: values that scripts compute for each hit.

use crate::shape::{Shape, flag, map, named, object};
use sparrow_query::dsl::value;
use sparrow_query::script::{QueryScript, ScriptUse};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// Most script fields of a search (`index.max_script_fields`).
const MOST_SCRIPT_FIELDS: usize = 32;

/// A value to compute for each hit.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptField {
    /// Name in the hit.
    pub name: String,
    /// What computes it.
    pub script: QueryScript,
    /// Whether a hit on which the script fails goes without the value.
    pub ignore_failure: bool,
}

pub(crate) fn shape() -> Shape {
    map(field_shape()).about("values that scripts compute")
}

fn field_shape() -> Shape {
    object([("script", named("Script")), ("ignore_failure", flag())]).needs(&["script"])
}

/// Reads the section `script_fields`.
///
/// # Errors
/// For what is no script, more than 32 fields, and unknown members.
pub fn parse(node: &Node) -> Result<Vec<ScriptField>, BodyError> {
    let members = node.as_object().unwrap_or_default();
    if members.len() > MOST_SCRIPT_FIELDS {
        return Err(BodyError::illegal(format!(
            "Trying to retrieve too many script_fields. Must be less than or equal to: [{MOST_SCRIPT_FIELDS}] but was \
             [{}]. This limit can be set by changing the [index.max_script_fields] index level setting.",
            members.len()
        )));
    }
    let mut fields = Vec::with_capacity(members.len());
    for member in members {
        value::check_length("the name of a script field", &member.name, sparrow_wire::MOST_REPEATED)?;
        let (mut script, mut ignore_failure) = (None, false);
        for part in member.value.as_object().unwrap_or_default() {
            match &*part.name {
                "script" => script = Some(QueryScript::read(&part.value, ScriptUse::Field)?),
                "ignore_failure" => ignore_failure = value::boolean(&part.value)?,
                name => {
                    return Err(BodyError::parsing(
                        part.at,
                        format!(
                            "Unknown key for a {} in [{name}].{}",
                            part.value.token(),
                            field_shape().near(name)
                        ),
                    ));
                }
            }
        }
        let missing =
            || BodyError::parsing(member.value.end, "[script_fields] must have a [script] for each field");
        let script = script.ok_or_else(missing)?;
        fields.push(ScriptField { name: member.name.to_string(), script, ignore_failure });
    }
    Ok(fields)
}
