//! Which buckets there are, and which of them a document is in: a file for each way.

pub(crate) mod auto_dates;
pub(crate) mod cells;
pub(crate) mod composite;
pub(crate) mod groups;
pub(crate) mod rounding;
pub(crate) mod significance;
pub(crate) mod slots;
pub(crate) mod spans;
pub(crate) mod widths;
pub(crate) mod words;
