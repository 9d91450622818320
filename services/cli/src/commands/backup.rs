//! `kairo backup`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Subcommand};
use kairo_backup::{
    manifest::Part,
    restoring, taking,
    verifying::{self, Verified},
};
use serde_json::json;

use super::{provision::Reached, restore::told, verify, verify::show::count};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo backup -o /srv/backup               all that Kairo keeps in NATS, into a new folder
  kairo backup --onto /srv/backup           what came since, as another part of it
  kairo backup --into /srv/backup           the one or the other, whichever it takes: for jobs
  kairo backup verify /srv/backup           is it what was written, and is the log in it what was written?
  kairo backup forgotten /srv/backup        who was forgotten, for `kairo restore --forgotten`

Services go on meanwhile. Kept are the log, API keys, data keys (wrapped, without the master key), images and audio, dead letters,
timers and hooks. Snapshots, checkpoints, read models and search indexes are made anew from the log. What is sealed stays sealed;
images and audio are in the clear. Data keys and API keys are kept as they are in the newest part alone: of what is destroyed or
revoked by then, older parts keep nothing. See docs/backup.md for what a backup does not hold.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if the backup is whole (of verify: and all fits), 1 if it is not or could not be taken, 64 for a bad
configuration or a folder that is none of a backup.";

/// Keep all that Kairo keeps in NATS in a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Take a whole backup into this folder, which is made or is empty
    #[arg(
        short,
        long,
        value_name = "FOLDER",
        required_unless_present_any = ["onto", "into"],
        conflicts_with_all = ["onto", "into"]
    )]
    output: Option<PathBuf>,
    /// Add to the backup in this folder what came since
    #[arg(long, value_name = "FOLDER", conflicts_with = "into")]
    onto: Option<PathBuf>,
    /// Add to the backup in this folder, or take a whole one into it if there is none yet
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long the servers may take to answer at first
    #[arg(long, default_value = "60s", value_parser = super::duration, value_name = "TIME")]
    wait: Duration,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Hold a backup to its manifest, and its log to the digests that decisions carry; no server is needed
    Verify {
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// List the orders to forget users that a backup knows
    Forgotten {
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Where to, instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(super) async fn run(arguments: Arguments, json: bool) -> Result<ExitCode, Error> {
    let Arguments { command, output, onto, into, config, wait } = arguments;
    match command {
        Some(Command::Verify { folder }) => return verified(&folder, json),
        Some(Command::Forgotten { folder, output }) => return forgotten(&folder, output.as_deref()),
        None => {}
    }
    let reached = match Reached::by(config, wait).await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let bar = verify::progress();
    let progress = |_: &str| bar.inc(1);
    let taken = match (&output, &onto, &into) {
        (_, Some(folder), _) => taking::onto(&reached.nats, folder, &progress).await,
        (_, _, Some(folder)) => taking::into(&reached.nats, folder, &progress).await,
        (Some(folder), _, _) => taking::whole(&reached.nats, folder, &progress).await,
        (None, None, None) => return Err(Error::Usage("expected -o, --onto or --into, and a FOLDER".to_owned())),
    };
    bar.finish_and_clear();
    let part = taken.map_err(told)?;
    let folder = onto.or(into).or(output).unwrap_or_default();
    show(&folder, &part, json)?;
    Ok(ExitCode::SUCCESS)
}

fn show(folder: &Path, part: &Part, json: bool) -> Result<(), Error> {
    let files = part.streams.values().flat_map(|stream| &stream.files);
    let (bytes, messages) = files.fold((0, 0), |(bytes, all), file| (bytes + file.bytes, all + file.messages));
    let Part { number, after, through, .. } = part;
    if json {
        terminal::json(&json!({
            "folder": folder, "part": number, "after": after, "through": through, "messages": messages, "bytes": bytes,
        }))?;
        return Ok(());
    }
    let messages = count(messages, "message");
    let what = format!("part {number}: the log behind {after} up to {through}, {messages} in {bytes} bytes");
    terminal::line(format!("{}, {what}", folder.display()))?;
    Ok(())
}

/// Holds a folder to its manifest, and its log to the digests in it.
pub(super) fn verified(folder: &Path, json: bool) -> Result<ExitCode, Error> {
    let bar = verify::progress();
    let verified = verifying::verify(folder, &|_| bar.inc(1));
    bar.finish_and_clear();
    let verified = verified.map_err(told)?;
    let Verified { manifest, files, messages, damaged, proof } = &verified;
    if json {
        terminal::json(&json!({
            "fits": verified.fits(), "log": manifest.log, "through": manifest.through(), "parts": manifest.parts.len(),
            "files": files, "messages": messages, "damaged": damaged, "proof": proof,
        }))?;
    } else {
        damaged.iter().try_for_each(terminal::line)?;
        if let Some(proof) = proof {
            verify::show::proven(proof).into_iter().try_for_each(terminal::line)?;
        }
        let (parts, files) = (count(manifest.parts.len() as u64, "part"), count(*files as u64, "file"));
        let messages = count(*messages, "message");
        let fits = if verified.fits() { "all fits" } else { "it does not fit" };
        terminal::line(format!("{parts}, {files}, {messages}, the log up to {}: {fits}", manifest.through()))?;
    }
    Ok(if verified.fits() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn forgotten(folder: &Path, output: Option<&Path>) -> Result<ExitCode, Error> {
    let forgotten = restoring::forgotten(folder).map_err(told)?;
    let list = json!({ "forgotten": forgotten });
    match output {
        Some(path) => fs::write(path, format!("{list}\n")).map_err(Error::file("write", path))?,
        None => terminal::json(&list)?,
    }
    Ok(ExitCode::SUCCESS)
}
