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
    owners::{OwnerValue, Owners},
    roster::{Beat, OwnershipChange, Roster},
};
use crate::{
    bus::{Bus, BusError},
    subjects::{MEMBERS_BUCKET, OWNERS_BUCKET},
    vocabulary::{FIRST, READER},
};

/// The work of a service on a partition it owns.
pub trait Work: Send + Sync + 'static {
    /// Works until it is told to release the partition and has finished, or has lost it. Cancelled where it is, at the
    /// latest, when the time for handing over is up.
    fn run(self: Arc<Self>, tenure: Tenure) -> impl Future<Output = ()> + Send;
}

/// A partition for as long as this replica owns it.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub partition: u32,
    pub lease: Lease,
    release: watch::Receiver<bool>,
    needs: Needs,
}

/// The version of reader that each partition was said to take, as far as it was not heard yet.
type Needs = watch::Sender<BTreeMap<u32, u32>>;

impl Tenure {
    /// Waits until it is to be handed over.
    pub async fn released(&mut self) {
        if self.release.wait_for(|release| *release).await.is_err() {
            // It was lost: whoever waits is about to be cancelled.
            std::future::pending().await
        }
    }

    /// Says that something was met that takes this version of reader: as soon as a replica is there that has it, the
    /// partition is to be handed over to it.
    pub fn needs(&self, reader: u32) {
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
struct Running {
    release: watch::Sender<bool>,
    task: AbortHandle,
    /// When it was told to hand over.
    releasing: Option<Instant>,
    /// Tells it from one of the same partition before.
    tenure: u64,
}

/// The longest a service may need for handing over beyond what it was given.
const GRACE: Duration = Duration::from_secs(2);

struct Member<W> {
    bus: Bus,
    work: Arc<W>,
    roster: Roster,
    /// When this replica's own clock began.
    started: Instant,
    lease: Lease,
    owners: Owners,
    running: BTreeMap<u32, Running>,
    tenures: u64,
    ended: mpsc::UnboundedSender<(u32, u64)>,
    needs: Needs,
}

/// Takes its share of the partitions and works on them until `shutdown`; then hands over all of them, within
/// `bus.handover_ms`, also while the server is away.
pub async fn run<W: Work>(bus: &Bus, work: Arc<W>, shutdown: CancellationToken) -> Result<(), BusError> {
    let limits = &bus.limits;
    let partitions = bus.log()?.partitions.count();
    let expiry = Duration::from_millis(limits.member_expiry_ms);
    let beat = Duration::from_millis(limits.beat_ms);
    let (ended, mut ends) = mpsc::unbounded_channel();
    let (needs, mut needed) = watch::channel(BTreeMap::new());
    let roster = Roster::new(bus.instance.as_str(), READER, partitions, expiry, Duration::ZERO);
    let lease = Lease::new(expiry);
    bus.standing.observe(&bus.metrics, partitions);
    let started = Instant::now();
    let mut member = Member {
        bus: bus.clone(),
        work,
        roster,
        started,
        lease,
        owners: Owners::default(),
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
                member.roster.close();
                beats.reset_immediately();
            }
            Some((partition, tenure)) = ends.recv() => member.hand_over(partition, tenure).await,
            Ok(()) = needed.changed() => member.hear_needs(),
            _ = beats.tick() => member.beat().await,
        }
        let out_of_time = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if deadline.is_some() && (member.roster.may_leave() || out_of_time) {
            member.stop_all();
            return Ok(());
        }
    }
}

impl<W: Work> Member<W> {
    async fn beat(&mut self) {
        let began = Instant::now();
        match self.look().await {
            Ok(members) => self.act(began, members).await,
            Err(error) => {
                tracing::debug!(%error, "a beat did not reach the server");
                // Buckets in memory are gone when the only server was restarted.
                if let Err(error) = self.bus.restore(&[MEMBERS_BUCKET, OWNERS_BUCKET]).await {
                    tracing::debug!(%error, "cannot make sure of the buckets");
                }
            }
        }
        self.cut_short();
    }

    /// Announces this replica, and reads what the others say.
    async fn look(&mut self) -> Result<BTreeMap<String, Beat>, BusError> {
        let group = self.bus.service.name();
        if let Some(beat) = self.roster.announce(self.started.elapsed()) {
            let value = MemberValue { beat: beat.number, reader: beat.reader, leaving: beat.leaving };
            let value = serde_json::to_vec(&value).unwrap_or_default();
            let key = format!("{group}.{}", self.bus.instance);
            self.bus.put_value(MEMBERS_BUCKET, &key, value.into()).await?;
        }
        let filter = format!("{group}.*");
        let (members, ()) =
            tokio::try_join!(self.bus.values(MEMBERS_BUCKET, &filter), self.owners.look(&self.bus, &filter))?;
        let members = members.into_iter().filter_map(|entry| {
            let name = entry.key.strip_prefix(group)?.strip_prefix('.')?.to_owned();
            let value: MemberValue = serde_json::from_slice(&entry.value).ok()?;
            Some((name, Beat { number: value.beat, reader: value.reader, leaving: value.leaving }))
        });
        Ok(members.collect())
    }

    async fn act(&mut self, began: Instant, members: BTreeMap<String, Beat>) {
        let changes = self.roster.observe(self.started.elapsed(), members, self.owners.by_partition());
        for change in &changes {
            if let OwnershipChange::Drop { partition, owner } = change {
                tracing::warn!(partition, ?owner, "lost a partition");
                self.stop(*partition);
            }
        }
        // Only now that what was taken from it has stopped.
        self.lease.renew(began);
        let mut takes = Vec::new();
        for change in changes {
            match change {
                OwnershipChange::Drop { .. } => {}
                OwnershipChange::Rewrite { partition } => {
                    if let Ok(revision) = self.claim(partition, 0).await {
                        tracing::info!(partition, "wrote again what the server had forgotten");
                        self.roster.took(partition, revision, self.started.elapsed());
                    }
                }
                OwnershipChange::Release { partition } => self.release(partition),
                OwnershipChange::Disown { partition, revision } => {
                    self.disown(partition, revision, self.mark(partition)).await
                }
                OwnershipChange::Take { partition, revision, from } => takes.push((partition, revision, from)),
            }
        }
        let claims = takes.iter().map(|(partition, revision, _)| self.claim(*partition, *revision));
        let claimed = futures::future::join_all(claims).await;
        for ((partition, _, from), claimed) in takes.into_iter().zip(claimed) {
            match claimed {
                Ok(revision) => self.start(partition, revision, from),
                Err(error) => tracing::debug!(partition, %error, "somebody else was faster"),
            }
        }
    }

    fn hear_needs(&mut self) {
        let mut heard = BTreeMap::new();
        self.needs.send_if_modified(|needs| {
            heard = std::mem::take(needs);
            false
        });
        heard.into_iter().for_each(|(partition, reader)| self.roster.needs(partition, reader));
    }

    async fn claim(&self, partition: u32, expected: u64) -> Result<u64, BusError> {
        let owner = OwnerValue { owner: Some(self.bus.instance.to_string()), reader: self.mark(partition) };
        let written = self.write_owner(partition, &owner, expected).await;
        if expected > 0 || !matches!(written, Err(BusError::Conflict { .. })) {
            return written;
        }
        // Of a key that somebody deleted there is no value, but a revision.
        match self.bus.value_to_replace(OWNERS_BUCKET, &self.key(partition)).await? {
            (deleted, None) => self.write_owner(partition, &owner, deleted).await,
            (_, Some(_)) => written,
        }
    }

    /// The version of reader that a partition takes, as the bucket has it.
    fn mark(&self, partition: u32) -> u32 {
        self.owners.by_partition().get(&partition).map_or(FIRST, |owner| owner.reader)
    }

    async fn write_owner(&self, partition: u32, owner: &OwnerValue, expected: u64) -> Result<u64, BusError> {
        let value = serde_json::to_vec(owner).unwrap_or_default();
        self.bus.update_value(OWNERS_BUCKET, &self.key(partition), value.into(), expected).await
    }

    fn key(&self, partition: u32) -> String {
        format!("{}.{partition}", self.bus.service.name())
    }

    fn start(&mut self, partition: u32, revision: u64, from: Option<String>) {
        tracing::info!(partition, from = from.as_deref().unwrap_or("nobody"), "took a partition");
        if from.is_some() {
            self.bus.standing.count_takeover();
        }
        self.roster.took(partition, revision, self.started.elapsed());
        self.tenures += 1;
        let tenure = self.tenures;
        let (release, released) = watch::channel(false);
        let (work, ended) = (self.work.clone(), self.ended.clone());
        let holding = Tenure { partition, lease: self.lease.clone(), release: released, needs: self.needs.clone() };
        let task = self.bus.spawn(async move {
            work.run(holding).await;
            let _ = ended.send((partition, tenure));
        });
        self.running.insert(partition, Running { release, task: task.abort_handle(), releasing: None, tenure });
    }

    fn release(&mut self, partition: u32) {
        match self.running.get_mut(&partition) {
            Some(running) => {
                running.releasing = Some(Instant::now());
                running.release.send_replace(true);
            }
            None => _ = self.ended.send((partition, 0)),
        }
    }

    /// Ends what takes too long to hand over: whoever is next does it again.
    fn cut_short(&mut self) {
        let longest = Duration::from_millis(self.bus.limits.handover_ms) + GRACE;
        let late = |running: &Running| running.releasing.is_some_and(|since| since.elapsed() > longest);
        let late: Vec<_> = self.running.iter().filter(|(_, it)| late(it)).map(|(at, it)| (*at, it.tenure)).collect();
        for (partition, tenure) in late {
            tracing::warn!(partition, "handing over took too long");
            self.stop(partition);
            let _ = self.ended.send((partition, tenure));
        }
    }

    /// The work on a partition has ended. What it is released with tells the next owner that nobody is at it.
    async fn hand_over(&mut self, partition: u32, tenure: u64) {
        if self.running.get(&partition).is_some_and(|running| running.tenure != tenure) {
            return;
        }
        self.stop(partition);
        if let Some((revision, reader)) = self.roster.gave(partition) {
            self.disown(partition, revision, reader).await;
        }
    }

    /// Says that nobody owns it, and what it takes to read it. Where that is not heard, it is said again at the next beat.
    async fn disown(&self, partition: u32, revision: u64, reader: u32) {
        let nobody = OwnerValue { owner: None, reader };
        match self.write_owner(partition, &nobody, revision).await {
            Ok(_) => {
                self.bus.standing.count_handover();
                tracing::info!(partition, "handed a partition over");
            }
            Err(error) => tracing::debug!(partition, %error, "released without being heard"),
        }
    }

    fn stop(&mut self, partition: u32) {
        if let Some(running) = self.running.remove(&partition) {
            running.task.abort();
        }
        self.bus.standing.remove(partition);
    }

    fn stop_all(&mut self) {
        let running: Vec<u32> = self.running.keys().copied().collect();
        running.into_iter().for_each(|partition| self.stop(partition));
    }
}

impl<W> Drop for Member<W> {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}
