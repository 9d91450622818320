//! Which gateway is meant when none is named.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where a gateway listens unless it is told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// The data folder of `kairo dev`, in the folder it was started in.
pub const DATA_DIR: &str = ".kairo";

const URL_FILE: &str = "url";

/// The address of the `kairo dev` that was started in `dir` or the closest folder above it, else the default.
pub fn discover(dir: &Path) -> String {
    let written = dir.ancestors().find_map(|dir| fs::read_to_string(url_file(&dir.join(DATA_DIR))).ok());
    written.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()).unwrap_or_else(|| DEFAULT_URL.to_owned())
}

/// Makes an address known to [`discover`]; it is unknown again when this is dropped.
#[derive(Debug)]
pub struct Published(PathBuf);

impl Published {
    pub fn new(data_dir: &Path, url: &str) -> io::Result<Self> {
        let file = url_file(data_dir);
        // Renamed into place, so that nobody reads half an address.
        let partial = file.with_added_extension("partial");
        fs::write(&partial, format!("{url}\n"))?;
        fs::rename(&partial, &file)?;
        Ok(Self(file))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Left behind, it leads to an error that says what to do.
        let _ = fs::remove_file(&self.0);
    }
}

fn url_file(data_dir: &Path) -> PathBuf {
    data_dir.join(URL_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_address_upwards_is_found_while_it_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        let data = dir.path().join(DATA_DIR);
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(&data).unwrap();
        let published = Published::new(&data, "http://127.0.0.1:1").unwrap();
        assert_eq!(discover(&deep), "http://127.0.0.1:1");
        drop(published);
        assert_eq!(discover(&deep), DEFAULT_URL);
    }
}
