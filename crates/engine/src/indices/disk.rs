//! The flood-stage watermark: when the disk that holds the data is nearly full, writes are refused until there is room again.
//!
//! As in Elasticsearch every index then has the block `read_only_allow_delete`, which goes by itself below the high watermark.
//! Here the block is never stored, since a disk without room takes no settings, and a block that a user set is left alone. The
//! default leaves one gigabyte free instead of a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_files::Space;
use sparrow_storage::DataDir;

use crate::cluster::ClusterSettings;
use sparrow_wire::size::parse_size;

/// Whether writes are refused for want of space, for all indices.
pub(crate) type Flooded = Arc<AtomicBool>;

/// Looks at the disk that holds the data.
pub(crate) struct DiskWatch {
    data: Arc<DataDir>,
    cluster: Arc<ClusterSettings>,
    flooded: Flooded,
}

impl DiskWatch {
    pub(super) fn new(data: Arc<DataDir>, cluster: Arc<ClusterSettings>, flooded: Flooded) -> Self {
        Self { data, cluster, flooded }
    }

    /// Sets the block, or lifts it, as the watermarks say.
    pub(super) fn look(&self) {
        let space = match sparrow_files::space(self.data.path()) {
            Ok(space) => space,
            Err(error) => {
                tracing::debug!(%error, "the system does not tell how full the disk is");
                return;
            }
        };
        let before = self.flooded.load(Ordering::SeqCst);
        let watermarks = self.cluster.watermarks();
        let after = watermarks.is_some_and(|marks| {
            if before { marks.high.is_exceeded(space) } else { marks.flood_stage.is_exceeded(space) }
        });
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

/// How full a disk may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Watermark {
    /// A share of all bytes, and the bytes that are enough to be left whatever the share says.
    Used { share: f64, headroom: u64 },
    /// Bytes that have to be left.
    Free(u64),
}

impl Watermark {
    /// Reads `95%`, `0.95` or `500mb`.
    pub(crate) fn parse(text: &str, headroom: u64) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        };
        if let Some(share) = share {
            return (0.0..=1.0).contains(&share).then_some(Self::Used { share, headroom });
        }
        parse_size(&text).map(Self::Free)
    }

    fn is_exceeded(self, space: Space) -> bool {
        match self {
            Self::Used { share, headroom } => {
                let left = ((1.0 - share) * space.total as f64) as u64;
                space.available < left.min(headroom)
            }
            Self::Free(left) => space.available < left,
        }
    }
}

/// The watermarks that count for writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Watermarks {
    /// Above it the block is set.
    pub(crate) flood_stage: Watermark,
    /// Below it the block is lifted.
    pub(crate) high: Watermark,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_are_shares_or_bytes_that_are_left() {
        const GB: u64 = 1 << 30;
        let exceeded = |text: &str, available: u64| {
            Watermark::parse(text, GB).unwrap().is_exceeded(Space { total: 100 * GB, available })
        };
        assert!(exceeded("99.5%", GB / 3) && !exceeded("99.5%", GB / 2));
        assert!(exceeded("0.995", GB / 3));
        // The headroom is enough, however large the disk.
        assert!(!exceeded("95%", 2 * GB) && exceeded("95%", GB / 2));
        assert!(exceeded("3gb", 2 * GB) && !exceeded("3gb", 4 * GB));
        for wrong in ["", "101%", "-1%", "many", "5 parsecs"] {
            assert_eq!(Watermark::parse(wrong, GB), None, "{wrong}");
        }
    }
}
