//! Searches through the whole engine: documents are written, refreshed and found again.

mod common;
mod errors;
mod hybrid;
mod indices;
mod queries;
mod response;
mod retrievers;
mod semantic;
