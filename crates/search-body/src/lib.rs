//! The body of a search, and its parameters in the URL: what each section means, and what is wrong with it. Nothing here knows an
//! index or runs anything; the crate `search` does.

pub mod aggs;
pub mod body;
pub mod calibration;
mod checks;
pub mod collapse;
pub mod fields;
pub mod fusion;
pub mod highlight;
pub mod nested_hits;
pub mod paging;
mod rank;
pub mod rescore;
pub mod retriever;
mod schemas;
pub mod script_fields;
mod sections;
mod shape;
pub mod sort;
pub mod uri;
pub mod window;

#[cfg(test)]
mod body_tests;

pub use self::body::{SearchBody, check_section};
pub use self::schemas::schemas;
pub use self::sections::search_shape;
