//! Fair shares of what is scarce: one rule for places that are held ([`permit_pool`]), for rates ([`rate`]) and for what waits in
//! an agent's queue ([`fair_limit`] and [`equal_share`] themselves).
//!
//! A holder may take what is free, but no more than three quarters of what the others do not hold: a quarter stays free for
//! whoever comes next, and no part is set aside for those who never come. A holder below their equal share, which is all of it
//! divided by those who hold some, is owed a place: where none is free, they are given the next, or one that is taken back from
//! whoever holds most. Within a holder that stands for many, as an API key for its users, the same holds once more.

pub mod holder;
pub mod permit_pool;
pub mod rate;

pub use holder::QuotaHolder;

/// Returns the part of `capacity` one holder may have when the others hold `others`: three quarters of the rest,
/// rounded up.
pub const fn fair_limit(capacity: usize, others: usize) -> usize {
    let rest = capacity.saturating_sub(others);
    rest - rest / 4
}

/// The equal share of each of so many holders: who has less never does without for another's sake.
pub const fn equal_share(capacity: usize, holders: usize) -> usize {
    match capacity.checked_div(holders) {
        Some(share) => share,
        None => capacity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_leaves_a_quarter_and_small_capacities_are_used_whole() {
        assert_eq!([0, 1, 2, 3, 4, 8, 1_000].map(|capacity| fair_limit(capacity, 0)), [0, 1, 2, 3, 3, 6, 750]);
        assert_eq!(fair_limit(8, 6), 2);
        assert_eq!(fair_limit(8, 9), 0);
    }

    #[test]
    fn shares_are_equal_and_never_more_than_there_is() {
        for capacity in 0..100 {
            for holders in 1..100 {
                assert!(equal_share(capacity, holders) * holders <= capacity);
            }
        }
        assert_eq!(equal_share(7, 0), 7);
    }
}
