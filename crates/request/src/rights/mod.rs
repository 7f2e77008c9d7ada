//! Callers, and what they may do to which indices.
//!
//! A name is checked where it is resolved, after parsing: every function that resolves index names takes a [`Right`],
//! so that no check can be forgotten. A key without restrictions has no rights attached and costs nothing.

mod action;
mod granted;
mod holder;
mod names;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use self::action::{Action, Scope};
use self::granted::{Grant, Rights};
pub use self::holder::{Holder, OverShare};
use self::names::{Patterns, Remembered};
use crate::error::{EngineError, Exception};
use crate::name_steps::NameSteps;
use crate::origin;

/// Largest number of keys whose parsed rights are cached; together with a limit on the bytes of their texts, which a
/// parsed form about doubles.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 8 << 20;

/// Rights as used by one request or job, with a cache of the names looked up.
#[derive(Debug)]
struct HeldRights {
    rights: Arc<Rights>,
    remembered: Remembered,
}

impl HeldRights {
    fn new(rights: Arc<Rights>) -> Self {
        Self { rights, remembered: Remembered::default() }
    }

    /// Whether every list has a pattern that matches the name; false if there are no lists.
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

/// On whose behalf a request or job acts: a restricted key, or a caller that may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller(Option<Arc<HeldRights>>);

impl Caller {
    /// Owner of what the caller leaves open between requests, such as a scroll: only this key may use it, and only
    /// while it has the same rights. `None` for an unrestricted caller.
    pub fn holder(&self) -> Option<&Holder> {
        self.0.as_ref().map(|held| &held.rights.holder)
    }

    /// The holder of what is divided among callers, such as threads and memory. A key and those that it made, and so on, are one
    /// family, as a key that may make keys would otherwise have as many shares as it likes. `None` for an unrestricted caller.
    pub fn family(&self) -> Option<Holder> {
        self.holder().map(Holder::of_family)
    }

    /// Whether the caller may know that a name exists: it may carry out at least one action on it.
    pub fn knows(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|held| held.rights.known.iter().any(|lists| held.cover(lists, name)))
    }

    /// Whether the caller may know which pipelines there are.
    pub fn knows_pipelines(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.rights.pipelines)
    }

    /// Checks that the caller is not restricted at all. `action` names the operation in the message of a refusal.
    ///
    /// # Errors
    /// 403 if the caller is a restricted key.
    pub fn check_unlimited(&self, action: &str) -> Result<(), EngineError> {
        let Some(rights) = self.0.as_ref().map(|held| &held.rights) else { return Ok(()) };
        let reason = format!(
            "action [{action}] is unauthorized for API key id [{}] of user [{}], this action is granted by the cluster \
             privileges [all] together with the index privileges [all] on all indices",
            rights.key, rights.user
        );
        Err(EngineError::api(403, Exception::new("security_exception", reason)))
    }

    /// Whether the caller is a restricted key.
    pub fn is_restricted(&self) -> bool {
        self.0.is_some()
    }

    /// The right to carry out an action.
    pub fn to(&self, action: Action) -> Right<'_> {
        self.to_given(Some(action))
    }

    /// The caller's right to carry out the action assigned to the request. With `None`, a restricted key may do
    /// nothing.
    pub fn to_given(&self, action: Option<Action>) -> Right<'_> {
        Right { held: self.0.as_deref(), actions: [action, None], is_asked: true }
    }

    fn of(rights: Arc<Rights>) -> Self {
        Self(Some(Arc::new(HeldRights::new(rights))))
    }

    /// The rights in the form stored with a job; `None` for an unrestricted caller.
    pub fn to_saved(&self) -> Option<serde_json::Value> {
        self.0.as_ref().and_then(|held| serde_json::to_value(&*held.rights).ok())
    }

    /// Restores a caller stored by [`Caller::to_saved`].
    ///
    /// # Errors
    /// If the rights cannot be read: the job must then not run at all.
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

/// Cache of parsed rights by their JSON text, most recently added last: a key sends the same text with each request.
static READ: Mutex<RightsCache> = Mutex::new(RightsCache { read: VecDeque::new(), bytes: 0 });

struct RightsCache {
    read: VecDeque<(Box<str>, Arc<Rights>)>,
    /// Total length in bytes of the cached texts.
    bytes: usize,
}

impl RightsCache {
    fn find(&self, text: &str) -> Option<Arc<Rights>> {
        self.read.iter().find(|(key, _)| **key == *text).map(|(_, rights)| Arc::clone(rights))
    }

    /// Adds rights to the cache unless they are in it, evicting the oldest if it is full.
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
        let holder = Holder::new(&rights.key, text.get());
        rights.holder = match rights.root.as_deref() {
            Some(root) => holder.of_root(root),
            None => holder,
        };
        let rights = Arc::new(rights);
        READ.lock().keep(text.get(), &rights);
        Ok(Self::of(rights))
    }
}

/// A caller's right to carry out one action, or two together, on indices and aliases. An alias is a name of its own:
/// a caller that may use it reaches its indices through it, and access to the indices does not include access through the
/// alias.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a> {
    /// Rights of a restricted key; `None` for a caller that may do everything.
    held: Option<&'a HeldRights>,
    actions: [Option<Action>; 2],
    /// Whether the right belongs to a caller, as opposed to the server's own work.
    is_asked: bool,
}

impl<'a> Right<'a> {
    /// A right to do everything: for the server's own work, for names that were checked before, and for callers
    /// authorized by a cluster privilege.
    pub fn unlimited() -> Self {
        Self { held: None, actions: [None, None], is_asked: false }
    }

    /// This right, restricted to names on which the caller may carry out `action` as well.
    #[must_use]
    pub fn and(self, action: Action) -> Self {
        Self { actions: [self.actions[0], Some(action)], ..self }
    }

    /// The right of the same caller to carry out another action.
    #[must_use]
    pub fn instead(self, action: Action) -> Self {
        Self { actions: [Some(action), None], ..self }
    }

    /// Whether patterns in the caller's request may match this name.
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

    /// Checks that the caller may carry out the actions on all names, with date math resolved.
    ///
    /// # Errors
    /// 403 with the names that are not allowed, or an error if the request has been stopped.
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

    /// Checks that a pattern in the request could match some allowed name.
    ///
    /// # Errors
    /// 403 if there is no name on which the caller may carry out the action.
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

    /// Records a name for the audit log, if a caller asked for it.
    fn note(&self, name: &str) {
        if self.is_asked {
            origin::note(name);
        }
    }

    /// The 403 error for a refused action, with Elasticsearch's message.
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

    use super::{Action, Caller, Holder, KEPT, KEPT_BYTES, RightsCache};

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
    fn keys_that_go_back_to_one_share_what_one_may_have() {
        let key = |id: &str, root: Option<&str>| -> Caller {
            let rights = json!({"key": id, "root": root, "user": "owner", "grants": {}});
            serde_json::from_str(&rights.to_string()).expect("rights")
        };
        let (first, made, other) = (key("first", None), key("made", Some("first")), key("other", None));
        assert_eq!(first.family(), made.family());
        assert_ne!(first.family(), other.family());
        assert_ne!(first.holder(), made.holder());
        assert_eq!(Caller::default().family(), None);
        let may = |caller: &Caller, held: &[&Caller]| {
            Holder::check_share(caller.holder(), held.iter().map(|one| one.holder()), 8)
        };
        assert_eq!(may(&made, &[&first, &first, &first]), Ok(()));
        assert_eq!(may(&made, &[&first, &first, &first, &made]), Err(4));
        assert_eq!(may(&other, &[&first, &first, &first, &made]), Ok(()));
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
