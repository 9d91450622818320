//! `kairo verify`

mod checkpoint_check;
pub(super) mod proof_lines;

use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use kairo_core::{ids::Name, log_message};
use kairo_proto::v1::LogMessage;
use kairo_replay::proof::{LogExtent, Proof, Prover};

use self::checkpoint_check::{CheckpointCheck, CheckpointResult};
use super::{GatewaySession, archive::ArchiveOption, name};
use crate::{
    Error,
    agent_log::{self, LogSource, ReadFlow},
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo verify --agent default                       is the agent's part of the log what was written?
  kairo verify --all                                 and that of every agent?
  kairo verify default.log                           the same of a file; no gateway is needed
  kairo verify /srv/backup                           and of the log in a backup, or in an archive
  kairo verify --all --archive /srv/archive          of what is archived, and of the log that goes on behind it
  kairo verify --all --against today.json --public-key auditor.pub
                                                     is the log still what the checkpoint says?
  kairo verify whole.log --against today.json        has the file all that the checkpoint covers?
  kairo verify slot.kairo --agent slot --against today.json
                                                     and what it says of an agent?

From epoch 7 on, every decision carries a digest of the decision before it, of that one's digest, and of all
messages of the agent that whoever decided had read since. They are made again here, from the bytes as they are
stored. Of each agent the first message that does not fit is named: changed, missing, added, swapped, or a forged
decision, as far as that can be told apart.

No digest covers the last decision and what stands behind it, decisions from before the epoch, what is said live and
never stored, and what is kept beside the log: keys, timers, snapshots. Images are covered by the digests that events
name. Whoever can write to the log and makes all digests behind a change anew is found by a checkpoint alone
(`kairo checkpoint`), and so is a log that was cut off. A file is held to all that the checkpoint covers, what users
say among it, unless --agent says whose messages alone it is to have; what it lacks is named, and the status is 1.

A redacted incident file carries no digests: they would tell whoever guesses what a token stands for. Digests are of what
is stored: of a file in which what users said is open (as --save of `kairo replay` and `kairo incident export` write it,
but for --sealed) nothing is proven, either.

The status is 0 if all fits, 1 if something does not, 2 if a message takes a newer build, 3 if nothing can be proven
of a file that is redacted or opened, 64 if a file that is named cannot be used, and 69 if there is no server.";
/// The statuses where a message takes a newer build, and where a file is redacted.
const STOPPED: u8 = 2;
const REDACTED: u8 = 3;
/// So often progress is shown, in messages.
const SHOWN_EVERY: u64 = 1_000;

/// Prove that a log is what was written, by the digests that decisions carry
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    /// The agents, with commas between; without a file, their part of the log is read from the gateway, which takes an
    /// administrator's key
    #[arg(long = "agent", value_parser = name, value_delimiter = ',', value_name = "NAME,…")]
    agents: Vec<Name>,
    /// All of the log; of a file, that it holds all of it
    #[arg(long, conflicts_with = "agents", required_unless_present_any = ["agents", "file"])]
    all: bool,
    /// A file that --save, `kairo replay --save` or `kairo incident export` wrote, or the folder of a backup or an archive
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Keep what was read in this file, one message a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "archive"])]
    save: Option<PathBuf>,
    #[command(flatten)]
    archive: ArchiveOption,
    /// Hold it to this checkpoint as well, which `kairo checkpoint` wrote
    #[arg(long, value_name = "CHECKPOINT")]
    against: Option<PathBuf>,
    /// The public key that the checkpoint must be signed with
    #[arg(long, value_name = "FILE", requires = "against")]
    public_key: Option<PathBuf>,
}

/// The result of verifying a log.
struct LogVerification {
    proof: Proof,
    /// The requested agents of which the log has nothing.
    missing: Vec<Name>,
    /// Messages that are out of place, or a file that was altered since its export.
    broken: Vec<String>,
    is_redacted: bool,
    /// True if users' messages are opened in it, so that it differs from what is stored.
    is_opened: bool,
    checkpoint: Option<CheckpointResult>,
}

impl LogVerification {
    fn fits(&self) -> bool {
        self.proof.first_misfit().is_none()
            && self.broken.is_empty()
            && self.checkpoint.as_ref().is_none_or(CheckpointResult::fits)
    }

    fn exit_status(&self) -> ExitCode {
        match () {
            () if !self.fits() => ExitCode::FAILURE,
            () if self.proof.stopped.is_some() => ExitCode::from(STOPPED),
            () if self.is_redacted || self.is_opened => ExitCode::from(REDACTED),
            () => ExitCode::SUCCESS,
        }
    }
}

pub(super) async fn run(arguments: VerifyArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let verified = arguments.verify_log(session).await?;
    if let Some(agent) = verified.missing.first().filter(|_| verified.fits() && verified.proof.stopped.is_none()) {
        return Err(Error::Advice(format!("the log has nothing of the agent {agent}")));
    }
    match session.json {
        true => terminal::json(&proof_lines::verification_json(&verified))?,
        false => proof_lines::format_verification(&verified).into_iter().try_for_each(terminal::line)?,
    }
    Ok(verified.exit_status())
}

impl VerifyArgs {
    async fn verify_log(&self, session: &GatewaySession) -> Result<LogVerification, Error> {
        let Self { agents, all, file, save, archive, against, public_key } = self;
        let of_file = file.as_deref().map(IncidentFindings::inspect_file).transpose()?.unwrap_or_default();
        let mut against =
            against.as_deref().map(|path| CheckpointCheck::read(path, public_key.as_deref())).transpose()?;
        let source = match file {
            Some(path) => LogSource::File(path),
            None if *all => LogSource::Whole(&session.client, save.clone()),
            None => LogSource::Stored(&session.client, agents, save.clone()),
        };
        let source = source.after_archive(archive.folder());
        if let Some(against) = &mut against {
            against.compare_log_id(&source, *all).await?;
        }
        let is_backup = file.as_deref().is_some_and(kairo_backup::verification::is_backup);
        let extent = if file.is_some() && !is_backup && !all { LogExtent::Cut } else { LogExtent::Whole };
        let named: BTreeSet<Name> = agents.iter().cloned().collect();
        let mut proving = Prover::new(named, extent, against.as_ref().map(CheckpointCheck::sequence));
        let mut broken: Vec<String> = of_file.damaged.into_iter().collect();
        let bar = progress_bar();
        let mut count = 0_u64;
        let mut is_opened = false;
        // A file is to have all of it, unless somebody says whose part alone.
        let is_whole = *all || (file.is_some() && agents.is_empty());
        let mut comparing = against.as_ref().filter(|_| is_whole).map(CheckpointCheck::start_comparing);
        let take = |message: &LogMessage| -> ReadFlow {
            count += 1;
            if count.is_multiple_of(SHOWN_EVERY) {
                bar.set_position(count);
            }
            if log_message::is_opened(message) {
                is_opened = true;
                return Ok(ControlFlow::Break(()));
            }
            if let Err(error) = proving.apply(message) {
                broken.push(error.to_string());
                return Ok(ControlFlow::Break(()));
            }
            if let (Some(comparing), Ok(content)) = (&mut comparing, log_message::content_digest(message)) {
                comparing.compare(message.sequence, content);
            }
            let is_enough = proving.is_stopped() && comparing.is_none();
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let read = match &source {
            LogSource::File(path) => agent_log::read_file_unverified(path, take),
            LogSource::Agents(..) | LogSource::Stored(..) | LogSource::Whole(..) | LogSource::Joined(..) => {
                source.read(take).await.map_err(Error::into_unavailable)
            }
        };
        bar.finish_and_clear();
        read?;
        let missing = proving.missing().into_iter().cloned().collect();
        let compared = comparing.map(kairo_replay::checkpoint::CheckpointComparer::finish);
        let proof = proving.finish();
        let held = against.map(|against| against.judge(compared, &proof, of_file.ends_at));
        Ok(LogVerification { proof, missing, broken, is_redacted: of_file.is_redacted, is_opened, checkpoint: held })
    }
}

/// The findings on an incident file; empty for another file.
#[derive(Default)]
struct IncidentFindings {
    damaged: Option<String>,
    is_redacted: bool,
    /// The message behind which nothing was exported.
    ends_at: Option<u64>,
}

impl IncidentFindings {
    fn inspect_file(path: &Path) -> Result<Self, Error> {
        match agent_log::verify_incident(path).map(|opened| opened.map(|opened| opened.manifest)) {
            Ok(None) => Ok(Self::default()),
            Ok(Some(it)) => Ok(Self { damaged: None, is_redacted: it.redacted, ends_at: it.range.to }),
            // The message is named by what decisions carry, if it can be.
            Err(Error::Damaged(why)) => Ok(Self { damaged: Some(why), ..Self::default() }),
            Err(other) => Err(other),
        }
    }
}

/// Shown where there is a terminal.
pub(super) fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} messages, {elapsed}, {per_sec}") {
        bar.set_style(style);
    }
    bar
}
