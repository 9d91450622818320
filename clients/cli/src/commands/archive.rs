//! `kairo archive`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use kairo_backup::{
    BackupLocation,
    log_archive::{self, ArchiveOutcome, ArchiveRequest},
    object_storage::{self, FetchExtent},
};
use serde_json::json;

use super::{backup, provision::ServerOptions, restore::backup_error, verify, verify::proof_lines::pluralize};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo archive /srv/archive                          what the log has that the archive has not, in a new part of it
  kairo archive /srv/archive --older-than 720h        only what is older than 30 days
  kairo archive /srv/archive --restored               after `kairo restore`: the archive of the log before goes on
  kairo archive s3://kairo/archive                    the same in S3-compatible storage; see `kairo backup --help`
  kairo archive verify /srv/archive                   is it what was written, and is the log in it what was written?
  kairo verify --all --archive /srv/archive           the archive, and the log that goes on behind it, as one
  kairo state default --file /srv/archive --at 120    what an agent knew there; no server is needed

Services go on meanwhile, and nothing is removed from the log: that is `kairo trim`. The archive is of the log alone: what is sealed stays sealed, and
without data keys, which are kept elsewhere, nobody reads it, also when a user is forgotten later. Parts never change, so any
tool may copy them. Interrupted, it leaves the archive as it was; run it again. See docs/retention.md.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if all that is old enough is in the archive (of verify: and all fits), 1 if it is not, 64 for a bad configuration or
a place that is none of an archive.";

/// Keep what is old of the log in a folder or a bucket, to be read as log from there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ArchiveArgs {
    #[command(subcommand)]
    command: Option<ArchiveCommand>,
    /// Place of the archive, created if missing: a folder, or s3://BUCKET/PREFIX as of `kairo backup`
    #[arg(value_name = "PLACE", required = true)]
    place: Option<BackupLocation>,
    /// Only what was stored longer ago than this
    #[arg(long, default_value = "0s", value_parser = super::signed_duration, value_name = "TIME")]
    older_than: SignedDuration,
    /// The log was restored: go on with the archive of the one that it was restored from
    #[arg(long)]
    restored: bool,
    #[command(flatten)]
    servers: ServerOptions,
}

#[derive(Debug, Subcommand)]
enum ArchiveCommand {
    /// Hold an archive to its manifest, and its log to the digests that decisions carry; no server is needed
    Verify {
        #[arg(value_name = "PLACE")]
        place: BackupLocation,
    },
}

/// Beginning of a log that is no longer all on the server
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ArchiveOption {
    /// Read this folder first, in which `kairo archive` keeps the log, and then the rest from the gateway
    #[arg(long, value_name = "FOLDER", conflicts_with = "file")]
    archive: Option<PathBuf>,
}

impl ArchiveOption {
    pub fn folder(&self) -> Option<&Path> {
        self.archive.as_deref()
    }
}

pub(super) async fn run(arguments: ArchiveArgs, json: bool) -> Result<ExitCode, Error> {
    let ArchiveArgs { command, place, older_than, restored, servers } = arguments;
    if let Some(ArchiveCommand::Verify { place }) = command {
        return backup::verify_place(&place, json).await;
    }
    let place = place.ok_or_else(|| Error::Usage("expected where the archive is".to_owned()))?;
    let until = Timestamp::now().checked_sub(older_than);
    let until = until.map_err(|error| Error::Usage(format!("--older-than: {error}")))?;
    let reached = match servers.reach().await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let bar = verify::progress_bar();
    let progress = |_: &str| bar.inc(1);
    let staged = object_storage::stage(&place, FetchExtent::End, &progress).await.map_err(backup_error)?;
    let archived =
        log_archive::archive_log(&reached.nats, staged.path(), ArchiveRequest { until, restored }, &progress).await;
    let archived = archived.map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?;
    staged.upload_changes(&progress).await.map_err(backup_error)?;
    bar.finish_and_clear();
    print_archive_result(&place, &archived, json)?;
    Ok(ExitCode::SUCCESS)
}

fn print_archive_result(place: &BackupLocation, archived: &ArchiveOutcome, json: bool) -> Result<(), Error> {
    let ArchiveOutcome { manifest, part } = archived;
    let files = part.iter().flat_map(|part| part.streams.values()).flat_map(|stream| &stream.files);
    let (bytes, messages) = files.fold((0, 0), |(bytes, all), file| (bytes + file.bytes, all + file.messages));
    let through = manifest.log_end();
    let begins = manifest.begins_behind();
    if json {
        let number = part.as_ref().map(|part| part.number);
        terminal::json(&json!({
            "folder": place.to_string(), "part": number, "begins_behind": begins, "through": through, "messages": messages, "bytes": bytes,
        }))?;
        return Ok(());
    }
    terminal::line(match part {
        Some(part) => {
            let number = part.number;
            let after = part.after.max(begins);
            let messages = pluralize(messages, "message");
            format!("{place}, part {number}: the log behind {after} up to {through}, {messages} in {bytes} bytes")
        }
        None => format!("{place}: nothing is old enough that is not in it, the log up to {through}"),
    })?;
    if begins > 0 {
        terminal::line(format!("the log begins behind {begins}: what stood before is in no part of the archive"))?;
    }
    Ok(())
}
