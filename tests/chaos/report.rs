//! The report of a run, for people and as JSON.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use serde::Serialize;

use super::{
    journal::{ENDED, Journal, KILLED, PROMOTED},
    machine::OlderAgain,
    plan::{Course, Settings},
    rest::Rest,
    verdict::{Stall, Verdict},
};

/// Findings of a kind that are printed; all of them are in the folder that is kept.
const SHOWN: usize = 10;

/// One run.
#[derive(Debug, Serialize)]
pub struct Report {
    seed: u64,
    seconds: u64,
    replicas: usize,
    servers: usize,
    model_delay_ms: String,
    course: Course,
    /// The outcome of starting the older build after the promotion.
    older_again: Option<String>,
    messages_in: usize,
    replies_out: usize,
    joined: usize,
    lost: usize,
    doubled: usize,
    out_of_order: usize,
    model_requests: usize,
    /// Decisions that were made from answers of the model.
    decisions_with_model: usize,
    /// Requests whose answers decisions hold.
    model_requests_needed: usize,
    model_requests_given_up: usize,
    model_requests_prepared_again: usize,
    model_requests_failed: usize,
    /// Unsettled when the run was over.
    model_requests_open: usize,
    model_requests_extra: usize,
    /// Requests that were unsettled in what was killed or frozen, at those instants: there may be as many extra ones.
    model_requests_in_struck: usize,
    effects_asked: usize,
    done_once: usize,
    not_done: usize,
    done_twice: usize,
    done_twice_unkeyed: usize,
    in_doubt: usize,
    chains: usize,
    chains_not_ended: usize,
    steps_twice: usize,
    task_times: usize,
    task_times_twice: usize,
    task_times_missed: usize,
    questions: usize,
    questions_open: usize,
    queued_tasks: usize,
    delegated_tasks: usize,
    queued_tasks_not_ended: usize,
    queued_tasks_ended_twice: usize,
    sessions: usize,
    sessions_not_ended: usize,
    compactions: usize,
    briefings: usize,
    briefings_twice: usize,
    /// Calls of peers, and what came of them.
    peer_calls: usize,
    peer_effects: usize,
    peer_calls_in_doubt: usize,
    peer_calls_settled_late: usize,
    /// Calls that were stopped before they began.
    calls_stopped_first: usize,
    processes_left: usize,
    dead_letters: u64,
    not_projected: u64,
    /// Requests that were not answered, or with an error that is not the client's.
    requests_failed: usize,
    /// The longest time in which nats-server took nothing, in seconds.
    longest_without_write: f64,
    longest_stall: Stalls,
    kills: u64,
    kills_by_kind: BTreeMap<&'static str, u64>,
    /// Everything that was done to Kairo, kills included, and what it did by itself.
    faults: BTreeMap<&'static str, u64>,
    /// Actions that ended neither well nor in doubt, by kind.
    failed_actions: BTreeMap<String, usize>,
    /// The violations by kind, in words; empty when all is well.
    findings: BTreeMap<&'static str, Vec<String>>,
    passed: bool,
    /// The folder with the evidence, unless all is well.
    kept: Option<PathBuf>,
}

/// Failed requests and outages as clients see them.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    pub requests_failed: usize,
    pub longest_without_write: Duration,
}

#[derive(Debug, Serialize)]
struct Stalls {
    reply: Option<Stall>,
    silence: Option<Stall>,
    /// Until an agent decided on an order to stop a call.
    stop: Option<Stall>,
}

impl Report {
    pub fn new(
        settings: &Settings,
        journal: &Journal,
        verdict: Verdict,
        rest: Rest,
        tables: Vec<String>,
        audit: Vec<String>,
    ) -> Self {
        let kills_by_kind = journal.of(KILLED);
        let mut report = Self {
            seed: settings.seed,
            seconds: settings.time.as_secs(),
            replicas: settings.replicas,
            servers: settings.servers,
            model_delay_ms: settings.model_delay.to_string(),
            course: settings.course,
            older_again: None,
            messages_in: verdict.messages,
            replies_out: verdict.replies,
            joined: verdict.joined,
            lost: verdict.lost.len(),
            doubled: verdict.doubled.len(),
            out_of_order: verdict.out_of_order.len(),
            model_requests: verdict.calls.requests,
            decisions_with_model: verdict.calls.decisions,
            model_requests_needed: verdict.calls.needed,
            model_requests_given_up: verdict.calls.given_up,
            model_requests_prepared_again: verdict.calls.prepared_again,
            model_requests_failed: verdict.calls.failed,
            model_requests_open: verdict.calls.open,
            model_requests_extra: verdict.calls.extra,
            model_requests_in_struck: verdict.calls.in_struck,
            effects_asked: verdict.asked,
            done_once: verdict.done_once,
            not_done: verdict.not_done,
            done_twice: verdict.done_twice_keyed.len(),
            done_twice_unkeyed: verdict.done_twice_unkeyed.len(),
            in_doubt: verdict.in_doubt,
            chains: verdict.chains,
            chains_not_ended: verdict.chains_not_ended.len(),
            steps_twice: verdict.steps_twice.len(),
            task_times: verdict.task_times,
            task_times_twice: verdict.task_times_twice.len(),
            task_times_missed: verdict.task_times_missed.len(),
            questions: verdict.questions,
            questions_open: verdict.questions_open.len(),
            queued_tasks: verdict.work.tasks,
            delegated_tasks: verdict.work.delegated,
            queued_tasks_not_ended: verdict.work.tasks_not_ended.len(),
            queued_tasks_ended_twice: verdict.work.tasks_ended_twice.len(),
            sessions: verdict.work.sessions,
            sessions_not_ended: verdict.work.sessions_not_ended.len(),
            compactions: verdict.work.compacted,
            briefings: verdict.work.briefings,
            briefings_twice: verdict.work.briefings_twice.len(),
            peer_calls: verdict.errands.calls,
            peer_effects: verdict.errands.effects,
            peer_calls_in_doubt: verdict.errands.in_doubt,
            peer_calls_settled_late: verdict.errands.settled,
            calls_stopped_first: verdict.errands.stopped,
            processes_left: rest.processes_left.len(),
            dead_letters: rest.dead_letters,
            not_projected: rest.not_projected,
            requests_failed: 0,
            longest_without_write: 0.0,
            longest_stall: Stalls {
                reply: verdict.longest_reply,
                silence: verdict.longest_silence,
                stop: verdict.errands.longest_stop,
            },
            kills: kills_by_kind.values().sum(),
            kills_by_kind,
            faults: journal.all(),
            failed_actions: verdict.failures,
            findings: BTreeMap::new(),
            passed: true,
            kept: None,
        };
        let not_projected = (rest.not_projected > 0).then(|| format!("{} messages", rest.not_projected));
        let dead_letters = (rest.dead_letters > 0).then(|| format!("{} dead letters", rest.dead_letters));
        let unpromoted = settings.course == Course::Walk && journal.of(PROMOTED).is_empty();
        let ended = journal.of(ENDED).into_iter().map(|(name, times)| format!("{name}, {times} times"));
        for (what, found) in [
            ("lost messages", verdict.lost),
            ("messages answered twice", verdict.doubled),
            ("messages answered with something else", verdict.misanswered),
            ("messages refused", verdict.refused),
            ("messages dealt with out of order", verdict.out_of_order),
            ("model requests beyond those in what was killed or frozen", verdict.calls.too_many),
            ("keyed effects not done", verdict.not_done_keyed),
            ("effects that had no reason to fail", verdict.needlessly_failed),
            ("keyed effects done twice", verdict.done_twice_keyed),
            ("unkeyed effects done twice", verdict.done_twice_unkeyed),
            ("keyed actions in doubt", verdict.needlessly_in_doubt),
            ("effects said to be done that were not", verdict.pretended),
            ("effects done that nobody asked for", verdict.unasked),
            ("chains that never ended", verdict.chains_not_ended),
            ("chains that ended twice", verdict.chains_ended_twice),
            ("steps whose tool was called twice", verdict.steps_twice),
            ("times of tasks dealt with twice", verdict.task_times_twice),
            ("times of tasks that were left out", verdict.task_times_missed),
            ("times of tasks at which something else was done", verdict.task_times_idle),
            ("questions that nobody went on with", verdict.questions_open),
            ("calls that nobody consented to", verdict.unconsented),
            ("messages put into two threads", verdict.placed_twice),
            ("queued tasks that never ended", verdict.work.tasks_not_ended),
            ("queued tasks that ended twice", verdict.work.tasks_ended_twice),
            ("queued tasks that had no reason to fail", verdict.work.tasks_failed),
            ("sessions of work that never ended", verdict.work.sessions_not_ended),
            ("sessions of work that ended twice", verdict.work.sessions_ended_twice),
            ("sessions briefed on twice", verdict.work.briefings_twice),
            ("effects reported as not done that were", verdict.errands.denied),
            ("answers of peers that settled nothing", verdict.errands.unheard),
            ("effects of calls that were stopped before they began", verdict.errands.begun_after_stop),
            ("orders to stop a call that took too long", verdict.errands.slow_stops),
            ("processes left", rest.processes_left),
            ("work that never came to rest", rest.unsettled.into_iter().collect()),
            ("not in the read model", not_projected.into_iter().collect()),
            ("read models that are not what the log says", tables),
            ("messages set aside", dead_letters.into_iter().collect()),
            ("services that ended by themselves", ended.collect()),
            ("promotions that were never granted", unpromoted.then(|| "the last".to_owned()).into_iter().collect()),
            ("invariants broken", audit),
        ] {
            if !found.is_empty() {
                report.findings.insert(what, found);
                report.passed = false;
            }
        }
        report
    }

    /// Adds the outcome of the older build that was started after the promotion, and the incident files of one build
    /// that the other could not read.
    pub fn after(mut self, older: Option<OlderAgain>, unread: Vec<String>) -> Self {
        if !unread.is_empty() {
            self.findings.insert("incident files of the other build", unread);
            self.passed = false;
        }
        self.older_again = older.map(|older| match older {
            OlderAgain::Refused(tail) => {
                if !tail.contains("promoted") {
                    self.findings.insert("older builds that end for another reason", vec![tail]);
                    self.passed = false;
                }
                "refused to start".to_owned()
            }
            OlderAgain::Started { should_refuse } => {
                if should_refuse {
                    self.findings.insert("older builds that start after the promotion", vec!["a router".to_owned()]);
                    self.passed = false;
                }
                "started: it reads that epoch, or is of before builds refused one".to_owned()
            }
        });
        self
    }

    /// Adds the observations of clients. Where nothing is killed, no request may fail.
    pub fn seen_from_outside(mut self, course: Course, outside: Outside) -> Self {
        self.requests_failed = outside.requests_failed;
        self.longest_without_write = outside.longest_without_write.as_secs_f64();
        if course == Course::Restarts && outside.requests_failed > 0 {
            let failed = format!("{} of them, see the journal", outside.requests_failed);
            self.findings.insert("requests that failed", vec![failed]);
            self.passed = false;
        }
        self
    }

    /// Returns true if no violation was found.
    pub fn passed(&self) -> bool {
        self.passed
    }

    /// Says where the evidence is.
    pub fn kept(&mut self, folder: PathBuf) {
        self.kept = Some(folder);
    }

    /// Returns all violations in words, in full.
    pub fn findings(&self) -> String {
        let kinds = self.findings.iter().map(|(what, found)| format!("{what}:\n  {}\n", found.join("\n  ")));
        kinds.collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:28}{value:>8}");
        line("messages in", &self.messages_in)?;
        line("replies out", &self.replies_out)?;
        line("  joined to another", &self.joined)?;
        line("lost", &self.lost)?;
        line("doubled", &self.doubled)?;
        line("out of order", &self.out_of_order)?;
        line("model requests", &self.model_requests)?;
        line("  needed", &self.model_requests_needed)?;
        line("  by so many decisions", &self.decisions_with_model)?;
        line("  given up for a message", &self.model_requests_given_up)?;
        line("  for work, once more", &self.model_requests_prepared_again)?;
        line("  that the model let fail", &self.model_requests_failed)?;
        line("  open in the end", &self.model_requests_open)?;
        line("  extra", &self.model_requests_extra)?;
        line("  allowed: in struck ones", &self.model_requests_in_struck)?;
        line("effects asked", &self.effects_asked)?;
        line("  done once", &self.done_once)?;
        line("  not done", &self.not_done)?;
        line("  done twice, keyed", &self.done_twice)?;
        line("  done twice, unkeyed", &self.done_twice_unkeyed)?;
        line("actions in doubt", &self.in_doubt)?;
        line("chains", &self.chains)?;
        line("  never ended", &self.chains_not_ended)?;
        line("  steps called twice", &self.steps_twice)?;
        line("times of tasks and hooks", &self.task_times)?;
        line("  dealt with twice", &self.task_times_twice)?;
        line("  left out", &self.task_times_missed)?;
        line("questions to users", &self.questions)?;
        line("  open", &self.questions_open)?;
        line("queued tasks", &self.queued_tasks)?;
        line("  delegated", &self.delegated_tasks)?;
        line("  never ended", &self.queued_tasks_not_ended)?;
        line("  ended twice", &self.queued_tasks_ended_twice)?;
        line("sessions of work", &self.sessions)?;
        line("  never ended", &self.sessions_not_ended)?;
        line("  summed up", &self.compactions)?;
        line("briefings", &self.briefings)?;
        line("  told twice", &self.briefings_twice)?;
        line("calls of peers", &self.peer_calls)?;
        line("  effects", &self.peer_effects)?;
        line("  in doubt", &self.peer_calls_in_doubt)?;
        line("  settled late", &self.peer_calls_settled_late)?;
        line("calls stopped first", &self.calls_stopped_first)?;
        line("processes left", &self.processes_left)?;
        line("dead letters", &self.dead_letters)?;
        line("not in the read model", &self.not_projected)?;
        line("requests that failed", &self.requests_failed)?;
        line("kills", &self.kills)?;
        writeln!(f, "{:28}{:>8.2} s", "longest without a write", self.longest_without_write)?;
        let Stalls { reply, silence, stop } = &self.longest_stall;
        for (name, stall) in [("reply", reply), ("silence", silence), ("stop", stop)] {
            if let Some(stall) = stall {
                writeln!(f, "{:28}{:>8.1} s ({})", format!("longest stall, {name}"), stall.seconds, stall.what)?;
            }
        }
        if let Some(older) = &self.older_again {
            writeln!(f, "{:28}{older}", "older build, promoted fleet")?;
        }
        writeln!(f, "\nkills: {}", listed(&self.kills_by_kind))?;
        writeln!(f, "all faults: {}", listed(&self.faults))?;
        if !self.failed_actions.is_empty() {
            writeln!(f, "failed actions: {}", listed(&self.failed_actions))?;
        }
        self.write_findings(f)
    }
}

impl Report {
    fn write_findings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, found) in &self.findings {
            writeln!(f, "\n{what}: {}", found.len())?;
            found.iter().take(SHOWN).try_for_each(|finding| writeln!(f, "  {finding}"))?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "\nfaults, findings, the log and the services' logs are kept in {}", kept.display())?;
        }
        let Self { seed, seconds, replicas, servers, model_delay_ms, .. } = self;
        let verdict = if self.passed { "passed" } else { "FAILED" };
        writeln!(
            f,
            "\n{verdict}: --seconds {seconds} --seed {seed} --replicas {replicas} --servers {servers} --model-delay \
             {model_delay_ms}{}",
            match self.course {
                Course::Chaos => "",
                Course::Walk => " --older DIR",
                Course::SideBySide => " --older DIR --side-by-side",
                Course::Restarts => " --only restarts",
                Course::Leaders => " --only leaders",
                Course::Partition => " --only partition",
                Course::DiskFull => " --only disk-full",
                Course::LogFull => " --only log-full",
            }
        )
    }
}

fn listed<K: fmt::Display, V: fmt::Display>(counts: &BTreeMap<K, V>) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}
