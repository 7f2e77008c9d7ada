//! The order of hits: a sort bound to an index, and the values of its keys.

pub mod plan;
pub mod values;
