//! The operations of the crate; each is declared next to its function.

use std::sync::Arc;

use crate::{SnapshotService, api, clone, create, keys, listing, remove, restore, status};
use sparrow_request::operation::Operation;

/// The operations of this crate.
pub const OPERATIONS: &[&[Operation<Arc<SnapshotService>>]] = &[
    api::OPERATIONS,
    clone::OPERATIONS,
    create::OPERATIONS,
    keys::OPERATIONS,
    listing::OPERATIONS,
    remove::OPERATIONS,
    restore::OPERATIONS,
    status::OPERATIONS,
];
