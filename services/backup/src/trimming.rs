//! Trimming the log: removing from the server what an archive has. Much is known by the last message of a subject, however old, so
//! that is carried forward first ([`kairo_core::carried`]), and nothing goes that somebody has yet to read.
//!
//! A trim that is killed on the way leaves a log that is whole: messages that were carried forward say nothing new, the
//! next run recognizes them, and a limit that was not taken back is restored by it, by `kairo provision`, and by any
//! archive or backup run. Until then the log may lose only what the margin leaves of the archived and carried messages.

mod standing;
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
        port::{Asked, Message, StoreError, Streams},
    },
    partition,
    subjects::EVENTS_STREAM,
};
use tokio::time::{Instant, sleep};

use self::survey::{Begun, Carry, Survey};
use crate::{
    archiving,
    error::BackupError,
    folder::Folder,
    line::Line,
    manifest::{Kind, LOG, Manifest},
    past,
    reading::{self, Info},
    taking::{self, Progress},
    verifying,
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
pub enum Until {
    /// This message is to stay, and what stands behind it.
    Before(u64),
    /// Messages stored up to this time are to go.
    Stored(Timestamp),
}

/// The trimming that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub until: Until,
    /// Of what is archived and carried forward, as much is left as the log has grown since then, and [`LEAST_MARGIN`] at least; nothing
    /// where there is no such time, and then nobody may write meanwhile.
    pub margin_since: Option<Timestamp>,
    /// Time to wait for readers that have yet to read what goes, and then for a server that lets the log have its
    /// limits again.
    pub wait: Duration,
}

/// The result of trimming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
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
struct Plan {
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
    wanted: Wanted,
    in_the_way: impl AsyncFn(u64) -> Result<Option<String>, BackupError>,
    progress: Progress<'_>,
) -> Result<Trimmed, BackupError> {
    nats.put_back().await?;
    let folder = Folder::open(path, Kind::Archive)?;
    let manifest = folder.manifest()?;
    let info = taking::found(nats, EVENTS_STREAM).await?;
    archiving::goes_on(nats, &folder, &manifest, &info).await?;
    let plan = plan(nats, path, &manifest, &info, wanted).await?;
    let began = info.first_sequence;
    if plan.begins <= began {
        return Ok(Trimmed { began, begins: began, through: plan.cut, carried: 0 });
    }
    has_all(path, progress)?;
    let survey = survey(nats, path, &manifest, plan.cut, progress).await?;
    if let Some(Begun { sequence, subject }) = survey.unended() {
        return Err(refused(format!("what began with message {sequence} ({subject}) has not ended")));
    }
    let deadline = Instant::now() + wanted.wait;
    waited(deadline, async || match standing::consumer_behind(nats, plan.cut).await? {
        Some(behind) => Ok(Some(behind)),
        None => in_the_way(plan.cut).await,
    })
    .await?;
    waited(deadline, async || copy_away(nats).await).await?;
    let carried = carry(nats, path, &manifest, &survey.to_carry(), deadline).await?;
    let by_partition = carried.by_partition;
    waited(deadline, async || standing::owner_behind(nats, manifest.log, &survey, &by_partition).await).await?;
    waited(deadline, async || copy_away(nats).await).await?;
    let end = taking::found(nats, EVENTS_STREAM).await?.last_sequence;
    // Whoever was waited for as long as may be leaves time to put the limits back all the same.
    let deadline = Instant::now() + wanted.wait;
    nats.trim_log(plan.cut, (end + 1).saturating_sub(plan.begins), deadline).await?;
    let begins = taking::found(nats, EVENTS_STREAM).await?.first_sequence;
    Ok(Trimmed { began, begins, through: plan.cut, carried: carried.messages })
}

/// A server that has a copy of the log and would not hear of its limit now: it would keep to it when it comes back, and remove more
/// than the others by as much as the log has grown until then.
async fn copy_away(nats: &JetStream) -> Result<Option<String>, BackupError> {
    let away = nats.copies_away(LONGEST_SILENCE).await?;
    Ok(away.first().map(|name| format!("the nats-server {name} has a copy of the log, and is away or behind with it")))
}

fn refused(why: String) -> BackupError {
    BackupError::Refused(format!("the log is not trimmed: {why}"))
}

async fn plan(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    info: &Info,
    wanted: Wanted,
) -> Result<Plan, BackupError> {
    let (archived, path) = (manifest.through(), path.display());
    if manifest.begins_behind() > 0 {
        let begins = manifest.begins_behind();
        return Err(refused(format!(
            "the archive {path} begins behind {begins}, and agents are folded from all there was"
        )));
    }
    let last_until = async |until| archiving::last_until(nats, until, 0, info.last_sequence).await;
    let cut = match wanted.until {
        Until::Before(sequence) if sequence > archived + 1 => {
            let why = format!("the archive {path} ends at {archived}: run `kairo archive {path}` first");
            return Err(refused(why));
        }
        Until::Before(sequence) => sequence.saturating_sub(1),
        Until::Stored(until) => last_until(until).await?.min(archived),
    };
    let margin = match wanted.margin_since {
        Some(since) => (info.last_sequence - last_until(since).await?).max(LEAST_MARGIN),
        None => 0,
    };
    Ok(Plan { cut, begins: (cut + 1).saturating_sub(margin) })
}

/// Everything in the archive must be as it was written: of what goes there is nothing else.
fn has_all(path: &Path, progress: Progress<'_>) -> Result<(), BackupError> {
    let verified = verifying::verify(path, progress)?;
    if verified.fits() {
        return Ok(());
    }
    let why = verified.damaged.first().cloned().unwrap_or_else(|| "its log is not what was written".to_owned());
    let path = path.display();
    Err(refused(format!("the archive is damaged: {why}; see `kairo archive verify {path}`")))
}

/// Looks at all of the log: what the archive has of it, and what the server has behind that.
async fn survey(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    cut: u64,
    progress: Progress<'_>,
) -> Result<Survey, BackupError> {
    let mut survey = Survey::of(cut);
    for line in verifying::log(path, manifest) {
        progress(LOG.stream);
        survey.take(&line?);
    }
    reading::read(nats, EVENTS_STREAM, LOG.filter, manifest.through(), u64::MAX, |line| {
        progress(LOG.stream);
        survey.take(&line);
        Ok(())
    })
    .await?;
    Ok(survey)
}

/// Looks until nothing is in the way.
async fn waited(
    deadline: Instant,
    look: impl AsyncFn() -> Result<Option<String>, BackupError>,
) -> Result<(), BackupError> {
    loop {
        match answered(deadline, &look).await? {
            None => return Ok(()),
            Some(why) if Instant::now() >= deadline => return Err(refused(format!("{why}; see --wait"))),
            Some(_) => sleep(LOOK).await,
        }
    }
}

/// Asks until there is an answer: for as long as another server takes to lead there is none.
async fn answered<T>(deadline: Instant, ask: impl AsyncFn() -> Result<T, BackupError>) -> Result<T, BackupError> {
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
struct Carried {
    messages: u64,
    /// The last of each partition.
    by_partition: BTreeMap<u32, u64>,
}

/// Writes once more what must stand, from the archive.
async fn carry(
    nats: &JetStream,
    path: &Path,
    manifest: &Manifest,
    carries: &BTreeMap<u64, Carry>,
    deadline: Instant,
) -> Result<Carried, BackupError> {
    let mut carried = Carried::default();
    let mut guards: HashMap<String, u64> = HashMap::new();
    for line in verifying::log(path, manifest) {
        let line = line?;
        let Some(carry) = carries.get(&line.sequence) else { continue };
        let guard = guards.entry(line.subject.clone()).or_insert(carry.guard);
        if let Some(sequence) = write(nats, &line, carry, guard, deadline).await? {
            carried.messages += 1;
            if let (_, Some(partition)) = partition::split(&line.subject) {
                carried.by_partition.insert(partition, sequence);
            }
        }
    }
    Ok(carried)
}

/// Writes a message again and returns its new sequence; none if its subject has gone on without it.
async fn write(
    nats: &JetStream,
    line: &Line,
    carry: &Carry,
    guard: &mut u64,
    deadline: Instant,
) -> Result<Option<u64>, BackupError> {
    let headers = past::header_map(line.sequence, &survey::headers(line, carry.from))?;
    let mut races = 0;
    while races < RACES {
        let message = Message::new(line.subject.clone(), headers.clone(), line.data.clone()).guarded(*guard);
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
            let last = nats.last(EVENTS_STREAM, &line.subject, Asked::Leader).await;
            last.map_err(BackupError::not_read(EVENTS_STREAM))
        };
        let last = answered(deadline, last).await?;
        *guard = last.as_ref().map_or(0, |last| last.sequence);
        if last.is_some_and(|last| survey::is_carried(&last, carry.from)) {
            return Ok(Some(*guard));
        }
        if survey::stands_by_another(&line.subject, *guard, line.sequence) {
            return Ok(None);
        }
    }
    Err(refused(format!("others write on {} again and again", line.subject)))
}
