//! When reading a body ends because its request is over a limit: a few bytes of a text are a hundred in memory.

use sparrow_runtime::work;

/// Values of an object or array between two looks.
const VALUES_BETWEEN_LOOKS: usize = 1024;

/// The error of a body that was not read to its end. The request is answered with the limit that it went over instead.
pub(crate) const REASON: &str = "the request went over a limit while its body was read";

/// Whether to stop reading an object or array of which so many values are read.
pub(crate) fn stops_at(values: usize) -> bool {
    values.is_multiple_of(VALUES_BETWEEN_LOOKS) && work::is_over_limit()
}
