//! `kairo restore`

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use jiff::Timestamp;
use kairo_backup::{
    BackupError,
    forgetting::List,
    restoring::{self, At, Restored, Wanted},
};
use serde_json::json;

use super::{provision::Reached, verify};
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
starts.

A restore that is interrupted leaves a log that services refuse; the same command begins it anew.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if all is restored, 1 if it is not, 64 for a bad configuration or a folder that is none of a backup.";

/// Fill servers that have no log from a backup
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The folder of the backup
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Restore the log as it was behind this message, or at this time, and nothing that came later
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = at)]
    at: Option<At>,
    /// Also forget these users, as `kairo backup forgotten` lists them
    #[arg(long, value_name = "FILE")]
    forgotten: Option<PathBuf>,
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long the servers may take to answer at first
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME")]
    wait: Duration,
}

fn at(text: &str) -> Result<At, String> {
    if let Ok(sequence) = text.parse() {
        return Ok(At::Sequence(sequence));
    }
    let time: Result<Timestamp, _> = text.parse();
    time.map(At::Time).map_err(|_| "expected a sequence, or a time such as 2026-11-25T18:00:00Z".to_owned())
}

pub(super) async fn run(arguments: Arguments, json: bool) -> Result<ExitCode, Error> {
    let Arguments { folder, at, forgotten, config, wait } = arguments;
    let forgotten = match &forgotten {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(Error::unread(path))?;
            let expected = |error| {
                Error::Usage(format!("{}: expected what `kairo backup forgotten` writes: {error}", path.display()))
            };
            serde_json::from_str(&text).map_err(expected)?
        }
        None => List::default(),
    };
    let reached = match Reached::by(config, wait).await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let wanted = Wanted { at, forgotten, replicas: reached.replicas };
    let bar = verify::progress();
    let restored = restoring::restore(&reached.nats, &folder, &wanted, &|_| bar.inc(1)).await;
    bar.finish_and_clear();
    let Restored { log, before, through, forgotten_again } = restored.map_err(told)?;
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

/// What went wrong with a backup.
pub(super) fn told(error: BackupError) -> Error {
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
        assert_eq!(at("4711"), Ok(At::Sequence(4711)));
        assert_eq!(at("1970-01-01T00:00:00Z"), Ok(At::Time(Timestamp::UNIX_EPOCH)));
        assert!(at("yesterday").is_err());
    }
}
