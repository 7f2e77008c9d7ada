//! The operations of the engine without HTTP, in one program: linking one takes seconds and 200 MB.
//!
//! A test that counts something of the whole process belongs into `tests/alone`.

mod analysis;
mod bulk;
mod by_query;
mod clone;
#[path = "../common/mod.rs"]
mod common;
mod deep_documents;
mod deleted_meanwhile;
mod documents;
mod durability;
mod failures;
mod faults;
mod format_1_fixture;
mod fuzz;
mod index_settings;
mod inference;
#[cfg(target_os = "linux")]
mod inline;
mod jobs;
mod many_fields;
mod models;
mod read_only;
mod recovery;
mod repair;
mod repositories;
mod repository_check;
mod search;
mod shard_limit;
mod snapshots;
mod stops;
mod stored;
mod upgrade;
mod versions_under_refresh;
