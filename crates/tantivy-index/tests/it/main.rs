//! Writing, committing and reading an index, compared with a model of it.

mod common;
mod load;
mod model;
mod traps;
