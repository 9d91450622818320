//! The gateway to use when none is named.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use kairo_core::{config::Secret, privacy};
use kairo_local::DirLock;

use crate::Error;

/// The address a gateway listens at by default.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// The data folder of `kairo dev`, in the folder it was started in.
pub const DATA_DIR: &str = ".kairo";

const URL_FILE: &str = "url";
/// The administrator's key of the `kairo dev` of a data folder, which its owner alone can read.
const KEY_FILE: &str = "admin-key";

/// The address of the `kairo dev` that was started in `dir` or the closest folder above it, else the default.
pub fn discover(dir: &Path) -> String {
    find_published(dir).map_or_else(|| DEFAULT_URL.to_owned(), |(url, _)| url)
}

/// The administrator's key of the gateway at `url`, if it belongs to the `kairo dev` that is found from `dir` and runs: where it was
/// killed, somebody else may listen at its address.
pub fn admin_key_for(dir: &Path, url: &str) -> Option<Secret> {
    let (found, data_dir) = find_published(dir).filter(|(_, data_dir)| DirLock::is_held(&dev_dir(data_dir)))?;
    let key = fs::read_to_string(key_file(&data_dir)).ok()?;
    let is_meant = found.trim_end_matches('/') == url.trim_end_matches('/');
    Some(Secret::new(key.trim().to_owned())).filter(|key| is_meant && !key.is_empty())
}

/// An address, and the data folder in which it is published.
fn find_published(dir: &Path) -> Option<(String, PathBuf)> {
    dir.ancestors().find_map(|dir| {
        let data_dir = dir.join(DATA_DIR);
        let url = fs::read_to_string(url_file(&data_dir)).ok()?.trim().to_owned();
        (!url.is_empty()).then_some((url, data_dir))
    })
}

/// The administrator's key in a data folder: the one that was given, else the one of before, else a new one. It stays there, for
/// its owner alone.
pub fn keep_admin_key(data_dir: &Path, given: Option<&str>) -> Result<Secret, Error> {
    let file = key_file(data_dir);
    let before = match fs::read_to_string(&file) {
        Ok(key) => Some(key.trim().to_owned()).filter(|key| !key.is_empty()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file("read", &file)(error)),
    };
    let key = match given.map(str::to_owned).or_else(|| before.clone()) {
        Some(key) => key,
        None => privacy::encode_key(&privacy::new_key().map_err(Error::file("make a key for", &file))?),
    };
    if before.as_ref() != Some(&key) {
        write_private_file(&file, &key).map_err(Error::file("write", &file))?;
    }
    Ok(Secret::new(key))
}

fn write_private_file(file: &Path, text: &str) -> io::Result<()> {
    let partial = file.with_added_extension("partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    writeln!(made, "{text}")?;
    fs::rename(&partial, file)
}

/// Makes an address known to [`discover`]; it is unknown again when this is dropped.
#[derive(Debug)]
pub struct PublishedUrl(PathBuf);

impl PublishedUrl {
    pub fn new(data_dir: &Path, url: &str) -> io::Result<Self> {
        let file = url_file(data_dir);
        // Renamed into place, so that nobody reads half an address.
        let partial = file.with_added_extension("partial");
        fs::write(&partial, format!("{url}\n"))?;
        fs::rename(&partial, &file)?;
        Ok(Self(file))
    }
}

impl Drop for PublishedUrl {
    fn drop(&mut self) {
        // Left behind, it leads to an error that says what to do.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the folder of all that the running system writes; `kairo dev` has it locked while it runs.
pub fn dev_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("dev")
}

fn url_file(data_dir: &Path) -> PathBuf {
    data_dir.join(URL_FILE)
}

pub fn key_file(data_dir: &Path) -> PathBuf {
    data_dir.join(KEY_FILE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_of_a_folder_is_its_owners_and_goes_to_its_own_gateway_alone() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join(DATA_DIR);
        fs::create_dir_all(&data).unwrap();
        let key = keep_admin_key(&data, None).unwrap();
        assert_eq!(keep_admin_key(&data, None).unwrap().expose(), key.expose(), "it stays");
        assert_eq!(key.expose().len(), 64);
        let mode = fs::metadata(data.join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let found = |url: &str| admin_key_for(&dir.path().join("a"), url).map(|key| key.expose().to_owned());
        assert_eq!(found("http://127.0.0.1:1"), None, "no gateway is published");
        let _published = PublishedUrl::new(&data, "http://127.0.0.1:1").unwrap();
        assert_eq!(found("http://127.0.0.1:1"), None, "it does not run");
        let _running = DirLock::try_acquire(&dev_dir(&data)).unwrap();
        assert_eq!(found("http://127.0.0.1:1/").as_deref(), Some(key.expose()));
        assert_eq!(found("http://127.0.0.1:2"), None, "of another gateway");
        let given = keep_admin_key(&data, Some("given")).unwrap();
        assert_eq!(found("http://127.0.0.1:1").as_deref(), Some(given.expose()));
    }

    #[test]
    fn the_closest_address_upwards_is_found_while_it_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        let data = dir.path().join(DATA_DIR);
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(&data).unwrap();
        let published = PublishedUrl::new(&data, "http://127.0.0.1:1").unwrap();
        assert_eq!(discover(&deep), "http://127.0.0.1:1");
        drop(published);
        assert_eq!(discover(&deep), DEFAULT_URL);
    }
}
