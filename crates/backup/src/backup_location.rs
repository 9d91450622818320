//! The place of a backup or an archive.

use std::{fmt, path::PathBuf, str::FromStr};

const SCHEME: &str = "s3://";

/// A folder, or what begins with a prefix in a bucket of S3-compatible storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupLocation {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

/// The error for a text that names no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a folder, or s3://BUCKET/PREFIX")]
pub struct InvalidBackupLocation;

impl FromStr for BackupLocation {
    type Err = InvalidBackupLocation;

    fn from_str(text: &str) -> Result<Self, InvalidBackupLocation> {
        let Some(bucket) = text.strip_prefix(SCHEME) else {
            return if text.is_empty() || text.contains("://") {
                Err(InvalidBackupLocation)
            } else {
                Ok(Self::Folder(text.into()))
            };
        };
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(InvalidBackupLocation);
        }
        Ok(Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

impl fmt::Display for BackupLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(out),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => write!(out, "{SCHEME}{bucket}"),
            Self::Bucket { bucket, prefix } => write!(out, "{SCHEME}{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_prefix_in_a_bucket() {
        assert_eq!("/srv/backup".parse(), Ok(BackupLocation::Folder("/srv/backup".into())));
        let bucket =
            |prefix: &str| Ok(BackupLocation::Bucket { bucket: "kairo-1".to_owned(), prefix: prefix.to_owned() });
        assert_eq!("s3://kairo-1/nightly/a/".parse(), bucket("nightly/a"));
        assert_eq!("s3://kairo-1".parse(), bucket(""));
        for wrong in ["", "s3://", "s3:///nightly", "s3://Kairo/a", "s3://user:secret@kairo/a", "gs://kairo/a"] {
            assert_eq!(wrong.parse::<BackupLocation>(), Err(InvalidBackupLocation), "{wrong}");
        }
        for told in ["s3://kairo/nightly", "s3://kairo", "backup"] {
            assert_eq!(told.parse::<BackupLocation>().unwrap().to_string(), told);
        }
    }
}
