//! Who holds what is divided among callers.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// A restricted key together with its rights at one time: the owner of something that stays open between requests,
/// such as a scroll.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    key: String,
    /// Id of the key with which it shares what one key may have: see [`Caller::family`](super::Caller::family).
    family: Arc<str>,
    /// SHA-256 digest of the rights' JSON text, which may be long.
    rights: [u8; 32],
}

impl Holder {
    /// The holder for a key's id and its rights, as the JSON text that was sent, which no other restricted key made.
    pub fn new(key: &str, rights: &str) -> Self {
        Self { key: key.to_owned(), family: key.into(), rights: Sha256::digest(rights).into() }
    }

    /// The holder of a key that was made by another one, or by one that this made, and so on: it is of the family of that first key.
    pub(super) fn of_root(self, root: &str) -> Self {
        Self { family: root.into(), ..self }
    }

    /// The holder that stands for all keys of the family together.
    pub(super) fn of_family(&self) -> Self {
        Self { key: String::new(), rights: [0; 32], ..self.clone() }
    }

    /// Whether both are keys of one family, whatever their rights.
    fn shares_with(&self, other: &Self) -> bool {
        self.family == other.family
    }

    /// Checks that a caller may have one more of something of which there may be `most`; `held` are the owners of those that there
    /// are. The restricted keys of one family may have as many as they leave free for others, so half of all if there is no other
    /// family and fewer if there are more, so that nobody can use up all of them, neither with one key nor with many.
    ///
    /// # Errors
    /// The number that the caller may have.
    pub fn check_share<'h>(
        caller: Option<&Self>,
        held: impl Iterator<Item = Option<&'h Self>>,
        most: usize,
    ) -> Result<(), usize> {
        Self::check_share_of(caller, held.map(|owner| (owner, 1)), 1, most)
            .map_err(|over| if caller.is_some() { over.share } else { most })
    }

    /// As [`Self::check_share`], of something that comes in sizes: `held` are the owners with what each holds, and the caller wants
    /// `more`.
    ///
    /// # Errors
    /// What the caller would hold, and may.
    pub fn check_share_of<'h>(
        caller: Option<&Self>,
        held: impl Iterator<Item = (Option<&'h Self>, usize)>,
        more: usize,
        most: usize,
    ) -> Result<(), OverShare> {
        let (mut own, mut others) = (0, 0);
        for (owner, size) in held {
            let same = caller.zip(owner).is_some_and(|(one, other)| one.shares_with(other));
            *(if same { &mut own } else { &mut others }) += size;
        }
        let room = most.saturating_sub(others);
        let share = if caller.is_some() { room.div_ceil(2) } else { room };
        let wanted = own + more;
        if wanted > share { Err(OverShare { wanted, share }) } else { Ok(()) }
    }
}

/// Refusal of [`Holder::check_share_of`], in the unit of the sizes that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverShare {
    /// Sum of what the caller holds already and the size that it asked for.
    pub wanted: usize,
    /// The most that the caller may hold in all.
    pub share: usize,
}
