//! `kairo archive`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use kairo_backup::archiving::{self, Archived};
use serde_json::json;

use super::{backup, provision::Reached, restore::told, verify, verify::show::count};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo archive /srv/archive                          what the log has that the archive has not, in a new part of it
  kairo archive /srv/archive --older-than 720h        only what is older than 30 days
  kairo archive verify /srv/archive                   is it what was written, and is the log in it what was written?
  kairo verify --all --archive /srv/archive           the archive, and the log that goes on behind it, as one
  kairo state default --file /srv/archive --at 120    what an agent knew there; no server is needed

Services go on meanwhile, and nothing is removed from the log. The archive is of the log alone: what is sealed stays sealed, and
without data keys, which are kept elsewhere, nobody reads it, also when a user is forgotten later. Parts never change, so any
tool may copy the folder to object storage. Interrupted, it leaves the archive as it was; run it again. See docs/retention.md.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if all that is old enough is in the archive (of verify: and all fits), 1 if it is not, 64 for a bad configuration or
a folder that is none of an archive.";

/// Keep what is old of the log in a folder, to be read as log from there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The folder of the archive, which is made where there is none
    #[arg(value_name = "FOLDER", required = true)]
    folder: Option<PathBuf>,
    /// Only what was stored longer ago than this
    #[arg(long, default_value = "0s", value_parser = super::ahead, value_name = "TIME")]
    older_than: SignedDuration,
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long the servers may take to answer at first
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME")]
    wait: Duration,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Hold an archive to its manifest, and its log to the digests that decisions carry; no server is needed
    Verify {
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// Where a log begins that is not all on the server any more
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ArchiveOption {
    /// Read what this folder holds of the log first, which `kairo archive` wrote, and what the gateway has behind it
    #[arg(long, value_name = "FOLDER", conflicts_with = "file")]
    archive: Option<PathBuf>,
}

impl ArchiveOption {
    pub fn folder(&self) -> Option<&Path> {
        self.archive.as_deref()
    }
}

pub(super) async fn run(arguments: Arguments, json: bool) -> Result<ExitCode, Error> {
    let Arguments { command, folder, older_than, config, wait } = arguments;
    if let Some(Command::Verify { folder }) = command {
        return backup::verified(&folder, json);
    }
    let folder = folder.ok_or_else(|| Error::Usage("expected the folder of the archive".to_owned()))?;
    let until = Timestamp::now().checked_sub(older_than);
    let until = until.map_err(|error| Error::Usage(format!("--older-than: {error}")))?;
    let reached = match Reached::by(config, wait).await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let bar = verify::progress();
    let archived = archiving::archive(&reached.nats, &folder, until, &|_| bar.inc(1)).await;
    bar.finish_and_clear();
    show(&folder, &archived.map_err(told)?, json)?;
    Ok(ExitCode::SUCCESS)
}

fn show(folder: &Path, archived: &Archived, json: bool) -> Result<(), Error> {
    let Archived { manifest, part } = archived;
    let files = part.iter().flat_map(|part| part.streams.values()).flat_map(|stream| &stream.files);
    let (bytes, messages) = files.fold((0, 0), |(bytes, all), file| (bytes + file.bytes, all + file.messages));
    let (through, begins, path) = (manifest.through(), manifest.begins_behind(), folder.display());
    if json {
        let number = part.as_ref().map(|part| part.number);
        terminal::json(&json!({
            "folder": folder, "part": number, "begins_behind": begins, "through": through, "messages": messages, "bytes": bytes,
        }))?;
        return Ok(());
    }
    terminal::line(match part {
        Some(part) => {
            let (number, after, messages) = (part.number, part.after.max(begins), count(messages, "message"));
            format!("{path}, part {number}: the log behind {after} up to {through}, {messages} in {bytes} bytes")
        }
        None => format!("{path}: nothing is old enough that is not in it, the log up to {through}"),
    })?;
    if begins > 0 {
        terminal::line(format!("the log begins behind {begins}: what stood before is in no part of the archive"))?;
    }
    Ok(())
}
