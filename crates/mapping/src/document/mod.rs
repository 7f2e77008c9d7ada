//! Reading a JSON document into values of its fields, with dynamic mapping.

mod completion;
mod dense;
mod flattened;
mod leaf;
mod metadata;
mod names;
mod nested;
mod range;
pub(super) mod read;
mod tokens;
mod values;
mod vectors;

pub use leaf::MAX_TERM;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sparrow_wire::json::{TextsByAddress, WrittenNumbers};

use super::dynamic::MatchType;
use super::error::{DOCUMENT_PARSING, DocumentError, DocumentErrorKind};
use super::java::{java_string, token_name};
use super::location::Step;
use super::source::wrapped;
use super::types::{Dynamic, Limits, ParsedDocument};
use super::{LeafNode, Mapping, Node, ObjectNode, join};
use values::Values;

/// Reads a document into values of the mapped fields; returns the extended mapping too, if dynamic mapping adds
/// fields.
pub(super) fn parse_document(
    mapping: &Mapping,
    id: &str,
    source: &Value,
    numbers: Option<&WrittenNumbers>,
    limits: &Limits,
) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
    let texts = numbers.map(|numbers| numbers.by_address(source)).unwrap_or_default();
    let mut reader = Reader::new(mapping, id, limits, Some(texts));
    let Value::Object(map) = source else {
        return Err(reader
            .illegal(format!("Malformed content, must start with an object, found {}", token_name(source))));
    };
    let root = reader.root();
    reader.object(&root, map)?;
    let (mut out, wider) = reader.finish()?;
    out.stored_source = mapping.source_filter().stored(source, numbers);
    Ok((out, wider))
}

/// Inserts an added field or object into the mapping's tree. Must be called in path order, as parents come first.
fn insert(object: &mut ObjectNode, parts: &[&str], node: Node) {
    match parts {
        [] => {}
        [name] => match (object.properties.get_mut(*name), node) {
            // The dimensions of a mapped dense vector became known.
            (Some(Node::Leaf(old)), Node::Leaf(new)) => *old = new,
            (Some(_), _) => {}
            (None, node) => {
                object.properties.insert((*name).to_owned(), node);
            }
        },
        [name, rest @ ..] => {
            let child = object
                .properties
                .entry((*name).to_owned())
                .or_insert_with(|| Node::Object(ObjectNode::default()));
            if let Node::Object(child) = child {
                insert(child, rest, node);
            }
        }
    }
}

/// The mapped object into which a JSON object of the document is being read.
#[derive(Clone, Copy)]
struct Scope<'p, 'a> {
    /// `None` for an object this document adds.
    node: Option<&'a ObjectNode>,
    path: &'p str,
    dynamic: Dynamic,
    depth: usize,
}

struct Reader<'a> {
    mapping: &'a Mapping,
    id: &'a str,
    limits: &'a Limits,
    /// What has been read of the object of a `nested` field that is being read, or of the document outside of such objects.
    values: Values,
    /// What has been read so far of the objects around that one, outermost first; the document itself comes first of all.
    around: Vec<Values>,
    /// The objects of `nested` fields that have been read, as [`ParsedDocument::nested`] has them.
    nested: Vec<(String, ParsedDocument)>,
    /// Fields and objects this document adds, by path.
    added: BTreeMap<String, Node>,
    /// Number of added fields and objects that count towards the limit, including multi-fields.
    added_count: usize,
    steps: Vec<Step>,
    /// Whether the value being read is a copy made by `copy_to`.
    copying: bool,
    /// How numbers were written that a [`Value`] prints in another way; `None` where only the JSON says so.
    number_texts: Option<TextsByAddress<'a>>,
    /// Whether a number was needed as it was written, and only the JSON says how that was.
    lacks_number_text: bool,
}

impl<'a> Reader<'a> {
    fn new(
        mapping: &'a Mapping,
        id: &'a str,
        limits: &'a Limits,
        number_texts: Option<TextsByAddress<'a>>,
    ) -> Self {
        Self {
            mapping,
            id,
            limits,
            values: Values::default(),
            around: Vec::new(),
            nested: Vec::new(),
            added: BTreeMap::new(),
            added_count: 0,
            steps: Vec::new(),
            copying: false,
            number_texts,
            lacks_number_text: false,
        }
    }

    /// The scope of the document itself.
    fn root(&self) -> Scope<'static, 'a> {
        Scope { node: Some(&self.mapping.root), path: "", dynamic: self.mapping.dynamic(), depth: 1 }
    }

    /// Adds the constants of the mapping, and then the contexts of completions, which may be among them; returns the document, without the
    /// source to store, and the extended mapping, if the document adds fields.
    ///
    /// # Errors
    /// When a dynamic template adds what no field may be where it is.
    fn finish(mut self) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
        for (path, value) in &*self.mapping.constants {
            self.values.seen(path);
            self.values.out.keywords.push((path.clone(), value.to_string()));
        }
        self.finish_contexts()?;
        let added = std::mem::take(&mut self.added);
        let wider = (!added.is_empty()).then(|| {
            let mut wider = self.mapping.clone();
            for (path, node) in added {
                let parts: Vec<&str> = path.split('.').collect();
                insert(&mut wider.root, &parts, node);
            }
            wider.rebuilt()
        });
        if let Some(Err(error)) = wider.as_ref().map(Mapping::check_dependent) {
            return Err(self.illegal(error.to_string()));
        }
        Ok((ParsedDocument { nested: self.nested, ..self.values.out }, wider))
    }

    fn fail(&self, kind: DocumentErrorKind) -> DocumentError {
        DocumentError::new(kind, self.steps.clone())
    }

    fn illegal(&self, reason: String) -> DocumentError {
        DocumentError::illegal(reason, self.steps.clone())
    }

    fn object(&mut self, scope: &Scope<'_, 'a>, map: &Map<String, Value>) -> Result<(), DocumentError> {
        if scope.depth > self.limits.depth {
            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
        }
        self.as_document(scope, |reader| reader.members(scope, map))
    }

    fn members(&mut self, scope: &Scope<'_, 'a>, map: &Map<String, Value>) -> Result<(), DocumentError> {
        for (key, value) in map {
            self.steps.push(Step::Key(key.clone()));
            if scope.path.is_empty()
                && key.starts_with('_')
                && let Some(name) = metadata::METADATA.iter().find(|name| *name == key)
            {
                return Err(self.metadata(name, value));
            }
            if key.contains('.') {
                self.dotted(scope, key, value)?;
            } else {
                self.entry(scope, key, value)?;
            }
            self.steps.pop();
        }
        Ok(())
    }

    fn metadata(&self, name: &'static str, value: &Value) -> DocumentError {
        let reason = format!(
            "Field [{name}] is a metadata field and cannot be added inside a document. Use the index API request parameters."
        );
        self.fail(DocumentErrorKind::Field {
            path: name.to_owned(),
            type_name: name,
            id: self.id.to_owned(),
            preview: java_string(value),
            causes: vec![(DOCUMENT_PARSING, reason)],
        })
    }

    /// Reads a member whose name may contain dots: `"a.b": 1` is read as `"a": {"b": 1}`.
    fn dotted(&mut self, scope: &Scope<'_, 'a>, key: &str, value: &Value) -> Result<(), DocumentError> {
        let Some((first, rest)) = key.split_once('.') else { return self.entry(scope, key, value) };
        if first.trim().is_empty() || rest.trim().is_empty() {
            return Err(self.illegal(format!(
                "field name [{key}] cannot contain only whitespace or start or end with a dot"
            )));
        }
        let path = join(scope.path, first);
        let (node, dynamic, enabled) = match self.find(scope, first, &path) {
            PathTarget::Object { node, dynamic, enabled } => {
                (node, dynamic.unwrap_or(scope.dynamic), enabled)
            }
            PathTarget::Leaf(leaf) => {
                return Err(self.illegal(format!(
                    "Could not dynamically add mapping for field [{}]. Existing mapping for [{path}] must be \
                     of type object but found [{}].",
                    join(scope.path, key),
                    leaf.field_type.name()
                )));
            }
            PathTarget::Nothing => match scope.dynamic {
                Dynamic::False => {
                    self.check_name(rest)?;
                    return self.check_names(value);
                }
                Dynamic::Strict => return Err(self.strict(scope, first)),
                Dynamic::True => match self.add_object(first, &path)? {
                    Added::Ignored => return Ok(()),
                    Added::Object(dynamic, enabled) => (None, dynamic.unwrap_or(scope.dynamic), enabled),
                    // A template made it a field: the dots are in a name within its value.
                    Added::Leaf(leaf) => {
                        if scope.depth + rest.matches('.').count() > self.limits.depth {
                            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
                        }
                        let inner = wrapped(rest, value);
                        return self.leaf(&leaf, &path, &inner);
                    }
                },
            },
        };
        if !enabled {
            return Ok(());
        }
        if scope.depth + 1 > self.limits.depth {
            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
        }
        // The scope borrows the path for this call only; the mapping's nodes live longer.
        let inner = Inner { node, path, dynamic, depth: scope.depth + 1 };
        inner
            .with(self, |reader, scope| reader.as_document(scope, |reader| reader.dotted(scope, rest, value)))
    }

    fn strict(&self, scope: &Scope<'_, '_>, name: &str) -> DocumentError {
        let parent = if scope.path.is_empty() { "_doc" } else { scope.path };
        self.fail(DocumentErrorKind::Strict { name: name.to_owned(), parent: parent.to_owned() })
    }

    fn find(&self, scope: &Scope<'_, 'a>, name: &str, path: &str) -> PathTarget<'a> {
        match scope.node.and_then(|node| node.properties.get(name)) {
            Some(Node::Object(object)) => {
                return PathTarget::Object {
                    node: Some(object),
                    dynamic: object.dynamic,
                    enabled: object.enabled,
                };
            }
            Some(Node::Leaf(leaf)) => {
                // The dimensions of a vector may have become known in this document.
                if let Some(Node::Leaf(added)) = self.added.get(path) {
                    return PathTarget::Leaf(Cow::Owned(LeafNode::clone(added)));
                }
                return PathTarget::Leaf(Cow::Borrowed(leaf));
            }
            None => {}
        }
        match self.added.get(path) {
            Some(Node::Object(object)) => {
                PathTarget::Object { node: None, dynamic: object.dynamic, enabled: object.enabled }
            }
            Some(Node::Leaf(leaf)) => PathTarget::Leaf(Cow::Owned(LeafNode::clone(leaf))),
            None => PathTarget::Nothing,
        }
    }

    fn entry(&mut self, scope: &Scope<'_, 'a>, name: &str, value: &Value) -> Result<(), DocumentError> {
        self.check_name(name)?;
        let path = join(scope.path, name);
        match self.find(scope, name, &path) {
            PathTarget::Object { node, dynamic, enabled } => {
                if !enabled {
                    return Ok(());
                }
                let dynamic = dynamic.unwrap_or(scope.dynamic);
                let inner = Inner { node, path, dynamic, depth: scope.depth + 1 };
                inner.with(self, |reader, inner| reader.fill_object(inner, name, value))
            }
            PathTarget::Leaf(leaf) => self.leaf(&leaf, &path, value),
            PathTarget::Nothing => self.unmapped(scope, name, path, value),
        }
    }

    /// Reads a value of a mapped object: an object, a list of objects, or null.
    fn fill_object(&mut self, scope: &Scope<'_, 'a>, name: &str, value: &Value) -> Result<(), DocumentError> {
        match value {
            Value::Object(map) => self.object(scope, map),
            Value::Null => Ok(()),
            Value::Array(values) => self.each(values, |reader, value| reader.fill_object(scope, name, value)),
            _ => Err(self.fail(DocumentErrorKind::ConcreteForObject {
                path: scope.path.to_owned(),
                name: name.to_owned(),
            })),
        }
    }

    fn each(
        &mut self,
        values: &[Value],
        mut read: impl FnMut(&mut Self, &Value) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        for (index, value) in values.iter().enumerate() {
            self.steps.push(Step::Index(index));
            read(self, value)?;
            self.steps.pop();
        }
        Ok(())
    }

    fn unmapped(
        &mut self,
        scope: &Scope<'_, 'a>,
        name: &str,
        path: String,
        value: &Value,
    ) -> Result<(), DocumentError> {
        // A null gives no type to a field.
        if value.is_null() {
            return Ok(());
        }
        match scope.dynamic {
            Dynamic::False => return self.check_names(value),
            Dynamic::Strict => return Err(self.strict(scope, name)),
            Dynamic::True => {}
        }
        match value {
            Value::Null => Ok(()),
            Value::Object(map) => {
                let dynamic = match self.add_object(name, &path)? {
                    Added::Ignored | Added::Object(_, false) => return Ok(()),
                    Added::Object(dynamic, true) => dynamic.unwrap_or(scope.dynamic),
                    Added::Leaf(leaf) => return self.leaf(&leaf, &path, value),
                };
                let inner = Inner { node: None, path, dynamic, depth: scope.depth + 1 };
                inner.with(self, |reader, inner| reader.object(inner, map))
            }
            Value::Array(values) => {
                if let Some(leaf) = self.dynamic_vector(name, &path, values)? {
                    return match self.add(&path, Node::Leaf(leaf.clone()))? {
                        true => self.leaf(&leaf, &path, value),
                        false => Ok(()),
                    };
                }
                // The first element that has a type maps the field, the others follow it.
                self.each(values, |reader, value| reader.entry(scope, name, value))
            }
            scalar => {
                let Node::Leaf(leaf) = self.dynamic_field(name, &path, scalar)? else {
                    return Err(self.fail(DocumentErrorKind::ConcreteForObject {
                        path: path.clone(),
                        name: name.to_owned(),
                    }));
                };
                match self.add(&path, Node::Leaf(leaf.clone()))? {
                    true => self.leaf(&leaf, &path, scalar),
                    false => Ok(()),
                }
            }
        }
    }

    /// Adds an object that is not in the mapping, as defined by a dynamic template or the default rules.
    fn add_object(&mut self, name: &str, path: &str) -> Result<Added, DocumentError> {
        let node = match self.mapping.dynamic_templates.is_empty() {
            true => None,
            false => self.template(name, path, MatchType::Object, None)?,
        };
        let object = match node {
            None => ObjectNode::default(),
            Some(Node::Object(object)) => object,
            Some(Node::Leaf(leaf)) => {
                return Ok(match self.add(path, Node::Leaf(leaf.clone()))? {
                    true => Added::Leaf(leaf),
                    false => Added::Ignored,
                });
            }
        };
        let (dynamic, enabled) = (object.dynamic, object.enabled);
        match self.add_tree(path, object)? {
            true => Ok(Added::Object(dynamic, enabled)),
            false => Ok(Added::Ignored),
        }
    }

    /// Adds an object and, one by one, the fields in it, so that each of them can be found by its path.
    fn add_tree(&mut self, path: &str, mut object: ObjectNode) -> Result<bool, DocumentError> {
        let properties = std::mem::take(&mut object.properties);
        if !self.add(path, Node::Object(object))? {
            return Ok(false);
        }
        for (name, node) in properties {
            let path = join(path, &name);
            let added = match node {
                Node::Object(object) => self.add_tree(&path, object)?,
                leaf => self.add(&path, leaf)?,
            };
            if !added {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds a field or object; `false` if the limit is reached and such fields are to be ignored.
    fn add(&mut self, path: &str, node: Node) -> Result<bool, DocumentError> {
        if let Some(problem) = self.limits.name_problem(path.rsplit('.').next().unwrap_or(path)) {
            return Err(self.illegal(problem));
        }
        // What a template brings along may go deeper than what is read.
        if matches!(node, Node::Object(_)) && path.matches('.').count() + 2 > self.limits.depth {
            return Err(self.fail(DocumentErrorKind::Depth { limit: self.limits.depth }));
        }
        let size = 1 + match &node {
            Node::Leaf(leaf) => leaf.fields.len(),
            Node::Object(_) => 0,
        };
        if self.mapping.field_count() + self.added_count + size > self.limits.total_fields {
            if self.limits.ignore_dynamic_beyond_limit {
                return Ok(false);
            }
            return Err(self.illegal(format!(
                "Limit of total fields [{}] has been exceeded while adding new fields [{}]",
                self.limits.total_fields,
                self.added_count + size
            )));
        }
        self.added_count += size;
        self.added.insert(path.to_owned(), node);
        Ok(true)
    }
}

#[allow(clippy::large_enum_variant, reason = "lives on the stack while one field is read")]
enum PathTarget<'a> {
    Object {
        /// `None` for an object that this document adds to the mapping.
        node: Option<&'a ObjectNode>,
        dynamic: Option<Dynamic>,
        enabled: bool,
    },
    Leaf(Cow<'a, LeafNode>),
    Nothing,
}

/// Outcome of adding an object that was not in the mapping.
enum Added {
    /// It was added as an object, with its `dynamic` setting and whether it is `enabled`.
    Object(Option<Dynamic>, bool),
    /// It was added as a field, by a dynamic template.
    Leaf(Box<LeafNode>),
    /// It was not added, as the limit on the number of fields is reached.
    Ignored,
}

/// Like [`Scope`], but owning its path.
struct Inner<'a> {
    node: Option<&'a ObjectNode>,
    path: String,
    dynamic: Dynamic,
    depth: usize,
}

impl<'a> Inner<'a> {
    fn with<R>(self, reader: &mut Reader<'a>, run: impl FnOnce(&mut Reader<'a>, &Scope<'_, 'a>) -> R) -> R {
        let Inner { node, path, dynamic, depth } = self;
        run(reader, &Scope { node, path: &path, dynamic, depth })
    }
}
