//! `script`: changes a document by a script.

use serde_json::{Map, Value as Json};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::script::{Compiled, SCRIPT};
use crate::shape::{Shape, object, open, text};

/// Changes the document by a script.
#[derive(Debug)]
pub(crate) struct ScriptProcessor(Compiled);

pub(super) fn script_shape() -> Shape {
    object([("source", text()), ("id", text()), ("lang", text()), ("params", open())])
}

impl ScriptProcessor {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let names = ["source", "id", "lang", "params"];
        let given: Map<String, Json> =
            names.into_iter().filter_map(|name| Some((name.to_owned(), config.optional(name)?))).collect();
        Ok(Self(Compiled::new(config, "source", &Json::Object(given), &SCRIPT)?))
    }
}

impl Processor for ScriptProcessor {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let (mut machine, ctx) = self.0.machine(document);
        self.0.run(&mut machine, document)?;
        let Json::Object(fields) = machine.to_json(&ctx)? else { return Ok(()) };
        document.replace(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    fn script(source: &str) -> serde_json::Value {
        json!({"script": {"source": source, "params": {"more": 2}}})
    }

    #[test]
    fn a_script_changes_fields() {
        let given = json!({"a": 1, "tags": ["x", "y"], "gone": true});
        let source = "ctx.a += params.more; ctx.words = ctx.tags.size(); ctx.remove('gone'); ctx.o = ['k': [1.5, null]];";
        let expected = json!({"a": 3, "tags": ["x", "y"], "words": 2, "o": {"k": [1.5, null]}});
        assert_eq!(check(script(source), given).unwrap(), expected);
    }

    #[test]
    fn what_a_script_does_not_compile_to_is_refused() {
        let refused = check(script("ctx.a = ;"), json!({})).unwrap_err();
        assert!(refused.starts_with("config: "), "{refused}");
        let refused = check(json!({"script": {"id": "s"}}), json!({})).unwrap_err();
        assert!(refused.contains("unable to find script [s]"), "{refused}");
        let refused = check(json!({"script": {}}), json!({})).unwrap_err();
        assert!(refused.contains("must specify either [source]"), "{refused}");
    }

    #[test]
    fn a_failure_says_where() {
        let failed = check(script("ctx.a.b.c = 1"), json!({"a": {}})).unwrap_err();
        assert!(failed.contains("cannot access method/field"), "{failed}");
    }
}
