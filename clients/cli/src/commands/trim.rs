//! `kairo trim`

use std::process::ExitCode;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kairo_backup::{
    BackupLocation,
    log_trim::{self, TrimLimit, TrimOutcome, TrimRequest},
    object_storage::{self, FetchExtent},
};
use kairo_core::vocabulary::CARRYING;
use kairo_proto::{
    v1::{GetStatusResponse, ListProjectionsResponse, ReplicaRow},
    words::GenerationState,
};
use serde_json::json;

use super::{GatewaySession, provision::ServerOptions, restore::backup_error, verify, verify::proof_lines::pluralize};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo archive /srv/archive                        first: only what is archived is removed
  kairo trim /srv/archive --older-than 720h         remove from the log what is older than 30 days
  kairo trim /srv/archive --before 4711             keep message 4711 and what stands behind it

Services go on meanwhile. What is known by the last message of a subject is carried forward first, so nothing that is in force is
lost. It is refused, with the reason, where the archive does not hold what would go or is damaged, something that began there has not
ended, somebody has yet to read it, or a server that has a copy of the log is away. --margin leaves a part of what could go, for whoever is killed while the log has a limit.
Killed, it leaves a log that is whole; run it again. See docs/retention.md.

It speaks to the gateway, and to NATS: configured like services, by --config, KAIRO_CONFIG and KAIRO_NATS__…; the user is `provision`
unless nats.user names another.

The status is 0 if nothing older is left than asked for and the margin, 1 if something is in the way, 64 for a bad configuration.";

/// Remove from the log what is old and in an archive
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TrimArgs {
    /// Place of the archive: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE")]
    place: BackupLocation,
    /// Trim messages stored longer ago than this
    #[arg(long, value_parser = super::signed_duration, value_name = "TIME", required_unless_present = "before")]
    older_than: Option<SignedDuration>,
    /// Trim messages before this one
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "older_than")]
    before: Option<u64>,
    /// Leave of it as much as the log has grown in this time, and 1000 messages at least; with 0s nothing, and then nobody may write meanwhile
    #[arg(long, default_value = "48h", value_parser = super::signed_duration, value_name = "TIME")]
    margin: SignedDuration,
    #[command(flatten)]
    servers: ServerOptions,
}

pub(super) async fn run(arguments: TrimArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let TrimArgs { place, older_than, before, margin, servers } = arguments;
    let now = Timestamp::now();
    let ago = |time: SignedDuration, option: &str| {
        now.checked_sub(time).map_err(|error| Error::Usage(format!("{option}: {error}")))
    };
    let until = match before {
        Some(sequence) => TrimLimit::Before(sequence),
        None => TrimLimit::Stored(ago(older_than.unwrap_or_default(), "--older-than")?),
    };
    let margin_since = if margin.is_zero() { None } else { Some(ago(margin, "--margin")?) };
    let wanted = TrimRequest { until, margin_since, wait: servers.wait };
    let status: GetStatusResponse = session.client.get("v1/status", &[]).await?;
    check_carrying_support(&status).map_err(Error::Advice)?;
    let reached = match servers.reach().await? {
        Ok(reached) => reached,
        Err(status) => return Ok(status),
    };
    let bar = verify::progress_bar();
    let in_the_way = async |cut| {
        let all: Result<ListProjectionsResponse, _> = session.client.get("v1/projections", &[]).await;
        Ok(match all {
            Ok(all) => find_lagging_read_model(&all, cut),
            Err(error) => Some(format!("the read models cannot be asked for: {error}")),
        })
    };
    let progress = |_: &str| bar.inc(1);
    let staged = object_storage::stage(&place, FetchExtent::Everything, &progress).await.map_err(backup_error)?;
    let trimmed = log_trim::trim(&reached.nats, staged.path(), wanted, in_the_way, &progress).await;
    bar.finish_and_clear();
    print_trimmed(&trimmed.map_err(|error| backup_error(staged.replace_folder_path_in_error(error)))?, session.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that every replica understands messages that are carried forward.
fn check_carrying_support(status: &GetStatusResponse) -> Result<(), String> {
    if status.epoch < CARRYING {
        let epoch = status.epoch;
        return Err(format!(
            "the log is not trimmed: it is in epoch {epoch}, and messages are carried forward from epoch {CARRYING} on: run \
             `kairo fleet promote` when every replica is of this version"
        ));
    }
    let reads_less = |replica: &&ReplicaRow| replica.reader < CARRYING;
    match status.services.iter().find(reads_less) {
        Some(replica) => {
            Err(format!("the log is not trimmed: {} is of a build that does not know how", replica.instance))
        }
        None => Ok(()),
    }
}

/// The first read model that has yet to read up to there, in words.
fn find_lagging_read_model(all: &ListProjectionsResponse, cut: u64) -> Option<String> {
    let over = [GenerationState::Failed, GenerationState::Kept, GenerationState::Dropping];
    all.projections.iter().find_map(|projection| {
        let wanted = projection.generations.iter().filter(|it| !over.iter().any(|over| over.known_word() == it.state));
        // Search is made from the tables.
        let mut of_log = wanted.filter(|generation| generation.source.is_none());
        let behind = of_log.find(|generation| generation.position < cut)?;
        let name = &projection.name;
        let generation = behind.generation;
        let position = behind.position;
        Some(format!("generation {generation} of the read model {name} is at {position}"))
    })
}

fn print_trimmed(trimmed: &TrimOutcome, json: bool) -> Result<(), Error> {
    let TrimOutcome { began, begins, through, carried } = *trimmed;
    if json {
        let told = json!({ "began": began, "begins": begins, "through": through, "carried": carried });
        return terminal::json(&told).map_err(Into::into);
    }
    terminal::line(match begins > began {
        true => {
            let carried = pluralize(carried, "message");
            format!(
                "the log begins at {begins}, and began at {began}; {carried} carried forward, of those up to {through}"
            )
        }
        false => format!("nothing is to be removed but for the margin: the log begins at {began}"),
    })?;
    Ok(())
}
