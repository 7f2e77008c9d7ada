//! What the body of a search holds: what is the same in several of its parts.

pub(crate) use sparrow_wire::shape::*;

pub(crate) fn query() -> Shape {
    named("Query")
}

/// What hits are shown with: of a search, and of `inner_hits`.
pub(crate) fn showing() -> [Named; 7] {
    [
        ("_source", named("SourceSelection")),
        ("fields", named("FieldRequests")),
        ("docvalue_fields", named("FieldRequests")),
        ("stored_fields", several(text())),
        ("version", flag().about("hits show their version")),
        ("seq_no_primary_term", flag().about("hits show sequence number and primary term")),
        ("track_scores", flag().about("scores are shown although hits are sorted by something else")),
    ]
}
