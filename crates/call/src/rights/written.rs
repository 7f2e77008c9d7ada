//! Rights as they are written: what the HTTP layer sends with each request, and what is kept with a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Action, Grant, Holder, Rights};

/// Patterns for names, which grants of many actions share.
pub(super) type Patterns = Arc<Vec<String>>;

/// Rights in which each list of patterns stands once: a role with many names grants dozens of actions on them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    key: String,
    user: String,
    #[serde(default)]
    lists: Vec<Vec<String>>,
    grants: BTreeMap<Action, WrittenGrant>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGrant {
    names: Vec<PatternList>,
    by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PatternList {
    /// The place of a list among all.
    At(usize),
    /// The list itself, as jobs of older versions have it.
    These(Vec<String>),
}

impl TryFrom<Written> for Rights {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let lists: Vec<Patterns> = written.lists.into_iter().map(Arc::new).collect();
        let found = |names| match names {
            PatternList::At(place) => {
                lists.get(place).cloned().ok_or_else(|| format!("there is no list of patterns [{place}]"))
            }
            PatternList::These(names) => Ok(Arc::new(names)),
        };
        let grants = written.grants.into_iter().map(|(action, WrittenGrant { names, by })| {
            Ok((action, Grant { names: names.into_iter().map(found).collect::<Result<_, String>>()?, by }))
        });
        let grants = grants.collect::<Result<_, String>>()?;
        Ok(Self { key: written.key, user: written.user, grants, holder: Holder::default() })
    }
}

impl From<Rights> for Written {
    fn from(rights: Rights) -> Self {
        let mut places: BTreeMap<Patterns, usize> = BTreeMap::new();
        let mut place = |patterns: Patterns| {
            let next = places.len();
            PatternList::At(*places.entry(patterns).or_insert(next))
        };
        let grants = rights.grants.into_iter().map(|(action, Grant { names, by })| {
            (action, WrittenGrant { names: names.into_iter().map(&mut place).collect(), by })
        });
        let grants = grants.collect();
        let mut lists = vec![Vec::new(); places.len()];
        for (patterns, place) in places {
            lists[place] = Arc::unwrap_or_clone(patterns);
        }
        Self { key: rights.key, user: rights.user, lists, grants }
    }
}
