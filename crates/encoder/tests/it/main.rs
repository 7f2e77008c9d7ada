//! Models from their files to their answers, and files that are no models.

mod fuzz;
mod models;
