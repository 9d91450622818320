use super::*;

const EXPIRY: Duration = Duration::from_millis(2_500);
const BEAT: Duration = Duration::from_millis(500);

/// Replicas that share two buckets.
struct Group {
    now: Duration,
    members: BTreeMap<String, Heartbeat>,
    owners: BTreeMap<u32, OwnerEntry>,
    replicas: Vec<Roster>,
    revision: u64,
    partitions: u32,
    /// True if releases do not reach the server.
    deaf: bool,
    /// True if partitions to be released are still worked on.
    busy: bool,
}

impl Group {
    fn of(partitions: u32) -> Self {
        let members = BTreeMap::new();
        let owners = BTreeMap::new();
        Self {
            now: Duration::from_secs(1_000),
            members,
            owners,
            replicas: Vec::new(),
            revision: 0,
            partitions,
            deaf: false,
            busy: false,
        }
    }

    fn join(&mut self, name: &str) {
        self.join_as(name, 1);
    }

    fn join_as(&mut self, name: &str, reader: u32) {
        self.replicas.push(Roster::new(name, reader, self.partitions, EXPIRY, self.now));
    }

    /// Writes an owner; without a version of reader the mark stays what it was.
    fn write(&mut self, partition: u32, expected: u64, name: Option<&str>, reader: Option<u32>) -> Option<u64> {
        let is = self.owners.get(&partition).map_or(0, |owner| owner.revision);
        if is != expected {
            return None;
        }
        self.revision += 1;
        let reader = reader.or(self.owners.get(&partition).map(|owner| owner.reader)).unwrap_or(1);
        let owner = OwnerEntry { revision: self.revision, name: name.map(str::to_owned), reader };
        self.owners.insert(partition, owner);
        Some(self.revision)
    }

    /// One beat of the replica at this place; what it was told to do.
    fn beat(&mut self, at: usize) -> Vec<OwnershipChange> {
        let mut replica = self.replicas.remove(at);
        if let Some(beat) = replica.next_heartbeat(self.now) {
            self.members.insert(replica.me.clone(), beat);
        }
        let changes = replica.observe(self.now, self.members.clone(), &self.owners.clone());
        for change in &changes {
            match *change {
                OwnershipChange::Drop { .. } => {}
                OwnershipChange::Rewrite { partition } => {
                    if let Some(revision) = self.write(partition, 0, Some(&replica.me), None) {
                        replica.record_taken(partition, revision, self.now);
                    }
                }
                OwnershipChange::Release { .. } if self.busy => {}
                OwnershipChange::Release { partition } => {
                    let (revision, reader) = replica.record_released(partition).unwrap();
                    if !self.deaf {
                        self.write(partition, revision, None, Some(reader));
                    }
                }
                OwnershipChange::Disown { partition, revision } => _ = self.write(partition, revision, None, None),
                OwnershipChange::Take { partition, revision, .. } => {
                    if let Some(revision) = self.write(partition, revision, Some(&replica.me), None) {
                        replica.record_taken(partition, revision, self.now);
                    }
                }
            }
        }
        self.replicas.insert(at, replica);
        changes
    }

    fn beats(&mut self, count: u32) {
        for _ in 0..count {
            self.now += BEAT;
            for at in 0..self.replicas.len() {
                self.beat(at);
            }
        }
    }

    fn partition_counts(&self) -> Vec<usize> {
        self.replicas.iter().map(|replica| replica.held.len()).collect()
    }

    /// Every partition is held by one.
    fn is_whole(&self) -> bool {
        let mut all: Vec<u32> = self.replicas.iter().flat_map(|replica| replica.held.keys().copied()).collect();
        all.sort_unstable();
        all == (0..self.partitions).collect::<Vec<_>>()
    }
}

#[test]
fn a_first_replica_takes_everything_without_watching_for_long() {
    let mut group = Group::of(16);
    group.join("a");
    group.beats(ALONE_BEATS + 2);
    assert!(group.is_whole());
}

#[test]
fn whoever_joins_is_given_its_share() {
    let mut group = Group::of(64);
    for (members, name) in [(1, "a"), (2, "b"), (3, "c")] {
        group.join(name);
        group.beats(12);
        assert!(group.is_whole(), "{members}: {:?}", group.partition_counts());
        assert!(group.partition_counts().into_iter().all(|held| held <= partitions_per_member(64, members)));
    }
}

#[test]
fn what_a_silent_member_owned_is_taken_after_one_expiry_and_not_before() {
    let mut group = Group::of(8);
    group.join("a");
    group.join("b");
    group.beats(14);
    let gone = group.replicas.remove(1);
    group.beats(4);
    assert_eq!(group.partition_counts(), [4], "within the expiry");
    group.beats(3);
    assert!(group.is_whole());
    // Waking up, it sees that it owns nothing any more before it does anything else.
    group.replicas.push(gone);
    let changes = group.beat(1);
    assert_eq!(changes.iter().filter(|change| matches!(change, OwnershipChange::Drop { .. })).count(), 4);
    assert!(matches!(changes.first(), Some(OwnershipChange::Drop { .. })));
}

#[test]
fn a_member_that_died_does_not_count_again_as_long_as_it_is_listed() {
    let mut group = Group::of(8);
    ["a", "b", "c"].into_iter().for_each(|name| group.join(name));
    group.beats(20);
    group.replicas.remove(2);
    group.beats(20);
    assert!(group.is_whole(), "{:?}", group.partition_counts());
    // The bucket lists it for two minutes.
    for _ in 0..240 {
        group.now += BEAT;
        for at in 0..2 {
            assert_eq!(group.beat(at), []);
        }
    }
}

#[test]
fn a_live_members_partition_is_never_taken() {
    let mut group = Group::of(8);
    group.join("a");
    group.beats(6);
    group.join("b");
    for _ in 0..20 {
        group.now += BEAT;
        group.beat(0);
        let before = group.owners.clone();
        for change in group.beat(1) {
            if let OwnershipChange::Take { partition, .. } = change {
                assert_ne!(before.get(&partition).and_then(|owner| owner.name.as_deref()), Some("a"));
            }
        }
    }
    assert!(group.is_whole());
}

#[test]
fn buckets_that_vanished_are_written_again_by_those_who_own() {
    let mut group = Group::of(8);
    group.join("a");
    group.join("b");
    group.beats(14);
    let before: Vec<Vec<u32>> = group.replicas.iter().map(|replica| replica.held.keys().copied().collect()).collect();
    group.members.clear();
    group.owners.clear();
    // Recreated, revisions begin anew.
    group.revision = 0;
    group.beats(1);
    assert_eq!(group.owners.len(), 8);
    group.beats(10);
    let after: Vec<Vec<u32>> = group.replicas.iter().map(|replica| replica.held.keys().copied().collect()).collect();
    assert_eq!(before, after);
}

#[test]
fn after_buckets_vanished_partitions_can_still_be_handed_over() {
    let mut group = Group::of(8);
    group.revision = 100;
    group.join("a");
    group.beats(6);
    group.members.clear();
    group.owners.clear();
    group.revision = 0;
    group.beats(2);
    group.join("b");
    group.beats(12);
    assert!(group.is_whole() && group.partition_counts() == [4, 4], "{:?}", group.partition_counts());
}

#[test]
fn what_was_released_unheard_does_not_stay_without_an_owner() {
    let mut group = Group::of(8);
    group.deaf = true;
    group.join("a");
    group.beats(6);
    group.join("b");
    group.beats(14);
    assert!(group.is_whole() && group.partition_counts() == [4, 4], "{:?}", group.partition_counts());
}

#[test]
fn a_server_that_lags_behind_takes_nothing_from_whoever_has_just_taken_it() {
    let mut group = Group::of(1);
    group.join("b");
    let owner =
        |revision, name: &str| BTreeMap::from([(0, OwnerEntry { revision, name: Some(name.into()), reader: 1 })]);
    let [replica] = &mut group.replicas[..] else { panic!() };
    replica.record_taken(0, 9, group.now);
    let members = BTreeMap::new();
    let mut drops = |now| {
        let changes = replica.observe(now, members.clone(), &owner(8, "gone"));
        changes.iter().filter(|change| matches!(change, OwnershipChange::Drop { .. })).count()
    };
    assert_eq!((drops(group.now), drops(group.now + SETTLING)), (0, 1));
}

#[test]
fn whoever_leaves_gives_everything_and_is_not_counted() {
    let mut group = Group::of(8);
    group.join("a");
    group.join("b");
    group.beats(14);
    group.replicas[1].begin_leaving();
    group.beats(1);
    assert!(group.replicas[1].may_leave());
    group.replicas.remove(1);
    // Nobody waits for it to lapse.
    group.beats(1);
    assert!(group.is_whole());
}

#[test]
fn what_somebody_who_leaves_still_works_on_is_taken_only_when_it_has_gone_silent() {
    let mut group = Group::of(8);
    group.join("a");
    group.join("b");
    group.beats(14);
    assert_eq!(group.partition_counts(), [4, 4]);
    group.replicas[1].begin_leaving();
    group.busy = true;
    group.beats(20);
    assert_eq!(group.partition_counts(), [4, 4]);
    // It was killed before it was through.
    group.replicas.remove(1);
    group.beats(4);
    assert_eq!(group.partition_counts(), [4]);
    group.beats(2);
    assert!(group.is_whole());
}

#[test]
fn what_takes_a_newer_reader_is_given_to_one_as_soon_as_it_is_there() {
    let mut group = Group::of(4);
    group.join("old");
    group.beats(12);
    group.replicas[0].require_reader(2, 3);
    group.beats(2);
    assert_eq!(group.partition_counts(), [4], "nobody understands it, and its other agents want an owner");
    group.join_as("newer", 2);
    group.beats(12);
    assert_eq!(group.partition_counts(), [2, 2]);
    group.join_as("able", 3);
    group.beats(14);
    assert!(group.is_whole());
    assert!(group.replicas[2].held.contains_key(&2), "{:?}", group.partition_counts());
    assert_eq!(group.owners[&2].reader, 3);
    // Whoever is left goes on with it.
    group.replicas.remove(2);
    group.beats(14);
    assert!(group.is_whole(), "{:?}", group.partition_counts());
    assert_eq!(group.owners[&2].reader, 3);
}

#[test]
fn those_that_understand_more_take_it_beyond_their_share_and_give_other_work_for_it() {
    let mut group = Group::of(16);
    group.join("old");
    group.join_as("new", 2);
    group.beats(14);
    assert_eq!(group.partition_counts(), [8, 8]);
    let marked: Vec<u32> = group.replicas[0].held.keys().copied().take(3).collect();
    marked.iter().for_each(|partition| group.replicas[0].require_reader(*partition, 2));
    group.beats(8);
    assert!(group.is_whole() && group.partition_counts() == [8, 8], "{:?}", group.partition_counts());
    assert!(marked.iter().all(|partition| group.replicas[1].held.contains_key(partition)));
    // When it takes the newer one for everything, the older has nothing to do.
    for replica in &mut group.replicas {
        (0..16).for_each(|partition| replica.require_reader(partition, 2));
    }
    group.beats(8);
    assert!(group.is_whole() && group.partition_counts() == [0, 16], "{:?}", group.partition_counts());
    let changes = group.beat(0).len() + group.beat(1).len();
    assert_eq!(changes, 0, "it rests");
}

#[test]
fn a_newer_replica_marks_nothing_by_owning_it() {
    let mut group = Group::of(4);
    group.join_as("new", 2);
    group.beats(8);
    group.replicas[0].begin_leaving();
    group.beats(1);
    group.replicas.remove(0);
    group.join("old");
    group.beats(12);
    assert!(group.is_whole());
}
