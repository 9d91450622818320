//! Decides which partitions a replica holds. Pure.

use std::collections::BTreeSet;

/// The steps that give a replica its fair share.
#[derive(Debug, PartialEq, Eq)]
pub struct RebalancePlan {
    /// Held, and more than its share.
    pub give: Vec<u32>,
    /// Free, to be tried in this order until so many more are held.
    pub candidates: Vec<u32>,
    pub wanted: usize,
}

/// `held` are a replica's own, `taken` are anybody's. So many members, itself included, share so many partitions.
pub fn plan_share(partitions: u32, members: u32, held: &BTreeSet<u32>, taken: &BTreeSet<u32>) -> RebalancePlan {
    let share = usize::try_from(partitions.div_ceil(members.max(1))).unwrap_or(usize::MAX);
    let free = (0..partitions).filter(|partition| !taken.contains(partition) && !held.contains(partition));
    RebalancePlan {
        give: held.iter().skip(share).copied().collect(),
        candidates: free.collect(),
        wanted: share.saturating_sub(held.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that act one after the other, until nothing changes.
    fn settle(partitions: u32, mut members: Vec<BTreeSet<u32>>) -> Vec<BTreeSet<u32>> {
        loop {
            let before = members.clone();
            for index in 0..members.len() {
                let taken = members.iter().flatten().copied().collect();
                let plan = plan_share(partitions, u32::try_from(members.len()).unwrap(), &members[index], &taken);
                members[index].retain(|partition| !plan.give.contains(partition));
                members[index].extend(plan.candidates.into_iter().take(plan.wanted));
            }
            if members == before {
                return members;
            }
        }
    }

    #[test]
    fn every_partition_is_held_by_one_and_nobody_holds_too_many() {
        for (partitions, members) in [(8, 1), (8, 2), (8, 3), (8, 9), (1, 4), (7, 4)] {
            let mut start = vec![BTreeSet::new(); members];
            // One of them was alone before.
            start[0] = (0..partitions).collect();
            let held = settle(partitions, start);
            assert_eq!(held.iter().map(BTreeSet::len).sum::<usize>(), partitions as usize);
            let share = partitions.div_ceil(u32::try_from(members).unwrap()) as usize;
            assert!(held.iter().all(|held| held.len() <= share), "{held:?}");
        }
    }

    #[test]
    fn what_somebody_left_is_taken_over() {
        let held = settle(8, vec![(0..3).collect(), (3..6).collect()]);
        assert_eq!(held.iter().map(BTreeSet::len).sum::<usize>(), 8);
    }
}
