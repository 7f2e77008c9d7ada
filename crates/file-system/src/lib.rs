//! The file system as the process uses it: every operation on a file or a folder goes through this crate.
//!
//! The functions have the names and the behaviour of `std::fs`. What they add is [`observe`]: a test can watch all operations
//! below a folder, let any of them fail as a disk does ([`Verdict`]), and learn what a power cut would have left. Without an
//! observer an operation costs one relaxed load of an atomic more than the system call.
//!
//! Invariant: no other crate names `std::fs` for files that are written or for files of the data directory. `xtask tidy` checks it.

mod call;
pub mod durable;
mod file;
mod operations;
pub mod power;

pub use self::call::{Call, Guard, HandleId, Kind, Observer, Verdict, observe};
pub use self::file::File;
pub use self::operations::{
    MOST_WHOLE, Space, about_to_map, close_to_others, copy, create_dir, create_dir_all, exists, hard_link,
    link_or_copy, metadata, read, read_dir, read_to_string, remove_dir_all, remove_file, rename, space,
    sync_data, sync_dir, write,
};
