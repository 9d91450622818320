//! `kairo restore`

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;
use jiff::Timestamp;
use kairo_backup::{
    BackupError, BackupLocation,
    forget_orders::ForgottenUserList,
    object_storage::{self, FetchExtent},
    restore::{self, RestoreOutcome, RestorePoint, RestoreRequest},
};
use serde_json::json;

use super::{provision::ServerOptions, verify};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo restore /srv/backup                                all that the backup has
  kairo restore /srv/backup --at 4711                      the log up to this message
  kairo restore /srv/backup --at 2026-11-25T18:00:00Z      the log as it was then
  kairo restore /old --forgotten forgotten.json            and forget whom a newer backup knows to be forgotten

Stop all services before. The servers must have no log (one to which nothing was ever written is replaced). Every file is held to
its checksum first. Messages keep their sequences and times, so `kairo verify` proves the restored log as it did the one before.

The log gets another id: snapshots, checkpoints and read models of the log before are thrown away, wherever they are still, and
made anew. Users of whom the restored log does not say that they are forgotten, and the newest part of the backup or the list does,
are forgotten again: their data keys are destroyed before anybody can read with them, and a gateway carries out the rest when it
starts. Where gateways sign (signing.key), that takes the same key here: they carry out no order that is not signed.

A restore that is interrupted leaves a log that services refuse; the same command begins it anew.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if all is restored, 1 if it is not, 64 for a bad configuration or a folder that is none of a backup.";

/// Fill servers that have no log from a backup
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RestoreArgs {
    /// Place of the backup: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: BackupLocation,
    /// Restore the log as it was behind this message, or at this time, and nothing that came later
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = at)]
    at: Option<RestorePoint>,
    /// Also forget these users, as `kairo backup forgotten` lists them
    #[arg(long, value_name = "FILE")]
    forgotten: Option<PathBuf>,
    #[command(flatten)]
    servers: ServerOptions,
}

fn at(text: &str) -> Result<RestorePoint, String> {
    if let Ok(sequence) = text.parse() {
        return Ok(RestorePoint::Sequence(sequence));
    }
    let time: Result<Timestamp, _> = text.parse();
    time.map(RestorePoint::Time).map_err(|_| "expected a sequence, or a time such as 2026-11-25T18:00:00Z".to_owned())
}

pub(super) async fn run(arguments: RestoreArgs, json: bool) -> Result<ExitCode, Error> {
    let RestoreArgs { place, at, forgotten, servers } = arguments;
    let forgotten = match &forgotten {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(Error::unreadable(path))?;
            let expected = |error| {
                Error::Usage(format!("{}: expected what `kairo backup forgotten` writes: {error}", path.display()))
            };
            serde_json::from_str(&text).map_err(expected)?
        }
        None => ForgottenUserList::default(),
    };
    let reached = match servers.reach().await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let wanted = RestoreRequest { at, forgotten, replicas: reached.replicas, signatures: reached.signatures };
    let bar = verify::progress_bar();
    let progress = |_: &str| bar.inc(1);
    let staged = object_storage::stage(&place, FetchExtent::Everything, &progress).await.map_err(backup_error)?;
    let restored = restore::restore_backup(&reached.nats, staged.path(), &wanted, &progress).await;
    bar.finish_and_clear();
    let restored = restored.map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?;
    let RestoreOutcome { log, before, through, forgotten_again } = restored;
    if json {
        terminal::json(&json!({
            "log": log, "before": before, "through": through, "forgotten_again": forgotten_again,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::line(format!("the log is restored up to {through}; its id is {log}, and was {before}"))?;
    if !forgotten_again.is_empty() {
        terminal::line(format!("forgotten again as soon as a gateway starts: {}", forgotten_again.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Converts an error of a backup.
pub(super) fn backup_error(error: BackupError) -> Error {
    match error {
        BackupError::Damaged { .. } => Error::Damaged(error.to_string()),
        BackupError::File { action, path, source } => Error::File { action, path, source },
        other => Error::Advice(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_sequence_or_a_time() {
        assert_eq!(at("4711"), Ok(RestorePoint::Sequence(4711)));
        assert_eq!(at("1970-01-01T00:00:00Z"), Ok(RestorePoint::Time(Timestamp::UNIX_EPOCH)));
        assert!(at("yesterday").is_err());
    }
}
