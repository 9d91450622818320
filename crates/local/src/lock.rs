//! Locks between processes, on files: released by the kernel when their holder ends in any way.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::error::LocalError;

/// Says that a folder is ours until this is dropped. Two servers on one store destroy it.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

/// The file in the folder that is locked.
const FILE: &str = "lock";

impl DirLock {
    /// Makes the folder if need be and locks it, or fails at once with [`LocalError::InUse`].
    pub fn try_acquire(dir: &Path) -> Result<Self, LocalError> {
        std::fs::create_dir_all(dir).map_err(LocalError::io("cannot create", dir))?;
        let path = dir.join(FILE);
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LocalError::InUse { path: dir.into() }),
            Err(TryLockError::Error(source)) => Err(LocalError::io("cannot lock", path)(source)),
        }
    }

    /// Returns true if somebody has the folder locked now.
    pub fn is_held(dir: &Path) -> bool {
        let file = File::open(dir.join(FILE)).ok();
        file.is_some_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Waits, blocking the thread, for a lock file whose holders all work for a bounded time.
    pub(crate) fn acquire_blocking(path: &Path) -> Result<Self, LocalError> {
        let file = open(path)?;
        file.lock().map_err(LocalError::io("cannot lock", path))?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> Result<File, LocalError> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(LocalError::io("cannot open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::try_acquire(dir.path()).unwrap();
        assert!(matches!(DirLock::try_acquire(dir.path()), Err(LocalError::InUse { .. })));
        assert!(DirLock::is_held(dir.path()));
        drop(first);
        assert!(!DirLock::is_held(dir.path()) && !DirLock::is_held(&dir.path().join("none")));
        DirLock::try_acquire(dir.path()).unwrap();
    }
}
