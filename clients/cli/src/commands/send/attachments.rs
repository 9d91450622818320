//! Images and audio that go with a message: each file is stored first, and the message names it.

use std::path::{Path, PathBuf};

use kairo_core::media;

use crate::{
    Error,
    client::{Client, NewPart},
};

/// Largest file that is read, in bytes: the most that any gateway takes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Stores the files, one after another.
pub async fn store_files(client: &Client, files: &[PathBuf]) -> Result<Vec<NewPart>, Error> {
    let mut parts = Vec::with_capacity(files.len());
    for file in files {
        let (media_type, bytes) = read_attachment(file).await?;
        let stored = client.store_object(media_type, bytes).await?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        parts.push(NewPart { digest: stored.digest, name: name.chars().filter(|c| !c.is_control()).collect() });
    }
    Ok(parts)
}

/// A file's bytes, and what they are by how they begin: its name need not tell.
async fn read_attachment(file: &Path) -> Result<(&'static str, Vec<u8>), Error> {
    let length = tokio::fs::metadata(file).await.map_err(Error::file("read", file))?.len();
    if length > LARGEST {
        return Err(Error::Advice(format!("{} is larger than {LARGEST} bytes", file.display())));
    }
    let bytes = tokio::fs::read(file).await.map_err(Error::file("read", file))?;
    let known = media::sniff_type(&bytes).map(|media_type| (media_type, bytes));
    known.ok_or_else(|| Error::Advice(format!("{} is none of {}", file.display(), media::TYPES.join(", "))))
}
