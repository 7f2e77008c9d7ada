//! Numbers, booleans, dates and addresses: exact values, ranges, and columns.

pub(super) mod addresses;
pub(super) mod numeric;
pub(super) mod value_range;
pub(super) mod value_ranges;
