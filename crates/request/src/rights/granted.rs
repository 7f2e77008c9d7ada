//! What a restricted key may do, and its serialized form: what the HTTP layer sends with each request, and what is kept with a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::holder::Holder;
use super::names::{PatternList, Patterns};

/// The rights of a restricted key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "SerializedRights", into = "SerializedRights")]
pub(super) struct Rights {
    /// Id of the key.
    pub(super) key: String,
    /// Id of the first of the keys by which this one was made, one after the other; none if an owner key made it.
    pub(super) root: Option<String>,
    /// Name of the user to whom the key belongs.
    pub(super) user: String,
    pub(super) grants: BTreeMap<Action, Grant>,
    /// The distinct sets of pattern lists in all grants: many actions are granted on the same names.
    pub(super) known: Vec<Vec<Patterns>>,
    /// Whether the key may read the definitions of pipelines.
    pub(super) pipelines: bool,
    pub(super) holder: Holder,
}

impl PartialEq for Rights {
    /// Compares everything but `known`, which follows from the grants.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.root == other.root
            && self.user == other.user
            && self.grants == other.grants
            && self.pipelines == other.pipelines
            && self.holder == other.holder
    }
}

impl Eq for Rights {}

/// The names on which one action is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    /// Lists of name patterns. A name is allowed if each list has a pattern that matches it: the first list is that
    /// of the key, the others are those of the keys that created it.
    pub(super) names: Vec<Patterns>,
    /// The privileges that would grant the action, for the message of a refusal.
    pub(super) by: String,
}

impl Grant {
    /// Whether no name can be covered by the grant.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() || self.names.iter().any(|list| list.is_empty())
    }
}

/// Rights in which each list of patterns stands once: a role with many names grants dozens of actions on them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SerializedRights {
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    user: String,
    #[serde(default)]
    lists: Vec<Vec<String>>,
    grants: BTreeMap<Action, SerializedGrant>,
    #[serde(default)]
    pipelines: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SerializedGrant {
    names: Vec<SerializedList>,
    by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SerializedList {
    /// The place of a list among all.
    At(usize),
    /// The list itself, as jobs of older versions have it.
    These(Vec<String>),
}

impl TryFrom<SerializedRights> for Rights {
    type Error = String;

    fn try_from(serialized: SerializedRights) -> Result<Self, String> {
        let read = |texts| Arc::new(PatternList::new(texts));
        let lists: Vec<Patterns> = serialized.lists.into_iter().map(read).collect();
        let list = |names| match names {
            SerializedList::At(place) => {
                lists.get(place).cloned().ok_or_else(|| format!("there is no list of patterns [{place}]"))
            }
            SerializedList::These(names) => Ok(read(names)),
        };
        let grants = serialized.grants.into_iter().map(|(action, SerializedGrant { names, by })| {
            Ok((action, Grant { names: names.into_iter().map(list).collect::<Result<_, String>>()?, by }))
        });
        let grants = grants.collect::<Result<BTreeMap<Action, Grant>, String>>()?;
        let known = distinct(&grants);
        let SerializedRights { key, root, user, pipelines, .. } = serialized;
        Ok(Self { key, root, user, grants, known, pipelines, holder: Holder::default() })
    }
}

/// The distinct sets of pattern lists in all grants.
fn distinct(grants: &BTreeMap<Action, Grant>) -> Vec<Vec<Patterns>> {
    let mut known: Vec<Vec<Patterns>> = grants.values().map(|grant| grant.names.clone()).collect();
    known.retain(|lists| !lists.is_empty());
    let places = |lists: &Vec<Patterns>| lists.iter().map(Arc::as_ptr).collect::<Vec<_>>();
    known.sort_by_key(places);
    known.dedup_by_key(|lists| places(lists));
    known
}

impl From<Rights> for SerializedRights {
    fn from(rights: Rights) -> Self {
        let mut places: BTreeMap<Patterns, usize> = BTreeMap::new();
        let mut place = |patterns: Patterns| {
            let next = places.len();
            SerializedList::At(*places.entry(patterns).or_insert(next))
        };
        let grants = rights.grants.into_iter().map(|(action, Grant { names, by })| {
            (action, SerializedGrant { names: names.into_iter().map(&mut place).collect(), by })
        });
        let grants = grants.collect();
        let mut lists = vec![Vec::new(); places.len()];
        for (patterns, place) in places {
            lists[place] = patterns.texts().to_vec();
        }
        let Rights { key, root, user, pipelines, .. } = rights;
        Self { key, root, user, lists, grants, pipelines }
    }
}
