//! `kairo backup`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use kairo_backup::{
    BackupLocation, backup_run,
    manifest::BackupPart,
    object_storage::{self, FetchExtent},
    restore,
    verification::{self, VerificationReport},
};
use serde_json::json;

use super::{provision::ServerOptions, restore::backup_error, verify, verify::proof_lines::pluralize};
use crate::{Error, drill, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo backup -o /srv/backup               all that Kairo keeps in NATS, into a new folder
  kairo backup --onto /srv/backup           what came since, as another part of it
  kairo backup --into /srv/backup           the one or the other, whichever it takes: for jobs
  kairo backup verify /srv/backup           is it what was written, and is the log in it what was written?
  kairo backup drill /srv/backup            restore it into a Kairo of its own, and have an agent reply there
  kairo backup forgotten /srv/backup        who was forgotten, for `kairo restore --forgotten`
  kairo backup --into s3://kairo/nightly    the same in S3-compatible storage
  kairo backup fetch s3://kairo/nightly /srv/copy    a backup or an archive from there, into a folder; again: what came since

Services go on meanwhile. Kept are the log, API keys, data keys (wrapped, without the master key), images and audio, dead letters,
timers and hooks. Snapshots, checkpoints, read models and search indexes are made anew from the log. What is sealed stays sealed;
images and audio are in the clear. Data keys and API keys are kept as they are in the newest part alone: of what is destroyed or
revoked by then, older parts keep nothing. See docs/backup.md for what a backup does not hold.

Storage is reached as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and for others than AWS AWS_ENDPOINT_URL say, or by the role of
the pod or machine; without TLS only with AWS_ALLOW_HTTP=true. Parts are made in a folder in TMPDIR first.

Configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision` unless nats.user names another.

The status is 0 if the backup is whole (of verify: and all fits), 1 if it is not or could not be taken, 64 for a bad
configuration or a folder that is none of a backup.";

const DRILL: &str = "\
Examples:
  kairo backup drill /srv/backup
  KAIRO_PRIVACY__MASTER_KEY=… KAIRO_SIGNING__KEY=… kairo backup drill s3://kairo/nightly

Starts a nats-server, a Postgres and all services on 127.0.0.1, on free ports and in a folder that is removed at the end; restores the
backup into them, proves its log, and sends a message to an agent of its own. A model simulator replies. Of the environment nothing is
handed on but KAIRO_PRIVACY__… and KAIRO_SIGNING__…, which a backup with sealed content needs, and how storage is reached: no tool server,
no mail and no model is asked. What is overdue in the log comes due there as well.

The status is 0 if the log is proven and the agent replied, else 1.";

/// Keep all that Kairo keeps in NATS in a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Take a whole backup into this folder, which is made or is empty, or into s3://BUCKET/PREFIX
    #[arg(
        short,
        long,
        value_name = "PLACE",
        required_unless_present_any = ["onto", "into"],
        conflicts_with_all = ["onto", "into"]
    )]
    output: Option<BackupLocation>,
    /// Add to the backup in this folder what came since
    #[arg(long, value_name = "PLACE", conflicts_with = "into")]
    onto: Option<BackupLocation>,
    /// Add to the backup in this folder, or take a whole one into it if there is none yet
    #[arg(long, value_name = "PLACE")]
    into: Option<BackupLocation>,
    #[command(flatten)]
    servers: ServerOptions,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Hold a backup to its manifest, and its log to the digests that decisions carry; no server is needed
    Verify {
        #[arg(value_name = "PLACE")]
        place: BackupLocation,
    },
    /// Restore a backup into a Kairo of its own and have an agent reply there, to see that it can be done and how long it takes
    #[command(after_help = DRILL)]
    Drill {
        #[arg(value_name = "PLACE")]
        place: BackupLocation,
    },
    /// Copy a backup or an archive from S3-compatible storage to a folder, or what came since that was done
    Fetch {
        #[arg(value_name = "PLACE")]
        place: BackupLocation,
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// List the orders to forget users that a backup knows
    Forgotten {
        #[arg(value_name = "PLACE")]
        place: BackupLocation,
        /// File to write, instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(super) async fn run(arguments: BackupArgs, json: bool) -> Result<ExitCode, Error> {
    let BackupArgs { command, output, onto, into, servers } = arguments;
    match command {
        Some(BackupCommand::Verify { place }) => return verify_place(&place, json).await,
        Some(BackupCommand::Drill { place }) => return drill::run(&place, json).await,
        Some(BackupCommand::Fetch { place, folder }) => return fetch_backup(&place, &folder, json).await,
        Some(BackupCommand::Forgotten { place, output }) => {
            return list_forgotten_users(&place, output.as_deref()).await;
        }
        None => {}
    }
    let place = onto.as_ref().or(into.as_ref()).or(output.as_ref());
    let place = place.ok_or_else(|| Error::Usage("expected -o, --onto or --into, and a PLACE".to_owned()))?;
    let reached = match servers.reach().await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let bar = verify::progress_bar();
    let progress = |_: &str| bar.inc(1);
    let staged = object_storage::stage(place, FetchExtent::Manifest, &progress).await.map_err(backup_error)?;
    let taken = match (&onto, &into) {
        (Some(_), _) => backup_run::append_part(&reached.nats, staged.path(), &progress).await,
        (_, Some(_)) => backup_run::append_or_take_full(&reached.nats, staged.path(), &progress).await,
        (None, None) => backup_run::take_full_backup(&reached.nats, staged.path(), &progress).await,
    };
    let part = taken.map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?;
    staged.upload_changes(&progress).await.map_err(backup_error)?;
    bar.finish_and_clear();
    print_part(place, &part, json)?;
    Ok(ExitCode::SUCCESS)
}

fn print_part(place: &BackupLocation, part: &BackupPart, json: bool) -> Result<(), Error> {
    let files = part.streams.values().flat_map(|stream| &stream.files);
    let (bytes, messages) = files.fold((0, 0), |(bytes, all), file| (bytes + file.bytes, all + file.messages));
    let BackupPart { number, after, through, .. } = part;
    if json {
        terminal::json(&json!({
            "folder": place.to_string(), "part": number, "after": after, "through": through, "messages": messages, "bytes": bytes,
        }))?;
        return Ok(());
    }
    let messages = pluralize(messages, "message");
    let what = format!("part {number}: the log behind {after} up to {through}, {messages} in {bytes} bytes");
    terminal::line(format!("{place}, {what}"))?;
    Ok(())
}

/// Holds what is there to its manifest, and its log to the digests in it.
pub(super) async fn verify_place(place: &BackupLocation, json: bool) -> Result<ExitCode, Error> {
    let bar = verify::progress_bar();
    let progress = |_: &str| bar.inc(1);
    let staged = object_storage::stage(place, FetchExtent::Everything, &progress).await.map_err(backup_error)?;
    let verified = verification::verify(staged.path(), &progress);
    bar.finish_and_clear();
    let verified = verified.map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?;
    let VerificationReport { manifest, files, messages, damaged, proof } = &verified;
    let damaged: Vec<String> = damaged.iter().map(|why| staged.replace_folder_path(why)).collect();
    if json {
        terminal::json(&json!({
            "fits": verified.is_intact(), "log": manifest.log, "through": manifest.log_end(), "parts": manifest.parts.len(),
            "files": files, "messages": messages, "damaged": damaged, "proof": proof,
        }))?;
    } else {
        damaged.iter().try_for_each(terminal::line)?;
        if let Some(proof) = proof {
            verify::proof_lines::format_proof(proof).into_iter().try_for_each(terminal::line)?;
        }
        let parts = pluralize(manifest.parts.len() as u64, "part");
        let files = pluralize(*files as u64, "file");
        let messages = pluralize(*messages, "message");
        let fits = if verified.is_intact() { "all fits" } else { "it does not fit" };
        terminal::line(format!("{parts}, {files}, {messages}, the log up to {}: {fits}", manifest.log_end()))?;
    }
    Ok(if verified.is_intact() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn fetch_backup(place: &BackupLocation, folder: &Path, json: bool) -> Result<ExitCode, Error> {
    let bar = verify::progress_bar();
    let fetched = object_storage::fetch(place, folder, &|_| bar.inc(1)).await;
    bar.finish_and_clear();
    let fetched = fetched.map_err(backup_error)?;
    let parts = fetched.parts.len();
    let through = fetched.log_end();
    if json {
        terminal::json(&json!({ "folder": folder, "parts": parts, "through": through }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let parts = pluralize(parts as u64, "part");
    terminal::line(format!("{}: {parts} of {place}, the log up to {through}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn list_forgotten_users(place: &BackupLocation, output: Option<&Path>) -> Result<ExitCode, Error> {
    let staged = object_storage::stage(place, FetchExtent::Everything, &|_| {}).await.map_err(backup_error)?;
    let forgotten = restore::read_forgotten_users(staged.path())
        .map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?;
    let list = json!({ "forgotten": forgotten });
    match output {
        Some(path) => fs::write(path, format!("{list}\n")).map_err(Error::file("write", path))?,
        None => terminal::json(&list)?,
    }
    Ok(ExitCode::SUCCESS)
}
