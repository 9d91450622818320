//! The verdicts on mutants: each replays the logs in a process of its own, which may crash or never end.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Outcome;

/// The longest wall time of a replay, whose CPU time is limited: only one that waits for something takes so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// The signal that ends a process which ran for too long.
const OUT_OF_TIME: i32 = 24;
/// The interval of checks for the end of a process.
const LOOK: Duration = Duration::from_millis(3);

/// Replays logs with mutants.
#[derive(Clone, Debug)]
pub struct Runner {
    pub program: PathBuf,
    pub logs: Vec<PathBuf>,
}

/// The results of the logs without any mutant.
#[derive(Clone, Debug, Deserialize)]
pub struct Unmutated {
    pub decisions: usize,
    pub messages: usize,
    pub states: Value,
    /// Digests of all that the mind makes of the logs.
    pub effects: BTreeMap<String, u64>,
    /// The candidates that were come to, by their numbers.
    pub reached: Vec<usize>,
    /// Every text that models are shown.
    pub shown: Vec<String>,
}

/// The verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A decision was not the same: as replay calls it, or `panic`, or `endless`; or `state`, where only what agents know at the end
    /// is not, as replay tells it by digests.
    Found(String),
    /// Replay calls everything the same, though the mind made something else of the logs: of `decisions`, `questions` or `states` in
    /// between.
    Missed(Vec<String>),
    /// The mutant had another value, of which nothing came in these logs.
    WithoutEffect,
    /// The mutant had the same value wherever these logs came to it.
    Unchanged,
}

/// The output of a runner for a mutant.
#[derive(Deserialize)]
struct Said {
    outcome: String,
    #[serde(default)]
    changed: bool,
    #[serde(default)]
    states: Value,
    #[serde(default)]
    effects: BTreeMap<String, u64>,
}

impl Runner {
    /// Replays the logs as they are.
    ///
    /// # Errors
    /// Returns an error if not every decision is the same.
    pub fn unmutated(&self) -> Outcome<Unmutated> {
        let (status, said) = ended(self.start(0)?)?.ok_or("it does not end, without a mutant")?;
        match status.success() {
            true => Ok(serde_json::from_str(&said)?),
            false => Err("the logs cannot be replayed without a mutant".into()),
        }
    }

    /// Tries all of these mutants, so many at once; `tell` hears how many were.
    ///
    /// # Errors
    /// Returns an error if a runner cannot be started.
    pub fn all(
        &self,
        ids: &[usize],
        unmutated: &Unmutated,
        jobs: usize,
        tell: impl Fn(usize) + Sync,
    ) -> Outcome<Vec<Verdict>> {
        let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> Outcome<()> {
            loop {
                let at = next.fetch_add(1, Relaxed);
                let Some(id) = ids.get(at) else { return Ok(()) };
                let verdict = self.verdict(*id, unmutated)?;
                let mut verdicts = verdicts.lock().map_err(|_| "another mutant could not be tried")?;
                verdicts.push((at, verdict));
                tell(verdicts.len());
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker stopped")?)
        })?;
        let mut verdicts = verdicts.into_inner()?;
        verdicts.sort_by_key(|(at, _)| *at);
        Ok(verdicts.into_iter().map(|(_, verdict)| verdict).collect())
    }

    fn verdict(&self, id: usize, unmutated: &Unmutated) -> Outcome<Verdict> {
        let endless = || Ok(Verdict::Found("endless".to_owned()));
        let Some((status, said)) = ended(self.start(id)?)? else { return endless() };
        match (status.success(), status.signal()) {
            (true, _) => {}
            (false, Some(OUT_OF_TIME)) => return endless(),
            // It has the logs that were read before: whatever ends it is the mutant.
            (false, _) => return Ok(Verdict::Found("panic".to_owned())),
        }
        let Said { outcome, changed, states, effects } = serde_json::from_str(&said)?;
        let is_other = |(of, digest): &(&String, &u64)| unmutated.effects.get(*of) != Some(digest);
        let others: Vec<String> = effects.iter().filter(is_other).map(|(of, _)| of.clone()).collect();
        Ok(match outcome.as_str() {
            "same" if states != unmutated.states => Verdict::Found("state".to_owned()),
            "same" if !others.is_empty() => Verdict::Missed(others),
            "same" if changed => Verdict::WithoutEffect,
            "same" => Verdict::Unchanged,
            _ => Verdict::Found(outcome),
        })
    }

    fn start(&self, id: usize) -> Outcome<Child> {
        let mut command = Command::new(&self.program);
        command.arg(id.to_string()).args(&self.logs).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?)
    }
}

/// Waits for the process and returns its status and output; none if it does not end.
fn ended(mut child: Child) -> Outcome<Option<(ExitStatus, String)>> {
    let mut stdout = child.stdout.take().ok_or("it says nothing")?;
    // What it says may be more than is kept for whoever does not read.
    let reading = thread::spawn(move || std::io::read_to_string(&mut stdout));
    let started = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if started.elapsed() > PATIENCE => break None,
            None => thread::sleep(LOOK),
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let said = reading.join().map_err(|_| "what it said cannot be read")??;
    Ok(status.map(|status| (status, said)))
}

/// Every log in a folder, at any depth, in the order of their names.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn logs(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            logs.extend(self::logs(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "log") {
            logs.push(path);
        }
    }
    logs.sort();
    Ok(logs)
}
