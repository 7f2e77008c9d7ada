//! The keys of the `flattened` objects of an index, which have a bound: each has a column of its own in every segment.

use std::hash::BuildHasher;

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashSet};
use sparrow_mapping::{Mapping, ParsedDocument};
use sparrow_request::error::EngineError;
use sparrow_tantivy_index::Snapshot;

/// Most different keys of the `flattened` objects of an index.
const MOST_KEYS: usize = 10_000;

/// The keys that documents have brought; read from the index when the first object comes.
#[derive(Debug, Default)]
pub struct FlattenedKeys(Mutex<Option<FxHashSet<u64>>>);

impl FlattenedKeys {
    /// Adds the keys of a document that is written. They count until the index is opened anew, also if the document is not written
    /// after all, or is deleted.
    ///
    /// # Errors
    /// When they are too many; when the index cannot be read.
    pub(super) fn admit(
        &self,
        mapping: &Mapping,
        parsed: &ParsedDocument,
        snapshot: &Snapshot,
    ) -> Result<(), EngineError> {
        if !mapping.has_flattened() {
            return Ok(());
        }
        let objects = parsed.nested.iter().map(|(_, object)| object);
        let names = std::iter::once(parsed).chain(objects).flat_map(|document| &document.field_names);
        let keys: Vec<&String> = names.filter(|name| mapping.is_in_flattened(name)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut known = self.0.lock();
        let known = match &mut *known {
            Some(known) => known,
            none => {
                let mut found = FxHashSet::default();
                snapshot.each_field_name(&mut |name| {
                    if mapping.is_in_flattened(name) {
                        found.insert(FxBuildHasher.hash_one(name));
                    }
                })?;
                none.insert(found)
            }
        };
        for key in keys {
            let hash = FxBuildHasher.hash_one(key.as_str());
            if known.len() >= MOST_KEYS && !known.contains(&hash) {
                return Err(EngineError::illegal_argument(format!(
                    "the [flattened] fields of the index have [{MOST_KEYS}] different keys, the most that they may have: [{key}] \
                     is one more"
                )));
            }
            known.insert(hash);
        }
        Ok(())
    }
}
