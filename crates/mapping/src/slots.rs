//! Slots, in which the vectors of a `semantic_text` field are stored: usually one under the field's own path, and a
//! second one while the field's model is being changed.
//!
//! A slot is a set of passages together with the settings by which they were made. Documents are encoded for every
//! slot of a field, and searches read the active one. Slots are numbered, and no number is used twice, so that what
//! segments still hold of a removed slot is never taken for vectors of another model. Slot 0 is named like the
//! field's path, the others `path..number`: no field can have such a path, as no part of a path may be empty.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::error::MappingError;
use super::semantic;
use super::semantic_text::{Beside, MARK, SemanticText, Slot, Slots, name, parts};
use super::types::FieldType;
use super::{LeafNode, Mapping};

impl LeafNode {
    /// Settings and parameters of a slot of the field, to be changed.
    pub(super) fn slot_mut(&mut self, slot: &str) -> Option<(&mut SemanticText, &mut Map<String, Value>)> {
        let (_, number) = parts(slot);
        let FieldType::SemanticText(field) = &mut self.field_type else { return None };
        if field.slots.active == number {
            return Some((field, &mut self.params));
        }
        let beside = field.slots.beside.as_mut().filter(|beside| beside.number == number)?;
        Some((&mut beside.settings, &mut beside.params))
    }
}

impl Mapping {
    /// Settings of the slot with this name, if documents are encoded for it.
    pub fn slot(&self, name: &str) -> Option<&SemanticText> {
        let (path, number) = parts(name);
        let field = self.semantic_field(path)?;
        if field.slots.active == number {
            return Some(field);
        }
        field.slots.beside().filter(|(beside, _)| *beside == number).map(|(_, settings)| settings)
    }

    /// All slots for which documents are encoded, in the order of the fields; of each field, the one that searches
    /// read comes first.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        self.semantic_fields().iter().filter_map(|path| Some((path, self.semantic_field(path)?))).flat_map(
            |(path, field)| {
                let active = (field.slots.active, field);
                std::iter::once(active).chain(field.slots.beside()).map(move |(number, settings)| Slot {
                    name: name(path, number),
                    path,
                    settings,
                })
            },
        )
    }

    /// Name and settings of the slot that a query clause on `field` reads: the field's active slot, or the slot that
    /// `field` names.
    pub fn searched_slot<'m>(&'m self, field: &'m str) -> Option<(Cow<'m, str>, &'m SemanticText)> {
        if field.contains(MARK) {
            return Some((Cow::Borrowed(field), self.slot(field)?));
        }
        let settings = self.semantic_field(field)?;
        // A path in the objects of a `flattened` field is the only one that is not borrowed.
        let Cow::Borrowed(path) = self.concrete(field) else { return None };
        Some((name(path, settings.slots.active), settings))
    }

    /// Name of the field's slot that searches do not read, if there is one.
    pub fn slot_beside(&self, path: &str) -> Option<String> {
        let (number, _) = self.semantic_field(path)?.slots.beside()?;
        Some(name(&self.concrete(path), number).into_owned())
    }

    /// The `index_options` for the sparse vectors of a slot.
    pub(super) fn sparse_options_of_slot(&self, slot: &str) -> Option<&Value> {
        let (path, number) = parts(slot);
        let leaf = self.leaf(path)?;
        let FieldType::SemanticText(field) = &leaf.field_type else { return None };
        let params = match &field.slots.beside {
            Some(beside) if beside.number == number => &beside.params,
            _ => &leaf.params,
        };
        params.get("index_options")?.get("sparse_vector")
    }

    /// This mapping with a second slot for the field at `path`, whose parameters `definition` gives. They include
    /// `model_settings`, so that a combination that does not fit together is found here and not by the first
    /// document.
    ///
    /// # Errors
    /// If the parameters are not those of a `semantic_text` field, or if the field already has a second slot.
    pub fn with_second_slot(&self, path: &str, definition: &Value) -> Result<Self, MappingError> {
        self.with_second(path, None, definition)
    }

    fn with_second(&self, path: &str, number: Option<u32>, definition: &Value) -> Result<Self, MappingError> {
        let bad = |reason: String| MappingError::BadValue { reason };
        let (settings, params) = semantic::parse_alone(path, definition)?;
        let mut changed = self.clone();
        let Some(leaf) = semantic::leaf_mut(&mut changed.root, path) else {
            return Err(bad(format!("there is no field [{path}]")));
        };
        let FieldType::SemanticText(field) = &mut leaf.field_type else {
            return Err(bad(format!("field [{path}] is not of type [semantic_text]")));
        };
        if field.slots.beside.is_some() {
            return Err(bad(format!("the model of field [{path}] is being changed")));
        }
        let number = number.unwrap_or(field.slots.last.saturating_add(1));
        field.slots.last = field.slots.last.max(number);
        field.slots.beside = Some(Box::new(Beside { number, settings, params }));
        Ok(changed.rebuilt())
    }

    /// This mapping with the active and the second slot of a field swapped; unchanged if the field has only one.
    #[must_use]
    pub fn with_slots_exchanged(&self, path: &str) -> Self {
        let mut changed = self.clone();
        if let Some(leaf) = semantic::leaf_mut(&mut changed.root, path)
            && let FieldType::SemanticText(field) = &mut leaf.field_type
            && let Some(beside) = field.slots.beside.take()
        {
            let Beside { number, settings, params } = *beside;
            let slots = std::mem::take(&mut field.slots);
            let before = Beside {
                number: slots.active,
                settings: std::mem::replace(field, settings),
                params: std::mem::replace(&mut leaf.params, params),
            };
            field.slots = Slots { active: number, last: slots.last, beside: Some(Box::new(before)) };
        }
        changed.rebuilt()
    }

    /// This mapping without the field's slot that searches do not read.
    #[must_use]
    pub fn without_second_slot(&self, path: &str) -> Self {
        let mut changed = self.clone();
        if let Some(leaf) = semantic::leaf_mut(&mut changed.root, path)
            && let FieldType::SemanticText(field) = &mut leaf.field_type
        {
            field.slots.beside = None;
        }
        changed.rebuilt()
    }

    /// State of the slots that [`Mapping::to_json`] does not show, by field path; null if no field ever had a second
    /// slot or has vectors of a known model.
    pub fn slots_to_json(&self) -> Value {
        let mut all = Map::new();
        for path in self.semantic_fields() {
            let Some(field) = self.semantic_field(path) else { continue };
            let Slots { active, last, beside } = &field.slots;
            if *last == 0 && field.fingerprint.is_none() {
                continue;
            }
            let mut one = json!({"active": active, "last": last});
            if let Some(fingerprint) = &field.fingerprint {
                one["fingerprint"] = fingerprint.as_str().into();
            }
            if let Some(beside) = beside {
                one["beside"] = json!({"number": beside.number, "parameters": beside.params});
                if let Some(fingerprint) = &beside.settings.fingerprint {
                    one["beside"]["fingerprint"] = fingerprint.as_str().into();
                }
            }
            all.insert(path.clone(), one);
        }
        if all.is_empty() { Value::Null } else { Value::Object(all) }
    }

    /// Restores the state written by [`Mapping::slots_to_json`].
    ///
    /// # Errors
    /// If a second slot's parameters cannot be read.
    pub fn with_slots(mut self, stored: &Value) -> Result<Self, MappingError> {
        let number =
            |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let fingerprint = |value: &Value| value["fingerprint"].as_str().map(str::to_owned);
        for (path, one) in stored.as_object().into_iter().flatten() {
            if let Some(leaf) = semantic::leaf_mut(&mut self.root, path)
                && let FieldType::SemanticText(field) = &mut leaf.field_type
            {
                field.slots =
                    Slots { active: number(&one["active"]), last: number(&one["last"]), beside: None };
                field.fingerprint = fingerprint(one);
            }
            if let Some(beside) = one.get("beside") {
                self = self.with_second(path, Some(number(&beside["number"])), &beside["parameters"])?;
                if let Some(leaf) = semantic::leaf_mut(&mut self.root, path)
                    && let FieldType::SemanticText(field) = &mut leaf.field_type
                    && let Some(second) = &mut field.slots.beside
                {
                    second.settings.fingerprint = fingerprint(beside);
                }
            }
        }
        Ok(self.rebuilt())
    }
}

#[cfg(test)]
mod tests {
    use super::super::semantic_text::SemanticModel;
    use super::*;
    use crate::ParsedDocument;
    use crate::passages::{FieldPassages, Passage, PassageVector};

    fn mapping() -> Mapping {
        let fields = json!({"o": {"properties": {"s": {"type": "semantic_text", "inference_id": "old"}}}});
        Mapping::parse(&json!({ "properties": fields })).unwrap()
    }

    fn dense(dims: usize) -> Value {
        let model = SemanticModel::Dense { dims }.settings(None);
        json!({"inference_id": "new", "model_settings": model})
    }

    fn names(mapping: &Mapping) -> Vec<(String, String)> {
        mapping.slots().map(|slot| (slot.name.into_owned(), slot.settings.inference_id.clone())).collect()
    }

    fn pair(name: &str, id: &str) -> (String, String) {
        (name.to_owned(), id.to_owned())
    }

    #[test]
    fn slots_are_exchanged_and_their_numbers_never_given_again() {
        let before = mapping();
        let both = before.with_second_slot("o.s", &dense(3)).unwrap();
        assert_eq!(names(&both), [pair("o.s", "old"), pair("o.s..1", "new")]);
        // A second slot changes what documents are encoded for, and neither the mapping that is shown nor the slot that is searched.
        assert_eq!(both.to_json(), before.to_json());
        assert_ne!(both.semantic_key(), before.semantic_key());
        assert_eq!(both.searched_slot("o.s").unwrap().0, "o.s");
        assert!(both.with_second_slot("o.s", &dense(3)).is_err());

        let switched = both.with_slots_exchanged("o.s");
        assert_eq!(names(&switched), [pair("o.s..1", "new"), pair("o.s", "old")]);
        assert_eq!(switched.to_json()["properties"]["o"]["properties"]["s"]["inference_id"], "new");
        assert_eq!(switched.semantic_key(), both.semantic_key());
        assert_eq!(switched.searched_slot("o.s").unwrap().0, "o.s..1");
        assert_eq!(switched.slot("o.s..1").unwrap().dense.as_ref().unwrap().dims, Some(3));
        assert_eq!(switched.with_slots_exchanged("o.s"), both);

        let dropped = switched.without_second_slot("o.s");
        assert_eq!(names(&dropped), [pair("o.s..1", "new")]);
        assert!(dropped.slot("o.s").is_none());
        let next = dropped.with_second_slot("o.s", &dense(4)).unwrap();
        assert_eq!(names(&next), [pair("o.s..1", "new"), pair("o.s..2", "new")]);
        let abandoned = next.without_second_slot("o.s").with_second_slot("o.s", &dense(4)).unwrap();
        assert_eq!(names(&abandoned)[1], pair("o.s..3", "new"));

        for mapping in [before, both, switched, dropped, next] {
            let read =
                Mapping::parse(&mapping.to_json()).unwrap().with_slots(&mapping.slots_to_json()).unwrap();
            assert_eq!(read, mapping);
            // An update of the mapping leaves them as they are.
            let update = json!({"properties": {"o.s": {"type": "semantic_text",
                "inference_id": mapping.semantic_field("o.s").unwrap().inference_id}}});
            assert_eq!(mapping.merge_update(&update).unwrap(), mapping);
        }
    }

    #[test]
    fn passages_go_to_the_slot_that_they_name() {
        let both = mapping().with_second_slot("o.s", &dense(2)).unwrap();
        let passages = |path: &str, vector: PassageVector| FieldPassages {
            path: path.to_owned(),
            sources: vec!["o.s".to_owned()],
            chunks: vec![Passage { source: 0, start: 0, end: 1, vector }],
            ..FieldPassages::default()
        };
        let fields = vec![
            passages("o.s", PassageVector::Sparse(vec![("a".into(), 1.0)])),
            passages("o.s..1", PassageVector::Dense(vec![1.0, 0.0])),
            // Of a slot that is gone.
            passages("o.s..7", PassageVector::Dense(vec![1.0])),
        ];
        let mut parsed = ParsedDocument::default();
        let wider = both.attach_passages(&mut parsed, fields, &|_| None).unwrap().expect("the first vectors");
        let found: Vec<&str> = parsed.passages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((found, parsed.field_names), (vec!["o.s", "o.s..1"], vec!["o.s".to_owned()]));
        assert_eq!(wider.slot("o.s").unwrap().model, Some(SemanticModel::Sparse));
        let wrong = vec![passages("o.s..1", PassageVector::Dense(vec![1.0]))];
        assert!(wider.attach_passages(&mut ParsedDocument::default(), wrong, &|_| None).is_err());
    }

    #[test]
    fn no_field_has_the_name_of_a_slot() {
        for name in ["s..1", ".1", "s."] {
            let fields = json!({"s": {"type": "semantic_text"}, name: {"type": "text"}});
            assert!(Mapping::parse(&json!({ "properties": fields })).is_err(), "{name}");
        }
    }
}
