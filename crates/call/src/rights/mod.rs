//! Who asks, and what they may do to which indices.
//!
//! A name is checked where it is resolved, after it was parsed: whatever stands for an index takes a [`Right`], so that
//! no place can be forgotten. A key that may do everything brings no rights along and costs nothing.

mod action;
mod names;
mod serialized;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

pub use self::action::Action;
use self::names::{Patterns, Remembered};
use self::serialized::SerializedRights;
use crate::error::{EngineError, Exception};
use crate::name_steps::NameSteps;
use crate::origin;

/// Keys whose rights are kept as they were read last, and bytes of their texts: what is read of one takes about as much again.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 8 << 20;

/// What a restricted key may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "SerializedRights", into = "SerializedRights")]
struct Rights {
    /// Id of the key.
    key: String,
    /// Who the key belongs to.
    user: String,
    grants: BTreeMap<Action, Grant>,
    /// The lists of all grants, each set of them once: many actions are granted on the same.
    known: Vec<Vec<Patterns>>,
    holder: Holder,
}

impl PartialEq for Rights {
    /// The lists of all grants follow from the grants.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.user == other.user
            && self.grants == other.grants
            && self.holder == other.holder
    }
}

impl Eq for Rights {}

/// Rights in the hands of a request or a job.
#[derive(Debug)]
struct HeldRights {
    rights: Arc<Rights>,
    remembered: Remembered,
}

impl HeldRights {
    fn new(rights: Arc<Rights>) -> Self {
        Self { rights, remembered: Remembered::default() }
    }

    /// Whether each list has a pattern that matches; there has to be one.
    fn cover(&self, lists: &[Patterns], name: &str) -> bool {
        !lists.is_empty() && lists.iter().all(|list| self.remembered.covers(list, name))
    }
}

impl PartialEq for HeldRights {
    fn eq(&self, other: &Self) -> bool {
        self.rights == other.rights
    }
}

impl Eq for HeldRights {}

/// A restricted key with the rights that it had at one time: whom something belongs to that is open between requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    key: String,
    /// A digest of the rights, which may be long.
    rights: [u8; 32],
}

impl Holder {
    /// A key by its id, with its rights as they were sent.
    pub fn new(key: &str, rights: &str) -> Self {
        Self { key: key.to_owned(), rights: Sha256::digest(rights).into() }
    }

    /// Whether it is the same key, with whatever rights.
    pub fn is_key_of(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// Where an action is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    /// Lists of patterns. A name is allowed if each list has a pattern that matches: the first is that of the key, those
    /// behind it are of the keys that made it.
    names: Vec<Patterns>,
    /// The privileges that would allow it, for the sentence of a refusal.
    by: String,
}

impl Grant {
    /// Whether there can be no name that it covers.
    fn is_empty(&self) -> bool {
        self.names.is_empty() || self.names.iter().any(|list| list.is_empty())
    }
}

/// Who a request or a job acts for: a restricted key, or someone who may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller(Option<Arc<HeldRights>>);

impl Caller {
    /// Whom something belongs to that a restricted key leaves open between requests: that key alone, as long as it has
    /// the rights under which it was opened.
    pub fn holder(&self) -> Option<&Holder> {
        self.0.as_ref().map(|held| &held.rights.holder)
    }

    /// Whether the caller may know of a name: it may carry out some action on it.
    pub fn knows(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|held| held.rights.known.iter().any(|lists| held.cover(lists, name)))
    }

    /// Checks that there is nothing that the caller may not do. `action` is what is to be done, in the sentence of a refusal.
    ///
    /// # Errors
    /// 403 for a restricted key.
    pub fn check_unlimited(&self, action: &str) -> Result<(), EngineError> {
        let Some(rights) = self.0.as_ref().map(|held| &held.rights) else { return Ok(()) };
        let reason = format!(
            "action [{action}] is unauthorized for API key id [{}] of user [{}], this action is granted by the cluster \
             privileges [all] together with the index privileges [all] on all indices",
            rights.key, rights.user
        );
        Err(EngineError::api(403, Exception::new("security_exception", reason)))
    }

    /// Whether there is anything that the caller may not do.
    pub fn is_restricted(&self) -> bool {
        self.0.is_some()
    }

    /// The right to carry out an action.
    pub fn to(&self, action: Action) -> Right<'_> {
        self.to_given(Some(action))
    }

    /// The right to carry out the action that a request was let in for. A restricted key without one may do nothing.
    pub fn to_given(&self, action: Option<Action>) -> Right<'_> {
        Right { held: self.0.as_deref(), actions: [action, None], is_asked: true }
    }

    fn of(rights: Arc<Rights>) -> Self {
        Self(Some(Arc::new(HeldRights::new(rights))))
    }

    /// For what is kept of a job; none for someone who may do everything.
    pub fn to_saved(&self) -> Option<serde_json::Value> {
        self.0.as_ref().and_then(|held| serde_json::to_value(&*held.rights).ok())
    }

    /// Reads what [`Caller::to_saved`] wrote.
    ///
    /// # Errors
    /// When it cannot be read: then nothing may be done in that name.
    pub fn from_saved(saved: Option<serde_json::Value>) -> Result<Self, EngineError> {
        let unreadable =
            |error| EngineError::internal(format!("the rights of a job cannot be read: {error}"));
        saved
            .map(serde_json::from_value)
            .transpose()
            .map_err(unreadable)
            .map(|rights| rights.map_or_else(Self::default, |rights| Self::of(Arc::new(rights))))
    }
}

/// Rights that were read, by their text, the latest last: a key sends the same with each request.
static READ: Mutex<RightsCache> = Mutex::new(RightsCache { read: VecDeque::new(), bytes: 0 });

struct RightsCache {
    read: VecDeque<(Box<str>, Arc<Rights>)>,
    /// Length of the texts.
    bytes: usize,
}

impl RightsCache {
    fn find(&self, text: &str) -> Option<Arc<Rights>> {
        self.read.iter().find(|(key, _)| **key == *text).map(|(_, rights)| Arc::clone(rights))
    }

    /// Keeps rights unless they are kept, in place of those that came first.
    fn keep(&mut self, text: &str, rights: &Arc<Rights>) {
        if text.len() > KEPT_BYTES || self.find(text).is_some() {
            return;
        }
        self.bytes += text.len();
        self.read.push_back((text.into(), Arc::clone(rights)));
        while self.read.len() > KEPT || self.bytes > KEPT_BYTES {
            let Some((gone, _)) = self.read.pop_front() else { return };
            self.bytes -= gone.len();
        }
    }
}

impl<'de> Deserialize<'de> for Caller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if text.get() == "null" {
            return Ok(Self(None));
        }
        if let Some(rights) = READ.lock().find(text.get()) {
            return Ok(Self::of(rights));
        }
        let mut rights: Rights = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        rights.holder = Holder::new(&rights.key, text.get());
        let rights = Arc::new(rights);
        READ.lock().keep(text.get(), &rights);
        Ok(Self::of(rights))
    }
}

/// The right of a caller to carry out an action, or two at once, on indices and aliases. An alias is a name of its own:
/// who may use it reaches its indices through it, and who may use its indices may not use it for that.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a> {
    /// None for one who may do everything.
    held: Option<&'a HeldRights>,
    actions: [Option<Action>; 2],
    /// Whether it is a caller's, and not one for work of the server itself.
    is_asked: bool,
}

impl<'a> Right<'a> {
    /// For work of the server itself, for names that were resolved before, and for callers whose privilege is one of
    /// the whole cluster.
    pub fn unlimited() -> Self {
        Self { held: None, actions: [None, None], is_asked: false }
    }

    /// This right where the caller may carry out `action` as well.
    #[must_use]
    pub fn and(self, action: Action) -> Self {
        Self { actions: [self.actions[0], Some(action)], ..self }
    }

    /// The right of the same caller to carry out another action.
    #[must_use]
    pub fn instead(self, action: Action) -> Self {
        Self { actions: [Some(action), None], ..self }
    }

    /// Whether patterns of the caller may stand for this name.
    pub fn sees(&self, name: &str) -> bool {
        self.missing(name).is_none()
    }

    /// The first action that the caller may not carry out on a name.
    fn missing(&self, name: &str) -> Option<Option<Action>> {
        let held = self.held?;
        if self.actions[0].is_none() {
            return Some(None);
        }
        let denied = |action: &Action| {
            !held.rights.grants.get(action).is_some_and(|grant| held.cover(&grant.names, name))
        };
        self.actions.into_iter().flatten().find(denied).map(Some)
    }

    /// Checks names, after date math.
    ///
    /// # Errors
    /// 403 that tells the names that are not allowed; when the request is to stop meanwhile.
    pub fn check<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), EngineError> {
        let mut steps = NameSteps::default();
        let mut refused: Option<Option<Action>> = None;
        let mut denied: Vec<&str> = Vec::new();
        for name in names {
            self.note(name);
            steps.add(1)?;
            if let Some(action) = self.missing(name) {
                // The sentence tells of one action: the first that is missing anywhere.
                if *refused.get_or_insert(action) == action {
                    denied.push(name);
                }
            }
        }
        match refused {
            None => Ok(()),
            Some(action) => Err(self.denial(action, &denied.join(","))),
        }
    }

    /// Checks that a pattern can stand for anything at all.
    ///
    /// # Errors
    /// 403 for a caller who may carry out the action nowhere.
    pub fn check_pattern(&self, pattern: &str) -> Result<(), EngineError> {
        self.note(pattern);
        let Some(held) = self.held else { return Ok(()) };
        if self.actions[0].is_none() {
            return Err(self.denial(None, pattern));
        }
        let nowhere = |action: &Action| held.rights.grants.get(action).is_none_or(Grant::is_empty);
        match self.actions.into_iter().flatten().find(nowhere) {
            None => Ok(()),
            Some(action) => Err(self.denial(Some(action), pattern)),
        }
    }

    /// Tells whoever writes down what requests name.
    fn note(&self, name: &str) {
        if self.is_asked {
            origin::note(name);
        }
    }

    /// The documented refusal.
    fn denial(&self, action: Option<Action>, names: &str) -> EngineError {
        let Some((rights, action)) = self.held.map(|held| &held.rights).zip(action) else {
            return EngineError::api(
                403,
                Exception::new("security_exception", "this key may not use indices here"),
            );
        };
        let by = rights.grants.get(&action).map_or("all", |grant| grant.by.as_str());
        let reason = format!(
            "action [{}] is unauthorized for API key id [{}] of user [{}] on indices [{names}], this action is \
             granted by the index privileges [{by}]",
            action.name(),
            rights.key,
            rights.user
        );
        EngineError::api(403, Exception::new("security_exception", reason))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::sync::Arc;

    use super::{Action, Caller, KEPT, KEPT_BYTES, RightsCache};

    fn caller(grants: serde_json::Value) -> Caller {
        let text = json!({"key": "k", "user": "owner", "grants": grants}).to_string();
        serde_json::from_str(&text).expect("rights")
    }

    #[test]
    fn names_are_allowed_by_patterns_of_every_list() {
        let caller = caller(json!({
            "indices:data/read/search": {"names": [["logs-*", "book?"], ["*-1", "books"]], "by": "read,all"},
            "indices:data/write/delete": {"names": [[]], "by": "delete,write,all"},
        }));
        let search = caller.to(Action::Search);
        for (name, allowed) in
            [("logs-1", true), ("logs-2", false), ("books", true), ("b-1", false), ("*", false)]
        {
            assert_eq!(search.check([name]).is_ok(), allowed, "{name}");
            assert_eq!(search.sees(name), allowed, "{name}");
        }
        assert_eq!(
            search.check(["logs-1", "a", "b"]).expect_err("denied").reason(),
            "action [indices:data/read/search] is unauthorized for API key id [k] of user [owner] on indices [a,b], \
             this action is granted by the index privileges [read,all]"
        );
        assert!(search.check_pattern("*").is_ok());
        assert!(search.and(Action::Delete).check_pattern("*").is_err());
        assert!(search.and(Action::Delete).check(["logs-1"]).is_err());
        assert!(search.instead(Action::Get).check(["logs-1"]).is_err());
        assert!(caller.to_given(None).check(["logs-1"]).is_err());
        assert!(caller.to_given(None).check_pattern("*").is_err());
        assert!(!caller.to_given(None).sees("logs-1"));
    }

    #[test]
    fn rights_that_are_kept_have_bounds_in_number_and_bytes() {
        let Caller(Some(held)) = caller(json!({})) else { panic!("restricted") };
        let rights = Arc::clone(&held.rights);
        let texts = |bytes: usize| (0..100).map(move |n| format!("{n:02}{}", " ".repeat(bytes - 2)));
        for (bytes, kept) in [(10, KEPT), (KEPT_BYTES / 8, 8), (KEPT_BYTES / 8 + 1, 7), (KEPT_BYTES + 1, 0)] {
            let mut all = RightsCache { read: Default::default(), bytes: 0 };
            for text in texts(bytes) {
                all.keep(&text, &rights);
                all.keep(&text, &rights);
            }
            assert_eq!((all.read.len(), all.bytes), (kept, kept * bytes));
            let found = texts(bytes).map(|text| all.find(&text).is_some());
            assert_eq!(found.collect::<Vec<_>>(), (0..100).map(|n| n >= 100 - kept).collect::<Vec<_>>());
            assert!(all.find("").is_none() && all.read.iter().all(|(_, it)| Arc::ptr_eq(it, &rights)));
        }
    }

    #[test]
    fn who_has_no_rights_is_not_limited_and_rights_are_kept_with_jobs() {
        let free: Caller = serde_json::from_str("null").expect("null");
        assert_eq!(free, Caller::default());
        assert!(free.to_given(None).check(["a"]).is_ok());
        assert_eq!(free.to_saved(), None);
        let bound = caller(json!({"indices:data/read/search": {"names": [["a"]], "by": "read"}}));
        let again = Caller::from_saved(bound.to_saved()).expect("rights");
        assert_eq!(again.to_saved(), bound.to_saved());
        let shared = json!({"key": "k", "user": "owner", "lists": [["a"]], "grants": {
            "indices:data/read/search": {"names": [0, 0], "by": "read"},
            "indices:data/read/get": {"names": [0], "by": "read"},
        }});
        let shared: Caller = serde_json::from_str(&shared.to_string()).expect("rights");
        assert!(shared.to(Action::Search).sees("a") && !shared.to(Action::Get).sees("b"));
        let saved = shared.to_saved().expect("restricted");
        assert_eq!(saved["lists"], json!([["a"]]));
        assert_eq!(Caller::from_saved(Some(saved.clone())).expect("rights").to_saved(), Some(saved));
        let other = caller(json!({"indices:data/read/search": {"names": [["b"]], "by": "read"}}));
        assert!(bound.holder().is_some() && bound.holder() != other.holder());
        assert!(Caller::from_saved(Some(json!({"key": "k"}))).is_err());
        assert!(
            serde_json::from_str::<Caller>(
                r#"{"key":"k","user":"u","grants":{"nope":{"names":[],"by":""}}}"#
            )
            .is_err()
        );
    }
}
