//! A small, safe subset of Painless, the language of Elasticsearch's scripts.
//!
//! [`Script::compile`] reads a script for one [`Context`], which says what variables and functions there are; a [`Cache`] keeps
//! what was compiled. A [`Machine`] runs one script over any number of documents, and asks a [`Host`] for their fields:
//!
//! ```
//! use std::sync::Arc;
//! use sparrow_scripts::{Context, Machine, Script, Value};
//!
//! const UPDATE: Context = Context { name: "update", variables: &["ctx"], functions: &[] };
//! let script = Script::compile("ctx._source.likes += params.count", &UPDATE).unwrap();
//! let params = serde_json::from_str(r#"{"count": 2}"#).unwrap();
//! let mut machine = Machine::new(Arc::new(script), Some(Arc::new(params)));
//! let ctx = Value::from_json(&serde_json::json!({"_source": {"likes": 40}}));
//! machine.set("ctx", ctx.clone());
//! machine.run(&mut ()).unwrap();
//! assert_eq!(machine.to_json(&ctx).unwrap(), serde_json::json!({"_source": {"likes": 42}}));
//! ```
//!
//! There is no reflection, no I/O, no clock, no chance. A run is bounded in steps and in memory ([`Limits`]), and stops when the
//! thread's request must stop ([`sparrow_runtime::work`]). What a script uses from outside the subset is refused by name, with its
//! position: where that can be known when the script is compiled, else when it runs.

mod cache;
mod change;
mod context;
mod error;
mod lexer;
mod machine;
mod methods;
mod parser;
mod regexes;
mod scores;
mod script;
mod source;
mod tables;
mod tree;
mod types;
mod value;

pub use cache::Cache;
pub use change::{ChangeScript, Changes, Decision, Found};
pub use context::{Context, Function, Host};
pub use error::{Fault, Position, Report, ScriptError};
pub use machine::{Limits, Machine};
pub use scores::ScoreFunction;
pub use script::Script;
pub use source::ScriptSource;
pub use value::{Field, Value};
