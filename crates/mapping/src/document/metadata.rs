//! Names that a document cannot have for its fields.

/// Names of metadata fields, which a document must not contain.
pub(super) const METADATA: [&str; 13] = [
    "_data_stream_timestamp",
    "_feature",
    "_field_names",
    "_id",
    "_ignored",
    "_ignored_source",
    "_index",
    "_inference_fields",
    "_nested_path",
    "_routing",
    "_seq_no",
    "_source",
    "_version",
];
