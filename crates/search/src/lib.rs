//! Searches and everything that looks for documents: from what a request asks for to the answer.
//!
//! `bytes → body → query tree → vectors for texts → hits per index → merged or fused list → bytes`. The crate `search-body` reads
//! bytes and knows no index; [`execute`] knows no JSON; [`response`] copies stored sources as they are.

mod answer;
mod attribution;
mod calibrate;
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
mod highlight;
mod hits;
pub mod knn_search;
mod limits;
mod lookup;
pub mod msearch;
mod operations;
mod ordered;
mod over_cluster;
pub mod point_in_time;
mod profile;
pub mod rank_eval;
mod rerankers;
mod resolve;
mod response;
mod script_fields;
pub mod scroll;
mod search;
mod searched;
mod semantic;
mod service;
mod slices;
mod sort;
mod suggestions;
mod target;
pub mod terms_enum;
mod top_hits;
pub mod validate;

pub use self::contexts::Contexts;
pub use self::encoding::encode_query;
pub use self::error::{SearchError, Shard};
pub use self::fields::stored_values;
pub use self::limits::parse_slice;
pub use self::operations::OPERATIONS;
pub use self::ordered::{Order, query_of_index};
pub use self::over_cluster::expanded;
pub use self::searched::{query_error, restrict};
pub use self::service::SearchService;
pub use sparrow_search_body::uri::{query_string as query_of_params, source as source_of_params};
pub use sparrow_search_body::{calibration, check_section, fusion};
