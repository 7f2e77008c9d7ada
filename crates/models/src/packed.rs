//! Files of packed weights: one for each large model that was loaded, `packed/<id>.weights` in the data directory, and two beside it
//! while it is chosen in what the model is computed.
//!
//! They are kept there and not beside the model, whose folder may belong to someone else or be read-only. They are only a cache: the
//! encoder makes a file anew if it is missing or was made of other model files.

use std::path::{Path, PathBuf};

use sparrow_file_system as fs;

const FOLDER: &str = "packed";
const EXTENSION: &str = ".weights";

/// The folder of packed weights.
#[derive(Debug, Clone)]
pub struct PackedFolder(PathBuf);

impl PackedFolder {
    /// The folder of packed weights in a data directory; it is not created.
    pub fn new(data: &Path) -> Self {
        Self(data.join(FOLDER))
    }

    /// The path of a model's packed weights. The id, a valid id or the name of a model directory, must be a file name.
    pub fn file(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}{EXTENSION}"))
    }

    /// Removes the packed weights of a deleted model. If they are still mapped, the space is freed when the last deployment ends.
    pub fn remove(&self, id: &str) {
        let file = self.file(id);
        // Others stand beside it while it is chosen in what the model is computed.
        for path in [file.with_extension("floats"), file.with_extension("bytes"), file] {
            remove(&path);
        }
    }

    /// Removes files that belong to no model: half-written ones left by a crash, and those of deleted models.
    pub fn tidy(&self, is_model: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
            if !id.is_some_and(&is_model) {
                remove(&entry.path());
            }
        }
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "packed weights that nobody needs stay");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::PackedFolder;

    #[test]
    fn only_files_of_models_stay() {
        let data = tempfile::tempdir().unwrap();
        let folder = PackedFolder::new(data.path());
        folder.tidy(|_| true);
        folder.remove("absent");
        std::fs::create_dir(data.path().join("packed")).unwrap();
        let files = [
            folder.file(".known"),
            folder.file("gone"),
            folder.file(".known").with_extension("weights.7-0.tmp"),
        ];
        for file in &files {
            std::fs::write(file, "").unwrap();
        }
        folder.tidy(|id| id == ".known");
        assert_eq!(files.each_ref().map(|file| file.exists()), [true, false, false]);
        folder.remove(".known");
        assert!(!files[0].exists());
    }
}
