//! One index's write path as one state machine: its log, its segments, the versions of what is not searchable yet, and how
//! refresh, flush and replay keep them together.
//!
//! ```text
//!            open ──────── a write or sync of the log fails ───────▶ read-only
//!             ▲  ▲                                                      │
//!             │  └── log and segments are opened anew, log replayed ────┘
//!             │
//!   replaying ┘   (while it is opened; and whenever segments lost their buffer: see `incomplete`)
//!
//!   closed        deleted or shut down; nothing leaves this state
//! ```
//!
//! Invariants:
//! - A write is acknowledged when its record is durable in the log ([`sparrow_write_ahead_log::Wal::sync`]).
//! - `incomplete` remembers that the segments' buffer lacks records of the log. While it is set nothing is committed: refresh and
//!   flush replay first or fail. So no commit names a write that it does not have.
//! - The log is trimmed only behind a durable commit that covers what goes.
//! - Locks are taken in this order: flush, refresh, write, [the segments' own], versions, [the log's own]. No search takes any of
//!   the first three, and nothing waits for the disk under the versions' lock.

mod error;
mod flush;
mod record;
mod recovery;
mod refresh;
mod rewrite;
mod shard;
mod versions;
mod visibility;
mod writer;

pub use self::error::{ShardError, disk_is_full};
pub use self::record::Record;
pub use self::recovery::{Replayed, Reread, RereadDocument};
pub use self::shard::{LookedUp, Phase, Shard, ShardOptions};
pub use self::versions::{LiveVersion, LiveVersions};
pub use self::writer::{Logged, NewDocument, Writer};
