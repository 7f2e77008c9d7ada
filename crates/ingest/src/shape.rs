//! What the parameters of processors hold: what is the same in those of several kinds.

pub(crate) use sparrow_wire::shape::*;

pub(crate) fn field() -> Named {
    ("field", text())
}

pub(crate) fn target() -> Named {
    ("target_field", text())
}

pub(crate) fn ignore_missing() -> Named {
    ("ignore_missing", flag().preset(false))
}

/// A processor that reads one field, with these parameters beside it.
pub(crate) fn of_field(own: impl IntoIterator<Item = Named>) -> Shape {
    object([field()]).and(own).needs(&["field"])
}
