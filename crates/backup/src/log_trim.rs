//! Trimming the log: removing from the server what an archive has. Much is known by the last message of a subject, however old, so
//! that is carried forward first ([`kairo_core::carry_forward`]), and nothing goes that somebody has yet to read.
//!
//! A trim that is killed on the way leaves a log that is whole: messages that were carried forward say nothing new, the
//! next run recognizes them, and a limit that was not taken back is restored by it, by `kairo provision`, and by any
//! archive or backup run. Until then the log may lose only what the margin leaves of the archived and carried messages.

mod lagging_readers;
mod survey;

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        BusError,
        jetstream::JetStream,
        port::{OutgoingMessage, ReadSource, StoreError, StreamStore},
    },
    partition,
    subjects::EVENTS_STREAM,
};
use tokio::time::{Instant, sleep};

use self::survey::{Carry, Survey, UnfinishedWork};
use crate::{
    archive_reader,
    backup_folder::Folder,
    backup_run::{self, ProgressCallback},
    error::BackupError,
    log_archive,
    manifest::{BackupKind, LOG, Manifest},
    message_line::MessageLine,
    stream_reader::{self, LeaderStreamInfo},
    verification,
};

/// Between two looks at who is behind.
const LOOK: Duration = Duration::from_millis(200);
/// Messages that a margin leaves at least: those that come while the log has its limit take as many of the oldest with them, also
/// where nothing had come for a long time.
const LEAST_MARGIN: u64 = 1_000;
/// A server of which the others have heard nothing for longer is away: it says every second that it is there.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);
/// Times a message is carried forward while others write on its subject.
const RACES: u32 = 16;

/// Up to where the log is to be trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimLimit {
    /// This message is to stay, and what stands behind it.
    Before(u64),
    /// Messages stored up to this time are to go.
    Stored(Timestamp),
}

/// The trimming that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct TrimRequest {
    pub until: TrimLimit,
    /// Of what is archived and carried forward, as much is left as the log has grown since then, and [`LEAST_MARGIN`] at least; nothing
    /// where there is no such time, and then nobody may write meanwhile.
    pub margin_since: Option<Timestamp>,
    /// Time to wait for readers that have yet to read what goes, and then for a server that lets the log have its
    /// limits again.
    pub wait: Duration,
}

/// The result of trimming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimOutcome {
    /// The first sequence of the log before, and after.
    pub began: u64,
    pub begins: u64,
    /// Up to here everything is archived, and was carried forward.
    pub through: u64,
    /// Messages that were carried forward.
    pub carried: u64,
}

/// The plan for trimming the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrimPlan {
    /// Up to here everything is carried forward.
    cut: u64,
    /// The messages that stay begin here, or before.
    begins: u64,
}

/// Trims the log up to a place that an archive has. `in_the_way` tells why a reader outside NATS has yet to read up to
/// there.
///
/// # Errors
/// If something is in the way, with what it is: then nothing is removed. Messages may have been carried forward by
/// then.
pub async fn trim(
    nats: &JetStream,
    path: &Path,
    wanted: TrimRequest,
    in_the_way: impl AsyncFn(u64) -> Result<Option<String>, BackupError>,
    progress: ProgressCallback<'_>,
) -> Result<TrimOutcome, BackupError> {
    nats.restore_limits().await?;
    let folder = Folder::open(path, BackupKind::Archive)?;
    let manifest = folder.read_manifest()?;
    let info = backup_run::require_stream(nats, EVENTS_STREAM).await?;
    log_archive::check_continuity(nats, &folder, &manifest, &info).await?;
    let plan = plan_trim(nats, path, &manifest, &info, wanted).await?;
    let began = info.first_sequence;
    if plan.begins <= began {
        return Ok(TrimOutcome { began, begins: began, through: plan.cut, carried: 0 });
    }
    check_archive(path, progress)?;
    let survey = survey_log(nats, path, &manifest, plan.cut, progress).await?;
    if let Some(UnfinishedWork { sequence, subject }) = survey.oldest_unfinished() {
        return Err(refuse_trim(format!("what began with message {sequence} ({subject}) has not ended")));
    }
    let deadline = Instant::now() + wanted.wait;
    wait_until_clear(deadline, async || match lagging_readers::find_lagging_consumer(nats, plan.cut).await? {
        Some(behind) => Ok(Some(behind)),
        None => in_the_way(plan.cut).await,
    })
    .await?;
    wait_until_clear(deadline, async || find_absent_copy(nats).await).await?;
    let carried = carry_forward(nats, path, &manifest, &survey.messages_to_carry(), deadline).await?;
    let by_partition = carried.by_partition;
    wait_until_clear(deadline, async || {
        lagging_readers::find_lagging_owner(nats, manifest.log, &survey, &by_partition).await
    })
    .await?;
    wait_until_clear(deadline, async || find_absent_copy(nats).await).await?;
    let end = backup_run::require_stream(nats, EVENTS_STREAM).await?.last_sequence;
    // Whoever was waited for as long as may be leaves time to put the limits back all the same.
    let deadline = Instant::now() + wanted.wait;
    nats.trim_log(plan.cut, (end + 1).saturating_sub(plan.begins), deadline).await?;
    let begins = backup_run::require_stream(nats, EVENTS_STREAM).await?.first_sequence;
    Ok(TrimOutcome { began, begins, through: plan.cut, carried: carried.messages })
}

/// A server that has a copy of the log and would not hear of its limit now: it would keep to it when it comes back, and remove more
/// than the others by as much as the log has grown until then.
async fn find_absent_copy(nats: &JetStream) -> Result<Option<String>, BackupError> {
    let away = nats.lagging_copies(LONGEST_SILENCE).await?;
    Ok(away.first().map(|name| format!("the nats-server {name} has a copy of the log, and is away or behind with it")))
}

fn refuse_trim(why: String) -> BackupError {
    BackupError::Refused(format!("the log is not trimmed: {why}"))
}

async fn plan_trim(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    info: &LeaderStreamInfo,
    wanted: TrimRequest,
) -> Result<TrimPlan, BackupError> {
    let archived = manifest.log_end();
    let path = path.display();
    if manifest.begins_behind() > 0 {
        let begins = manifest.begins_behind();
        return Err(refuse_trim(format!(
            "the archive {path} begins behind {begins}, and agents are folded from all there was"
        )));
    }
    let last_until = async |until| log_archive::last_stored_until(nats, until, 0, info.last_sequence).await;
    let cut = match wanted.until {
        TrimLimit::Before(sequence) if sequence > archived + 1 => {
            let why = format!("the archive {path} ends at {archived}: run `kairo archive {path}` first");
            return Err(refuse_trim(why));
        }
        TrimLimit::Before(sequence) => sequence.saturating_sub(1),
        TrimLimit::Stored(until) => last_until(until).await?.min(archived),
    };
    let margin = match wanted.margin_since {
        Some(since) => (info.last_sequence - last_until(since).await?).max(LEAST_MARGIN),
        None => 0,
    };
    Ok(TrimPlan { cut, begins: (cut + 1).saturating_sub(margin) })
}

/// Everything in the archive must be as it was written: of what goes there is nothing else.
fn check_archive(path: &Path, progress: ProgressCallback<'_>) -> Result<(), BackupError> {
    let verified = verification::verify(path, progress)?;
    if verified.is_intact() {
        return Ok(());
    }
    let why = verified.damaged.first().cloned().unwrap_or_else(|| "its log is not what was written".to_owned());
    let path = path.display();
    Err(refuse_trim(format!("the archive is damaged: {why}; see `kairo archive verify {path}`")))
}

/// Looks at all of the log: what the archive has of it, and what the server has behind that.
async fn survey_log(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    cut: u64,
    progress: ProgressCallback<'_>,
) -> Result<Survey, BackupError> {
    let mut survey = Survey::new(cut);
    for line in verification::read_log(path, manifest) {
        progress(LOG.stream);
        survey.apply_line(&line?);
    }
    stream_reader::read_messages(nats, EVENTS_STREAM, LOG.filter, manifest.log_end(), u64::MAX, |line| {
        progress(LOG.stream);
        survey.apply_line(&line);
        Ok(())
    })
    .await?;
    Ok(survey)
}

/// Looks until nothing is in the way.
async fn wait_until_clear(
    deadline: Instant,
    look: impl AsyncFn() -> Result<Option<String>, BackupError>,
) -> Result<(), BackupError> {
    loop {
        match retry_until_answered(deadline, &look).await? {
            None => return Ok(()),
            Some(why) if Instant::now() >= deadline => return Err(refuse_trim(format!("{why}; see --wait"))),
            Some(_) => sleep(LOOK).await,
        }
    }
}

/// Asks until there is an answer: for as long as another server takes to lead there is none.
async fn retry_until_answered<T>(
    deadline: Instant,
    ask: impl AsyncFn() -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    loop {
        match ask().await {
            Err(BackupError::NotRead { .. } | BackupError::Bus(BusError::Unavailable { .. }))
                if Instant::now() < deadline =>
            {
                sleep(LOOK).await;
            }
            asked => return asked,
        }
    }
}

/// The messages that were carried forward.
#[derive(Debug, Default)]
struct CarriedMessages {
    messages: u64,
    /// The last of each partition.
    by_partition: BTreeMap<u32, u64>,
}

/// Writes once more what must stand, from the archive.
async fn carry_forward(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    carries: &BTreeMap<u64, Carry>,
    deadline: Instant,
) -> Result<CarriedMessages, BackupError> {
    let mut carried = CarriedMessages::default();
    let mut guards: HashMap<String, u64> = HashMap::new();
    for line in verification::read_log(path, manifest) {
        let line = line?;
        let Some(carry) = carries.get(&line.sequence) else { continue };
        let guard = guards.entry(line.subject.clone()).or_insert(carry.guard);
        if let Some(sequence) = carry_message(nats, &line, carry, guard, deadline).await? {
            carried.messages += 1;
            if let (_, Some(partition)) = partition::split_subject(&line.subject) {
                carried.by_partition.insert(partition, sequence);
            }
        }
    }
    Ok(carried)
}

/// Writes a message again and returns its new sequence; none if its subject has gone on without it.
async fn carry_message(
    nats: &JetStream,
    line: &MessageLine,
    carry: &Carry,
    guard: &mut u64,
    deadline: Instant,
) -> Result<Option<u64>, BackupError> {
    let headers = archive_reader::header_map(line.sequence, &survey::carried_headers(line, carry.from))?;
    let mut races = 0;
    while races < RACES {
        let message = OutgoingMessage::new(line.subject.clone(), headers.clone(), line.data.clone()).with_guard(*guard);
        match nats.publish(message).await {
            Ok(written) => {
                *guard = written.sequence;
                return Ok(Some(written.sequence));
            }
            Err(StoreError::WrongLastSequence | StoreError::InProcess) => races += 1,
            // One that leads no more may have taken it all the same.
            Err(StoreError::Unavailable(_) | StoreError::NoStream) if Instant::now() < deadline => sleep(LOOK).await,
            Err(error) => {
                return Err(BackupError::NotTaken { stream: EVENTS_STREAM.to_owned(), why: error.to_string() });
            }
        }
        let last = async || {
            let last = nats.last_message(EVENTS_STREAM, &line.subject, ReadSource::Leader).await;
            last.map_err(BackupError::not_read(EVENTS_STREAM))
        };
        let last = retry_until_answered(deadline, last).await?;
        *guard = last.as_ref().map_or(0, |last| last.sequence);
        if last.is_some_and(|last| survey::is_carried(&last, carry.from)) {
            return Ok(Some(*guard));
        }
        if survey::is_superseded(&line.subject, *guard, line.sequence) {
            return Ok(None);
        }
    }
    Err(refuse_trim(format!("others write on {} again and again", line.subject)))
}
