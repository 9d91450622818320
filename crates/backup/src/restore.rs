//! Filling servers that have no log with what a backup has.
//!
//! Every stream is marked as long as not all of them are filled, the log among them: services refuse a log with that mark. The log
//! gets another id, so that nobody goes on from what was kept of the log before: snapshots, checkpoints of partitions, read models.
//! A restore that was interrupted is begun anew: what bears the mark is removed first.

mod log_end;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use async_nats::jetstream::response::Response;
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{
        jetstream::JetStream,
        port::{Headers, OutgoingMessage, StreamStore},
        provision::{LOG_BEFORE, LOG_ID, RESTORING},
    },
    ids::Name,
    ownership::checkpoint::Checkpoint,
    permissions,
    signing::EntrySigner,
    subjects::{DLQ_STREAM, EVENTS_STREAM, HOOKS_STREAM, STATUS_PING, Service, TIMERS_STREAM},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    backup_folder,
    backup_run::ProgressCallback,
    error::BackupError,
    forget_orders::{self, DataKeyBucketState, ForgetReplay, ForgottenUser, ForgottenUserList},
    manifest::{API_KEYS, BackupKind, DATA_KEYS, FileEntry, OBJECTS_STREAM},
    message_line::MessageLine,
    restore_plan::{Filling, RestorePlan},
    segments::SegmentLines,
    stream_reader::{self, LeaderStreamInfo},
    stream_upload, verification,
};

/// The first nats-server that reads [`crate::stream_archive`].
const SERVER: (u32, u32) = (2, 15);
/// Time to listen for services that are running.
const LISTENED: Duration = Duration::from_secs(1);
/// The streams that are filled.
const FILLED: [&str; 7] = [TIMERS_STREAM, HOOKS_STREAM, EVENTS_STREAM, DATA_KEYS, API_KEYS, DLQ_STREAM, OBJECTS_STREAM];
/// The streams that are made from the log, and are of no use without it.
const MADE_FROM_LOG: [&str; 2] = [TIMERS_STREAM, HOOKS_STREAM];

/// Up to where the log is to be as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// This message and nothing behind it.
    Sequence(u64),
    /// All that was stored until then.
    Time(Timestamp),
}

/// The result that a restore is to have.
#[derive(Clone, Debug, Default)]
pub struct RestoreRequest {
    /// None for all that the backup has.
    pub at: Option<RestorePoint>,
    /// Users who are forgotten, as far as that is known elsewhere.
    pub forgotten: ForgottenUserList,
    /// Copies of streams and buckets.
    pub replicas: usize,
    /// With which orders to forget users are signed, as gateways do.
    pub signatures: EntrySigner,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOutcome {
    /// The id of the log from now on, and before.
    pub log: Uuid,
    pub before: Uuid,
    /// The last message of the log that was restored.
    pub through: u64,
    /// Users whose keys were destroyed on the way and whom gateways forget as soon as they start.
    pub forgotten_again: Vec<String>,
}

/// Restores a backup.
///
/// # Errors
/// If the backup is damaged, services are running, or the servers have something already: then nothing is done. If it
/// breaks off later, services refuse the log until the restore was done again.
pub async fn restore_backup(
    nats: &JetStream,
    path: &Path,
    wanted: &RestoreRequest,
    progress: ProgressCallback<'_>,
) -> Result<RestoreOutcome, BackupError> {
    let manifest = backup_folder::read_manifest_of_kind(path, BackupKind::Backup)?;
    if let Some(damaged) = verification::find_damaged_files(path, &manifest).into_iter().next() {
        return Err(BackupError::Refused(damaged));
    }
    let cut = wanted.at.map(|at| log_end::find_cut(path, &manifest, at)).transpose()?;
    check_server_version(&nats.client.server_info().version)?;
    check_no_service_runs(nats).await?;
    clear_streams(nats).await?;
    let plan = RestorePlan { manifest: &manifest, cut };
    let restoring = RestoreRun { nats, path: path.to_owned(), plan, wanted, progress };
    let forgotten_again = restoring.fill().await?;
    let log = Uuid::new_v4();
    restoring.finish(log).await?;
    Ok(RestoreOutcome { log, before: manifest.log, through: plan.log_end(), forgotten_again })
}

/// Checks that a server of this version can read what it is given.
fn check_server_version(version: &str) -> Result<(), BackupError> {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < SERVER => Err(BackupError::Refused(format!(
            "the server is nats-server {version}: a restore takes {}.{} or later",
            SERVER.0, SERVER.1
        ))),
        _ => Ok(()),
    }
}

async fn check_no_service_runs(nats: &JetStream) -> Result<(), BackupError> {
    let failed = |error: String| BackupError::Refused(format!("cannot ask who is there: {error}"));
    // Replicas may answer a gateway, and nobody else.
    let inbox = format!("{}.{}", permissions::inbox_prefix(Service::Gateway.name()), Uuid::new_v4().simple());
    let mut answers = nats.client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
    let asked = nats.client.publish_with_reply(STATUS_PING, inbox, Default::default()).await;
    asked.map_err(|error| failed(error.to_string()))?;
    let Ok(Some(answer)) = timeout(LISTENED, answers.next()).await else { return Ok(()) };
    // A server says so where nobody listens.
    if answer.status.is_some() {
        return Ok(());
    }
    let status: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
    let who = status.get("service").and_then(Value::as_str).unwrap_or("a service");
    Err(BackupError::Refused(format!("{who} is running: stop all services before a restore")))
}

/// Removes what an interrupted restore has left, and streams that nothing was ever written to.
async fn clear_streams(nats: &JetStream) -> Result<(), BackupError> {
    let mut there: Vec<(&str, LeaderStreamInfo)> = Vec::new();
    for stream in FILLED {
        there.extend(stream_reader::load_stream_info(nats, stream).await?.map(|info| (stream, info)));
    }
    for (stream, info) in &there {
        let is_free = info.last_sequence == 0 || info.metadata(RESTORING).is_some() || MADE_FROM_LOG.contains(stream);
        if !is_free {
            return Err(BackupError::Refused(format!(
                "the stream {stream} is not empty (it goes up to {}): restore to servers that have no log, or remove \
                 what they have first",
                info.last_sequence
            )));
        }
    }
    for (stream, _) in there {
        let deleted = nats.jetstream.delete_stream(stream).await;
        deleted.map_err(|error| BackupError::NotTaken { stream: stream.to_owned(), why: error.to_string() })?;
    }
    Ok(())
}

struct RestoreRun<'r> {
    nats: &'r JetStream,
    path: PathBuf,
    plan: RestorePlan<'r>,
    wanted: &'r RestoreRequest,
    progress: ProgressCallback<'r>,
}

impl RestoreRun<'_> {
    /// Fills all streams; who is forgotten again.
    async fn fill(&self) -> Result<Vec<String>, BackupError> {
        for stream in MADE_FROM_LOG {
            if let Some(filling) = self.plan.effects(stream) {
                let lines = self.lines(filling.files.clone());
                self.fill_stream(&filling, lines).await?;
            }
        }
        let settled = self.fill_log().await?;
        let again = self.fill_data_keys(&settled).await?;
        for filling in [self.plan.newest(API_KEYS), self.plan.all_parts(DLQ_STREAM)].into_iter().flatten() {
            let is_cut_off = |line: &MessageLine| {
                filling.stream == DLQ_STREAM && self.plan.cut.is_some_and(|cut| line.stored > cut.stored)
            };
            let lines = self.lines(filling.files.clone());
            let lines = lines.filter(|line| !line.as_ref().is_ok_and(is_cut_off));
            self.fill_stream(&filling, lines).await?;
        }
        self.fill_objects().await?;
        Ok(again.users())
    }

    /// Fills the log and returns the orders to forget somebody that it says are carried out.
    async fn fill_log(&self) -> Result<BTreeSet<Uuid>, BackupError> {
        let missing = || BackupError::Refused("the backup has no log".to_owned());
        let mut filling = self.plan.log().ok_or_else(missing)?;
        let mut settled = BTreeSet::new();
        let through = self.plan.log_end();
        filling.config = log_end::restored_config(&filling.config, filling.state.first_sequence, through);
        let lines = self.lines(filling.files.clone());
        let lines = lines.take_while(|line| line.as_ref().map_or(true, |line| line.sequence <= through));
        let lines = lines.map(|line| {
            let line = line?.without_lifetime();
            settled.extend(forget_orders::settled_order_id(&line));
            Ok(line)
        });
        self.fill_stream(&filling, lines).await?;
        Ok(settled)
    }

    async fn fill_data_keys(&self, settled: &BTreeSet<Uuid>) -> Result<ForgetReplay, BackupError> {
        let Some(mut filling) = self.plan.newest(DATA_KEYS) else { return Ok(ForgetReplay::default()) };
        let asked: BTreeSet<Name> = self.wanted.forgotten.forgotten.iter().map(|it| it.user.clone()).collect();
        let known = load_data_keys(
            &self.path,
            filling.files.clone(),
            DataKeyBucketState::new(&self.wanted.signatures),
            &asked,
        )?;
        let again = known.plan_replay(settled, &self.wanted.forgotten);
        if known.has_signed_orders() && !self.wanted.signatures.are_required() {
            let problem =
                "orders to forget users are signed in the backup: expected signing.key, the one that gateways have";
            return Err(BackupError::Refused(problem.to_owned()));
        }
        let added = again.missing_order_lines(&known, Timestamp::now());
        filling.state.last_sequence = added.last().map_or(0, |line| line.sequence).max(filling.state.last_sequence);
        let lines = self.lines(filling.files.clone()).map(|line| Ok(again.apply_to_line(line?)));
        self.fill_stream(&filling, lines.chain(added.iter().cloned().map(Ok))).await?;
        Ok(again)
    }

    /// The bytes of those images that there are.
    async fn fill_objects(&self) -> Result<(), BackupError> {
        let Some((filling, names)) = self.plan.objects(OBJECTS_STREAM) else { return Ok(()) };
        let mut kept = BTreeSet::new();
        for name in SegmentLines::new(&self.path, names.clone()) {
            kept.extend(chunk_id(&name?));
        }
        let is_kept = |line: &MessageLine| line.subject.rsplit('.').next().is_some_and(|id| kept.contains(id));
        let bytes = self.lines(filling.files.clone());
        let bytes = bytes.filter(|line| line.as_ref().map_or(true, is_kept));
        let lines = MergedLines::merge(bytes, self.lines(names));
        self.fill_stream(&filling, lines).await
    }

    fn lines(&self, files: Vec<FileEntry>) -> impl Iterator<Item = Result<MessageLine, BackupError>> + '_ {
        SegmentLines::new(&self.path, files)
    }

    async fn fill_stream(
        &self,
        filling: &Filling,
        lines: impl Iterator<Item = Result<MessageLine, BackupError>>,
    ) -> Result<(), BackupError> {
        let config = mark_config(&filling.config, self.wanted.replicas, self.plan.manifest.log);
        let lines = lines.inspect(|_| (self.progress)(filling.stream));
        stream_upload::fill(self.nats, filling, &config, lines).await
    }

    /// Makes what else is needed, and takes the marks away: that of the log first, with its new id.
    async fn finish(&self, log: Uuid) -> Result<(), BackupError> {
        self.nats.provision_beside_log().await?;
        for (key, through) in self.plan.router_positions() {
            let subject = stream_reader::snapshot_subject(&key);
            let checkpoint = serde_json::to_vec(&Checkpoint { log, through, busy: Vec::new() }).unwrap_or_default();
            let written = self.nats.publish(OutgoingMessage::new(subject.clone(), Headers::new(), checkpoint)).await;
            written.map_err(|error| BackupError::NotTaken { stream: subject, why: error.to_string() })?;
        }
        let before = format!("{}@{}", self.plan.manifest.log, self.plan.log_end());
        self.remove_mark(EVENTS_STREAM, &[(LOG_ID, log.to_string()), (LOG_BEFORE, before)]).await?;
        for stream in FILLED {
            self.remove_mark(stream, &[]).await?;
        }
        Ok(())
    }

    async fn remove_mark(&self, stream: &str, metadata: &[(&str, String)]) -> Result<(), BackupError> {
        let not_taken = |why: String| BackupError::NotTaken { stream: stream.to_owned(), why };
        let Some(mut info) = stream_reader::load_stream_info(self.nats, stream).await? else { return Ok(()) };
        let Some(there) = info.config.get_mut("metadata").and_then(Value::as_object_mut) else { return Ok(()) };
        if there.remove(RESTORING).is_none() {
            return Ok(());
        }
        there.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
        let updated = self.nats.jetstream.request(format!("STREAM.UPDATE.{stream}"), &info.config).await;
        match updated.map_err(|error| not_taken(error.to_string()))? {
            Response::Ok::<Value>(_) => Ok(()),
            Response::Err { error } => Err(not_taken(error.to_string())),
        }
    }
}

/// A stream's configuration with so many copies and the mark of a restore.
fn mark_config(config: &Value, replicas: usize, log: Uuid) -> Value {
    let mut config = config.as_object().cloned().unwrap_or_default();
    let mut metadata = config.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    metadata.insert(RESTORING.to_owned(), json!(log));
    config.insert("metadata".to_owned(), metadata.into());
    config.insert("num_replicas".to_owned(), json!(replicas));
    config.into()
}

fn load_data_keys(
    path: &Path,
    files: Vec<FileEntry>,
    mut known: DataKeyBucketState,
    asked: &BTreeSet<Name>,
) -> Result<DataKeyBucketState, BackupError> {
    for line in SegmentLines::new(path, files) {
        known.apply_entry(&line?, asked);
    }
    Ok(known)
}

/// The orders to forget somebody that a backup knows.
///
/// # Errors
/// If its keys cannot be read.
pub fn read_forgotten_users(path: &Path) -> Result<Vec<ForgottenUser>, BackupError> {
    let manifest = backup_folder::read_manifest_of_kind(path, BackupKind::Backup)?;
    let files = manifest.newest_stream_part(DATA_KEYS).map(|part| part.files.clone()).unwrap_or_default();
    Ok(load_data_keys(path, files, DataKeyBucketState::default(), &BTreeSet::new())?.forgotten_users().forgotten)
}

/// By which id the bytes of an object are found; none of one that was removed.
fn chunk_id(name: &MessageLine) -> Option<String> {
    let object: Value = serde_json::from_slice(&name.data).ok()?;
    let is_deleted = object.get("deleted").and_then(Value::as_bool).unwrap_or(false);
    object.get("nuid").and_then(Value::as_str).filter(|_| !is_deleted).map(str::to_owned)
}

/// Two runs of lines as one, by their sequences.
struct MergedLines<A: Iterator, B: Iterator> {
    one: std::iter::Peekable<A>,
    other: std::iter::Peekable<B>,
}

impl<A: Iterator, B: Iterator> MergedLines<A, B> {
    fn merge(one: A, other: B) -> Self {
        Self { one: one.peekable(), other: other.peekable() }
    }
}

impl<A, B> Iterator for MergedLines<A, B>
where
    A: Iterator<Item = Result<MessageLine, BackupError>>,
    B: Iterator<Item = Result<MessageLine, BackupError>>,
{
    type Item = Result<MessageLine, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = |line: &Result<MessageLine, BackupError>| line.as_ref().map_or(0, |line| line.sequence);
        match (self.one.peek().map(place), self.other.peek().map(place)) {
            (Some(one), Some(other)) if other < one => self.other.next(),
            (Some(_), _) => self.one.next(),
            (None, _) => self.other.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_servers_are_refused_before_anything_is_done() {
        assert!(check_server_version("2.15.0-dev").is_ok() && check_server_version("3.0.1").is_ok());
        assert!(check_server_version("2.14.2").unwrap_err().to_string().contains("2.15"));
    }

    #[test]
    fn a_stream_bears_the_mark_whatever_was_kept_of_it() {
        let config = json!({ "name": "X", "num_replicas": 3, "metadata": { "kairo-partitions": "16" } });
        let expected = json!({
            "name": "X", "num_replicas": 1, "metadata": { "kairo-partitions": "16", RESTORING: Uuid::nil() },
        });
        assert_eq!(mark_config(&config, 1, Uuid::nil()), expected);
        assert_eq!(mark_config(&Value::Null, 1, Uuid::nil())["metadata"][RESTORING], json!(Uuid::nil()));
    }

    fn name(data: &Value) -> MessageLine {
        let stored = Timestamp::UNIX_EPOCH;
        let subject = "$O.KAIRO_OBJECTS.M.eA==".to_owned();
        MessageLine { sequence: 1, stored, subject, headers: Vec::new(), data: data.to_string().into_bytes() }
    }

    #[test]
    fn bytes_are_those_of_objects_that_are_not_removed() {
        assert_eq!(chunk_id(&name(&json!({ "name": "x", "nuid": "N1" }))), Some("N1".to_owned()));
        assert_eq!(chunk_id(&name(&json!({ "name": "x", "nuid": "N1", "deleted": true }))), None);
    }
}
