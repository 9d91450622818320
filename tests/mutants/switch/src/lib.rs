//! The switches of mutants: each candidate has one, the code that was wrapped asks it, and at most one is on. Only sources that
//! `kairo-mutants` wrapped know of it, in a folder of their own.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Candidates there can be.
pub const MOST: usize = 16_384;

/// The mutant that is on, counted from 1.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
static CHANGED: AtomicBool = AtomicBool::new(false);
static REACHED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Has this mutant be on from here on.
pub fn choose(id: u32) {
    ACTIVE.store(id, Relaxed);
}

/// Those whose place was come to.
pub fn reached() -> Vec<u32> {
    let reached = (0..).zip(&REACHED).filter(|(_, reached)| reached.load(Relaxed));
    reached.map(|(id, _)| id).collect()
}

/// Returns true if the active mutant's value differed from the original at least once.
pub fn has_changed() -> bool {
    CHANGED.load(Relaxed)
}

/// Returns true if this mutant is on; its value always differs from the original, which is noted.
pub fn on(id: u32) -> bool {
    let is_on = perhaps(id);
    note(is_on);
    is_on
}

/// Returns true if this mutant is on; its value may equal the original, as [`between`] or [`note`] finds out.
pub fn perhaps(id: u32) -> bool {
    if let Some(reached) = usize::try_from(id).ok().and_then(|id| REACHED.get(id)) {
        reached.store(true, Relaxed);
    }
    ACTIVE.load(Relaxed) == id
}

/// Notes whether what the mutant makes of a value is another one.
pub fn note(is_other: bool) {
    if is_other {
        CHANGED.store(true, Relaxed);
    }
}

/// The mutated value.
pub fn between<T: PartialEq>(original: T, mutated: T) -> T {
    note(original != mutated);
    mutated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_on_and_what_was_come_to_is_known() {
        assert!(!on(3) && !perhaps(MOST as u32), "none is on yet");
        choose(4);
        assert!(!on(3) && perhaps(4) && !has_changed());
        assert!(between(true, true) && !has_changed(), "the same value is no change");
        assert!(!between(true, false) && has_changed());
        assert_eq!(reached(), [3, 4]);
    }
}
