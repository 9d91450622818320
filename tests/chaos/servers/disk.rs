//! A disk of a server's own, small enough to be filled. Mounting one takes root.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::Outcome;

/// Of each, in MiB: a run writes far less.
const SIZE: u32 = 256;

/// Mounted until it is dropped.
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts one at this folder, which is made.
    pub fn mount(folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={SIZE}m"), "tmpfs"])
            .arg(folder)
            .output()?;
        match mount.status.success() {
            true => Ok(Self { folder: folder.to_owned() }),
            false => {
                let why = String::from_utf8_lossy(&mount.stderr).trim().to_owned();
                Err(format!("a disk to fill can only be mounted as root: {why}").into())
            }
        }
    }

    /// Takes all the room there is.
    pub fn fill(&self) -> std::io::Result<()> {
        let mut filler = std::fs::File::create(self.filler())?;
        // It ends when there is no more room.
        match std::io::copy(&mut std::io::repeat(0), &mut filler) {
            Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives it back.
    pub fn free(&self) -> std::io::Result<()> {
        std::fs::remove_file(self.filler())
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever still has files open on it keeps it until they are closed.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.folder).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("chaos: {} is still mounted", self.folder.display());
        }
    }
}
