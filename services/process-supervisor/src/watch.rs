//! When a guard lets its process run, asks it to end, and kills it: the rules, without a clock.
//!
//! Times are those of [`crate::clock`]; the guard's loop passes them in.

use std::time::Duration;

use crate::protocol::Spec;

/// An event that the guard reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchInput {
    Go,
    /// The supervisor held its lease then.
    Beat {
        at: Duration,
    },
    Cancel {
        grace: Duration,
    },
    /// The supervisor is dead, or says what it never would.
    SupervisorGone,
    /// The program ended by itself, or on a signal.
    Ended,
}

/// The guard's reaction to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Open the gate.
    Release,
    /// Ask the process group to end.
    Terminate,
    /// Kill all that is left and report.
    Finish(Cause),
}

/// The reason why a process is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Ended,
    TimedOut,
    Canceled,
    SupervisorLost,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Waiting at the gate.
    Held,
    Running {
        until: Duration,
    },
    /// Asked to end; killed when the grace period is over.
    Stopping {
        cause: Cause,
        until: Duration,
    },
    Over,
}

/// The state of one guarded process.
#[derive(Debug)]
pub struct ProcessWatch {
    lease: Duration,
    time: Duration,
    grace: Duration,
    leased_until: Duration,
    phase: Phase,
}

impl ProcessWatch {
    pub fn new(spec: &Spec, now: Duration) -> Self {
        Self {
            lease: spec.lease(),
            time: spec.bounds.time(),
            grace: spec.bounds.grace(),
            leased_until: now + spec.lease(),
            phase: Phase::Held,
        }
    }

    /// Deals with what happened at `now`.
    pub fn on_input(&mut self, input: WatchInput, now: Duration) -> Option<Effect> {
        match (self.phase, input) {
            (Phase::Over, _) => None,
            // The lease had lapsed before: supervisor, guard and program stood still, and others may have written down
            // that they are lost. No beat makes up for that.
            (_, WatchInput::Beat { at }) if at >= self.leased_until => self.finish(Cause::SupervisorLost),
            (_, WatchInput::Beat { at }) => {
                self.leased_until = self.leased_until.max(at + self.lease);
                None
            }
            (_, WatchInput::SupervisorGone) => self.finish(Cause::SupervisorLost),
            (Phase::Held, WatchInput::Go) => {
                let until = now + self.time;
                self.phase = Phase::Running { until };
                Some(Effect::Release)
            }
            (_, WatchInput::Go) => None,
            (Phase::Held, WatchInput::Cancel { .. }) => self.finish(Cause::Canceled),
            (Phase::Running { until }, WatchInput::Cancel { grace }) => {
                // Canceling must not buy a process more time than running into its limit would.
                let until = (now + grace).min(until + self.grace);
                Some(self.stop(Cause::Canceled, until))
            }
            (Phase::Stopping { cause, until }, WatchInput::Cancel { grace }) => {
                let until = until.min(now + grace);
                self.phase = Phase::Stopping { cause, until };
                None
            }
            (Phase::Held | Phase::Running { .. }, WatchInput::Ended) => self.finish(Cause::Ended),
            (Phase::Stopping { cause, .. }, WatchInput::Ended) => self.finish(cause),
        }
    }

    /// Deals with the end of the lease, before anything else is dealt with.
    pub fn check_lease(&mut self, now: Duration) -> Option<Effect> {
        match self.phase {
            Phase::Over => None,
            _ if now >= self.leased_until => self.finish(Cause::SupervisorLost),
            Phase::Held | Phase::Running { .. } | Phase::Stopping { .. } => None,
        }
    }

    /// Deals with the time that has passed, if a deadline has.
    pub fn check_deadlines(&mut self, now: Duration) -> Option<Effect> {
        if now >= self.leased_until {
            return self.check_lease(now);
        }
        match self.phase {
            Phase::Running { until } if now >= until => Some(self.stop(Cause::TimedOut, now + self.grace)),
            Phase::Stopping { cause, until } if now >= until => self.finish(cause),
            Phase::Held | Phase::Running { .. } | Phase::Stopping { .. } | Phase::Over => None,
        }
    }

    /// When [`ProcessWatch::check_deadlines`] has something to do next.
    pub fn deadline(&self) -> Duration {
        match self.phase {
            Phase::Held | Phase::Over => self.leased_until,
            Phase::Running { until } | Phase::Stopping { until, .. } => until.min(self.leased_until),
        }
    }

    fn stop(&mut self, cause: Cause, until: Duration) -> Effect {
        self.phase = Phase::Stopping { cause, until };
        Effect::Terminate
    }

    fn finish(&mut self, cause: Cause) -> Option<Effect> {
        self.phase = Phase::Over;
        Some(Effect::Finish(cause))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::Bounds;

    /// A lease of 5 s, 60 s to run, 2 s of grace.
    fn sample_watch() -> ProcessWatch {
        let bounds = Bounds {
            time_ms: 60_000,
            grace_ms: 2_000,
            memory_bytes: 1,
            cpu_s: 1,
            open_files: 1,
            processes: None,
            output_bytes: 1,
            stdin_bytes: 1,
        };
        let spec = Spec {
            program: "/bin/true".into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: BTreeMap::new(),
            stdin: false,
            access: None,
            pid_namespace: false,
            seccomp: false,
            network_namespace: false,
            bounds,
            lease_ms: 5_000,
        };
        ProcessWatch::new(&spec, s(0))
    }

    fn running() -> ProcessWatch {
        let mut watch = sample_watch();
        assert_eq!(watch.on_input(WatchInput::Go, s(1)), Some(Effect::Release));
        watch
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Beats often enough that only the other deadlines matter.
    fn beat_until(watch: &mut ProcessWatch, end: u64) {
        for now in 0..=end {
            assert_eq!(watch.on_input(WatchInput::Beat { at: s(now) }, s(now)), None);
            if now < end {
                assert_eq!(watch.check_deadlines(s(now)), None);
            }
        }
    }

    #[test]
    fn nothing_runs_before_the_gate_opens() {
        assert_eq!(
            sample_watch().on_input(WatchInput::SupervisorGone, s(1)),
            Some(Effect::Finish(Cause::SupervisorLost))
        );
        assert_eq!(
            sample_watch().on_input(WatchInput::Cancel { grace: s(1) }, s(1)),
            Some(Effect::Finish(Cause::Canceled))
        );
    }

    #[test]
    fn the_gate_opens_once_and_never_after_the_end() {
        let mut watch = running();
        assert_eq!(watch.on_input(WatchInput::Go, s(2)), None);

        let mut watch = sample_watch();
        watch.on_input(WatchInput::SupervisorGone, s(1));
        assert_eq!(watch.on_input(WatchInput::Go, s(1)), None);
    }

    #[test]
    fn a_silent_supervisor_is_lost_in_every_phase() {
        let lost = Some(Effect::Finish(Cause::SupervisorLost));
        assert_eq!(sample_watch().check_deadlines(s(5)), lost);
        assert_eq!(running().check_deadlines(s(5)), lost);

        let mut stopping = running();
        stopping.on_input(WatchInput::Cancel { grace: s(9) }, s(1));
        assert_eq!(stopping.deadline(), s(5));
        assert_eq!(stopping.check_deadlines(s(5)), lost);
    }

    #[test]
    fn a_beat_renews_the_lease_and_a_command_does_not() {
        let mut watch = running();
        assert_eq!(watch.deadline(), s(5), "go is not a beat");
        watch.on_input(WatchInput::Beat { at: s(4) }, s(4));
        assert_eq!(watch.deadline(), s(9));
        assert_eq!(watch.check_deadlines(s(8)), None);
    }

    #[test]
    fn beats_count_from_when_they_were_made_however_late_they_are_read() {
        let mut watch = running();
        for at in [4, 8, 12] {
            assert_eq!(watch.on_input(WatchInput::Beat { at: s(at) }, s(13)), None);
        }
        assert_eq!(watch.deadline(), s(17));
        assert_eq!(watch.on_input(WatchInput::Beat { at: s(1) }, s(13)), None);
        assert_eq!(watch.deadline(), s(17), "an older one takes nothing away");
    }

    #[test]
    fn a_lease_that_had_lapsed_is_not_renewed() {
        let lost = Some(Effect::Finish(Cause::SupervisorLost));
        // All stood still for 95 s: the clock says so, and so does the first beat after it.
        assert_eq!(running().check_lease(s(100)), lost);
        assert_eq!(running().on_input(WatchInput::Beat { at: s(100) }, s(100)), lost);
        // A beat from before that is still read in between renews nothing that lasts.
        let mut watch = running();
        watch.on_input(WatchInput::Beat { at: s(4) }, s(100));
        assert_eq!(watch.check_lease(s(100)), lost);
        assert_eq!(watch.on_input(WatchInput::Go, s(100)), None, "and the gate stays closed");
    }

    #[test]
    fn the_time_limit_terminates_and_then_kills() {
        let mut watch = running();
        beat_until(&mut watch, 61);
        assert_eq!(watch.check_deadlines(s(61)), Some(Effect::Terminate));
        assert_eq!(watch.check_deadlines(s(62)), None, "grace");
        assert_eq!(watch.check_deadlines(s(63)), Some(Effect::Finish(Cause::TimedOut)), "killed");
    }

    #[test]
    fn whoever_ends_within_the_grace_period_was_stopped_all_the_same() {
        let mut watch = running();
        assert_eq!(watch.on_input(WatchInput::Cancel { grace: s(1) }, s(2)), Some(Effect::Terminate));
        assert_eq!(watch.on_input(WatchInput::Ended, s(2)), Some(Effect::Finish(Cause::Canceled)));
    }

    #[test]
    fn cancel_may_shorten_the_end_but_never_prolong_it() {
        let mut watch = running();
        beat_until(&mut watch, 60);
        watch.on_input(WatchInput::Cancel { grace: s(600) }, s(60));
        assert_eq!(watch.deadline(), s(63), "limit and its grace");
        watch.on_input(WatchInput::Cancel { grace: s(1) }, s(60));
        assert_eq!(watch.deadline(), s(61));
    }

    #[test]
    fn an_end_is_reported_once() {
        let mut watch = running();
        assert_eq!(watch.on_input(WatchInput::Ended, s(2)), Some(Effect::Finish(Cause::Ended)));
        assert_eq!(watch.on_input(WatchInput::SupervisorGone, s(2)), None);
        assert_eq!(watch.check_deadlines(s(99)), None);
    }
}
