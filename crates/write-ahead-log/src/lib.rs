//! Everything durable outside a segment: the data directory with its lock, small JSON stores, and the
//! write-ahead log.
//!
//! Invariant: this crate decides when bytes are durable. A caller that gets `Ok` from [`Wal::sync`] or
//! [`DataDir::write_json`] may acknowledge the write to a user.

mod damage;
mod data_dir;
pub mod durable;
mod error;
pub mod stores;
mod wal;

pub use damage::DamagedFile;
pub use data_dir::DataDir;
pub use error::{StorageError, disk_is_full, io_reason};
pub use wal::{Generation, Lsn, Replay, Salvaged, Wal, salvage};
