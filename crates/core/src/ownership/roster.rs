//! The live members of the group, the partition owners, and the actions of a replica at each beat. Pure: each beat
//! receives the contents of the buckets and the time since an arbitrary start on this replica's own clock.
//!
//! The rules are those of a lease without a coordinator. A replica watches for one expiry before it announces itself,
//! so that it knows who is alive. A member whose value did not change for one expiry, by the observer's clock, has
//! lapsed. The partitions of a lapsed member may be taken, by compare-and-set on the partition's key; those of a live
//! member change owner only when it releases them. A partition in which a member met something unknown needs a newer
//! reader than it has: the member hands it over to a live member that understands it, and keeps it only as long as
//! there is none. Ownership saves work. The guard on the decision subject alone ensures that nothing is decided twice.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use crate::vocabulary::FIRST;

/// A beat in which a partition had no key before others may make one. Its owner writes it again at once.
const ABSENT_BEATS: u32 = 3;
/// Beats in which nobody at all was seen before a first replica joins without watching for a whole expiry.
const ALONE_BEATS: u32 = 3;
/// For so long after taking a partition an older revision of its key is that of a server that lags behind; later it is
/// that of a bucket that was made again.
const SETTLING: Duration = Duration::from_secs(2);

/// The entry of a partition in the bucket of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerEntry {
    pub revision: u64,
    /// None when it was released.
    pub name: Option<String>,
    /// Version of reader that it takes to understand all of it.
    pub reader: u32,
}

/// The entry of a member in the bucket of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    pub number: u64,
    pub reader: u32,
    /// True once it hands over its partitions and no longer counts as a member. It owns each until it has handed it
    /// over, as long as it is alive.
    pub leaving: bool,
}

/// An action of a replica after a beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnershipChange {
    /// Somebody else owns it: stop at once.
    Drop { partition: u32, owner: Option<String> },
    /// Its key is gone: write it again.
    Rewrite { partition: u32 },
    /// Finish what runs and hand it over.
    Release { partition: u32 },
    /// Its key still names this replica, which does not work on it: say that nobody does.
    Disown { partition: u32, revision: u64 },
    /// Try to take it, from whoever is named.
    Take { partition: u32, revision: u64, from: Option<String> },
}

/// A partition that this replica owns.
#[derive(Clone, Debug)]
struct HeldPartition {
    revision: u64,
    since: Duration,
    releasing: bool,
    /// Version of reader that it takes to understand all of it.
    reader: u32,
}

/// The view one replica has of its group.
#[derive(Debug)]
pub struct Roster {
    me: String,
    reader: u32,
    partitions: u32,
    expiry: Duration,
    started: Duration,
    joined: bool,
    closing: bool,
    beats: u64,
    /// The last value of every member seen, and when it was first seen.
    members: BTreeMap<String, (Heartbeat, Duration)>,
    /// The number of beats in which a partition had no key.
    absent: BTreeMap<u32, u32>,
    held: BTreeMap<u32, HeldPartition>,
}

impl Roster {
    pub fn new(me: &str, reader: u32, partitions: u32, expiry: Duration, now: Duration) -> Self {
        Self {
            me: me.to_owned(),
            reader,
            partitions,
            expiry,
            started: now,
            joined: false,
            closing: false,
            beats: 0,
            members: BTreeMap::new(),
            absent: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// Starts leaving: the replica hands over its partitions and takes no more.
    pub fn begin_leaving(&mut self) {
        self.closing = true;
    }

    /// The value to announce at this beat; none while it watches.
    pub fn next_heartbeat(&mut self, now: Duration) -> Option<Heartbeat> {
        self.beats += 1;
        let alone = self.members.is_empty() && self.beats > u64::from(ALONE_BEATS);
        self.joined |= alone || now.saturating_sub(self.started) > self.expiry;
        self.joined.then_some(Heartbeat { number: self.beats, reader: self.reader, leaving: self.closing })
    }

    /// Returns true if the replica is closing and owns no partition any more.
    pub fn may_leave(&self) -> bool {
        self.closing && self.held.is_empty()
    }

    /// Records that a partition was taken, or its key was written again.
    pub fn record_taken(&mut self, partition: u32, revision: u64, now: Duration) {
        let new = HeldPartition { revision, since: now, releasing: false, reader: FIRST };
        let held = self.held.entry(partition).or_insert(new);
        // Of a bucket that was made again, revisions begin anew.
        held.revision = revision;
        held.since = now;
    }

    /// In what it holds something was met that takes this version of reader.
    pub fn require_reader(&mut self, partition: u32, reader: u32) {
        if let Some(held) = self.held.get_mut(&partition) {
            held.reader = held.reader.max(reader);
        }
    }

    /// Records that a partition was handed over or lost, and returns the revision it was held with and the reader
    /// version it needs.
    pub fn record_released(&mut self, partition: u32) -> Option<(u64, u32)> {
        self.held.remove(&partition).map(|held| (held.revision, held.reader))
    }

    /// Returns the actions that follow from the members and owners seen. [`OwnershipChange::Drop`] comes first: only
    /// then may the lease be renewed.
    pub fn observe(
        &mut self,
        now: Duration,
        members: BTreeMap<String, Heartbeat>,
        owners: &BTreeMap<u32, OwnerEntry>,
    ) -> Vec<OwnershipChange> {
        let sees_itself = members.contains_key(&self.me);
        self.apply_members(now, members);
        let mut changes = self.reconcile_held(now, owners);
        for partition in 0..self.partitions {
            match owners.contains_key(&partition) {
                true => _ = self.absent.remove(&partition),
                false => *self.absent.entry(partition).or_default() += 1,
            }
        }
        let alive = self.live_members(now);
        changes.extend(self.release_unreadable(&alive));
        changes.extend(self.release_surplus(&alive));
        // A member whose announcement cannot be seen yet is in nobody else's count.
        if sees_itself && !self.closing {
            changes.extend(self.take_free(owners, &alive, now));
        }
        changes.extend(self.disown_released(owners, &changes));
        changes
    }

    fn apply_members(&mut self, now: Duration, members: BTreeMap<String, Heartbeat>) {
        // Those long gone are forgotten; the expiry is what counts. As long as one is listed, it would be taken for new.
        let expiry = self.expiry;
        self.members.retain(|name, (_, seen)| members.contains_key(name) || now.saturating_sub(*seen) < expiry * 8);
        for (name, beat) in members {
            match self.members.get_mut(&name) {
                Some((last, _)) if *last == beat => {}
                Some(seen) => *seen = (beat, now),
                None => _ = self.members.insert(name, (beat, now)),
            }
        }
    }

    /// Returns true if a member's value has changed within one expiry.
    fn is_fresh(&self, name: &str, now: Duration) -> bool {
        self.members.get(name).is_some_and(|(_, seen)| now.saturating_sub(*seen) < self.expiry)
    }

    /// Members alive that stay and what each reads, this one included if it is one.
    fn live_members(&self, now: Duration) -> LiveMembers {
        let fresh = self.members.iter().filter(|(name, (beat, _))| !beat.leaving && self.is_fresh(name, now));
        let mut alive: BTreeMap<_, _> = fresh.map(|(name, (beat, _))| (name.clone(), beat.reader)).collect();
        match self.joined && !self.closing {
            true => _ = alive.insert(self.me.clone(), self.reader),
            false => _ = alive.remove(&self.me),
        }
        LiveMembers(alive)
    }

    /// Returns this replica's fair share for partitions that need this version of reader, counting all its other
    /// partitions. Partitions that not every member understands are shared among fewer.
    fn fair_share(&self, alive: &LiveMembers, reader: u32) -> usize {
        let is_one = !self.closing && self.joined;
        if is_one { partitions_per_member(self.partitions, alive.count_sharing(reader)) } else { 0 }
    }

    /// Compares the held partitions with the bucket, and returns those to drop or to write again.
    fn reconcile_held(&mut self, now: Duration, owners: &BTreeMap<u32, OwnerEntry>) -> Vec<OwnershipChange> {
        let mut changes = Vec::new();
        for (&partition, held) in &mut self.held {
            match owners.get(&partition) {
                None => changes.push(OwnershipChange::Rewrite { partition }),
                Some(owner) if owner.name.as_ref() == Some(&self.me) => {
                    held.revision = held.revision.max(owner.revision);
                    held.reader = held.reader.max(owner.reader);
                }
                // A server that lags behind still shows what was before it was taken.
                Some(owner) if owner.revision < held.revision && now.saturating_sub(held.since) < SETTLING => {}
                Some(owner) => changes.push(OwnershipChange::Drop { partition, owner: owner.name.clone() }),
            }
        }
        changes.sort_by_key(|change| !matches!(change, OwnershipChange::Drop { .. }));
        for change in &changes {
            if let OwnershipChange::Drop { partition, .. } = change {
                self.held.remove(partition);
            }
        }
        changes
    }

    /// Releases the partitions that need a newer reader than this replica has, if a live member has it.
    fn release_unreadable(&mut self, alive: &LiveMembers) -> Vec<OwnershipChange> {
        let reader = self.reader;
        let beyond =
            |held: &HeldPartition| !held.releasing && held.reader > reader && alive.count_able(held.reader) > 0;
        let beyond = self.held.iter_mut().filter(|(_, held)| beyond(held));
        let release = |(&partition, held): (&u32, &mut HeldPartition)| {
            held.releasing = true;
            OwnershipChange::Release { partition }
        };
        beyond.map(release).collect()
    }

    /// Releases the partitions beyond the fair share: first those most members understand, from the highest number
    /// down.
    fn release_surplus(&mut self, alive: &LiveMembers) -> Vec<OwnershipChange> {
        let mut kept: Vec<(u32, u32)> =
            self.held.iter().filter(|(_, held)| !held.releasing).map(|(at, held)| (held.reader, *at)).collect();
        kept.sort_by_key(|(reader, partition)| (*reader, Reverse(*partition)));
        let mut count = kept.len();
        let mut changes = Vec::new();
        for (reader, partition) in kept {
            if count > self.fair_share(alive, reader)
                && let Some(held) = self.held.get_mut(&partition)
            {
                held.releasing = true;
                count -= 1;
                changes.push(OwnershipChange::Release { partition });
            }
        }
        changes
    }

    /// Disowns partitions whose key still names this replica although it has released them, and which it does not take
    /// again: as long as this replica is alive, no other member would take them.
    fn disown_released(&self, owners: &BTreeMap<u32, OwnerEntry>, changes: &[OwnershipChange]) -> Vec<OwnershipChange> {
        let taken = |wanted: u32| {
            changes
                .iter()
                .any(|change| matches!(change, OwnershipChange::Take { partition, .. } if *partition == wanted))
        };
        let mine = owners.iter().filter(|(_, owner)| owner.name.as_ref() == Some(&self.me));
        let left = mine.filter(|(partition, _)| !self.held.contains_key(*partition) && !taken(**partition));
        left.map(|(partition, owner)| OwnershipChange::Disown { partition: *partition, revision: owner.revision })
            .collect()
    }

    /// Takes partitions without a live owner, up to the fair share: first those few members understand, then from an
    /// offset that differs by member, so that not all try the same first.
    fn take_free(
        &self,
        owners: &BTreeMap<u32, OwnerEntry>,
        alive: &LiveMembers,
        now: Duration,
    ) -> Vec<OwnershipChange> {
        let first = crate::partition::fnv1a(&self.me) % self.partitions.max(1);
        let order = (first..self.partitions).chain(0..first).filter(|partition| !self.held.contains_key(partition));
        let reader = |partition: &u32| owners.get(partition).map_or(FIRST, |owner| owner.reader);
        let mut free: Vec<u32> = order.collect();
        free.sort_by_key(|partition| Reverse(reader(partition)));
        let mut count = self.held.len();
        let mut takes = Vec::new();
        for partition in free {
            if count < self.fair_share(alive, reader(&partition)) {
                let take = self.may_take(partition, owners, alive, now);
                count += usize::from(take.is_some());
                takes.extend(take);
            }
        }
        takes
    }

    fn may_take(
        &self,
        partition: u32,
        owners: &BTreeMap<u32, OwnerEntry>,
        alive: &LiveMembers,
        now: Duration,
    ) -> Option<OwnershipChange> {
        let Some(owner) = owners.get(&partition) else {
            let absent = self.absent.get(&partition).copied().unwrap_or(0) >= ABSENT_BEATS;
            return absent.then_some(OwnershipChange::Take { partition, revision: 0, from: None });
        };
        let watched = now.saturating_sub(self.started) > self.expiry;
        let lapsed = |name: &String| *name == self.me || !self.is_fresh(name, now) && watched;
        // What nobody understands has an owner all the same: not all agents of a partition are concerned.
        let is_able = owner.reader <= self.reader || alive.count_able(owner.reader) == 0;
        let may_be_taken = owner.name.as_ref().is_none_or(lapsed) && is_able;
        may_be_taken.then(|| OwnershipChange::Take { partition, revision: owner.revision, from: owner.name.clone() })
    }
}

/// Members that are there, and the version of reader that each is.
struct LiveMembers(BTreeMap<String, u32>);

impl LiveMembers {
    /// Returns the number of live members that have at least this version of reader.
    fn count_able(&self, reader: u32) -> usize {
        self.0.values().filter(|theirs| **theirs >= reader).count()
    }

    /// Returns the number of members that share such partitions: all of them if none has the reader.
    fn count_sharing(&self, reader: u32) -> usize {
        match self.count_able(reader) {
            0 => self.0.len(),
            able => able,
        }
    }
}

/// Returns the most partitions each of `members` members may own.
fn partitions_per_member(partitions: u32, members: usize) -> usize {
    usize::try_from(partitions).unwrap_or(usize::MAX).div_ceil(members.max(1))
}

#[cfg(test)]
mod tests;
