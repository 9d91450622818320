//! Backups and archives in S3-compatible storage. What is worked with is a folder: of what stands there so much is **fetched** into
//! one of its own as is needed, and what comes of it is **put** back, files first and the manifest last. A part that was not
//! finished is none there, either, and who wrote meanwhile is noticed by the version of the manifest.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{
    ClientOptions, Error as StorageError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig, UpdateVersion,
    aws::AmazonS3Builder, path::Path as Key,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::spawn_blocking,
};
use uuid::Uuid;

use crate::{
    archive_reader::OWNERS_OF,
    backup_folder::{self, Folder, MANIFEST},
    backup_location::BackupLocation,
    backup_run::ProgressCallback,
    error::BackupError,
    manifest::{FileEntry, LOG, MOST, Manifest},
    rooted_fs::{self, InvalidPath, RelativePath},
    segments,
};

/// To connect, and without a byte of an answer.
const CONNECTING: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(30);
/// For one request, with a file of some 64 MiB on a slow line.
const REQUEST: Duration = Duration::from_secs(600);
/// Retries of a request, and the time within which they are made.
const RETRIES: usize = 6;
const RETRIED: Duration = Duration::from_secs(60);
/// Files on their way at once.
const AT_ONCE: usize = 4;
/// The extent of the files to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchExtent {
    Manifest,
    /// The end of the log, to go on from there.
    End,
    Everything,
}

/// A folder to work with, and where it is from.
pub struct StagedBackup {
    path: PathBuf,
    bucket: Option<FetchedBucket>,
}

/// The storage that a folder was fetched from, with the manifest it had then.
struct FetchedBucket {
    /// Removed with this.
    _folder: TempDir,
    storage: Storage,
    manifest: Option<(Manifest, UpdateVersion)>,
}

/// A file to fetch, with the size in bytes and the SHA-256 that it must have.
struct RemoteFile {
    path: RelativePath,
    bytes: u64,
    /// None of what only stands beside others: nothing that counts is in it, and it is fetched each time.
    sha256: Option<String>,
}

impl From<FileEntry> for RemoteFile {
    fn from(FileEntry { path, bytes, sha256, .. }: FileEntry) -> Self {
        Self { path, bytes, sha256: Some(sha256) }
    }
}

/// A place in an object storage.
#[derive(Clone)]
struct Storage {
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    place: BackupLocation,
}

/// Returns a folder with the contents of a place: the folder itself, or one of its own with what is needed, which is
/// removed when this is dropped.
///
/// # Errors
/// If it cannot be reached or read, or there is no room.
pub async fn stage(
    place: &BackupLocation,
    needed: FetchExtent,
    progress: ProgressCallback<'_>,
) -> Result<StagedBackup, BackupError> {
    match place {
        BackupLocation::Folder(path) => Ok(StagedBackup { path: path.clone(), bucket: None }),
        BackupLocation::Bucket { .. } => Storage::open(place)?.stage(needed, progress).await,
    }
}

/// Copies what stands in storage to a folder, or what came since it was last done; what was removed there is removed here.
///
/// # Errors
/// If there is nothing, or the folder holds something else.
pub async fn fetch(
    place: &BackupLocation,
    path: &Path,
    progress: ProgressCallback<'_>,
) -> Result<Manifest, BackupError> {
    Storage::open(place)?.copy_to_folder(path, progress).await
}

impl StagedBackup {
    /// Returns the folder to work in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Uploads new parts and the manifest, and then removes files that the folder no longer has. Does nothing for a
    /// place that is a folder.
    ///
    /// # Errors
    /// If it cannot, or somebody else has written meanwhile. Then the storage is as it was.
    pub async fn upload_changes(&self, progress: ProgressCallback<'_>) -> Result<(), BackupError> {
        let Some(FetchedBucket { storage, manifest, .. }) = &self.bucket else { return Ok(()) };
        if !backup_folder::is_backup(&self.path) {
            return Ok(());
        }
        let now = backup_folder::read_manifest(&self.path)?;
        match manifest {
            Some((before, _)) if *before == now => Ok(()),
            _ => storage.upload_parts(&self.path, manifest.as_ref(), &now, progress).await,
        }
    }

    /// Words that say where it is, in the place of the folder in which it was worked.
    pub fn replace_folder_path(&self, words: &str) -> String {
        match &self.bucket {
            Some(FetchedBucket { storage, .. }) => {
                words.replace(&*self.path.to_string_lossy(), &storage.place.to_string())
            }
            None => words.to_owned(),
        }
    }

    /// Names the storage in place of the working folder in an error, as [`Self::replace_folder_path`] does in words.
    pub fn replace_folder_path_in_error(&self, error: BackupError) -> BackupError {
        match error {
            BackupError::Refused(why) => BackupError::Refused(self.replace_folder_path(&why)),
            BackupError::Damaged { path, why } => BackupError::Damaged {
                path: self.replace_folder_path(&path.to_string_lossy()).into(),
                why: self.replace_folder_path(&why),
            },
            other => other,
        }
    }
}

impl Storage {
    /// As the environment says (`AWS_…`): credentials, region, endpoint.
    fn open(place: &BackupLocation) -> Result<Self, BackupError> {
        let BackupLocation::Bucket { bucket, prefix } = place else {
            return Err(BackupError::Refused(format!("{place}: expected s3://BUCKET/PREFIX")));
        };
        let limits = ClientOptions::new()
            .with_connect_timeout(CONNECTING)
            .with_read_timeout(SILENCE)
            .with_timeout(REQUEST)
            .with_allow_http(std::env::var("AWS_ALLOW_HTTP").is_ok_and(|allowed| allowed.eq_ignore_ascii_case("true")));
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRIED, ..RetryConfig::default() };
        let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let built = builder.with_client_options(limits).with_retry(retry).build();
        let objects = built.map_err(|error| not_reached(place, "be reached", error))?;
        Ok(Self::new(Arc::new(objects), prefix, place.clone()))
    }

    fn new(objects: Arc<dyn ObjectStore>, prefix: &str, place: BackupLocation) -> Self {
        Self { objects, prefix: Key::from(prefix), place }
    }

    fn key(&self, path: &str) -> Key {
        path.split('/').fold(self.prefix.clone(), |key, part| key.join(part))
    }

    fn error(&self, doing: &'static str) -> impl FnOnce(StorageError) -> BackupError {
        let place = self.place.clone();
        move |error| not_reached(&place, doing, error)
    }

    /// The manifest, and its version; none where there is nothing.
    async fn load_manifest(&self) -> Result<Option<(Manifest, UpdateVersion)>, BackupError> {
        let found = match self.objects.get(&self.key(MANIFEST)).await {
            Ok(found) => found,
            Err(StorageError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(not_reached(&self.place, "be read", error)),
        };
        let damaged = |why: String| BackupError::damaged_file(format!("{}/{MANIFEST}", self.place), why);
        if found.meta.size > MOST {
            return Err(damaged(format!("it has {} bytes: expected {MOST} at most", found.meta.size)));
        }
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let bytes = found.bytes().await.map_err(self.error("be read"))?;
        let manifest = Manifest::parse(&String::from_utf8_lossy(&bytes)).map_err(|why| damaged(why.to_string()))?;
        Ok(Some((manifest, version)))
    }

    async fn stage(self, needed: FetchExtent, progress: ProgressCallback<'_>) -> Result<StagedBackup, BackupError> {
        let temporary = std::env::temp_dir();
        let folder = tempfile::Builder::new().prefix("kairo-staged-").tempdir_in(&temporary);
        let folder = folder.map_err(BackupError::file("write in", temporary))?;
        let path = folder.path().to_owned();
        let manifest = self.load_manifest().await?;
        if let Some((manifest, _)) = &manifest {
            self.fetch_files(manifest, needed, &path, progress).await?;
            Folder::install_manifest(&path, manifest)?;
        }
        Ok(StagedBackup { path, bucket: Some(FetchedBucket { _folder: folder, storage: self, manifest }) })
    }

    async fn copy_to_folder(&self, path: &Path, progress: ProgressCallback<'_>) -> Result<Manifest, BackupError> {
        let nothing = || BackupError::Refused(format!("{} holds neither a backup nor an archive", self.place));
        let (manifest, _) = self.load_manifest().await?.ok_or_else(nothing)?;
        let (folder, before) = match backup_folder::is_backup(path) {
            true => {
                let folder = Folder::open(path, manifest.kairo)?;
                let before = folder.read_manifest()?;
                (folder, Some(before))
            }
            false => (Folder::create(path)?, None),
        };
        // Of a log that was restored, the same archive goes on.
        let goes_on = |before: &Manifest| before.log == manifest.log || manifest.parts.starts_with(&before.parts);
        if before.as_ref().is_some_and(|before| !goes_on(before)) {
            let path = path.display();
            let place = &self.place;
            return Err(BackupError::Refused(format!("{path} is of another log than {place}: name another folder")));
        }
        self.fetch_files(&manifest, FetchExtent::Everything, path, progress).await?;
        folder.write_manifest(&manifest)?;
        let kept: BTreeSet<&RelativePath> = manifest.files().map(|file| &file.path).collect();
        let gone = before.iter().flat_map(Manifest::files).filter(|file| !kept.contains(&file.path));
        gone.into_iter().try_for_each(|file| folder.destroy(file))?;
        Ok(manifest)
    }

    /// Fetches files that are not there as the manifest says they are, by size and digest.
    async fn fetch_files(
        &self,
        manifest: &Manifest,
        needed: FetchExtent,
        path: &Path,
        progress: ProgressCallback<'_>,
    ) -> Result<(), BackupError> {
        for part in &manifest.parts {
            let part = backup_folder::part_folder_name(part.number);
            let made = || rooted_fs::create_folder(path, &RelativePath::parse(&part)?);
            made().map_err(BackupError::file("make", path.join(&part)))?;
        }
        let (entries, beside) = match needed {
            FetchExtent::Manifest => (Vec::new(), Vec::new()),
            FetchExtent::End => (manifest.stream_files(LOG.name).pop().into_iter().collect(), Vec::new()),
            FetchExtent::Everything => (manifest.files().cloned().collect(), self.list_owners_files(manifest).await?),
        };
        let mut wanted = beside;
        for entry in entries {
            let root = path.to_owned();
            let held = spawn_blocking(move || (segments::verify_file(&root, &entry).is_ok(), entry)).await;
            let (is_there, entry) = held.map_err(io::Error::other).map_err(BackupError::file("read", path))?;
            if !is_there {
                wanted.push(entry.into());
            }
        }
        stream::iter(wanted.into_iter().map(|file| self.fetch_file(path, file, progress)))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
    }

    /// The owners files in storage: each lists the users whose messages a file of the manifest has.
    async fn list_owners_files(&self, manifest: &Manifest) -> Result<Vec<RemoteFile>, BackupError> {
        let named: BTreeSet<&str> = manifest.files().map(|file| file.path.as_str()).collect();
        let found = self.list_files(None).await?.into_iter().filter_map(|(file, bytes)| {
            let is_beside = file.strip_suffix(OWNERS_OF).is_some_and(|file| named.contains(file));
            let path = RelativePath::parse(&file).ok().filter(|_| is_beside)?;
            Some(RemoteFile { path, bytes, sha256: None })
        });
        Ok(found.collect())
    }

    /// Lists the files in the storage, or in one of its parts: paths from the folder, and sizes.
    async fn list_files(&self, part: Option<&str>) -> Result<Vec<(String, u64)>, BackupError> {
        let prefix = part.map_or_else(|| self.prefix.clone(), |part| self.key(part));
        let found: Vec<_> = self.objects.list(Some(&prefix)).try_collect().await.map_err(self.error("be listed"))?;
        let own = |key: &Key| {
            let parts: Vec<String> = key.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok(found.iter().filter_map(|object| Some((own(&object.location)?, object.size))).collect())
    }

    /// Fetches a file: it is there whole and as the manifest says, or not at all.
    async fn fetch_file(
        &self,
        root: &Path,
        file: RemoteFile,
        progress: ProgressCallback<'_>,
    ) -> Result<(), BackupError> {
        let RemoteFile { path, bytes, sha256 } = file;
        let unfinished = path.with_suffix(".part").map_err(|error| self.invalid_path_error(&error))?;
        let written = |source| BackupError::File { action: "write", path: unfinished.full_path(root), source };
        let unlike = |why: String| BackupError::Refused(format!("{}/{path}: {why}", self.place));
        let found = self.objects.get(&self.key(path.as_str())).await.map_err(self.error("be read"))?;
        let mut pieces = found.into_stream();
        let mut out = tokio::fs::File::from_std(rooted_fs::create(root, &unfinished).map_err(written)?);
        let mut sum = Sha256::new();
        let mut so_far = 0;
        while let Some(piece) = pieces.try_next().await.map_err(self.error("be read"))? {
            so_far += piece.len() as u64;
            // No more of it than was said: what somebody put in its place may have no end.
            if so_far > bytes {
                break;
            }
            sum.update(&piece);
            out.write_all(&piece).await.map_err(written)?;
        }
        out.sync_all().await.map_err(written)?;
        let is_it = so_far == bytes && sha256.is_none_or(|expected| segments::hex(&sum.finalize()) == expected);
        if !is_it {
            rooted_fs::remove(root, &unfinished).map_err(written)?;
            return Err(unlike(format!(
                "it is not the file that was written: expected {bytes} bytes of another SHA-256"
            )));
        }
        rooted_fs::rename(root, &unfinished, &path).map_err(BackupError::file("write", path.full_path(root)))?;
        progress(path.as_str());
        Ok(())
    }

    fn invalid_path_error(&self, error: &InvalidPath) -> BackupError {
        BackupError::damaged_file(format!("{}/{MANIFEST}", self.place), error.to_string())
    }

    /// Puts new parts there, then the manifest, and removes what is in it no more.
    async fn upload_parts(
        &self,
        path: &Path,
        before: Option<&(Manifest, UpdateVersion)>,
        now: &Manifest,
        progress: ProgressCallback<'_>,
    ) -> Result<(), BackupError> {
        let had = |number: u32| before.is_some_and(|(had, _)| had.parts.iter().any(|part| part.number == number));
        let own = Uuid::new_v4().simple().to_string();
        let mut now = now.clone();
        let mut files: BTreeMap<RelativePath, RelativePath> = BTreeMap::new();
        let mut left = Vec::new();
        for part in now.parts.iter_mut().filter(|part| !had(part.number)) {
            let place = backup_folder::part_folder_name(part.number);
            // What one that was not finished has left of it.
            left.extend(self.list_files(Some(&place)).await?.into_iter().map(|(file, _)| file));
            for file in backup_folder::part_files(path, &place)? {
                files.insert(upload_path(&file, &own).map_err(|error| self.invalid_path_error(&error))?, file);
            }
            for entry in part.streams.values_mut().flat_map(|stream| &mut stream.files) {
                entry.path = upload_path(&entry.path, &own).map_err(|error| self.invalid_path_error(&error))?;
            }
        }
        stream::iter(&files)
            .map(|(to, file)| async move {
                let opened =
                    rooted_fs::open_to_read(path, file).map_err(BackupError::file("read", file.full_path(path)))?;
                let mut bytes = Vec::new();
                let read = tokio::fs::File::from_std(opened).read_to_end(&mut bytes).await;
                read.map_err(BackupError::file("read", file.full_path(path)))?;
                self.objects.put(&self.key(to.as_str()), bytes.into()).await.map_err(self.error("be written"))?;
                progress(file.as_str());
                Ok::<_, BackupError>(())
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        if let Err(refused) = self.upload_manifest(&now, before.map(|(_, version)| version.clone())).await {
            let there = self.load_manifest().await?;
            // One that was taken and whose answer was lost is refused when it is sent again.
            if there.is_none_or(|(there, _)| there != now) {
                self.remove(files.into_keys().map(String::from)).await?;
                return Err(refused);
            }
        }
        let kept: BTreeSet<&RelativePath> = now.files().map(|file| &file.path).collect();
        let gone = before.iter().flat_map(|(had, _)| had.files()).filter(|file| !kept.contains(&file.path));
        let gone: Vec<String> = gone.map(|file| file.path.to_string()).chain(left).collect();
        self.remove(gone.into_iter()).await
    }

    async fn remove(&self, files: impl Iterator<Item = String>) -> Result<(), BackupError> {
        for file in files {
            match self.objects.delete(&self.key(&file)).await {
                Ok(()) | Err(StorageError::NotFound { .. }) => {}
                Err(error) => return Err(not_reached(&self.place, "have a file removed that is replaced", error)),
            }
        }
        Ok(())
    }

    /// In the place of the one that was read, and of no other.
    async fn upload_manifest(&self, now: &Manifest, version: Option<UpdateVersion>) -> Result<(), BackupError> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let bytes = now.to_text().map_err(io::Error::from).map_err(BackupError::file("write", MANIFEST))?;
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.objects.put_opts(&self.key(MANIFEST), bytes.into(), options).await {
            Ok(_) => Ok(()),
            Err(StorageError::AlreadyExists { .. } | StorageError::Precondition { .. }) => {
                let place = &self.place;
                Err(BackupError::Refused(format!(
                    "another command has written to {place} meanwhile: run this one again"
                )))
            }
            Err(error) => Err(not_reached(&self.place, "be written", error)),
        }
    }
}

/// A file of a part as who puts it there names it: of two that make the same part at once, neither writes over the other's.
fn upload_path(file: &RelativePath, own: &str) -> Result<RelativePath, InvalidPath> {
    RelativePath::parse(&file.as_str().replacen(".jsonl", &format!(".{own}.jsonl"), 1))
}

fn not_reached(place: &BackupLocation, doing: &'static str, error: StorageError) -> BackupError {
    BackupError::Storage { place: place.to_string(), doing, source: Box::new(error) }
}

#[cfg(test)]
mod tests;
