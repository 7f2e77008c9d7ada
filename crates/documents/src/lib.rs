//! Documents by id: index, create, get, update and delete, singly or in bulk.
//!
//! Every write, single or bulk, is an [`action::Action`] and takes the same path: [`execute::Execution`] runs
//! pipelines over a window of actions, creates missing indices, resolves updates, and hands each index its batch in
//! order.

mod action;
mod bulk;
mod execute;
mod get;
mod ingest;
mod ndjson;
mod passages;
mod reply;
mod single;
mod term_vectors;
mod update;

use sparrow_request::operation::Operation;
use sparrow_search::SearchService;

/// The operations of this crate.
pub const OPERATIONS: &[&[Operation<SearchService>]] =
    &[bulk::OPERATIONS, get::OPERATIONS, passages::OPERATIONS, single::OPERATIONS, term_vectors::OPERATIONS];
