//! The partition owners, read from the bucket. They are many and change seldom, so they are read again only after one
//! of them was written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::roster::OwnerEntry;
use crate::{
    bus::{
        Bus, BusError,
        kv::{BucketEntry, BucketRevision},
    },
    subjects::OWNERS_BUCKET,
};

/// The value of an owner in the bucket, as JSON.
#[derive(Serialize, Deserialize)]
pub struct OwnerValue {
    pub owner: Option<String>,
    pub reader: u32,
}

/// The owners of a group's partitions.
#[derive(Debug, Default)]
pub struct PartitionOwners {
    /// The newest entry at the time they were read; `None` if unknown.
    newest: Option<BucketRevision>,
    by_partition: BTreeMap<u32, OwnerEntry>,
}

impl PartitionOwners {
    /// Makes sure that they are those that `filter` names in the bucket.
    pub async fn refresh(&mut self, bus: &Bus, filter: &str) -> Result<(), BusError> {
        let newest = bus.newest_revision(OWNERS_BUCKET, filter).await?;
        if !self.is_current(newest) {
            self.replace_entries(newest, bus.read_values(OWNERS_BUCKET, filter).await?);
        }
        Ok(())
    }

    pub fn by_partition(&self) -> &BTreeMap<u32, OwnerEntry> {
        &self.by_partition
    }

    fn is_current(&self, newest: Option<BucketRevision>) -> bool {
        newest.is_some() && newest == self.newest
    }

    /// A server may have answered that has not heard of the newest one: then they are read again at the next beat.
    fn replace_entries(&mut self, newest: Option<BucketRevision>, entries: Vec<BucketEntry>) {
        let read = entries.iter().map(|entry| entry.revision).max();
        self.newest = newest.filter(|newest| read == Some(newest.revision));
        let owner = |entry: BucketEntry| {
            let partition = entry.key.rsplit('.').next()?.parse().ok()?;
            // One that cannot be read counts as released: it is not a fact.
            let value = serde_json::from_slice(&entry.value).unwrap_or(OwnerValue { owner: None, reader: 0 });
            Some((partition, OwnerEntry { revision: entry.revision, name: value.owner, reader: value.reader }))
        };
        self.by_partition = entries.into_iter().filter_map(owner).collect();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn mark(revision: u64, second: i64) -> Option<BucketRevision> {
        Some(BucketRevision { revision, stored: Timestamp::from_second(second).unwrap() })
    }

    fn entry(partition: u32, revision: u64) -> BucketEntry {
        BucketEntry { key: format!("router.{partition}"), revision, value: r#"{"owner":"a","reader":1}"#.into() }
    }

    #[test]
    fn they_are_known_until_something_is_written() {
        let mut owners = PartitionOwners::default();
        assert!(!owners.is_current(None) && !owners.is_current(mark(2, 10)));
        owners.replace_entries(mark(2, 10), vec![entry(0, 1), entry(1, 2)]);
        assert_eq!(owners.by_partition().keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert!(owners.is_current(mark(2, 10)) && !owners.is_current(mark(3, 11)) && !owners.is_current(None));
    }

    #[test]
    fn what_a_server_did_not_know_yet_is_asked_for_again() {
        let mut owners = PartitionOwners::default();
        owners.replace_entries(mark(3, 10), vec![entry(0, 1), entry(1, 2)]);
        assert!(!owners.is_current(mark(3, 10)));
    }

    #[test]
    fn those_of_a_bucket_that_was_made_again_are_others_though_they_count_alike() {
        let mut owners = PartitionOwners::default();
        owners.replace_entries(mark(2, 10), vec![entry(0, 1), entry(1, 2)]);
        assert!(!owners.is_current(mark(2, 20)));
    }
}
