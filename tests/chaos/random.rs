//! Numbers that look random and are the same for the same seed, on every machine and in every version.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each purpose, so that more faults do not change the load.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(seed, |mixed, byte| Self(mixed ^ u64::from(byte)).draw());
        Self(mixed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not, `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw().checked_rem(end).unwrap_or(0)
    }

    /// Both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    pub fn shuffle<T>(&mut self, cards: &mut [T]) {
        for place in (1..cards.len()).rev() {
            cards.swap(place, self.index(place + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_purpose_give_the_same_numbers() {
        let numbers = |seed, purpose| {
            let mut random = Random::new(seed, purpose);
            std::array::from_fn::<u64, 4, _>(|_| random.draw())
        };
        assert_eq!(numbers(7, "load"), numbers(7, "load"));
        assert_ne!(numbers(7, "load"), numbers(8, "load"));
        assert_ne!(numbers(7, "load"), numbers(7, "faults"));
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut random = Random::new(1, "bounds");
        let numbers: Vec<u64> = (0..1_000).map(|_| random.between(3, 5)).collect();
        assert!(numbers.iter().all(|number| (3..=5).contains(number)));
        assert!([3, 4, 5].iter().all(|number| numbers.contains(number)));
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn shuffling_loses_no_card() {
        let mut cards: Vec<u8> = (0..50).collect();
        Random::new(3, "cards").shuffle(&mut cards);
        assert_ne!(cards, (0..50).collect::<Vec<_>>());
        cards.sort_unstable();
        assert_eq!(cards, (0..50).collect::<Vec<_>>());
    }
}
