//! The data folder of a development machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use kairo_local::{DirLock, Postgres};

use crate::{Error, endpoint};

/// The data folder, held so that nobody else uses it.
#[derive(Debug)]
pub(crate) struct DataFolder {
    /// Absolute; `.kairo` unless chosen.
    pub(crate) data_dir: PathBuf,
    /// `dev` in it: all that the running system writes.
    dir: PathBuf,
    _lock: DirLock,
}

impl DataFolder {
    /// Makes the folder if need be and takes it; fails if another `kairo dev` has it.
    pub(crate) fn acquire(data_dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(data_dir).map_err(Error::file("create", data_dir))?;
        let data_dir = data_dir.canonicalize().map_err(Error::file("resolve", data_dir))?;
        let dir = endpoint::dev_dir(&data_dir);
        if is_foreign(&dir).map_err(Error::file("look at", &dir))? {
            let dir = dir.display();
            return Err(Error::Advice(format!("{dir} was not made by kairo dev: choose another folder with --data")));
        }
        let lock = DirLock::try_acquire(&dir)?;
        Ok(Self { data_dir, dir, _lock: lock })
    }

    /// The file with the administrator's key.
    pub(crate) fn admin_key_file(&self) -> PathBuf {
        endpoint::key_file(&self.data_dir)
    }

    pub(crate) fn nats_dir(&self) -> PathBuf {
        self.dir.join("nats")
    }

    pub(crate) fn postgres_dir(&self) -> PathBuf {
        self.dir.join("postgres")
    }

    pub(crate) fn logs_dir(&self) -> PathBuf {
        self.dir.join("logs")
    }

    pub(crate) fn processes_dir(&self) -> PathBuf {
        self.dir.join("processes")
    }

    /// Returns the folder of agents' own files. They are the user's: a fresh start leaves them.
    pub(crate) fn workspaces_dir(&self) -> PathBuf {
        self.dir.join("workspaces")
    }

    /// Returns true if an earlier run left data here.
    pub(crate) fn has_data(&self) -> bool {
        self.nats_dir().exists()
    }

    /// Removes the data of earlier runs, and nothing else.
    pub(crate) fn wipe(&self) -> Result<(), Error> {
        Postgres::remove_data(&self.postgres_dir())?;
        for dir in [self.nats_dir(), self.logs_dir(), self.processes_dir()] {
            match fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::file("remove", dir)(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns true if the folder has content but lacks the lock file every folder of ours has.
fn is_foreign(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(mut entries) => Ok(entries.next().is_some() && !dir.join("lock").exists()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_has_one_holder() {
        let data = tempfile::tempdir().unwrap();
        let data_folder = DataFolder::acquire(data.path()).unwrap();
        let refused = DataFolder::acquire(data.path()).unwrap_err().to_string();
        assert!(refused.contains("in use by another kairo"), "{refused}");
        drop(data_folder);
        DataFolder::acquire(data.path()).unwrap();
    }

    #[test]
    fn wiping_removes_only_what_is_ours() {
        let data = tempfile::tempdir().unwrap();
        let data_folder = DataFolder::acquire(data.path()).unwrap();
        for dir in [data_folder.nats_dir(), data_folder.postgres_dir(), data.path().join("dev/mine")] {
            fs::create_dir_all(dir.join("deep")).unwrap();
        }
        data_folder.wipe().unwrap();
        assert!(!data_folder.nats_dir().exists() && !data_folder.postgres_dir().exists());
        assert!(data.path().join("dev/mine/deep").exists());
    }

    #[test]
    fn a_folder_that_somebody_else_made_is_refused() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir_all(data.path().join("dev/nats")).unwrap();
        assert!(DataFolder::acquire(data.path()).unwrap_err().to_string().contains("--data"));
    }
}
