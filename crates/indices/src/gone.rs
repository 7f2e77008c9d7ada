//! Indices that are deleted while a request works on them: their files go, and what is read from them fails.

use super::handle::IndexHandle;
use sparrow_call::error::EngineError;
use sparrow_call::request::Request;

impl IndexHandle {
    /// Whether the index was deleted. Its metadata goes before its files, so whatever failed because a file was gone finds
    /// the answer here; reads the disk, and is meant for after a failure.
    pub fn is_gone(&self) -> bool {
        matches!(self.data.read_json(&super::metadata::store_name(&self.uuid)), Ok(None))
    }

    /// Of something that was read for an overview of several indices, and may have failed since this one was deleted meanwhile:
    /// the value, or `None` if it was deleted, as if it had been gone before the request came.
    ///
    /// # Errors
    /// What reading failed with; [`EngineError::IndexNotFound`] for an index that is gone and that the request names.
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

    /// An error of a write or a refresh as it is told: that the index is not there, if it was deleted meanwhile.
    pub fn explain(&self, error: EngineError) -> EngineError {
        if error.status() >= 500 && self.is_gone() {
            return EngineError::IndexNotFound { name: self.name.clone() };
        }
        error
    }
}
