//! Whether an index may be read and written now: it may be closed, or blocked by its settings or by the disk.

use sparrow_request::error::EngineError;
use sparrow_write_ahead_log::StorageError;

use super::blocks::{Access, check, closed, flooded};
use super::handle::IndexHandle;

impl IndexHandle {
    /// Opens or closes the index, durably. `before` runs first, while nobody else changes the index.
    ///
    /// # Errors
    /// What `before` returns, or a failure of the disk.
    pub fn set_closed(
        &self,
        closed: bool,
        before: &dyn Fn() -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        // Writes that are under way end first.
        let changer = self.changer()?;
        before()?;
        self.replace_metadata(&changer, |metadata| {
            metadata.closed = closed;
            Ok(())
        })
    }

    /// Checks that a write may begin now; the caller holds the write lock.
    pub(super) fn check_write(&self) -> Result<(), EngineError> {
        let metadata = self.metadata.read().clone();
        if metadata.closed {
            return Err(closed(&self.name, &self.uuid));
        }
        drop(metadata);
        self.check_access(Access::Write)
    }

    /// Checks that a request may access the index in this way.
    ///
    /// # Errors
    /// As [`check`]; a full disk, or one that may not keep the index.
    pub fn check_access(&self, access: Access) -> Result<(), EngineError> {
        let metadata = self.metadata.read().clone();
        check(&self.name, &metadata.settings, access)?;
        match access {
            Access::Write | Access::MetadataWrite if self.may_be_removed() => {
                let reason = format!(
                    "the disk failed while index [{}] was to be removed, and may not keep it",
                    self.name
                );
                Err(StorageError::Poisoned { reason }.into())
            }
            Access::Write | Access::MetadataWrite if self.is_flooded() => Err(flooded(&self.name)),
            _ => Ok(()),
        }
    }
}
