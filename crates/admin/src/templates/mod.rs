//! The operations on templates.

pub mod api;
pub mod legacy;
