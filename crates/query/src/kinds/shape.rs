//! What the bodies of queries hold, as JSON Schema for the OpenAPI document. Each kind says it beside the function that reads it.

use serde_json::{Map, Value, json};

/// A JSON Schema.
#[derive(Debug, Clone)]
pub(super) struct Shape(Map<String, Value>);

/// A member of an object: its name, and what it holds.
pub(super) type Named = (&'static str, Shape);

impl Shape {
    /// This schema with a keyword of JSON Schema and its value added.
    fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.0.insert(keyword.to_owned(), value.into());
        self
    }

    /// Says what the value is for.
    pub(super) fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Says which value it has where a request leaves it out.
    pub(super) fn preset(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Says which members an object must have.
    pub(super) fn needs(self, names: &[&str]) -> Self {
        self.with("required", names.to_vec())
    }

    /// Says what members of an object hold that have the names of fields.
    pub(super) fn by_field(self, values: Self) -> Self {
        self.with("additionalProperties", values)
    }

    /// Says that an object has exactly one member.
    fn alone(self) -> Self {
        self.with("minProperties", 1).with("maxProperties", 1)
    }
}

impl From<Shape> for Value {
    fn from(shape: Shape) -> Self {
        Self::Object(shape.0)
    }
}

/// A value of any type.
pub(super) fn any() -> Shape {
    Shape(Map::new())
}

fn of_type(name: impl Into<Value>) -> Shape {
    any().with("type", name)
}

pub(super) fn text() -> Shape {
    of_type("string")
}

pub(super) fn int() -> Shape {
    of_type("integer")
}

pub(super) fn num() -> Shape {
    of_type("number")
}

pub(super) fn flag() -> Shape {
    of_type("boolean")
}

/// An object whose members are the user's own.
pub(super) fn open() -> Shape {
    of_type("object")
}

/// A value of a field.
pub(super) fn scalar() -> Shape {
    of_type(json!(["string", "number", "boolean", "null"]))
}

/// A whole number, or a text that says how many.
pub(super) fn count() -> Shape {
    of_type(json!(["string", "integer"]))
}

/// A length with a unit, or a number.
pub(super) fn length() -> Shape {
    of_type(json!(["string", "number"]))
}

pub(super) fn list(items: Shape) -> Shape {
    of_type("array").with("items", items)
}

/// An object of members with the user's names.
pub(super) fn map(values: Shape) -> Shape {
    open().by_field(values)
}

/// One of several texts.
pub(super) fn one(values: &[&str]) -> Shape {
    text().with("enum", values.to_vec())
}

pub(super) fn either(shapes: impl IntoIterator<Item = Shape>) -> Shape {
    any().with("anyOf", shapes.into_iter().map(Value::from).collect::<Vec<_>>())
}

/// One, or a list of them.
pub(super) fn several(shape: Shape) -> Shape {
    either([shape.clone(), list(shape)])
}

/// A schema of the OpenAPI document that has a name.
pub(super) fn named(name: &str) -> Shape {
    any().with("$ref", format!("#/components/schemas/{name}"))
}

/// A query inside another.
pub(super) fn sub_query() -> Shape {
    named("Query")
}

/// An object of these members.
pub(super) fn object(members: impl IntoIterator<Item = Named>) -> Shape {
    let members: Map<String, Value> =
        members.into_iter().map(|(name, shape)| (name.to_owned(), shape.into())).collect();
    open().with("properties", members)
}

/// An object with exactly one of these members, whose name says what it is.
pub(super) fn one_member(members: impl IntoIterator<Item = Named>) -> Shape {
    object(members).alone()
}

/// What every query takes.
pub(super) fn common() -> [Named; 2] {
    [
        ("boost", num().about("factor of its score").preset(1)),
        ("_name", text().about("name under which a hit tells that it matched: `matched_queries`")),
    ]
}

/// The body of a query that has these members, and those that every query takes.
pub(super) fn clause(members: impl IntoIterator<Item = Named>) -> Shape {
    object(members.into_iter().chain(common()))
}

/// A body with one member, which has the name of a field.
pub(super) fn of_field(values: Shape) -> Shape {
    open().alone().by_field(values)
}

/// A body about one field: `{"field": value}`, or `{"field": {…}}` with options, of which those in `values` hold the value.
pub(super) fn field_or_value(values: &[&'static str], options: impl IntoIterator<Item = Named>) -> Shape {
    let values = values.iter().map(|name| (*name, scalar()));
    of_field(either([scalar(), clause(values.chain(options))]))
}
