//! Search and count: request JSON in, response JSON out.
//!
//! `bytes → body → query tree → vectors for texts → hits per index → merged or fused list → bytes`. Parsing
//! ([`body`], [`dsl`], [`uri`]) knows no index; [`execute`] knows no JSON; [`response`] copies stored sources as
//! they are.

mod aggs;
mod answer;
mod apart;
mod attribution;
mod body;
mod calibrate;
mod calibration;
mod checks;
mod collapse;
mod contexts;
mod count;
mod deadline;
mod encoding;
mod error;
mod execute;
mod explain;
pub mod field_caps;
mod field_values;
mod fields;
pub mod fusion;
mod highlight;
mod hits;
pub mod knn_search;
mod limits;
mod lookup;
pub mod msearch;
mod nested_hits;
mod operations;
mod ordered;
mod paging;
pub mod point_in_time;
mod profile;
mod rank;
pub mod rank_eval;
mod rescore;
mod resolve;
mod response;
mod retriever;
mod script_fields;
pub mod scroll;
mod search;
mod searched;
mod semantic;
mod service;
mod sort;
mod suggestions;
mod target;
pub mod terms_enum;
mod top_hits;
mod uri;
pub mod validate;
mod window;

#[cfg(test)]
mod body_tests;

pub use self::apart::expanded;
pub use self::body::check_section;
pub use self::contexts::Contexts;
pub use self::encoding::encode_query;
pub use self::error::{SearchError, Shard};
pub use self::fields::stored_values;
pub use self::limits::parse_slice;
pub use self::operations::OPERATIONS;
pub use self::ordered::{Order, query_of_index};
pub use self::searched::{query_error, restrict};
pub use self::service::SearchService;
pub use self::uri::{query_string as query_of_params, source as source_of_params};
pub use sparrow_wire::suggest::{did_you_mean, suggestions};
