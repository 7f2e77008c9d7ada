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
mod reply;
mod single;
mod term_vectors;
mod update;

pub use self::bulk::bulk;
pub use self::get::{exists_doc, get_doc, get_source, mget};
pub use self::single::{create_doc, delete_doc, index_doc, update_doc};
pub use self::term_vectors::{multi_term_vectors, term_vectors};
