//! Scripts of queries, sorts and fields: what they may refer to.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_scripts::{
    Cache, Context, Machine, ScoreFunction, Script, ScriptError, ScriptSource, Value as ScriptValue,
};
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
    /// A number that is computed from others of a bucket: `bucket_script`.
    BucketNumber,
    /// Whether a bucket is kept: `bucket_selector`.
    BucketFilter,
}

impl ScriptUse {
    fn context(self) -> &'static Context {
        const FIELD: Context = Context { name: "field", variables: &["doc"], functions: &[] };
        const FILTER: Context = Context { name: "filter", ..FIELD };
        const TERMS_SET: Context = Context { name: "terms_set", ..FIELD };
        const BUCKET: Context = Context { name: "bucket_aggregation", variables: &[], functions: &[] };
        const BUCKET_FILTER: Context = Context { name: "aggregation_selector", ..BUCKET };
        const SORT: Context = Context { name: "sort", variables: &["doc", "_score"], functions: &[] };
        const SCORE: Context = Context { name: "score", functions: &ScoreFunction::DECLARED, ..SORT };
        match self {
            Self::Score => &SCORE,
            Self::Filter => &FILTER,
            Self::Field => &FIELD,
            Self::Sort => &SORT,
            Self::TermsSet => &TERMS_SET,
            Self::BucketNumber => &BUCKET,
            Self::BucketFilter => &BUCKET_FILTER,
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

    /// The script over numbers, which it finds in `params` by these names.
    pub fn over_numbers<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> NumbersScript {
        NumbersScript {
            machine: Machine::new(Arc::clone(&self.script), self.params.clone()),
            names: names.into_iter().map(Rc::from).collect(),
        }
    }
}

/// A script that is run on one row of numbers after another, in one thread.
#[derive(Debug)]
pub struct NumbersScript {
    machine: Machine,
    names: Vec<Rc<str>>,
}

impl NumbersScript {
    /// The number that the script makes of others, one for each name; none if it returns `null`.
    ///
    /// # Errors
    /// When the script fails or returns something else, or the request must stop.
    pub fn number(&mut self, numbers: &[f64]) -> Result<Option<f64>, ScriptError> {
        let value = self.run(numbers)?;
        match value.as_f64() {
            None if !value.is_null() => Err(self.machine.wrong_result("a number")),
            number => Ok(number),
        }
    }

    /// Whether numbers, one for each name, are as the script wants them.
    ///
    /// # Errors
    /// As [`NumbersScript::number`].
    pub fn holds(&mut self, numbers: &[f64]) -> Result<bool, ScriptError> {
        let value = self.run(numbers)?;
        value.as_bool().ok_or_else(|| self.machine.wrong_result("a boolean"))
    }

    fn run(&mut self, numbers: &[f64]) -> Result<ScriptValue, ScriptError> {
        let named = self.names.iter().cloned().zip(numbers.iter().map(|number| ScriptValue::Double(*number)));
        self.machine.add_params(named.collect());
        self.machine.run(&mut ())
    }
}
