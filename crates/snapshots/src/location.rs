//! Restricts repositories to locations below one directory.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::errors;
use sparrow_request::error::EngineError;

/// Directory of a repository: `location` below `root`, or an absolute path inside `root`. It need not exist.
///
/// # Errors
/// `repository_exception` for a location outside `root`, by `..`, as another absolute path or through a
/// symbolic link, or for an invalid path.
pub(super) fn resolve(name: &str, root: &Path, location: &str) -> Result<PathBuf, EngineError> {
    let outside = || {
        errors::not_created(
            name,
            &format!("location [{location}] doesn't match any of the locations specified by path.repo"),
        )
    };
    if location.is_empty() {
        return Err(errors::not_created(name, "missing location"));
    }
    if location.contains('\0') {
        return Err(outside());
    }
    let given = Path::new(location);
    let relative = if given.is_absolute() { given.strip_prefix(root).map_err(|_| outside())? } else { given };
    let mut path = root.to_path_buf();
    for component in relative.components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    let unreadable = |_| errors::not_created(name, &format!("location [{location}] cannot be read"));
    let Some(real_root) = canonical(root).map_err(unreadable)? else {
        // Without the folder there is no link in it either.
        return Ok(path);
    };
    // The part of it that exists leads to the folder, whatever links there are.
    for existing in path.ancestors().take_while(|part| part.starts_with(root)) {
        match fs::symlink_metadata(existing) {
            Ok(_) => {
                let real = canonical(existing).map_err(unreadable)?;
                return match real.is_some_and(|real| real.starts_with(&real_root)) {
                    true => Ok(path),
                    false => Err(outside()),
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    Ok(path)
}

fn canonical(path: &Path) -> std::io::Result<Option<PathBuf>> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_stay_below_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("snapshots");
        let inside = |location: &str| resolve("r", &root, location).ok();
        for made in [false, true] {
            if made {
                fs::create_dir_all(root.join("a")).unwrap();
            }
            assert_eq!(inside("a/b"), Some(root.join("a/b")));
            assert_eq!(inside("./a"), Some(root.join("a")));
            assert_eq!(inside(root.join("a").to_str().unwrap()), Some(root.join("a")));
            for bad in
                ["", "..", "a/../../x", "/elsewhere/b", "/", "a\0b", &format!("{}/../x", root.display())]
            {
                assert_eq!(inside(bad), None, "{bad:?}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("snapshots");
        fs::create_dir_all(root.join("real")).unwrap();
        fs::create_dir_all(folder.path().join("elsewhere")).unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link(&folder.path().join("elsewhere"), "out");
        link(&folder.path().join("nowhere"), "dangling");
        link(&root.join("real"), "in");
        for bad in ["out", "out/x", "dangling", "dangling/x"] {
            assert!(resolve("r", &root, bad).is_err(), "{bad}");
        }
        assert!(resolve("r", &root, "in/x").is_ok());
    }
}
