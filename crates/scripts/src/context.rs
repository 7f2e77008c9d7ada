//! What a use of scripts offers them.

use crate::error::Fault;
use crate::value::{Field, Value};

/// What a use of scripts declares: the names that a script may refer to. `params` is always there.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Name of the use, such as `score`: scripts are compiled for each anew.
    pub name: &'static str,
    /// Variables that the caller sets. The variable `doc` is not set: it leads to the fields of the [`Host`], and
    /// brings the functions `field(name)` and `$(name, default)`.
    pub variables: &'static [&'static str],
    /// Functions that the host carries out.
    pub functions: &'static [Function],
}

/// A function that a [`Host`] carries out.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Name in scripts.
    pub name: &'static str,
    /// How many arguments it may be given.
    pub arguments: &'static [usize],
}

/// Answers what a script asks about the current document. The methods have defaults for uses without documents; `()` is such a host.
pub trait Host {
    /// Whether there is a field of this name in the mapping.
    ///
    /// # Errors
    /// When this cannot be said.
    fn has_field(&mut self, _field: &Field) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Number of values that the document has in a field, which [`Host::has_field`].
    ///
    /// # Errors
    /// When scripts cannot read the values of such a field.
    fn count(&mut self, _field: &Field) -> Result<usize, Fault> {
        Ok(0)
    }

    /// One of the values that the document has in a field, by its position below [`Host::count`].
    ///
    /// # Errors
    /// When it cannot be read.
    fn value(&mut self, _field: &Field, _at: usize) -> Result<Value, Fault> {
        Ok(Value::Null)
    }

    /// The result of a method that only some types of fields have, such as `doc['place'].arcDistance(48.1, 11.6)`, or of a
    /// property, which has no arguments; none if the field has no such method.
    ///
    /// # Errors
    /// When the method fails.
    fn method(&mut self, _field: &Field, _name: &str, _arguments: &[Value]) -> Result<Option<Value>, Fault> {
        Ok(None)
    }

    /// The result of one of the functions of the [`Context`], by its position in it.
    ///
    /// # Errors
    /// When the function fails.
    fn call(&mut self, _function: usize, _arguments: &[Value]) -> Result<Value, Fault> {
        Ok(Value::Null)
    }
}

impl Host for () {}
