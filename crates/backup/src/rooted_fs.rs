//! Files beneath a folder, by paths that somebody else wrote: a manifest that was fetched, copied or tampered with. A path is
//! valid or there is none of it ([`RelativePath`]), and what it leads to is looked up name by name in opened folders, none of them
//! through a link, so what was checked is what is used, whoever moves things about meanwhile.
//!
//! Each name is looked up by itself instead of by `openat2` with `RESOLVE_BENEATH`: sandboxes that filter system calls, and gVisor,
//! refuse that one. The folder itself is named by whoever runs the command, and may be a link.

use std::{
    fmt,
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, fsync, mkdirat, openat, renameat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// Longest path, in bytes.
const LONGEST: usize = 1_024;
/// A folder, not a link to one.
const AS_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Neither a link, nor held up by a pipe that nobody is at the other end of.
const AS_FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LOCK_FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(AS_FILE);
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A path from a folder to what is beneath it: names with `/` between them, none of which leads back or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

/// The error of a text that is no [`RelativePath`]; it holds at most 80 characters of that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no path beneath the folder: expected names with / between them, at most {LONGEST} bytes in all, none of them empty, \
     . or .., and no control characters"
)]
pub struct InvalidPath(String);

impl RelativePath {
    /// # Errors
    /// If it could lead anywhere else than beneath the folder.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(|it: char| it.is_control());
        match text.len() <= LONGEST && text.split('/').all(is_name) {
            true => Ok(Self(text.to_owned())),
            // As much of it as an error shows.
            false => Err(InvalidPath(text.chars().take(80).collect())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder that it is in, and its name there.
    pub fn split(&self) -> (Option<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((folder, name)) => (Some(folder), name),
            None => (None, &self.0),
        }
    }

    /// The path of what stands beside it, named as it is with this behind its name.
    ///
    /// # Errors
    /// If the name becomes too long, or is invalid.
    pub fn with_suffix(&self, suffix: &str) -> Result<Self, InvalidPath> {
        Self::parse(&format!("{}{suffix}", self.0))
    }

    /// With the folder before it, to be shown in errors. Not to be opened: that would follow links.
    pub fn full_path(&self, root: &Path) -> PathBuf {
        root.join(&self.0)
    }
}

impl TryFrom<String> for RelativePath {
    type Error = InvalidPath;

    fn try_from(text: String) -> Result<Self, InvalidPath> {
        Self::parse(&text)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> Self {
        path.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<InvalidPath> for io::Error {
    fn from(error: InvalidPath) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Opens a file to read it.
///
/// # Errors
/// If it does not exist, is no file, or the way to it leads through a link.
pub fn open_to_read(root: &Path, path: &RelativePath) -> io::Result<File> {
    open_with(root, path, OFlags::RDONLY.union(AS_FILE))
}

/// Opens a file that is there to write over it.
///
/// # Errors
/// As [`open_to_read`].
pub fn open_to_overwrite(root: &Path, path: &RelativePath) -> io::Result<File> {
    open_with(root, path, OFlags::RDWR.union(AS_FILE))
}

/// Opens a file that is held, which is made where there is none.
///
/// # Errors
/// As [`open_to_read`].
pub fn open_lock(root: &Path, path: &RelativePath) -> io::Result<File> {
    open_with(root, path, LOCK_FILE)
}

/// Makes a file in the place of what has its name: a file by that name is let go of and not written to, as it may have others.
///
/// # Errors
/// If it cannot be made, or the way to it leads through a link.
pub fn create(root: &Path, path: &RelativePath) -> io::Result<File> {
    let (folder, name) = open_parent(root, path)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(io_error(error)),
    }
    Ok(File::from(openat(&folder, name, NEW_FILE, FILE_MODE).map_err(io_error)?))
}

/// Moves a file, in the place of what has the other name.
///
/// # Errors
/// If it cannot be moved, or the way to it leads through a link.
pub fn rename(root: &Path, from: &RelativePath, to: &RelativePath) -> io::Result<()> {
    let ((from, name), (to, new)) = (open_parent(root, from)?, open_parent(root, to)?);
    renameat(&from, name, &to, new).map_err(io_error)
}

/// Removes a name; one that is gone is gone. What a link leads to stays.
///
/// # Errors
/// If it cannot be removed, or the way to it leads through a link.
pub fn remove(root: &Path, path: &RelativePath) -> io::Result<()> {
    let (folder, name) = open_parent(root, path)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(io_error(error)),
    }
}

/// Makes a folder, if it is not there.
///
/// # Errors
/// If it cannot be made, or is a link.
pub fn create_folder(root: &Path, path: &RelativePath) -> io::Result<()> {
    let (folder, name) = open_parent(root, path)?;
    match mkdirat(&folder, name, FOLDER_MODE) {
        Ok(()) | Err(Errno::EXIST) => open_subfolder(&folder, name).map(drop),
        Err(error) => Err(io_error(error)),
    }
}

/// The files in a folder, in the order of their names. Links and folders are passed over, and what is named otherwise than paths are.
///
/// # Errors
/// If it cannot be listed, or the way to it leads through a link.
pub fn list_files(root: &Path, path: &RelativePath) -> io::Result<Vec<RelativePath>> {
    let (folder, name) = open_parent(root, path)?;
    let folder = open_subfolder(&folder, name)?;
    let mut files = Vec::new();
    for entry in Dir::read_from(&folder).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let Some(file) = entry.file_name().to_str().ok().and_then(|name| path.with_suffix(&format!("/{name}")).ok())
        else {
            continue;
        };
        if open_to_read(root, &file).is_ok() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Has what a folder holds on the disk.
///
/// # Errors
/// If it cannot be written, or the way to it leads through a link.
pub fn sync(root: &Path, path: Option<&RelativePath>) -> io::Result<()> {
    let folder = match path {
        None => open_root(root)?,
        Some(path) => {
            let (folder, name) = open_parent(root, path)?;
            open_subfolder(&folder, name)?
        }
    };
    fsync(&folder).map_err(io_error)
}

fn open_with(root: &Path, path: &RelativePath, flags: OFlags) -> io::Result<File> {
    let (folder, name) = open_parent(root, path)?;
    let file = File::from(openat(&folder, name, flags, FILE_MODE).map_err(io_error)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// The folder that a path is in, opened, and its name there.
fn open_parent<'p>(root: &Path, path: &'p RelativePath) -> io::Result<(OwnedFd, &'p str)> {
    let (folders, name) = path.split();
    let mut folder = open_root(root)?;
    for name in folders.into_iter().flat_map(|folders| folders.split('/')) {
        folder = open_subfolder(&folder, name)?;
    }
    Ok((folder, name))
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    // Its last name may be a link: it is of whoever runs the command.
    let flags = AS_FOLDER.difference(OFlags::NOFOLLOW);
    rustix::fs::open(root, flags, Mode::empty()).map_err(io_error)
}

fn open_subfolder(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    openat(folder, name, AS_FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            io::Error::other(format!("{name} is a link or no folder: links are not followed"))
        }
        error => error.into(),
    })
}

fn io_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("it is a link: links are not followed"),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests;
