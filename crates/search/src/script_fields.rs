//! `script_fields`: values that scripts compute for each hit.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use sparrow_query::script::QueryScript;
use sparrow_scripts::ScriptError;
use sparrow_search_body::script_fields::ScriptField;
use sparrow_tantivy_index::query::scripts::SegmentScript;

use super::target::{Hit, Target};

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
