//! The folder of a backup or an archive. Its manifest is written last and replaced as a whole, so a part that was not finished is none.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    error::BackupError,
    manifest::{FileEntry, Kind, Manifest},
};

pub const MANIFEST: &str = "manifest.json";
const UNFINISHED: &str = "manifest.json.new";
const LOCK: &str = "lock";
/// Zeros that are written at once.
const PIECE: usize = 64 * 1024;

/// A folder that nobody else writes to, as long as this is there.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    _lock: File,
}

/// Whether a folder holds a backup, or an archive.
pub fn is_backup(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// The folder of a part.
pub fn part(number: u32) -> String {
    format!("{number:04}")
}

/// The files of a part, from the folder of the backup.
///
/// # Errors
/// Where they cannot be listed.
pub fn files(path: &Path, part: &str) -> Result<Vec<String>, BackupError> {
    let folder = path.join(part);
    let listed = || {
        let entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names.map(|name| format!("{part}/{name}")).collect())
    };
    listed().map_err(BackupError::file("read", &folder))
}

/// A manifest as it stands in its file.
pub fn text(manifest: &Manifest) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    Ok(text)
}

/// The manifest of a folder.
///
/// # Errors
/// Where there is none, or none that can be read.
pub fn manifest(path: &Path) -> Result<Manifest, BackupError> {
    if !is_backup(path) {
        return Err(BackupError::damaged(
            path,
            format!("it holds no {MANIFEST}: expected the folder of a backup or an archive"),
        ));
    }
    let file = path.join(MANIFEST);
    let text = fs::read_to_string(&file).map_err(BackupError::file("read", &file))?;
    Manifest::read(&text).map_err(|unusable| BackupError::damaged(file, unusable.to_string()))
}

/// The same, where it is this.
///
/// # Errors
/// Also where it is something else.
pub fn manifest_of(path: &Path, kind: Kind) -> Result<Manifest, BackupError> {
    let manifest = manifest(path)?;
    if manifest.kairo != kind {
        let (found, expected) = (manifest.kairo.noun(), kind.noun());
        return Err(BackupError::Refused(format!("{} holds {found}: expected {expected}", path.display())));
    }
    Ok(manifest)
}

impl Folder {
    /// A new one, or one in which a first part was not finished. Its owner alone may read it.
    ///
    /// # Errors
    /// Where there is a backup or an archive already, or something else.
    pub fn create(path: &Path) -> Result<Self, BackupError> {
        if is_backup(path) {
            let (kind, path) = (manifest(path)?.kairo.noun(), path.display());
            return Err(BackupError::Refused(format!(
                "{path} holds {kind}: name another folder, or add to a backup with `kairo backup --onto {path}`"
            )));
        }
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(BackupError::file("make", path))?;
        if !is_new && !path.join(LOCK).exists() {
            let mut there = fs::read_dir(path).map_err(BackupError::file("read", path))?;
            if there.next().is_some() {
                let path = path.display();
                return Err(BackupError::Refused(format!(
                    "{path} holds something else: name an empty or a new folder"
                )));
            }
        }
        restrict(path)?;
        Self::lock(path)
    }

    /// One that holds this.
    ///
    /// # Errors
    /// Where it does not, or somebody is writing to it.
    pub fn open(path: &Path, kind: Kind) -> Result<Self, BackupError> {
        manifest_of(path, kind)?;
        Self::lock(path)
    }

    /// Makes one of what was fetched into it.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn fetched(path: &Path, manifest: &Manifest) -> Result<(), BackupError> {
        Self::lock(path)?.write(manifest)
    }

    fn lock(path: &Path) -> Result<Self, BackupError> {
        let file = path.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&file);
        let lock = lock.map_err(BackupError::file("open", &file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(BackupError::Refused(format!("{}: another command is writing to it", path.display())))
            }
            Err(TryLockError::Error(source)) => Err(BackupError::File { action: "lock", path: file, source }),
        }
    }

    pub fn manifest(&self) -> Result<Manifest, BackupError> {
        manifest(&self.path)
    }

    /// Makes the folder of a part; what is there of one that was not finished is written over.
    pub fn begin(&self, number: u32) -> Result<String, BackupError> {
        let name = part(number);
        let path = self.path.join(&name);
        fs::create_dir_all(&path).map_err(BackupError::file("make", &path))?;
        sync(&self.path)?;
        Ok(name)
    }

    /// Replaces the manifest.
    pub fn write(&self, manifest: &Manifest) -> Result<(), BackupError> {
        for written in &manifest.parts {
            sync(&self.path.join(part(written.number)))?;
        }
        let (unfinished, path) = (self.path.join(UNFINISHED), self.path.join(MANIFEST));
        let written = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(&text(manifest)?)?;
            file.sync_all()
        };
        written().map_err(BackupError::file("write", &unfinished))?;
        fs::rename(&unfinished, &path).map_err(BackupError::file("write", &path))?;
        sync(&self.path)
    }

    /// Writes over a file and removes it. One that is gone is gone.
    pub fn destroy(&self, entry: &FileEntry) -> Result<(), BackupError> {
        let path = self.path.join(&entry.path);
        if !path.exists() {
            return Ok(());
        }
        let overwritten = || {
            let mut file = File::options().write(true).open(&path)?;
            let (mut left, zeros) = (file.metadata()?.len(), [0; PIECE]);
            while left > 0 {
                let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                file.write_all(zeros.get(..piece).unwrap_or_default())?;
                left -= piece as u64;
            }
            file.sync_all()?;
            fs::remove_file(&path)
        };
        overwritten().map_err(BackupError::file("write over", &path))
    }
}

/// What is kept of users in the clear, such as images, is for the owner of the folder.
fn restrict(path: &Path) -> Result<(), BackupError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(BackupError::file("restrict", path))
}

fn sync(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(BackupError::file("write", folder))
}
