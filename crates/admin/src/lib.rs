//! The operations that look after indices and the cluster: indices with their settings, mappings, aliases and templates, pipelines,
//! `_cat`, statistics, health, and the settings of the cluster.

pub mod alias_api;
pub mod alias_reads;
pub mod analyze;
pub mod cat;
pub mod cluster;
pub mod field_mapping;
pub mod index;
pub mod lanes;
pub mod lifecycle;
pub mod pipelines;
pub mod resize;
pub mod rollover;
pub mod stats;
pub mod templates;
pub mod upgrade;
