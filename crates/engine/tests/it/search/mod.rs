//! Searches through the whole engine: documents are written, refreshed and found again.

mod aggs;
mod aggs_more;
mod common;
mod completion;
mod date_nanos;
mod errors;
mod explain;
mod highlight;
mod hybrid;
mod indices;
mod lexical;
mod more_like_this;
mod paging;
mod queries;
mod response;
mod retrievers;
mod semantic;
mod sorting;
mod suggest;
mod term_vectors;
