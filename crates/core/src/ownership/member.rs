//! A replica as a member of its group: it announces itself, sees who else is there, and runs the partitions it owns.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::{
    lease::Lease,
    owners::{OwnerValue, PartitionOwners},
    roster::{Heartbeat, OwnershipChange, Roster},
};
use crate::{
    bus::{Bus, BusError},
    subjects::{MEMBERS_BUCKET, OWNERS_BUCKET},
    vocabulary::{FIRST, READER},
};

/// The work of a service on a partition it owns.
pub trait PartitionWork: Send + Sync + 'static {
    /// Works until it is told to release the partition and has finished, or has lost it. Cancelled where it is, at the
    /// latest, when the time for handing over is up.
    fn run(self: Arc<Self>, tenure: PartitionLease) -> impl Future<Output = ()> + Send;
}

/// A partition for as long as this replica owns it.
#[derive(Clone, Debug)]
pub struct PartitionLease {
    pub partition: u32,
    pub lease: Lease,
    release: watch::Receiver<bool>,
    needs: ReaderNeeds,
}

/// The version of reader that each partition was said to take, as far as it was not heard yet.
type ReaderNeeds = watch::Sender<BTreeMap<u32, u32>>;

impl PartitionLease {
    /// Waits until it is to be handed over.
    pub async fn wait_until_released(&mut self) {
        if self.release.wait_for(|release| *release).await.is_err() {
            // It was lost: whoever waits is about to be cancelled.
            std::future::pending().await
        }
    }

    /// Says that something was met that takes this version of reader: as soon as a replica is there that has it, the
    /// partition is to be handed over to it.
    pub fn require_reader(&self, reader: u32) {
        self.needs.send_modify(|needs| _ = needs.insert(self.partition, reader));
    }
}

/// The value of a member in the bucket, as JSON.
#[derive(Serialize, Deserialize)]
struct MemberValue {
    beat: u64,
    reader: u32,
    #[serde(default)]
    leaving: bool,
}

/// A partition at work.
struct RunningPartition {
    release: watch::Sender<bool>,
    task: AbortHandle,
    /// When it was told to hand over.
    releasing: Option<Instant>,
    /// Tells it from one of the same partition before.
    tenure: u64,
}

/// The longest a service may need for handing over beyond what it was given.
const GRACE: Duration = Duration::from_secs(2);

struct GroupMember<W> {
    bus: Bus,
    work: Arc<W>,
    roster: Roster,
    /// When this replica's own clock began.
    started: Instant,
    lease: Lease,
    owners: PartitionOwners,
    running: BTreeMap<u32, RunningPartition>,
    tenures: u64,
    ended: mpsc::UnboundedSender<(u32, u64)>,
    needs: ReaderNeeds,
}

/// Takes its share of the partitions and works on them until `shutdown`; then hands over all of them, within
/// `bus.handover_ms`, also while the server is away.
pub async fn run<W: PartitionWork>(bus: &Bus, work: Arc<W>, shutdown: CancellationToken) -> Result<(), BusError> {
    let limits = &bus.limits;
    let partitions = bus.log_identity()?.partitions.count();
    let expiry = Duration::from_millis(limits.member_expiry_ms);
    let beat = Duration::from_millis(limits.beat_ms);
    let (ended, mut ends) = mpsc::unbounded_channel();
    let (needs, mut needed) = watch::channel(BTreeMap::new());
    let roster = Roster::new(bus.instance.as_str(), READER, partitions, expiry, Duration::ZERO);
    let lease = Lease::new(expiry);
    bus.standing.register_metrics(&bus.metrics, partitions);
    let started = Instant::now();
    let mut member = GroupMember {
        bus: bus.clone(),
        work,
        roster,
        started,
        lease,
        owners: PartitionOwners::default(),
        running: BTreeMap::new(),
        tenures: 0,
        ended,
        needs,
    };
    let mut beats = tokio::time::interval(beat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = None;
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled(), if deadline.is_none() => {
                deadline = Some(Instant::now() + Duration::from_millis(limits.handover_ms) + GRACE * 2);
                member.roster.begin_leaving();
                beats.reset_immediately();
            }
            Some((partition, tenure)) = ends.recv() => member.finish_handover(partition, tenure).await,
            Ok(()) = needed.changed() => member.collect_needs(),
            _ = beats.tick() => member.run_heartbeat().await,
        }
        let out_of_time = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if deadline.is_some() && (member.roster.may_leave() || out_of_time) {
            member.stop_all();
            return Ok(());
        }
    }
}

impl<W: PartitionWork> GroupMember<W> {
    async fn run_heartbeat(&mut self) {
        let began = Instant::now();
        match self.exchange_heartbeats().await {
            Ok(members) => self.apply_changes(began, members).await,
            Err(error) => {
                tracing::debug!(%error, "a beat did not reach the server");
                // Buckets in memory are gone when the only server was restarted.
                if let Err(error) = self.bus.restore_buckets(&[MEMBERS_BUCKET, OWNERS_BUCKET]).await {
                    tracing::debug!(%error, "cannot make sure of the buckets");
                }
            }
        }
        self.abort_late_handovers();
    }

    /// Announces this replica, and reads what the others say.
    async fn exchange_heartbeats(&mut self) -> Result<BTreeMap<String, Heartbeat>, BusError> {
        let group = self.bus.service.name();
        if let Some(beat) = self.roster.next_heartbeat(self.started.elapsed()) {
            let value = MemberValue { beat: beat.number, reader: beat.reader, leaving: beat.leaving };
            let value = serde_json::to_vec(&value).unwrap_or_default();
            let key = format!("{group}.{}", self.bus.instance);
            self.bus.put_value(MEMBERS_BUCKET, &key, value.into()).await?;
        }
        let filter = format!("{group}.*");
        let (members, ()) =
            tokio::try_join!(self.bus.read_values(MEMBERS_BUCKET, &filter), self.owners.refresh(&self.bus, &filter))?;
        let members = members.into_iter().filter_map(|entry| {
            let name = entry.key.strip_prefix(group)?.strip_prefix('.')?.to_owned();
            let value: MemberValue = serde_json::from_slice(&entry.value).ok()?;
            Some((name, Heartbeat { number: value.beat, reader: value.reader, leaving: value.leaving }))
        });
        Ok(members.collect())
    }

    async fn apply_changes(&mut self, began: Instant, members: BTreeMap<String, Heartbeat>) {
        let changes = self.roster.observe(self.started.elapsed(), members, self.owners.by_partition());
        for change in &changes {
            if let OwnershipChange::Drop { partition, owner } = change {
                tracing::warn!(partition, ?owner, "lost a partition");
                self.stop_partition(*partition);
            }
        }
        // Only now that what was taken from it has stopped.
        self.lease.renew(began);
        let mut takes = Vec::new();
        for change in changes {
            match change {
                OwnershipChange::Drop { .. } => {}
                OwnershipChange::Rewrite { partition } => {
                    if let Ok(revision) = self.claim_partition(partition, 0).await {
                        tracing::info!(partition, "wrote again what the server had forgotten");
                        self.roster.record_taken(partition, revision, self.started.elapsed());
                    }
                }
                OwnershipChange::Release { partition } => self.release_partition(partition),
                OwnershipChange::Disown { partition, revision } => {
                    self.disown_partition(partition, revision, self.required_reader(partition)).await
                }
                OwnershipChange::Take { partition, revision, from } => takes.push((partition, revision, from)),
            }
        }
        let claims = takes.iter().map(|(partition, revision, _)| self.claim_partition(*partition, *revision));
        let claimed = futures::future::join_all(claims).await;
        for ((partition, _, from), claimed) in takes.into_iter().zip(claimed) {
            match claimed {
                Ok(revision) => self.start_partition(partition, revision, from),
                Err(error) => tracing::debug!(partition, %error, "somebody else was faster"),
            }
        }
    }

    fn collect_needs(&mut self) {
        let mut heard = BTreeMap::new();
        self.needs.send_if_modified(|needs| {
            heard = std::mem::take(needs);
            false
        });
        heard.into_iter().for_each(|(partition, reader)| self.roster.require_reader(partition, reader));
    }

    async fn claim_partition(&self, partition: u32, expected: u64) -> Result<u64, BusError> {
        let owner = OwnerValue { owner: Some(self.bus.instance.to_string()), reader: self.required_reader(partition) };
        let written = self.write_owner(partition, &owner, expected).await;
        if expected > 0 || !matches!(written, Err(BusError::Conflict { .. })) {
            return written;
        }
        // Of a key that somebody deleted there is no value, but a revision.
        match self.bus.read_value_with_revision(OWNERS_BUCKET, &self.owner_key(partition)).await? {
            (deleted, None) => self.write_owner(partition, &owner, deleted).await,
            (_, Some(_)) => written,
        }
    }

    /// The version of reader that a partition takes, as the bucket has it.
    fn required_reader(&self, partition: u32) -> u32 {
        self.owners.by_partition().get(&partition).map_or(FIRST, |owner| owner.reader)
    }

    async fn write_owner(&self, partition: u32, owner: &OwnerValue, expected: u64) -> Result<u64, BusError> {
        let value = serde_json::to_vec(owner).unwrap_or_default();
        self.bus.update_value(OWNERS_BUCKET, &self.owner_key(partition), value.into(), expected).await
    }

    fn owner_key(&self, partition: u32) -> String {
        format!("{}.{partition}", self.bus.service.name())
    }

    fn start_partition(&mut self, partition: u32, revision: u64, from: Option<String>) {
        tracing::info!(partition, from = from.as_deref().unwrap_or("nobody"), "took a partition");
        if from.is_some() {
            self.bus.standing.count_takeover();
        }
        self.roster.record_taken(partition, revision, self.started.elapsed());
        self.tenures += 1;
        let tenure = self.tenures;
        let (release, released) = watch::channel(false);
        let work = self.work.clone();
        let ended = self.ended.clone();
        let holding =
            PartitionLease { partition, lease: self.lease.clone(), release: released, needs: self.needs.clone() };
        let task = self.bus.spawn(async move {
            work.run(holding).await;
            let _ = ended.send((partition, tenure));
        });
        self.running
            .insert(partition, RunningPartition { release, task: task.abort_handle(), releasing: None, tenure });
    }

    fn release_partition(&mut self, partition: u32) {
        match self.running.get_mut(&partition) {
            Some(running) => {
                running.releasing = Some(Instant::now());
                running.release.send_replace(true);
            }
            None => _ = self.ended.send((partition, 0)),
        }
    }

    /// Ends what takes too long to hand over: whoever is next does it again.
    fn abort_late_handovers(&mut self) {
        let longest = Duration::from_millis(self.bus.limits.handover_ms) + GRACE;
        let late = |running: &RunningPartition| running.releasing.is_some_and(|since| since.elapsed() > longest);
        let late: Vec<_> = self.running.iter().filter(|(_, it)| late(it)).map(|(at, it)| (*at, it.tenure)).collect();
        for (partition, tenure) in late {
            tracing::warn!(partition, "handing over took too long");
            self.stop_partition(partition);
            let _ = self.ended.send((partition, tenure));
        }
    }

    /// The work on a partition has ended. What it is released with tells the next owner that nobody is at it.
    async fn finish_handover(&mut self, partition: u32, tenure: u64) {
        if self.running.get(&partition).is_some_and(|running| running.tenure != tenure) {
            return;
        }
        self.stop_partition(partition);
        if let Some((revision, reader)) = self.roster.record_released(partition) {
            self.disown_partition(partition, revision, reader).await;
        }
    }

    /// Says that nobody owns it, and what it takes to read it. Where that is not heard, it is said again at the next beat.
    async fn disown_partition(&self, partition: u32, revision: u64, reader: u32) {
        let nobody = OwnerValue { owner: None, reader };
        match self.write_owner(partition, &nobody, revision).await {
            Ok(_) => {
                self.bus.standing.count_handover();
                tracing::info!(partition, "handed a partition over");
            }
            Err(error) => tracing::debug!(partition, %error, "released without being heard"),
        }
    }

    fn stop_partition(&mut self, partition: u32) {
        if let Some(running) = self.running.remove(&partition) {
            running.task.abort();
        }
        self.bus.standing.remove_partition(partition);
    }

    fn stop_all(&mut self) {
        let running: Vec<u32> = self.running.keys().copied().collect();
        running.into_iter().for_each(|partition| self.stop_partition(partition));
    }
}

impl<W> Drop for GroupMember<W> {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}
