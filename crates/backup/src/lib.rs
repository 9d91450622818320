//! Backups of all that Kairo keeps in NATS, in a folder, and filling empty servers from one.
//!
//! A backup is a list of **parts**: the first is whole, each later one holds what came since ([`manifest`]). A part has files of
//! [`message_line`]s, one stored message each ([`segments`]), which are read from the streams in order ([`backup_run`]). [`verification`] holds a
//! folder to its manifest, and its log to the digests that decisions carry. [`restore`] fills streams from it, as [`restore_plan`] says
//! with what: through JetStream's restore API ([`stream_upload`]), which keeps sequences and times, in the server's own form of a stream
//! ([`stream_archive`]). Users whom the restored log does not know to be forgotten are forgotten again ([`forget_orders`]).
//!
//! Manifests come from anywhere: a path in one leads [`rooted_fs`] the folder or there is no such manifest.
//!
//! An archive has the same parts and files, of the log alone up to an age ([`log_archive`]), and is read as log. Both can stand in
//! S3-compatible [`object_storage`], too.

pub mod archive_reader;
mod backup_folder;
mod backup_location;
pub mod backup_run;
mod error;
pub mod forget_orders;
pub mod log_archive;
pub mod log_trim;
pub mod manifest;
pub mod message_line;
pub mod object_storage;
pub mod restore;
pub mod restore_plan;
pub mod rooted_fs;
pub mod segments;
mod stream_archive;
mod stream_reader;
mod stream_upload;
pub mod verification;

pub use backup_folder::Folder;
pub use backup_location::{BackupLocation, InvalidBackupLocation};
pub use error::BackupError;
