//! Backups and archives in S3-compatible storage. What is worked with is a folder: of what stands there so much is **fetched** into
//! one of its own as is needed, and what comes of it is **put** back, files first and the manifest last. A part that was not
//! finished is none there, either, and who wrote meanwhile is noticed by the version of the manifest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{
    ClientOptions, Error as StorageError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig, UpdateVersion,
    aws::AmazonS3Builder, path::Path as Key,
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::{
    error::BackupError,
    folder::{self, Folder, MANIFEST},
    manifest::{LOG, Manifest},
    place::Place,
    taking::Progress,
};

/// To connect, and without a byte of an answer.
const CONNECTING: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(30);
/// For one request, with a file of some 64 MiB on a slow line.
const REQUEST: Duration = Duration::from_secs(600);
/// How often, and for how long, a request is sent again.
const RETRIES: usize = 6;
const RETRIED: Duration = Duration::from_secs(60);
/// Files on their way at once.
const AT_ONCE: usize = 4;
/// Of a manifest, in bytes.
const MOST: u64 = 64 * 1024 * 1024;

/// What of the files is needed beside the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Manifest,
    /// The end of the log, to go on from there.
    End,
    Everything,
}

/// A folder to work with, and where it is from.
pub struct Staged {
    path: PathBuf,
    bucket: Option<Fetched>,
}

/// What stood there.
struct Fetched {
    /// Removed with this.
    _folder: TempDir,
    storage: Storage,
    manifest: Option<(Manifest, UpdateVersion)>,
}

/// Where in which storage.
#[derive(Clone)]
struct Storage {
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    place: Place,
}

/// What is at a place, in a folder: the folder itself, or one of its own with what is needed, which is gone with this.
///
/// # Errors
/// Where it cannot be reached or read, or there is no room.
pub async fn stage(place: &Place, needed: Needed, progress: Progress<'_>) -> Result<Staged, BackupError> {
    match place {
        Place::Folder(path) => Ok(Staged { path: path.clone(), bucket: None }),
        Place::Bucket { .. } => Storage::open(place)?.stage(needed, progress).await,
    }
}

/// Copies what stands in storage to a folder, or what came since it was last done; what was removed there is removed here.
///
/// # Errors
/// Where there is nothing, or the folder holds something else.
pub async fn fetch(place: &Place, path: &Path, progress: Progress<'_>) -> Result<Manifest, BackupError> {
    Storage::open(place)?.copy(path, progress).await
}

impl Staged {
    /// Where it is worked with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts there what was made: new parts, the manifest, and then removes what it has no more. Of a folder nothing is to be done.
    ///
    /// # Errors
    /// Where it cannot, or somebody else has written meanwhile. Then what stands there is what stood there.
    pub async fn put(&self, progress: Progress<'_>) -> Result<(), BackupError> {
        let Some(Fetched { storage, manifest, .. }) = &self.bucket else { return Ok(()) };
        if !folder::is_backup(&self.path) {
            return Ok(());
        }
        let now = folder::manifest(&self.path)?;
        match manifest {
            Some((before, _)) if *before == now => Ok(()),
            _ => storage.put(&self.path, manifest.as_ref(), &now, progress).await,
        }
    }

    /// Words that say where it is, in the place of the folder in which it was worked.
    pub fn named(&self, words: &str) -> String {
        match &self.bucket {
            Some(Fetched { storage, .. }) => words.replace(&*self.path.to_string_lossy(), &storage.place.to_string()),
            None => words.to_owned(),
        }
    }

    /// The same of an error.
    pub fn told(&self, error: BackupError) -> BackupError {
        match error {
            BackupError::Refused(why) => BackupError::Refused(self.named(&why)),
            BackupError::Damaged { path, why } => {
                BackupError::Damaged { path: self.named(&path.to_string_lossy()).into(), why: self.named(&why) }
            }
            other => other,
        }
    }
}

impl Storage {
    /// As the environment says (`AWS_…`): credentials, region, endpoint.
    fn open(place: &Place) -> Result<Self, BackupError> {
        let Place::Bucket { bucket, prefix } = place else {
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
        Ok(Self::on(Arc::new(objects), prefix, place.clone()))
    }

    fn on(objects: Arc<dyn ObjectStore>, prefix: &str, place: Place) -> Self {
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
    async fn manifest(&self) -> Result<Option<(Manifest, UpdateVersion)>, BackupError> {
        let found = match self.objects.get(&self.key(MANIFEST)).await {
            Ok(found) => found,
            Err(StorageError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(not_reached(&self.place, "be read", error)),
        };
        let damaged = |why: String| BackupError::damaged(format!("{}/{MANIFEST}", self.place), why);
        if found.meta.size > MOST {
            return Err(damaged(format!("it has {} bytes: expected {MOST} at most", found.meta.size)));
        }
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let bytes = found.bytes().await.map_err(self.error("be read"))?;
        let manifest = Manifest::read(&String::from_utf8_lossy(&bytes)).map_err(|why| damaged(why.to_string()))?;
        Ok(Some((manifest, version)))
    }

    async fn stage(self, needed: Needed, progress: Progress<'_>) -> Result<Staged, BackupError> {
        let temporary = std::env::temp_dir();
        let folder = tempfile::Builder::new().prefix("kairo-staged-").tempdir_in(&temporary);
        let folder = folder.map_err(BackupError::file("write in", temporary))?;
        let path = folder.path().to_owned();
        let manifest = self.manifest().await?;
        if let Some((manifest, _)) = &manifest {
            self.fetch_into(manifest, needed, &path, progress).await?;
            Folder::fetched(&path, manifest)?;
        }
        Ok(Staged { path, bucket: Some(Fetched { _folder: folder, storage: self, manifest }) })
    }

    async fn copy(&self, path: &Path, progress: Progress<'_>) -> Result<Manifest, BackupError> {
        let nothing = || BackupError::Refused(format!("{} holds neither a backup nor an archive", self.place));
        let (manifest, _) = self.manifest().await?.ok_or_else(nothing)?;
        let (folder, before) = match folder::is_backup(path) {
            true => {
                let folder = Folder::open(path, manifest.kairo)?;
                let before = folder.manifest()?;
                (folder, Some(before))
            }
            false => (Folder::create(path)?, None),
        };
        // Of a log that was restored, the same archive goes on.
        let goes_on = |before: &Manifest| before.log == manifest.log || manifest.parts.starts_with(&before.parts);
        if before.as_ref().is_some_and(|before| !goes_on(before)) {
            let (path, place) = (path.display(), &self.place);
            return Err(BackupError::Refused(format!("{path} is of another log than {place}: name another folder")));
        }
        self.fetch_into(&manifest, Needed::Everything, path, progress).await?;
        folder.write(&manifest)?;
        let kept: BTreeSet<&str> = manifest.files().map(|file| &*file.path).collect();
        let gone = before.iter().flat_map(Manifest::files).filter(|file| !kept.contains(&*file.path));
        gone.into_iter().try_for_each(|file| folder.destroy(file))?;
        Ok(manifest)
    }

    /// Fetches files that are not there in their size. Their digests are held to the manifest by whoever reads them.
    async fn fetch_into(
        &self,
        manifest: &Manifest,
        needed: Needed,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<(), BackupError> {
        for part in &manifest.parts {
            let part = path.join(folder::part(part.number));
            fs::create_dir_all(&part).map_err(BackupError::file("make", part))?;
        }
        let wanted: Vec<(String, Option<u64>)> = match needed {
            Needed::Manifest => Vec::new(),
            Needed::End => {
                manifest.grown(LOG.name).pop().into_iter().map(|file| (file.path, Some(file.bytes))).collect()
            }
            Needed::Everything => self.listed(manifest).await?,
        };
        let missing = wanted.into_iter().filter(|(file, bytes)| {
            let there = fs::metadata(path.join(file)).ok().map(|there| there.len());
            there.is_none() || there != *bytes
        });
        stream::iter(missing.map(|(file, _)| self.fetched(path, file, progress)))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
    }

    /// All that stands in parts of the manifest: files that it names, and what stands beside them.
    async fn listed(&self, manifest: &Manifest) -> Result<Vec<(String, Option<u64>)>, BackupError> {
        let mut all: Vec<_> = manifest.files().map(|file| (file.path.clone(), Some(file.bytes))).collect();
        let named: BTreeSet<String> = all.iter().map(|(file, _)| file.clone()).collect();
        let parts: BTreeSet<String> = manifest.parts.iter().map(|part| folder::part(part.number)).collect();
        for (file, bytes) in self.there(None).await? {
            let is_of_part = file.split_once('/').is_some_and(|(part, _)| parts.contains(part));
            if is_of_part && !named.contains(&file) {
                all.push((file, Some(bytes)));
            }
        }
        Ok(all)
    }

    /// What stands there, or in one of its parts: paths from the folder, and sizes.
    async fn there(&self, part: Option<&str>) -> Result<Vec<(String, u64)>, BackupError> {
        let prefix = part.map_or_else(|| self.prefix.clone(), |part| self.key(part));
        let found: Vec<_> = self.objects.list(Some(&prefix)).try_collect().await.map_err(self.error("be listed"))?;
        let own = |key: &Key| {
            let parts: Vec<String> = key.prefix_match(&self.prefix)?.map(|part| part.as_ref().to_owned()).collect();
            Some(parts.join("/"))
        };
        Ok(found.iter().filter_map(|object| Some((own(&object.location)?, object.size))).collect())
    }

    /// Fetches a file: it is there whole, or not at all.
    async fn fetched(&self, path: &Path, file: String, progress: Progress<'_>) -> Result<(), BackupError> {
        let is_within = Path::new(&file).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_within {
            return Err(BackupError::damaged(
                format!("{}/{MANIFEST}", self.place),
                format!("{file:?} is no path in it"),
            ));
        }
        let (to, unfinished) = (path.join(&file), path.join(format!("{file}.part")));
        let found = self.objects.get(&self.key(&file)).await.map_err(self.error("be read"))?;
        let mut pieces = found.into_stream();
        let written = |source: io::Error| BackupError::File { action: "write", path: unfinished.clone(), source };
        let mut out = tokio::fs::File::create(&unfinished).await.map_err(written)?;
        while let Some(piece) = pieces.try_next().await.map_err(self.error("be read"))? {
            out.write_all(&piece).await.map_err(written)?;
        }
        out.sync_all().await.map_err(written)?;
        fs::rename(&unfinished, &to).map_err(BackupError::file("write", &to))?;
        progress(&file);
        Ok(())
    }

    /// Puts new parts there, then the manifest, and removes what is in it no more.
    async fn put(
        &self,
        path: &Path,
        before: Option<&(Manifest, UpdateVersion)>,
        now: &Manifest,
        progress: Progress<'_>,
    ) -> Result<(), BackupError> {
        let had = |number: u32| before.is_some_and(|(had, _)| had.parts.iter().any(|part| part.number == number));
        let (own, mut now) = (Uuid::new_v4().simple().to_string(), now.clone());
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut left = Vec::new();
        for part in now.parts.iter_mut().filter(|part| !had(part.number)) {
            let place = folder::part(part.number);
            // What one that was not finished has left of it.
            left.extend(self.there(Some(&place)).await?.into_iter().map(|(file, _)| file));
            files.extend(folder::files(path, &place)?.into_iter().map(|file| (named(&file, &own), file)));
            let entries = part.streams.values_mut().flat_map(|stream| &mut stream.files);
            entries.for_each(|entry| entry.path = named(&entry.path, &own));
        }
        stream::iter(&files)
            .map(|(to, file)| async move {
                let from = path.join(file);
                let bytes = tokio::fs::read(&from).await.map_err(BackupError::file("read", &from))?;
                self.objects.put(&self.key(to), bytes.into()).await.map_err(self.error("be written"))?;
                progress(file);
                Ok::<_, BackupError>(())
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        if let Err(refused) = self.put_manifest(&now, before.map(|(_, version)| version.clone())).await {
            let there = self.manifest().await?;
            // One that was taken and whose answer was lost is refused when it is sent again.
            if there.is_none_or(|(there, _)| there != now) {
                self.remove(files.into_keys()).await?;
                return Err(refused);
            }
        }
        let kept: BTreeSet<&str> = now.files().map(|file| &*file.path).collect();
        let gone = before.iter().flat_map(|(had, _)| had.files()).map(|file| file.path.clone());
        let gone: Vec<String> = gone.filter(|file| !kept.contains(&**file)).chain(left).collect();
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
    async fn put_manifest(&self, now: &Manifest, version: Option<UpdateVersion>) -> Result<(), BackupError> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let bytes = folder::text(now).map_err(BackupError::file("write", MANIFEST))?;
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
fn named(file: &str, own: &str) -> String {
    file.replacen(".jsonl", &format!(".{own}.jsonl"), 1)
}

fn not_reached(place: &Place, doing: &'static str, error: StorageError) -> BackupError {
    BackupError::Storage { place: place.to_string(), doing, source: Box::new(error) }
}

#[cfg(test)]
mod tests;
