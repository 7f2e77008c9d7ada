//! Searches through the whole engine: documents are written, refreshed and found again.

mod aggs;
mod aggs_more;
mod common;
mod errors;
mod explain;
mod highlight;
mod hybrid;
mod indices;
mod lexical;
mod paging;
mod queries;
mod response;
mod retrievers;
mod semantic;
mod sorting;
