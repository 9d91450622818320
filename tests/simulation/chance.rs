//! Chance that can be had again: all of a run follows from its seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough to choose steps with.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of 0 to `count` - 1; `count` is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// True so many times in a thousand.
    pub fn permille(&mut self, rate: u64) -> bool {
        rate > 0 && self.next() % 1_000 < rate
    }
}

impl kairo_in_memory::chance::Chance for Chance {
    fn below(&mut self, count: usize) -> usize {
        Chance::below(self, count)
    }

    fn permille(&mut self, rate: u64) -> bool {
        Chance::permille(self, rate)
    }
}
