//! The journal of faults and their consequences: counted, and written down as they happen.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::File,
    io::Write,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use jiff::Timestamp;

use super::calls::Struck;

/// The faults of a run. Lines say how many seconds after the beginning they were written.
pub struct Journal {
    begun: Instant,
    file: Mutex<File>,
    counts: Mutex<BTreeMap<Count, u64>>,
    struck: Mutex<Vec<Struck>>,
    /// Processes that were killed or asked to end, or ended.
    gone: Mutex<Vec<Struck>>,
}

/// The key of a count: the kind of event and its target.
pub type Count = (&'static str, &'static str);

pub const KILLED: &str = "killed";
/// Of the fleet.
pub const PROMOTED: &str = "promoted";
/// Without having been asked to.
pub const ENDED: &str = "ended by itself";

impl Journal {
    pub fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            begun: Instant::now(),
            file: Mutex::new(File::create(path)?),
            counts: Mutex::default(),
            struck: Mutex::default(),
            gone: Mutex::default(),
        })
    }

    pub fn note(&self, text: impl Display) {
        // A full disk must not end the run.
        let _ = writeln!(locked(&self.file), "{:9.3} {text}", self.begun.elapsed().as_secs_f64());
    }

    /// Notes it and counts it.
    pub fn count(&self, done: &'static str, to: &'static str, text: impl Display) {
        *locked(&self.counts).entry((done, to)).or_default() += 1;
        self.note(text);
    }

    /// Remembers that a process is about to be killed or frozen.
    pub fn strike(&self, name: &str) {
        locked(&self.struck).push(Struck { replica: name.to_owned(), at: Timestamp::now() });
    }

    /// Everything that was killed or frozen.
    pub fn struck(&self) -> Vec<Struck> {
        locked(&self.struck).clone()
    }

    /// Remembers that a process is about to end, with all that it waits for.
    pub fn leave(&self, name: &str) {
        locked(&self.gone).push(Struck { replica: name.to_owned(), at: Timestamp::now() });
    }

    /// Everything that ended.
    pub fn gone(&self) -> Vec<Struck> {
        locked(&self.gone).clone()
    }

    /// Returns the counts of this kind of event by target.
    pub fn of(&self, done: &str) -> BTreeMap<&'static str, u64> {
        let counts = locked(&self.counts);
        counts.iter().filter(|((what, _), _)| *what == done).map(|((_, to), count)| (*to, *count)).collect()
    }

    /// Returns the count of each kind of event over all targets.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for ((done, _), count) in locked(&self.counts).iter() {
            *sums.entry(*done).or_default() += count;
        }
        sums
    }
}

/// Locks a mutex, even a poisoned one: a panic while holding it has ended the run anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
