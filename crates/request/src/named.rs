//! Collection of the index names that a request refers to, for the audit log: the request's path tells only some of
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};

/// Largest number of names kept per request; with the limit on the bytes of each name, this bounds what clients can
/// store.
const MOST: usize = 64;
const MOST_BYTES: usize = 255;

/// The index and alias names that a request refers to, collected while it runs.
#[derive(Debug, Clone, Default)]
pub struct Named(Arc<Mutex<BTreeSet<String>>>);

impl Named {
    /// The names collected so far, at most 64: with date math resolved, patterns as written, and including refused
    /// names.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Adds a name, cut to 255 bytes, unless 64 names are kept already.
    pub fn add(&self, name: &str) {
        let mut end = name.len().min(MOST_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        let mut names = self.0.lock();
        if names.len() < MOST && !names.contains(name) {
            names.insert(name.to_owned());
        }
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Named {}

/// Deserializes a boolean that says whether the request's names are to be collected.
pub fn wanted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Named>, D::Error> {
    Ok(bool::deserialize(deserializer)?.then(Named::default))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MOST, MOST_BYTES, Named};
    use crate::origin::{self, note};
    use crate::request::Request;

    #[test]
    fn names_are_gathered_for_a_request_that_wants_them() {
        let request: Request =
            serde_json::from_value(serde_json::json!({"op": "search", "named": true})).expect("a request");
        note("nobody asks");
        let entered = origin::enter(request.origin());
        ["b", "a", "b"].into_iter().for_each(note);
        // Threads that it is shared among.
        let asker = origin::current();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _origin = origin::enter(asker);
                note("c");
            });
        });
        drop(entered);
        note("over");
        assert_eq!(request.named.expect("wanted").names(), ["a", "b", "c"]);
        assert!(serde_json::from_str::<Request>(r#"{"op":"search"}"#).expect("a request").named.is_none());
    }

    #[test]
    fn their_number_and_length_are_bounded() {
        let named = Named::default();
        (0..2 * MOST).for_each(|number| named.add(&format!("{number:03}{}", "é".repeat(1000))));
        let names = named.names();
        assert_eq!((names.len(), Arc::strong_count(&named.0)), (MOST, 1));
        assert!(names.iter().all(|name| name.len() > 250 && name.len() <= MOST_BYTES));
    }
}
