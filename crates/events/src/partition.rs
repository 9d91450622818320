//! Partitions of the log: every owner, agent or user, is in one of so many. Pure.
//!
//! Everything that is stored about an owner ends in the number of the owner's partition, `kairo.<noun>.<owner>.<verb>.<p>`,
//! so that one replica can read the part of the log that is its own with one filter. How many there are is a property of
//! the log, decided when it is made. The bus writes the number and takes it away again: nobody else sees it.

/// The number of partitions of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions(u32);

impl Partitions {
    /// As many as a log may have: each costs a replica a consumer, and a checkpoint every few seconds.
    pub const MOST: u32 = 1_024;
    /// For a log that a single replica works on.
    pub const ONE: Self = Self(1);

    /// `None` unless it is 1 to [`Partitions::MOST`].
    pub fn new(count: u32) -> Option<Self> {
        (1..=Self::MOST).contains(&count).then_some(Self(count))
    }

    pub fn count(self) -> u32 {
        self.0
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = u32> {
        0..self.0
    }

    /// The partition of an owner: FNV-1a of 32 bits over its bytes, which is what `partition()` of a NATS subject
    /// transform computes, too. It must never change: positions in the log are kept by partition.
    pub fn of(self, owner: &str) -> u32 {
        fnv1a(owner) % self.0
    }

    /// A subject as it is stored: with its partition behind it.
    pub fn stored_subject(self, subject: &str) -> String {
        let owner = subject.split('.').nth(2).unwrap_or_default();
        format!("{subject}.{}", self.of(owner))
    }
}

/// FNV-1a of 32 bits.
pub fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// All that is stored in one partition.
pub fn partition_filter(partition: u32) -> String {
    format!("kairo.*.*.*.{partition}")
}

/// Takes a stored subject apart: as everybody knows it, and its partition. Timers have none, although theirs end in a
/// number, too.
pub fn split_subject(stored: &str) -> (&str, Option<u32>) {
    let tokens = stored.split('.').count();
    if tokens != 5 || !stored.starts_with("kairo.") || stored.starts_with("kairo.timer.") {
        return (stored, None);
    }
    match stored.rsplit_once('.') {
        Some((subject, number)) => match number.parse() {
            Ok(partition) => (subject, Some(partition)),
            Err(_) => (stored, None),
        },
        None => (stored, None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_the_hash_it_always_was() {
        // Published values of FNV-1a: of nothing, of "a" and of "foobar".
        assert_eq!((fnv1a(""), fnv1a("a"), fnv1a("foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
    }

    #[test]
    fn what_concerns_one_owner_is_together_and_owners_are_spread() {
        let eight = Partitions::new(8).unwrap();
        let last = |subject: &str| eight.stored_subject(subject).rsplit_once('.').map(|(_, p)| p.to_owned());
        assert_eq!(last("kairo.agent.bob.decision"), last("kairo.tool.bob.result"));
        let used: BTreeSet<u32> = (0..100).map(|number| eight.of(&format!("agent-{number}"))).collect();
        assert_eq!(used, eight.all().collect());
    }

    #[test]
    fn what_is_added_can_be_taken_away() {
        let all = Partitions::new(64).unwrap();
        for subject in ["kairo.agent.bob.decision", "kairo.user.7.message", "kairo.system.github.push"] {
            let stored = all.stored_subject(subject);
            let owner = subject.split('.').nth(2).unwrap();
            assert_eq!(split_subject(&stored), (subject, Some(all.of(owner))));
        }
        for strange in ["kairo.agent.bob.decision", "kairo.timer.set.t.7", "kairo.system.a.b.c", "a.b.c.d.7", "kairo"] {
            assert_eq!(split_subject(strange), (strange, None));
        }
    }

    #[test]
    fn there_is_at_least_one_and_a_bounded_number() {
        assert_eq!((Partitions::new(0), Partitions::new(Partitions::MOST + 1)), (None, None));
        assert_eq!(Partitions::new(16).map(Partitions::count), Some(16));
    }
}
