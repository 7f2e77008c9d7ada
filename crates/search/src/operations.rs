//! The operations of the crate; each is declared next to its function.

use crate::{
    SearchService, count, explain, field_caps, knn_search, msearch, over_cluster, point_in_time, rank_eval,
    scroll, search, terms_enum, validate,
};
use sparrow_request::operation::Operation;

/// The operations of this crate.
pub const OPERATIONS: &[&[Operation<SearchService>]] = &[
    over_cluster::OPERATIONS,
    over_cluster::calibration::OPERATIONS,
    over_cluster::diversity::OPERATIONS,
    over_cluster::reranking::OPERATIONS,
    count::OPERATIONS,
    explain::OPERATIONS,
    field_caps::OPERATIONS,
    knn_search::OPERATIONS,
    msearch::OPERATIONS,
    point_in_time::OPERATIONS,
    rank_eval::OPERATIONS,
    scroll::OPERATIONS,
    search::OPERATIONS,
    terms_enum::OPERATIONS,
    validate::OPERATIONS,
];
