//! Searches through the whole engine: documents are written, refreshed and found again.

mod aggs;
mod common;
mod errors;
mod hybrid;
mod indices;
mod paging;
mod queries;
mod response;
mod retrievers;
mod semantic;
mod sorting;
