//! Indices that are deleted while a request uses them: their files disappear, and reading them fails.

use super::handle::IndexHandle;
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;

impl IndexHandle {
    /// Whether the index was deleted, according to the disk. Its metadata is removed before its files, so this tells whether an
    /// operation failed because a file was gone. It reads the disk, and is meant for use after a failure.
    pub fn is_gone(&self) -> bool {
        matches!(self.data.read_json(&super::metadata::store_name(&self.uuid)), Ok(None))
    }

    /// Handles a failed read of this index in an overview of several indices: gives the value, or `None` if reading failed because
    /// the index was deleted meanwhile, as if it had been gone before the request came.
    ///
    /// # Errors
    /// The error of the read; [`EngineError::IndexNotFound`] for a deleted index that the request names.
    pub fn unless_gone<T, E: Into<EngineError>>(
        &self,
        request: &Request,
        read: Result<T, E>,
    ) -> Result<Option<T>, EngineError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(_) if self.is_gone() => {
                let named = request.part("index").split(',').any(|name| name == self.name);
                if named && !request.params().bool("ignore_unavailable", false)? {
                    return Err(EngineError::IndexNotFound { name: self.name.clone() });
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the error of a write or a refresh by [`EngineError::IndexNotFound`] if the index was deleted meanwhile.
    pub fn explain(&self, error: EngineError) -> EngineError {
        if error.status() >= 500 && self.is_gone() {
            return EngineError::IndexNotFound { name: self.name.clone() };
        }
        error
    }
}
