//! `script_fields`: values that scripts compute for each hit.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use sparrow_index::query::scripts::SegmentScript;
use sparrow_query::dsl::value;
use sparrow_query::script::{QueryScript, ScriptUse};
use sparrow_scripts::ScriptError;
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

use super::target::{Hit, Target};

/// Most script fields of a search (`index.max_script_fields`).
const MOST_SCRIPT_FIELDS: usize = 32;

/// A value to compute for each hit.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptField {
    name: String,
    script: QueryScript,
    /// Whether a hit on which the script fails goes without the value.
    ignore_failure: bool,
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
                        format!("Unknown key for a {} in [{name}].", part.value.token()),
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

/// Computes the script fields of the hits of a search.
pub struct ScriptFields<'a> {
    fields: &'a [ScriptField],
    /// The running scripts of a segment, by its target and number.
    running: FxHashMap<(usize, u32), Vec<SegmentScript>>,
}

impl<'a> ScriptFields<'a> {
    /// Before the first hit.
    pub fn new(fields: &'a [ScriptField]) -> Self {
        Self { fields, running: FxHashMap::default() }
    }

    /// Adds the values of a hit, whose source this is.
    ///
    /// # Errors
    /// When a script fails.
    pub fn read(
        &mut self,
        targets: &[Target],
        hit: &Hit,
        source: &[u8],
        out: &mut Map<String, Value>,
    ) -> Result<(), ScriptError> {
        let target = &targets[hit.target];
        let reader = target.snapshot.searcher().segment_reader(hit.addr.segment_ord);
        let running = self.running.entry((hit.target, hit.addr.segment_ord)).or_insert_with(|| {
            let scripts = self.fields.iter().map(|field| target.snapshot.script(&field.script));
            scripts.map(|script| script.open(reader)).collect()
        });
        let mut parsed: Option<Value> = None;
        for (field, running) in self.fields.iter().zip(running) {
            if reads_source(&field.script) {
                // The source is among the constants.
                let mut params = field.script.params.as_deref().cloned().unwrap_or_default();
                let parsed = parsed.get_or_insert_with(|| serde_json::from_slice(source).unwrap_or_default());
                params.insert("_source".to_owned(), parsed.clone());
                running.set_params(params);
            }
            let computed = running.json(hit.addr.doc_id, None);
            let value = match computed {
                Err(ScriptError::Runtime(_)) if field.ignore_failure => continue,
                computed => computed?,
            };
            let values = if let Value::Array(values) = value { values } else { vec![value] };
            out.insert(field.name.clone(), values.into());
        }
        Ok(())
    }
}

/// Whether a script reads the source of the document, `params._source`.
fn reads_source(script: &QueryScript) -> bool {
    script.source().contains("_source")
}
