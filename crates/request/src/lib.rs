//! Types shared by all operations: the request with its parameters and the caller's rights, the reply, and the error
//! with its HTTP status and exception type.

pub mod answers;
pub mod body;
pub mod error;
pub mod helpers;
pub mod name_steps;
pub mod named;
pub mod operation;
pub mod origin;
mod panics;
pub mod params;
pub mod places;
pub mod private_paths;
pub mod request;
pub mod rights;
pub mod waits;

pub use self::panics::caught;

/// Name of the node in listings of nodes, tasks and deployments.
pub const NODE_NAME: &str = "sparrow";
/// Roles of the node, by their names in Elasticsearch.
pub const NODE_ROLES: [&str; 4] = ["data", "ingest", "master", "ml"];
/// Address of the node in listings. There is no transport that others could connect to.
pub const HOST: &str = "127.0.0.1";
