//! Resolving paths, so that two folders can be told to be separate whatever links and names lead to them.

use std::path::{Component, Path, PathBuf};

/// The absolute path of a file or folder with symbolic links and `..` resolved; components that do not exist yet are
/// kept as they are.
pub fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                real.pop();
            }
            Component::CurDir => {}
            other => {
                real.push(other);
                if let Ok(led) = real.canonicalize() {
                    real = led;
                }
            }
        }
    }
    real
}

/// Whether two [`real`] paths are equal or one lies within the other.
pub fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn links_and_dots_are_followed_as_far_as_there_is_something() {
        use super::{overlap, real};

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        assert_eq!(real(&root.join("link/../c")), root.join("a/c"));
        assert_eq!(real(&root.join("none/../link/./d")), root.join("a/b/d"));
        assert!(overlap(&real(&root.join("link")), &root.join("a")));
        assert!(!overlap(&root.join("ab"), &root.join("a")));
    }
}
