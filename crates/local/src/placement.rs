//! The place of Postgres's data, and the account it runs as: it refuses to run as root.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::error::LocalError;

/// Users that a server may run as when we are root, the best first.
const SERVER_USERS: [&str; 2] = ["postgres", "nobody"];

/// A user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnixAccount {
    uid: u32,
    gid: u32,
}

impl UnixAccount {
    /// Returns the account to run the server as: `None`, ourselves, unless we are root; then the owner of the data that
    /// is already there, else a user made for servers.
    pub(crate) fn for_server(data: &Path) -> Result<Option<Self>, LocalError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        if let Ok(data) = data.metadata()
            && data.uid() != 0
        {
            return Ok(Some(Self { uid: data.uid(), gid: data.gid() }));
        }
        let path = Path::new("/etc/passwd");
        let passwd = fs::read_to_string(path).map_err(LocalError::io("cannot read", path))?;
        SERVER_USERS
            .iter()
            .find_map(|name| find(&passwd, name))
            .map(Some)
            .ok_or_else(|| LocalError::io("no user postgres or nobody in", path)(io::ErrorKind::NotFound.into()))
    }

    pub(crate) fn setpriv_args(self) -> [String; 3] {
        [format!("--reuid={}", self.uid), format!("--regid={}", self.gid), "--clear-groups".to_owned()]
    }

    /// Gives the file or folder (not what is in it) to this user.
    pub(crate) fn take_ownership(self, path: &Path) -> Result<(), LocalError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(LocalError::io("cannot chown", path))
    }

    /// Returns true if this user can pass through the folder.
    fn can_enter(self, dir: &fs::Metadata) -> bool {
        let execute = match (dir.uid() == self.uid, dir.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        dir.mode() & execute != 0
    }
}

fn find(passwd: &str, name: &str) -> Option<UnixAccount> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let mut ids = fields.skip(1).map(str::parse);
        Some(UnixAccount { uid: ids.next()?.ok()?, gid: ids.next()?.ok()? })
    })
}

/// A folder that everybody can enter, whose files survive a restart of the machine.
pub(crate) const OPEN: &str = "/var/tmp";

/// Makes `dir` where the server's user can reach it and returns its real path.
///
/// As root in a place closed to others (a checkout under /root, a private temporary folder) the
/// data lies in `open` instead, and `dir` is a symbolic link to it.
pub(crate) fn reachable_dir(dir: &Path, account: Option<UnixAccount>, open: &Path) -> Result<PathBuf, LocalError> {
    let parent = dir.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(LocalError::io("cannot create", parent))?;
    let dir = parent
        .canonicalize()
        .map_err(LocalError::io("cannot resolve", parent))?
        .join(dir.file_name().unwrap_or_default());
    let open_to_server = match account {
        Some(account) => can_enter_ancestors(&dir, account)?,
        None => true,
    };
    if open_to_server {
        make_dir(&dir)?;
        return dir.canonicalize().map_err(LocalError::io("cannot resolve", &dir));
    }
    let elsewhere = open_dir_for(&dir, open);
    make_own_dir(&elsewhere)?;
    replace_with_link(&dir, &elsewhere)?;
    Ok(elsewhere)
}

/// Returns the folder in `open` for `dir`: the same one at all times, so that a lost link is not lost data.
fn open_dir_for(dir: &Path, open: &Path) -> PathBuf {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, dir.as_os_str().as_bytes());
    open.join(format!("kairo-{}", id.simple()))
}

/// The folder for data that need not survive: that of temporary files, if the server's user can reach it.
pub(crate) fn ephemeral_root(account: Option<UnixAccount>) -> PathBuf {
    let temporary = std::env::temp_dir();
    let is_open = |account| can_enter_ancestors(&temporary.join("kairo"), account).unwrap_or(false);
    if account.is_none_or(is_open) { temporary } else { PathBuf::from(OPEN) }
}

/// Makes `link` a symbolic link to `target`. An empty folder or an older link gives way, data does not.
fn replace_with_link(link: &Path, target: &Path) -> Result<(), LocalError> {
    match fs::symlink_metadata(link) {
        Ok(old) if old.is_symlink() => fs::remove_file(link),
        Ok(_) => fs::remove_dir(link),
        Err(_) => Ok(()),
    }
    .map_err(LocalError::io("the server's user cannot reach", link))?;
    symlink(target, link).map_err(LocalError::io("cannot link", link))
}

/// Removes what [`reachable_dir`] made.
pub(crate) fn remove_dir(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir.canonicalize()?)?;
    match dir.is_symlink() {
        true => fs::remove_file(dir),
        false => Ok(()),
    }
}

fn can_enter_ancestors(dir: &Path, account: UnixAccount) -> Result<bool, LocalError> {
    for ancestor in dir.ancestors().skip(1) {
        let metadata = ancestor.metadata().map_err(LocalError::io("cannot look at", ancestor))?;
        if !account.can_enter(&metadata) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a folder that others can pass through but not list, if it is not there.
fn make_dir(dir: &Path) -> Result<(), LocalError> {
    match fs::DirBuilder::new().mode(0o711).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(LocalError::io("cannot create", dir)(error)),
        _ => Ok(()),
    }
}

/// Makes such a folder in a place open to everybody. Returns an error if somebody else has something under this name.
fn make_own_dir(dir: &Path) -> Result<(), LocalError> {
    make_dir(dir)?;
    let made = fs::symlink_metadata(dir).map_err(LocalError::io("cannot look at", dir))?;
    match made.is_dir() && made.uid() == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(LocalError::ForeignDirectory { path: dir.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/:/bin/no\n";

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        assert_eq!(find(PASSWD, "nobody"), Some(UnixAccount { uid: 65_534, gid: 65_533 }));
        assert_eq!(find(PASSWD, "no"), None);
    }

    #[test]
    fn a_closed_folder_is_replaced_by_a_link_and_removed_with_its_target() {
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let dir = closed.path().join("postgres");
        let stranger = UnixAccount { uid: 65_534, gid: 65_534 };
        let real = reachable_dir(&dir, Some(stranger), Path::new(OPEN)).unwrap();
        assert!(real.starts_with(OPEN), "{}", real.display());
        assert_eq!(dir.canonicalize().unwrap(), real);
        assert_eq!(reachable_dir(&dir, Some(stranger), Path::new(OPEN)).unwrap(), real);
        remove_dir(&dir).unwrap();
        assert!(!real.exists() && !dir.is_symlink());
    }

    #[test]
    fn our_own_account_stays_where_it_was_told() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("postgres");
        let real = reachable_dir(&wanted, None, Path::new(OPEN)).unwrap();
        assert_eq!(real, dir.path().canonicalize().unwrap().join("postgres"));
    }
}
