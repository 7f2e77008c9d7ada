//! Scripts of queries, sorts and fields: what they may refer to.

use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_scripts::{Cache, Context, ScoreFunction, Script, ScriptError, ScriptSource};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// What a script over documents is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptUse {
    /// The score of a document: `script_score`, also as a function of `function_score`.
    Score,
    /// Whether a document matches: the query `script`.
    Filter,
    /// A value to show: `script_fields`.
    Field,
    /// A value to sort by: `_script`.
    Sort,
    /// How many terms a document must have: `minimum_should_match_script`. The number of terms that are asked for is
    /// `params.num_terms`.
    TermsSet,
}

impl ScriptUse {
    fn context(self) -> &'static Context {
        const FIELD: Context = Context { name: "field", variables: &["doc"], functions: &[] };
        const FILTER: Context = Context { name: "filter", ..FIELD };
        const TERMS_SET: Context = Context { name: "terms_set", ..FIELD };
        const SORT: Context = Context { name: "sort", variables: &["doc", "_score"], functions: &[] };
        const SCORE: Context = Context { name: "score", functions: &ScoreFunction::DECLARED, ..SORT };
        match self {
            Self::Score => &SCORE,
            Self::Filter => &FILTER,
            Self::Field => &FIELD,
            Self::Sort => &SORT,
            Self::TermsSet => &TERMS_SET,
        }
    }
}

/// A script over documents, compiled, with its constants.
#[derive(Debug, Clone)]
pub struct QueryScript {
    /// The compiled script.
    pub script: Arc<Script>,
    /// The constants that the request gave the script.
    pub params: Option<Arc<Map<String, Value>>>,
}

impl PartialEq for QueryScript {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source() && self.params == other.params
    }
}

impl QueryScript {
    /// Reads and compiles a script.
    ///
    /// # Errors
    /// [`BodyError::Script`] for one that is malformed or cannot be compiled.
    pub fn read(node: &Node, used: ScriptUse) -> Result<Self, BodyError> {
        Self::parse(&node.to_value(), used)
            .map_err(|error| BodyError::Script { exception: Box::new(error.exception()) })
    }

    /// As [`QueryScript::read`].
    ///
    /// # Errors
    /// As [`QueryScript::read`].
    pub fn parse(given: &Value, used: ScriptUse) -> Result<Self, ScriptError> {
        let ScriptSource { source, params, .. } = ScriptSource::parse(given)?.inline()?;
        Ok(Self { script: Cache::shared().get(&source, used.context())?, params })
    }

    /// The text of the script.
    pub fn source(&self) -> &str {
        self.script.source()
    }
}
