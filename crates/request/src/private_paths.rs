//! Paths of this server's directories, which are hidden from all responses.
//!
//! Error messages about files contain their full path, which belongs in the log but must not be shown to a client: a
//! response has the path below the directory, prefixed with the directory's role.

use std::path::Path;

use parking_lot::RwLock;

use sparrow_wire::Exception;

/// Paths to hide, longest first, each with the role shown in its place. Global to the process, because error messages
/// are written where no engine is at hand.
static HIDDEN: RwLock<Vec<(String, &'static str)>> = RwLock::new(Vec::new());

/// Hides a directory from all responses from now on; `role` is shown in its place.
pub fn add(directory: &Path, role: &'static str) {
    let forms = [std::path::absolute(directory).ok(), directory.canonicalize().ok()];
    let mut hidden = HIDDEN.write();
    for path in forms.into_iter().flatten() {
        let Some(text) = path.to_str().map(|text| text.trim_end_matches(['/', '\\'])) else { continue };
        // The root of everything is in every path.
        if !text.is_empty() && !hidden.iter().any(|(other, _)| other == text) {
            hidden.push((text.to_owned(), role));
        }
    }
    hidden.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
}

/// Replaces hidden paths in the messages of an exception and its causes; returns whether there were any.
pub fn hide(exception: &mut Exception) -> bool {
    let mut any = false;
    {
        let hidden = HIDDEN.read();
        for (path, role) in hidden.iter() {
            if exception.reason.contains(path.as_str()) {
                let shown = format!("[{role}]");
                exception.reason = exception.reason.replace(path.as_str(), &shown);
                any = true;
            }
        }
    }
    if let Some(cause) = &mut exception.caused_by {
        any |= hide(cause);
    }
    any
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use sparrow_tantivy_index::IndexError;
    use sparrow_write_ahead_log::StorageError;

    use super::*;
    use crate::error::EngineError;

    #[test]
    fn no_error_shows_where_the_data_lies() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), "data");
        let io = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let file: PathBuf = folder.path().join("store").join("a.json");
        let text = file.display().to_string();
        let tantivy = std::fs::File::open(&file).unwrap_err();
        let errors = [
            EngineError::from(StorageError::Io { action: "open", path: file.clone(), source: io() }),
            StorageError::Corrupt { path: file.clone(), detail: "x".into() }.into(),
            IndexError::Io { path: file.clone(), source: io() }.into(),
            EngineError::internal(format!("{text}: {tantivy}")),
            EngineError::api(400, Exception::new("a", "b").because(Exception::new("c", text.clone()))),
        ];
        for error in errors {
            let body = error.body().to_string();
            assert!(!body.contains(folder.path().to_str().unwrap()), "{body}");
            assert!(body.contains("[data]") && body.contains("a.json"), "{body}");
            assert!(!error.reason().contains(folder.path().to_str().unwrap()));
        }
    }
}
