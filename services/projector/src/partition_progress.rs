//! The positions of the partitions that a replica holds, and the messages it is to apply. Pure.

use std::collections::BTreeMap;

use kairo_core::{partition, record::RawMessage};

/// The position of a partition in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionPosition {
    /// The last message that it took account of; 0 for none.
    pub sequence: u64,
    /// It goes no further than this.
    pub stop_at: Option<u64>,
}

impl PartitionPosition {
    pub fn has_arrived(self) -> bool {
        self.stop_at.is_some_and(|stop| self.sequence >= stop)
    }

    /// Returns the position once everything up to `read` was read.
    fn position_after(self, read: u64) -> u64 {
        self.sequence.max(read.min(self.stop_at.unwrap_or(u64::MAX)))
    }
}

/// The partitions held, out of `partitions` in total. If there are fewer than in the log, each covers several of those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionProgress {
    pub partitions: u32,
    pub held: BTreeMap<u32, PartitionPosition>,
}

/// A partition goes from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionMove {
    pub partition: u32,
    pub from: u64,
    pub to: u64,
}

impl PartitionProgress {
    /// The message behind which reading begins; none where there is nothing to read.
    pub fn start_sequence(&self) -> Option<u64> {
        self.held.values().filter(|position| !position.has_arrived()).map(|position| position.sequence).min()
    }

    /// The last message to be read, if there is a last one.
    pub fn end_sequence(&self) -> Option<u64> {
        self.held.values().map(|position| position.stop_at).max_by_key(|stop| stop.unwrap_or(u64::MAX)).flatten()
    }

    /// Returns true if nothing is left to read.
    pub fn has_arrived(&self) -> bool {
        !self.held.is_empty() && self.start_sequence().is_none()
    }

    /// Returns true if a message is to be applied here.
    pub fn should_apply(&self, message: &RawMessage) -> bool {
        let sequence = message.sequence;
        self.held.get(&(partition_of(message) % self.partitions.max(1))).is_some_and(|position| {
            sequence > position.sequence && position.stop_at.is_none_or(|stop| sequence <= stop)
        })
    }

    /// Returns the moves of all held partitions once the log was read up to `read`, including those that stay in place.
    pub fn moves(&self, read: u64) -> Vec<PositionMove> {
        let moves = self.held.iter();
        moves
            .map(|(&partition, position)| PositionMove {
                partition,
                from: position.sequence,
                to: position.position_after(read),
            })
            .collect()
    }

    pub fn advance(&mut self, read: u64) {
        for position in self.held.values_mut() {
            position.sequence = position.position_after(read);
        }
    }
}

/// The partition that the log gave it. What was published without one, and is to be set aside, is somebody's too.
fn partition_of(message: &RawMessage) -> u32 {
    let owner = || message.subject.split('.').nth(2).unwrap_or_default();
    message.partition.unwrap_or_else(|| partition::fnv1a(owner()))
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;
    use jiff::Timestamp;

    use super::*;

    fn message(sequence: u64, partition: Option<u32>) -> RawMessage {
        let subject = "kairo.user.ann.message".to_owned();
        let headers = HeaderMap::new();
        let payload = Default::default();
        RawMessage { sequence, subject, partition, headers, payload, sealed: None, stored: Timestamp::UNIX_EPOCH }
    }

    fn progress(positions: &[(u64, Option<u64>)]) -> PartitionProgress {
        let held =
            (0..).zip(positions.iter().map(|&(sequence, stop_at)| PartitionPosition { sequence, stop_at })).collect();
        PartitionProgress { partitions: 1, held }
    }

    #[test]
    fn reading_begins_behind_the_lowest_that_may_go_on() {
        assert_eq!(progress(&[]).start_sequence(), None);
        assert_eq!(progress(&[(7, None), (4, None)]).start_sequence(), Some(4));
        assert_eq!(progress(&[(7, Some(9)), (4, Some(4))]).start_sequence(), Some(7));
        assert_eq!(progress(&[(9, Some(9)), (4, Some(4))]).start_sequence(), None);
        assert!(progress(&[(9, Some(9))]).has_arrived() && !progress(&[]).has_arrived());
    }

    #[test]
    fn it_ends_where_the_last_one_stops() {
        assert_eq!(progress(&[(0, Some(9)), (0, Some(4))]).end_sequence(), Some(9));
        assert_eq!(progress(&[(0, Some(9)), (0, None)]).end_sequence(), None);
    }

    #[test]
    fn each_takes_what_it_has_not_up_to_where_it_stops() {
        let one = progress(&[(4, Some(6))]);
        let taken: Vec<u64> = (1..9).filter(|sequence| one.should_apply(&message(*sequence, Some(7)))).collect();
        assert_eq!(taken, [5, 6]);
        let none = PartitionProgress { partitions: 1, held: BTreeMap::new() };
        assert!(!none.should_apply(&message(5, Some(7))));
    }

    #[test]
    fn every_message_is_exactly_ones_whatever_partition_it_names() {
        for partition in [None, Some(0), Some(5), Some(63), Some(u32::MAX)] {
            let holders = (0..4).filter(|held| {
                let progress =
                    PartitionProgress { partitions: 4, held: BTreeMap::from([(*held, PartitionPosition::default())]) };
                progress.should_apply(&message(1, partition))
            });
            assert_eq!(holders.count(), 1, "{partition:?}");
        }
    }

    #[test]
    fn nothing_goes_back_or_too_far() {
        let mut three = progress(&[(4, None), (9, None), (4, Some(6))]);
        let moves: Vec<_> = three.moves(8).into_iter().map(|moved| (moved.from, moved.to)).collect();
        assert_eq!(moves, [(4, 8), (9, 9), (4, 6)]);
        three.advance(8);
        assert_eq!(three, progress(&[(8, None), (9, None), (6, Some(6))]));
    }
}
