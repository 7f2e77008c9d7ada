//! The operations of the crate; each is declared next to its function.

use crate::{ModelService, aliases, api, endpoints, manage, start};
use sparrow_request::operation::Operation;

/// The operations of this crate.
pub const OPERATIONS: &[&[Operation<ModelService>]] = &[
    aliases::OPERATIONS,
    api::OPERATIONS,
    endpoints::OPERATIONS,
    endpoints::ENCODING,
    endpoints::SEARCH_TEXTS,
    manage::OPERATIONS,
    start::OPERATIONS,
];
