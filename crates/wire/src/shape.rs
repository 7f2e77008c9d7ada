//! What the bodies of requests hold, as JSON Schema for the OpenAPI document. Each part of a body says it beside the function that
//! reads it, which takes the names that it suggests for an unknown member from there.

use serde_json::{Map, Value, json};

use crate::suggest;

/// A JSON Schema.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    schema: Map<String, Value>,
    /// The names of the members that an object has.
    names: Vec<&'static str>,
}

/// A member of an object: its name, and what it holds.
pub type Named = (&'static str, Shape);

impl Shape {
    /// This schema with a keyword of JSON Schema and its value added.
    fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.to_owned(), value.into());
        self
    }

    /// Says what the value is for.
    pub fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Says which value it has where a request leaves it out.
    pub fn preset(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Says which members an object must have.
    pub fn needs(self, names: &[&str]) -> Self {
        self.with("required", names.to_vec())
    }

    /// Says what members of an object hold that have the names of fields.
    pub fn by_field(self, values: Self) -> Self {
        self.with("additionalProperties", values)
    }

    /// Adds members to an object.
    pub fn and(mut self, members: impl IntoIterator<Item = Named>) -> Self {
        let mut all = Map::new();
        if let Some(Value::Object(earlier)) = self.schema.remove("properties") {
            all = earlier;
        }
        for (name, shape) in members {
            self.names.push(name);
            all.insert(name.to_owned(), shape.into());
        }
        self.with("properties", all)
    }

    /// The names of the members of an object.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// What an error says of a member that an object does not have, with those that are spelled alike.
    pub fn unknown(&self, name: &str) -> String {
        format!("unknown field [{name}]{}", self.near(name))
    }

    /// The end of a message about a member that an object does not have: those that are spelled alike. Empty for one that it has.
    pub fn near(&self, name: &str) -> String {
        suggest::near(name, &self.names)
    }

    /// The message about the first member of `given` that is not declared; `None` if all of its members are.
    pub fn stranger(&self, given: &Map<String, Value>) -> Option<String> {
        given.keys().find(|name| !self.names.contains(&name.as_str())).map(|name| self.unknown(name))
    }

    /// Says that an object has exactly one member.
    pub fn alone(self) -> Self {
        self.with("minProperties", 1).with("maxProperties", 1)
    }
}

impl From<Shape> for Value {
    fn from(shape: Shape) -> Self {
        Self::Object(shape.schema)
    }
}

/// Members that hold the same, by their names with spaces between them.
pub fn alike(names: &'static str, shape: Shape) -> impl Iterator<Item = Named> {
    names.split(' ').map(move |name| (name, shape.clone()))
}

/// A value of any type.
pub fn any() -> Shape {
    Shape::default()
}

fn of_type(name: impl Into<Value>) -> Shape {
    any().with("type", name)
}

pub fn text() -> Shape {
    of_type("string")
}

pub fn int() -> Shape {
    of_type("integer")
}

pub fn num() -> Shape {
    of_type("number")
}

pub fn flag() -> Shape {
    of_type("boolean")
}

/// A flag, which may also be a text.
pub fn switch() -> Shape {
    of_type(json!(["boolean", "string"]))
}

/// Such a value, or null.
pub fn nullable(shape: Shape) -> Shape {
    let mut types = match shape.schema.get("type").cloned().unwrap_or_default() {
        Value::Array(types) => types,
        one => vec![one],
    };
    types.push("null".into());
    shape.with("type", types)
}

/// A duration with a unit, such as `30s`; `-1` where it may be without end.
pub fn time() -> Shape {
    text().with("pattern", "^(-1|0|[0-9]+(nanos|micros|ms|s|m|h|d))$")
}

/// An object whose members are the user's own.
pub fn open() -> Shape {
    of_type("object")
}

/// A value of a field.
pub fn scalar() -> Shape {
    of_type(json!(["string", "number", "boolean", "null"]))
}

/// A whole number, or a text that says how many.
pub fn count() -> Shape {
    of_type(json!(["string", "integer"]))
}

/// A length with a unit, or a number.
pub fn length() -> Shape {
    of_type(json!(["string", "number"]))
}

pub fn list(items: Shape) -> Shape {
    of_type("array").with("items", items)
}

/// An object of members with the user's names.
pub fn map(values: Shape) -> Shape {
    open().by_field(values)
}

/// One of several texts.
pub fn one(values: &[&str]) -> Shape {
    text().with("enum", values.to_vec())
}

pub fn either(shapes: impl IntoIterator<Item = Shape>) -> Shape {
    any().with("anyOf", shapes.into_iter().map(Value::from).collect::<Vec<_>>())
}

/// One, or a list of them.
pub fn several(shape: Shape) -> Shape {
    either([shape.clone(), list(shape)])
}

/// A schema of the OpenAPI document that has a name.
pub fn named(name: &str) -> Shape {
    any().with("$ref", format!("#/components/schemas/{name}"))
}

/// An object of these members.
pub fn object(members: impl IntoIterator<Item = Named>) -> Shape {
    open().with("properties", Map::new()).and(members)
}

/// An object with exactly one of these members, whose name says what it is.
pub fn one_member(members: impl IntoIterator<Item = Named>) -> Shape {
    object(members).alone()
}
