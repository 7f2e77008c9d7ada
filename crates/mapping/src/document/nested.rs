//! Objects of `nested` fields: each becomes a document of its own.

use super::super::Node;
use super::super::error::{DOCUMENT_PARSING, DocumentError, DocumentErrorKind};
use super::super::types::{Nested, ParsedDocument};
use super::values::Values;
use super::{Reader, Scope};

impl<'a> Reader<'a> {
    /// How the objects of a scope are nested; `None` where their values are those of the document around them, and while a value is
    /// copied, as the documents that it may be copied to are there already.
    pub(super) fn nested_at(&self, scope: &Scope<'_, 'a>) -> Option<Nested> {
        if self.copying {
            return None;
        }
        match scope.node {
            Some(node) => node.nested,
            None => match self.added.get(scope.path) {
                Some(Node::Object(object)) => object.nested,
                _ => None,
            },
        }
    }

    /// Reads an object of a scope, as a document of its own if the scope is nested.
    pub(super) fn as_document(
        &mut self,
        scope: &Scope<'_, 'a>,
        read: impl FnOnce(&mut Self) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let Some(nested) = self.nested_at(scope) else { return read(self) };
        self.begin(scope.path)?;
        read(self)?;
        self.end(nested)
    }

    /// Begins an object of the nested field at `path`.
    ///
    /// # Errors
    /// When the document has too many of them.
    pub(super) fn begin(&mut self, path: &str) -> Result<(), DocumentError> {
        let limit = self.limits.nested_objects;
        if self.nested.len() + self.around.len() >= limit {
            let reason = format!(
                "The number of nested documents has exceeded the allowed limit of [{limit}]. This limit can be set by \
                 changing the [index.mapping.nested_objects.limit] index level setting."
            );
            return Err(self.fail(DocumentErrorKind::Failed { causes: vec![(DOCUMENT_PARSING, reason)] }));
        }
        let object = Values::of_object(path);
        self.around.push(std::mem::replace(&mut self.values, object));
        Ok(())
    }

    /// Ends the object that was begun last.
    ///
    /// # Errors
    /// When its values are to be values of the document around it as well, and cannot be.
    pub(super) fn end(&mut self, nested: Nested) -> Result<(), DocumentError> {
        let Some(around) = self.around.pop() else { return Ok(()) };
        let Values { path, out, .. } = std::mem::replace(&mut self.values, around);
        let is_top = self.around.is_empty();
        if nested.include_in_parent || nested.include_in_root && is_top {
            include(&mut self.values, &out).map_err(|reason| self.illegal(reason))?;
        }
        // What the objects around pass on need not be passed on again.
        let is_passed_on = nested.include_in_parent && self.mapping.is_included(&self.values.path);
        if nested.include_in_root
            && !is_passed_on
            && let Some(document) = self.around.first_mut()
        {
            include(document, &out).map_err(|reason| self.illegal(reason))?;
        }
        self.nested.push((path, out));
        Ok(())
    }

    /// Reads a copy of a value into the document that the field at `target` belongs to: that of the object being read, or one of those
    /// around it.
    pub(super) fn in_document_of(
        &mut self,
        target: &str,
        read: impl FnOnce(&mut Self) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let path = self.mapping.nested_around(target).unwrap_or_default();
        let Some(at) = self.around.iter().position(|values| values.path == path) else { return read(self) };
        std::mem::swap(&mut self.values, &mut self.around[at]);
        let done = read(self);
        std::mem::swap(&mut self.values, &mut self.around[at]);
        done
    }
}

/// Adds the values of an object to those of a document around it.
///
/// # Errors
/// The field that has one value in a document at most.
fn include(document: &mut Values, object: &ParsedDocument) -> Result<(), String> {
    for path in &object.field_names {
        document.seen(path);
    }
    document.out.texts.extend(object.texts.iter().cloned());
    document.out.numbers.extend(object.numbers.iter().cloned());
    for (path, text) in &object.keywords {
        document.add_keyword(path, text.into());
    }
    for (path, tokens) in &object.sparse {
        document.merge_tokens(path, tokens);
    }
    for (path, vector) in &object.dense {
        if document.out.dense.iter().any(|(other, _)| other == path) {
            return Err(format!(
                "Field [{path}] of type [dense_vector] doesn't support indexing multiple values for the same field in \
                 the same document"
            ));
        }
        document.out.dense.push((path.clone(), vector.clone()));
    }
    Ok(())
}
