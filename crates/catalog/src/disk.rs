//! The flood-stage watermark: when the disk that holds the data is nearly full, writes are refused until there is room again.
//!
//! As in Elasticsearch every index then has the block `read_only_allow_delete`, which goes by itself below the high watermark.
//! Here the block is never stored, since a disk without room takes no settings, and a block that a user set is left alone. The
//! default leaves one gigabyte free instead of a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_write_ahead_log::DataDir;

use super::cluster_settings::ClusterSettings;

/// Whether all indices refuse writes because the disk is nearly full; shared by them.
pub type Flooded = Arc<AtomicBool>;

/// Watches how full the disk is that holds the data.
pub struct DiskWatch {
    data: Arc<DataDir>,
    cluster: Arc<ClusterSettings>,
    flooded: Flooded,
}

impl DiskWatch {
    pub(super) fn new(data: Arc<DataDir>, cluster: Arc<ClusterSettings>, flooded: Flooded) -> Self {
        Self { data, cluster, flooded }
    }

    /// Measures the free space, and blocks writes above the flood-stage watermark or allows them again below both it and the
    /// high watermark.
    pub(super) fn look(&self) {
        let space = match sparrow_file_system::space(self.data.path()) {
            Ok(space) => space,
            Err(error) => {
                tracing::debug!(%error, "the system does not tell how full the disk is");
                return;
            }
        };
        let before = self.flooded.load(Ordering::SeqCst);
        let watermarks = self.cluster.watermarks();
        let after = watermarks.is_some_and(|marks| marks.block(before, space));
        if before == after {
            return;
        }
        self.flooded.store(after, Ordering::SeqCst);
        let free = space.available;
        if after {
            tracing::error!(
                free,
                "flood-stage disk watermark exceeded: writes are refused until there is room"
            );
        } else {
            tracing::warn!(free, "there is room again: writes are taken");
        }
    }
}
