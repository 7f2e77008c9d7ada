//! Requests that store, show, delete and simulate index templates and component templates.

pub mod api;
pub mod legacy;
