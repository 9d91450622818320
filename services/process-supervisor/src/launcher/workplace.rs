//! The folder an agent's processes start in.

use std::{
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use kairo_core::ids::Name;
use nix::unistd::geteuid;
use tokio::fs;

/// The reason why there is no working directory.
#[derive(Debug, thiserror::Error)]
pub enum WorkplaceError {
    #[error("the working directory {path} cannot be made: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the working directory {path} is not a folder of this user that is closed to others; remove it, or configure \
         another work_dir"
    )]
    Foreign { path: PathBuf },
}

/// Makes sure that there is a folder of `agent` in `root`, that it is ours, and that nobody else can enter it.
///
/// The root may be in a folder that everybody can write to, such as `/tmp`: what somebody else put there under its
/// name is refused, links too.
pub async fn prepare(root: &Path, agent: &Name) -> Result<PathBuf, WorkplaceError> {
    make(root, true).await?;
    let found = read_metadata(root).await?;
    let trusted = found.uid() == 0 || found.uid() == geteuid().as_raw();
    if !found.is_dir() || !trusted {
        return Err(WorkplaceError::Foreign { path: root.to_owned() });
    }
    let path = root.join(agent.as_str());
    make(&path, false).await?;
    let found = read_metadata(&path).await?;
    let closed = found.permissions().mode() & 0o077 == 0;
    if !found.is_dir() || !closed || found.uid() != geteuid().as_raw() {
        return Err(WorkplaceError::Foreign { path });
    }
    Ok(path)
}

async fn make(path: &Path, with_parents: bool) -> Result<(), WorkplaceError> {
    let mut builder = fs::DirBuilder::new();
    match builder.mode(0o700).recursive(with_parents).create(path).await {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(WorkplaceError::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Of the file itself, should it be a link.
async fn read_metadata(path: &Path) -> Result<std::fs::Metadata, WorkplaceError> {
    fs::symlink_metadata(path).await.map_err(|source| WorkplaceError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{Permissions, set_permissions},
        os::unix::fs::symlink,
    };

    use tempfile::tempdir;

    use super::*;

    fn agent() -> Name {
        Name::parse("ann").unwrap()
    }

    #[tokio::test]
    async fn a_folder_is_made_closed_and_found_again() {
        let dir = tempdir().unwrap();
        let root = dir.path().join("deep/root");
        let path = prepare(&root, &agent()).await.unwrap();
        assert_eq!(path, root.join("ann"));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(prepare(&root, &agent()).await.unwrap(), path);
    }

    #[tokio::test]
    async fn a_folder_open_to_others_and_a_link_are_refused() {
        let dir = tempdir().unwrap();
        let path = prepare(dir.path(), &agent()).await.unwrap();
        set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(prepare(dir.path(), &agent()).await, Err(WorkplaceError::Foreign { .. })));

        let link = dir.path().join("root");
        symlink(dir.path(), &link).unwrap();
        assert!(matches!(prepare(&link, &agent()).await, Err(WorkplaceError::Foreign { .. })));
    }
}
