//! Backups of all that Kairo keeps in NATS, in a folder, and filling empty servers from one.
//!
//! A backup is a list of **parts**: the first is whole, each later one holds what came since ([`manifest`]). A part has files of
//! [`line`]s, one stored message each ([`segments`]), which are read from the streams in order ([`taking`]). [`verifying`] holds a
//! folder to its manifest, and its log to the digests that decisions carry. [`restoring`] fills streams from it, as [`plan`] says
//! with what: through JetStream's restore API ([`upload`]), which keeps sequences and times, in the server's own form of a stream
//! ([`archive`]). Users whom the restored log does not know to be forgotten are forgotten again ([`forgetting`]).
//!
//! Manifests come from anywhere: a path in one leads [`beneath`] the folder or there is no such manifest.
//!
//! An archive has the same parts and files, of the log alone up to an age ([`archiving`]), and is read as log. Both can stand in
//! S3-compatible [`storage`], too.

mod archive;
pub mod archiving;
pub mod beneath;
mod error;
mod folder;
pub mod forgetting;
pub mod line;
pub mod manifest;
pub mod past;
mod place;
pub mod plan;
mod reading;
pub mod restoring;
pub mod segments;
pub mod storage;
pub mod taking;
pub mod trimming;
mod upload;
pub mod verifying;

pub use error::BackupError;
pub use folder::Folder;
pub use place::{NoPlace, Place};
