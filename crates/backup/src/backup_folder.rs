//! The folder of a backup or an archive. Its manifest is written last and replaced as a whole, so a part that was not finished is none.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    error::BackupError,
    manifest::{BackupKind, FileEntry, MOST, Manifest},
    rooted_fs::{self, RelativePath},
    segments,
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

/// Returns true if a folder holds a backup, or an archive.
pub fn is_backup(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// The folder of a part.
pub fn part_folder_name(number: u32) -> String {
    format!("{number:04}")
}

/// The files of a part, from the folder of the backup.
///
/// # Errors
/// If they cannot be listed.
pub fn part_files(path: &Path, part: &str) -> Result<Vec<RelativePath>, BackupError> {
    let listed = || rooted_fs::list_files(path, &RelativePath::parse(part)?);
    listed().map_err(BackupError::file("read", path.join(part)))
}

/// The manifest of a folder.
///
/// # Errors
/// If there is none, or none that can be read.
pub fn read_manifest(path: &Path) -> Result<Manifest, BackupError> {
    if !is_backup(path) {
        return Err(BackupError::damaged_file(
            path,
            format!("it holds no {MANIFEST}: expected the folder of a backup or an archive"),
        ));
    }
    let file = path.join(MANIFEST);
    let read = || {
        let mut text = String::new();
        rooted_fs::open_to_read(path, &RelativePath::parse(MANIFEST)?)?.take(MOST + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(BackupError::file("read", &file))?;
    if text.len() as u64 > MOST {
        return Err(BackupError::damaged_file(file, format!("it is longer than {MOST} bytes")));
    }
    Manifest::parse(&text).map_err(|unusable| BackupError::damaged_file(file, unusable.to_string()))
}

/// Reads the manifest of a folder that must hold this kind.
///
/// # Errors
/// Returns an error if the manifest cannot be read or is of another kind.
pub fn read_manifest_of_kind(path: &Path, kind: BackupKind) -> Result<Manifest, BackupError> {
    let manifest = read_manifest(path)?;
    if manifest.kairo != kind {
        let found = manifest.kairo.noun();
        let expected = kind.noun();
        return Err(BackupError::Refused(format!("{} holds {found}: expected {expected}", path.display())));
    }
    Ok(manifest)
}

impl Folder {
    /// A new one, or one in which a first part was not finished. Its owner alone may read it.
    ///
    /// # Errors
    /// If there is a backup or an archive already, or something else.
    pub fn create(path: &Path) -> Result<Self, BackupError> {
        if is_backup(path) {
            let kind = read_manifest(path)?.kairo.noun();
            let path = path.display();
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
    /// If it does not, or somebody is writing to it.
    pub fn open(path: &Path, kind: BackupKind) -> Result<Self, BackupError> {
        read_manifest_of_kind(path, kind)?;
        Self::lock(path)
    }

    /// Makes one of what was fetched into it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn install_manifest(path: &Path, manifest: &Manifest) -> Result<(), BackupError> {
        Self::lock(path)?.write_manifest(manifest)
    }

    fn lock(path: &Path) -> Result<Self, BackupError> {
        let file = path.join(LOCK);
        let lock = || rooted_fs::open_lock(path, &RelativePath::parse(LOCK)?);
        let lock = lock().map_err(BackupError::file("open", &file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(BackupError::Refused(format!("{}: another command is writing to it", path.display())))
            }
            Err(TryLockError::Error(source)) => Err(BackupError::File { action: "lock", path: file, source }),
        }
    }

    pub fn read_manifest(&self) -> Result<Manifest, BackupError> {
        read_manifest(&self.path)
    }

    /// Makes the folder of a part; what is there of one that was not finished is written over.
    pub fn create_part_folder(&self, number: u32) -> Result<String, BackupError> {
        let name = part_folder_name(number);
        let made = || {
            rooted_fs::create_folder(&self.path, &RelativePath::parse(&name)?)?;
            rooted_fs::sync(&self.path, None)
        };
        made().map_err(BackupError::file("make", self.path.join(&name)))?;
        Ok(name)
    }

    /// Removes the files of a part that cannot be finished, as far as that is possible. No manifest names them.
    pub fn abandon(&self, part: &str) {
        let paths = part_files(&self.path, part).unwrap_or_default();
        let unfinished = RelativePath::parse(UNFINISHED).ok();
        for path in paths.iter().chain(&unfinished) {
            // What is left is written over by the next one.
            let _ = rooted_fs::remove(&self.path, path);
        }
    }

    /// Replaces the manifest.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), BackupError> {
        for written in &manifest.parts {
            let name = part_folder_name(written.number);
            let synced = || rooted_fs::sync(&self.path, Some(&RelativePath::parse(&name)?));
            synced().map_err(BackupError::file("write", self.path.join(&name)))?;
        }
        let written = || {
            let unfinished = RelativePath::parse(UNFINISHED)?;
            let path = RelativePath::parse(MANIFEST)?;
            let mut file = rooted_fs::create(&self.path, &unfinished)?;
            file.write_all(&manifest.to_text()?)?;
            file.sync_all()?;
            rooted_fs::rename(&self.path, &unfinished, &path)?;
            rooted_fs::sync(&self.path, None)
        };
        written().map_err(BackupError::file("write", self.path.join(MANIFEST)))
    }

    /// Writes over a file and removes it. One that is gone is gone. One that has further names, elsewhere perhaps, is written over
    /// where it is what was kept, and else only its name here is removed.
    pub fn destroy(&self, entry: &FileEntry) -> Result<(), BackupError> {
        let destroyed = || {
            let file = match rooted_fs::open_to_overwrite(&self.path, &entry.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            if file.metadata()?.nlink() == 1 || segments::verify_file(&self.path, entry).is_ok() {
                overwrite_with_zeros(file)?;
            }
            rooted_fs::remove(&self.path, &entry.path)
        };
        destroyed().map_err(BackupError::file("write over", entry.path.full_path(&self.path)))
    }
}

/// Restricts a folder to its owner: it holds content of users in the clear, such as images.
fn restrict(path: &Path) -> Result<(), BackupError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(BackupError::file("restrict", path))
}

fn overwrite_with_zeros(mut file: File) -> io::Result<()> {
    let mut left = file.metadata()?.len();
    let zeros = [0; PIECE];
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        file.write_all(zeros.get(..piece).unwrap_or_default())?;
        left -= piece as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
