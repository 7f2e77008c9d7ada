//! What models answer that are loaded from files.

mod encode_queries;
mod heads;
