//! Folders by handle: every name is looked up in an opened folder and no link is followed, so what is checked is what
//! is used, whoever moves things about meanwhile.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use kairo_core::ids::Name;
use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use uuid::Uuid;

use crate::tool::ToolError;

/// A folder, not a link to one.
const AS_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A file, not a link to one; a pipe that nobody writes to must not hold the call up.
const AS_FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LOCK_FILE: OFlags = OFlags::RDWR.union(OFlags::CREATE).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OWNER_ONLY: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The reason a folder or a file of a workspace cannot be used. Names are those inside the workspace: the message is
/// shown to the agent.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{name} of the workspace cannot be used: {source}")]
    Io { name: String, source: io::Error },
    #[error("{name} of the workspace is not a folder of this service's user; ask the operator to remove it")]
    Foreign { name: String },
    #[error("the folder of the agent in the workspace is open to others; ask the operator to close it (mode 0700)")]
    Open,
    #[error("{name:?} is no name of a file")]
    NotAName { name: String },
    #[error("{name} is no regular file")]
    NotAFile { name: String },
}

impl From<FolderError> for ToolError {
    fn from(error: FolderError) -> Self {
        Self::failed(error.to_string())
    }
}

/// An opened folder.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    name: String,
}

/// The content read from a file.
#[derive(Debug)]
pub struct WorkspaceFile {
    pub bytes: Vec<u8>,
    /// Full size in bytes, read or not.
    pub size: u64,
    /// When it was changed last, in seconds since 1970.
    pub modified: i64,
    /// True if the file is longer than what was read.
    pub truncated: bool,
}

impl WorkspaceFile {
    /// Its text; what is not UTF-8 is taken for Latin-1, as old programs write it.
    pub fn text(&self) -> String {
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            // A limit may have cut the last character in two.
            Err(error) if error.error_len().is_none() => String::from_utf8_lossy(bytes).into_owned(),
            Err(_) => bytes.iter().copied().map(char::from).collect(),
        }
    }
}

impl Folder {
    /// The folder of an agent in `root`, made when there is none. The root may be in a folder that everybody can write
    /// to, such as `/tmp`: what somebody else put there under its name is refused, links too.
    pub fn open_agent_folder(root: &Path, agent: &Name) -> Result<Self, FolderError> {
        Self::open_root(root)?.open_or_create(agent.as_str())?.ensure_private()
    }

    /// The folder of an agent in the root, if there is one.
    pub fn find_agent_folder(&self, agent: &Name) -> Result<Option<Self>, FolderError> {
        self.find(agent.as_str())?.map(Self::ensure_private).transpose()
    }

    /// The folder that holds those of the agents, made when there is none.
    pub fn open_root(root: &Path) -> Result<Self, FolderError> {
        let failed = |source: io::Error| FolderError::Io { name: "the root".to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(failed)?;
        let handle = rustix::fs::open(root, AS_FOLDER, Mode::empty()).map_err(|error| failed(error.into()))?;
        let root = Self { handle, name: "the root".to_owned() };
        let owner = root.owner()?;
        if owner != 0 && owner != geteuid().as_raw() {
            return Err(FolderError::Foreign { name: root.name });
        }
        Ok(root)
    }

    fn ensure_private(self) -> Result<Self, FolderError> {
        let mode = fstat(&self.handle).map_err(|error| self.io_error(error))?.st_mode;
        if mode & 0o077 != 0 {
            return Err(FolderError::Open);
        }
        Ok(self)
    }

    /// A folder in this one, made when there is none.
    pub fn open_or_create(&self, name: &str) -> Result<Self, FolderError> {
        self.check_name(name)?;
        match mkdirat(&self.handle, name, OWNER_ONLY) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io_error(name, error)),
        }
        self.open_existing(name)
    }

    /// A folder in this one, if there is one.
    pub fn find(&self, name: &str) -> Result<Option<Self>, FolderError> {
        self.check_name(name)?;
        match self.open_existing(name) {
            Ok(folder) => Ok(Some(folder)),
            Err(FolderError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_existing(&self, name: &str) -> Result<Self, FolderError> {
        let handle = match openat(&self.handle, name, AS_FOLDER, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(FolderError::Foreign { name: name.to_owned() }),
            Err(error) => return Err(io_error(name, error)),
        };
        let folder = Self { handle, name: name.to_owned() };
        if folder.owner()? != geteuid().as_raw() {
            return Err(FolderError::Foreign { name: folder.name });
        }
        Ok(folder)
    }

    /// The names of its visible entries in order, at most `max`, and whether there are more. Those that are no text
    /// are passed over.
    pub fn list_names(&self, max: usize) -> Result<(Vec<String>, bool), FolderError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(|error| self.io_error(error))? {
            let entry = entry.map_err(|error| self.io_error(error))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if names.len() == max {
                names.sort_unstable();
                return Ok((names, true));
            }
            names.push(name.to_owned());
        }
        names.sort_unstable();
        Ok((names, false))
    }

    /// The first `max` bytes of a file; none when there is no such file.
    pub fn read(&self, name: &str, max: usize) -> Result<Option<WorkspaceFile>, FolderError> {
        self.check_name(name)?;
        let file = match openat(&self.handle, name, AS_FILE, Mode::empty()) {
            Ok(handle) => fs::File::from(handle),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(FolderError::NotAFile { name: name.to_owned() }),
            Err(error) => return Err(io_error(name, error)),
        };
        let io = |source| FolderError::Io { name: name.to_owned(), source };
        let about = file.metadata().map_err(io)?;
        if !about.is_file() {
            return Err(FolderError::NotAFile { name: name.to_owned() });
        }
        let mut bytes = Vec::new();
        file.take(max as u64).read_to_end(&mut bytes).map_err(io)?;
        let truncated = about.size() > bytes.len() as u64;
        Ok(Some(WorkspaceFile { bytes, size: about.size(), modified: about.mtime(), truncated }))
    }

    /// Returns true if an entry of this name exists. Does not follow symbolic links.
    pub fn has(&self, name: &str) -> Result<bool, FolderError> {
        self.check_name(name)?;
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(io_error(name, error)),
        }
    }

    /// Writes a file so that it is there whole or not at all, also after a power failure.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        self.check_name(name)?;
        // Hidden, hence passed over by those who read the folder, should it be left behind.
        let draft = format!(".{}.part", Uuid::new_v4().simple());
        let written = self.write_draft(&draft, bytes).and_then(|()| {
            renameat(&self.handle, &draft, &self.handle, name)?;
            Ok(fsync(&self.handle)?)
        });
        written.map_err(|source| {
            let _ = unlinkat(&self.handle, &draft, AtFlags::empty());
            FolderError::Io { name: name.to_owned(), source }
        })
    }

    /// Moves a file, also for good after a power failure.
    pub fn move_file(&self, name: &str, into: &Self, as_name: &str) -> Result<(), FolderError> {
        self.check_name(name)?;
        into.check_name(as_name)?;
        renameat(&self.handle, name, &into.handle, as_name).map_err(|error| io_error(name, error))?;
        fsync(&into.handle).and_then(|()| fsync(&self.handle)).map_err(|error| io_error(name, error))
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        self.check_name(name)?;
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(io_error(name, error)),
        }
    }

    /// Holds a file of this name for as long as the handle is kept; none when another process holds it. Whoever dies
    /// lets go.
    pub fn try_lock(&self, name: &str) -> Result<Option<OwnedFd>, FolderError> {
        self.check_name(name)?;
        let handle = openat(&self.handle, name, LOCK_FILE, FILE_MODE).map_err(|error| io_error(name, error))?;
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(handle)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(io_error(name, error)),
        }
    }

    fn write_draft(&self, draft: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::File::from(openat(&self.handle, draft, NEW_FILE, FILE_MODE)?);
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn owner(&self) -> Result<u32, FolderError> {
        Ok(fstat(&self.handle).map_err(|error| self.io_error(error))?.st_uid)
    }

    fn check_name(&self, name: &str) -> Result<(), FolderError> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
            return Err(FolderError::NotAName { name: name.to_owned() });
        }
        Ok(())
    }

    fn io_error(&self, error: Errno) -> FolderError {
        io_error(&self.name, error)
    }
}

fn io_error(name: &str, error: Errno) -> FolderError {
    FolderError::Io { name: name.to_owned(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::tempdir;

    use super::*;

    fn ann() -> Name {
        Name::parse("ann").unwrap()
    }

    #[test]
    fn an_agents_folder_is_made_closed() {
        let dir = tempdir().unwrap();
        let root = dir.path().join("deep/root");
        Folder::open_agent_folder(&root, &ann()).unwrap().open_or_create("mail").unwrap();
        assert_eq!(root.join("ann").metadata().unwrap().mode() & 0o777, 0o700);
        assert!(root.join("ann/mail").is_dir());
        Folder::open_agent_folder(&root, &ann()).unwrap();
    }

    #[test]
    fn links_and_folders_open_to_others_are_refused() {
        let dir = tempdir().unwrap();
        let root = dir.path().join("root");
        let folder = Folder::open_agent_folder(&root, &ann()).unwrap();
        symlink("/", root.join("ann/mail")).unwrap();
        assert!(matches!(folder.open_or_create("mail"), Err(FolderError::Foreign { .. })));
        symlink("/etc/passwd", root.join("ann/a.ics")).unwrap();
        assert!(matches!(folder.read("a.ics", 10), Err(FolderError::NotAFile { .. })));

        let other = dir.path().join("other");
        symlink(&root, &other).unwrap();
        assert!(Folder::open_agent_folder(&other, &ann()).is_err());
        set_permissions(root.join("ann"), Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(Folder::open_agent_folder(&root, &ann()), Err(FolderError::Open)));
    }

    #[test]
    fn names_do_not_lead_out() {
        let dir = tempdir().unwrap();
        let folder = Folder::open_agent_folder(&dir.path().join("root"), &ann()).unwrap();
        for name in ["", ".", "..", "../bob", "/etc/passwd", "a/b", "a\0"] {
            assert!(matches!(folder.read(name, 10), Err(FolderError::NotAName { .. })), "{name:?}");
            assert!(matches!(folder.write(name, b""), Err(FolderError::NotAName { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_file_is_written_whole_and_read_as_far_as_allowed() {
        let dir = tempdir().unwrap();
        let folder = Folder::open_agent_folder(dir.path(), &ann()).unwrap();
        folder.write("b", b"old").unwrap();
        folder.write("b", b"longer").unwrap();
        folder.write("a", b"").unwrap();
        let file = folder.read("b", 4).unwrap().unwrap();
        assert_eq!((file.bytes.as_slice(), file.size, file.truncated), (b"long".as_slice(), 6, true));
        assert!(folder.read("c", 4).unwrap().is_none());
        assert!(folder.has("a").unwrap() && !folder.has("c").unwrap());
        assert_eq!(folder.list_names(9).unwrap(), (vec!["a".to_owned(), "b".to_owned()], false));
        assert!(folder.list_names(1).unwrap().1);
        let left_behind = fs::read_dir(dir.path().join("ann")).unwrap().count();
        assert_eq!(left_behind, 2);
    }

    #[test]
    fn a_file_is_moved_and_held_by_one() {
        let dir = tempdir().unwrap();
        let folder = Folder::open_agent_folder(dir.path(), &ann()).unwrap();
        let other = folder.open_or_create("other").unwrap();
        folder.write("a", b"x").unwrap();
        folder.move_file("a", &other, "b").unwrap();
        assert!(!folder.has("a").unwrap() && other.has("b").unwrap());
        assert!(matches!(folder.move_file("a", &other, "../b"), Err(FolderError::NotAName { .. })));
        other.remove("b").unwrap();
        other.remove("b").unwrap();
        let held = folder.try_lock("lock").unwrap();
        assert!(held.is_some() && folder.try_lock("lock").unwrap().is_none());
        drop(held);
        assert!(folder.try_lock("lock").unwrap().is_some());
    }

    #[test]
    fn a_pipe_does_not_hold_anyone_up() {
        let dir = tempdir().unwrap();
        let folder = Folder::open_agent_folder(dir.path(), &ann()).unwrap();
        let pipe = dir.path().join("ann/pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, FILE_MODE).unwrap();
        assert!(matches!(folder.read("pipe", 4), Err(FolderError::NotAFile { .. })));
    }

    #[test]
    fn old_files_are_read_as_latin_1() {
        let file = |bytes: &[u8]| WorkspaceFile { bytes: bytes.to_vec(), size: 0, modified: 0, truncated: false };
        assert_eq!(file("\u{feff}é".as_bytes()).text(), "é");
        assert_eq!(file(b"caf\xe9!").text(), "café!");
    }
}
