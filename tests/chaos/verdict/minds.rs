//! The verdict on chains, tasks and questions: the log against itself.

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::{
    Decided,
    about::{self, Chain, Thread},
    v1::{DecidedEvent, Task, decided_event::Event},
    words::TaskKind,
};

use super::{Evidence, Verdict};
use crate::{
    audit::{decision, tool_calls},
    chaos::scenario,
};

/// The log's entries about a task.
#[derive(Default)]
struct Told {
    task: Option<Task>,
    /// The times that were dealt with.
    fired: Vec<u64>,
    /// Chains of it in which the tool of the first step was called: all that tasks of the load do begins with one.
    acted: usize,
    canceled: bool,
}

impl Evidence<'_> {
    pub(super) fn judge_minds(&self, verdict: &mut Verdict) {
        self.judge_chains(verdict);
        self.judge_tasks(verdict);
        self.judge_questions(verdict);
        self.judge_consents(verdict);
    }

    pub(super) fn decided(&self) -> impl Iterator<Item = (&DecidedEvent, &Event)> {
        let decisions = self.own().filter_map(|entry| decision(&entry.record));
        decisions.flat_map(|decision| &decision.events).filter_map(|event| Some((event, event.event.as_ref()?)))
    }

    fn judge_chains(&self, verdict: &mut Verdict) {
        let (mut started, mut ended) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for (_, event) in self.decided() {
            let Decided::Chain(chain) = event.about() else { continue };
            match chain {
                Chain::Started(chain) => _ = started.insert(chain.chain_id.as_str()),
                Chain::Ended(chain) => *ended.entry(&chain.chain_id).or_default() += 1,
                Chain::ApprovalRequested(_) | Chain::StepEnded(_) => {}
            }
        }
        let mut calls = BTreeMap::<(String, u32), usize>::new();
        let decisions = self.own().filter_map(|entry| decision(&entry.record));
        for (_, call) in decisions.flat_map(tool_calls).filter(|(_, call)| !call.chain_id.is_empty()) {
            *calls.entry((call.chain_id.clone(), call.step)).or_default() += 1;
        }
        verdict.chains = started.len();
        verdict.chains_not_ended =
            started.iter().filter(|id| !ended.contains_key(*id)).map(|id| (*id).to_owned()).collect();
        let twice = ended.into_iter().filter(|(_, times)| *times > 1).map(|(id, times)| format!("{id}, {times} times"));
        verdict.chains_ended_twice.extend(twice);
        let twice = calls.into_iter().filter(|(_, times)| *times > 1);
        verdict
            .steps_twice
            .extend(twice.map(|((chain, step), times)| format!("step {step} of {chain}, {times} times")));
    }

    fn judge_tasks(&self, verdict: &mut Verdict) {
        let mut tasks = BTreeMap::<String, Told>::new();
        let decisions = || self.own().filter_map(|entry| decision(&entry.record));
        let first_calls = decisions().flat_map(tool_calls).filter(|(_, call)| call.step == 0);
        let begun: BTreeSet<&str> = first_calls.map(|(_, call)| call.chain_id.as_str()).collect();
        for (_, event) in self.decided() {
            match event.about() {
                Decided::Task(about::Task::Scheduled(scheduled)) => {
                    if let Some(task) = &scheduled.task {
                        tasks.entry(task.task_id.clone()).or_default().task = Some(task.clone());
                    }
                }
                Decided::Task(about::Task::Fired(fired)) => {
                    tasks.entry(fired.task_id.clone()).or_default().fired.push(fired.occurrence);
                }
                Decided::Task(about::Task::Changed(changed)) => {
                    tasks.entry(changed.task_id.clone()).or_default().canceled |= changed.status == "canceled";
                }
                // What is queued is judged with the work.
                Decided::Task(about::Task::Started(_) | about::Task::Ended(_)) => {}
                Decided::Chain(Chain::Started(chain)) => {
                    if begun.contains(chain.chain_id.as_str()) {
                        tasks.entry(chain.task_id.clone()).or_default().acted += 1;
                    }
                }
                Decided::Chain(Chain::ApprovalRequested(_) | Chain::StepEnded(_) | Chain::Ended(_)) => {}
                Decided::Turn(_) | Decided::Thread(_) | Decided::Memory(_) | Decided::State(_) => {}
            }
        }
        for (id, told) in tasks {
            let Some(task) = told.task.as_ref().filter(|task| task.kind_word() != TaskKind::Queued) else { continue };
            let named = format!("{} ({} {}, {id})", task.title, task.kind, task.trigger);
            verdict.task_times += told.fired.len();
            let distinct: BTreeSet<u64> = told.fired.iter().copied().collect();
            // What a hook of the load waits for happens once.
            if distinct.len() < told.fired.len() {
                verdict.task_times_twice.push(format!("{named}: {:?}", told.fired));
            }
            let numbered = task.kind == "hook" || distinct.iter().copied().eq(1..=told.fired.len() as u64);
            if !numbered || told.fired.is_empty() && !told.canceled {
                verdict.task_times_missed.push(format!("{named}: {:?}", told.fired));
            }
            if told.acted != told.fired.len() {
                verdict.task_times_idle.push(format!("{named}: {:?}, of which {} acted", told.fired, told.acted));
            }
        }
    }

    fn judge_questions(&self, verdict: &mut Verdict) {
        let (mut asked, mut answered) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for (_, event) in self.decided() {
            let Decided::Thread(thread) = event.about() else { continue };
            match thread {
                Thread::Suggested(suggested) => {
                    verdict.questions += 1;
                    asked.insert(suggested.message_id.as_str());
                }
                Thread::Matched(matched) => *answered.entry(&matched.message_id).or_default() += 1,
                Thread::Created(_) | Thread::Summarized(_) | Thread::Archived(_) => {}
                Thread::Completed(_) | Thread::Compacted(_) => {}
            }
        }
        let open = asked.iter().filter(|id| !answered.contains_key(*id)).map(|id| (*id).to_owned());
        verdict.questions_open.extend(open);
        let twice =
            answered.into_iter().filter(|(_, times)| *times > 1).map(|(id, times)| format!("{id}, {times} times"));
        verdict.placed_twice.extend(twice);
    }
    /// A request for consent ends in the call that it is for, or in the end of its step; no tool is called before.
    fn judge_consents(&self, verdict: &mut Verdict) {
        let (mut asked, mut ended) = (BTreeMap::new(), BTreeSet::new());
        let mut calls = BTreeSet::new();
        for (event, what) in self.decided() {
            let Decided::Chain(chain) = what.about() else { continue };
            match chain {
                Chain::ApprovalRequested(request) => {
                    verdict.questions += 1;
                    asked.insert(event.event_id.as_str(), (request.chain_id.as_str(), request.step));
                }
                Chain::StepEnded(step) => _ = ended.insert((step.chain_id.as_str(), step.step)),
                Chain::Started(_) | Chain::Ended(_) => {}
            }
        }
        let decisions = self.own().filter_map(|entry| decision(&entry.record));
        for (action, call) in decisions.flat_map(tool_calls) {
            let allowed = asked.contains_key(call.approval_id.as_str());
            if call.tool == scenario::GUARDED && !allowed {
                verdict.unconsented.push(action);
            }
            calls.insert(call.approval_id.as_str());
        }
        let open = asked.iter().filter(|(id, step)| !calls.contains(*id) && !ended.contains(*step));
        verdict.questions_open.extend(open.map(|(id, _)| format!("consent {id}")));
    }
}
