//! Tasks whose time came, hooks on what happened, hooks before a step, and the end of the day.

use std::collections::BTreeMap;

use kairo_events::ids;
use kairo_proto::v1::{TaskChanged, TaskFired, TaskScheduled, decided_event::Event};
use kairo_proto::words::{ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Deliberation, Failure, Purpose, deciding, stepping::Ready};
use crate::{
    answer_forms,
    chain::{Origin, Step, format, references},
    conditions::{self, Verdict},
    intrinsics::tasks,
    prompts,
    request::ModelRequest,
    tasks::{LINEAGE, Task, Tasks, Trigger, What, kept},
    thread::Thread,
};

/// Threads written to memory at the end of one day, those with the most to tell first; the others the day after.
const THREADS_A_DAY: usize = 48;
/// Steps in the action of a hook before a step that act on that step; all others go on by themselves.
const STOP: &str = "step.stop";
const CHANGE: &str = "step.change";

/// A condition that a model judges.
#[derive(Clone, Debug)]
pub(super) struct Judging {
    hook: Uuid,
    before: Before,
}

#[derive(Clone, Debug)]
enum Before {
    /// The hook fires.
    Firing(Trigger),
    /// The step goes on; with what was judged so far.
    Step { ready: Ready, judged: BTreeMap<Uuid, bool> },
}

impl Deliberation<'_> {
    /// Fires the tasks that wait for what happened at this input, and asks a model where a hook's condition is unclear.
    pub(super) fn fire_triggered(&mut self) {
        for (task, trigger) in self.triggered() {
            if trigger.lineage.contains(&task.id) || trigger.lineage.len() >= LINEAGE {
                self.refuse_loop(&task, trigger.correlation);
                continue;
            }
            match &task.what {
                What::Time { .. } => self.fire(&task, &trigger),
                What::Queue { .. } => self.try_again(&task),
                What::Hook { condition, .. } => match conditions::judge(condition, &trigger.data) {
                    Verdict::Holds => self.fire(&task, &trigger),
                    Verdict::DoesNot => {}
                    Verdict::Unclear => {
                        let turn = ids::derived(self.decision_id, &format!("judge/{}", task.id));
                        let data = trigger.data.clone();
                        let judging = Judging { hook: task.id, before: Before::Firing(trigger) };
                        self.judge(turn, judging, condition, &data);
                    }
                },
            }
        }
    }

    /// Notes that tasks were due, without their being done: there is no room for what they do.
    pub(super) fn pass_over_triggered(&mut self) {
        for (task, trigger) in self.triggered() {
            if let What::Queue { .. } = task.what {
                self.try_again(&task);
                continue;
            }
            let fired = tasks::fired(&task, trigger.occurrence, trigger.event, self.input.envelope.time, &Value::Null);
            let turn = ids::derived(self.decision_id, &format!("task/{}", task.id));
            self.add_to(turn, &task.thread_id, trigger.correlation, Event::TaskFired(fired));
            self.settle();
            self.end_chain(turn, Uuid::nil(), &ChainOutcome::Failed, "what it came to is too large");
        }
    }

    fn triggered(&self) -> Vec<(Task, Trigger)> {
        let triggered = self.mind.triggered(self.input.sequence);
        triggered.map(|(task, trigger)| (task.clone(), trigger.clone())).collect()
    }

    fn fire(&mut self, task: &Task, trigger: &Trigger) {
        let mut fired = tasks::fired(task, trigger.occurrence, trigger.event, self.input.envelope.time, &trigger.data);
        fired.lineage = trigger.lineage.iter().map(Uuid::to_string).collect();
        fired.outside = task.outside.clone().with(&trigger.outside).marks();
        let steps = self.steps_of(task);
        self.begin_task(task, fired, trigger.correlation, steps);
    }

    /// A task that is to run now, because somebody says so.
    pub(super) fn fire_now(&mut self, turn_id: Uuid, fired: TaskFired) {
        self.settle();
        let id = Uuid::parse_str(&fired.task_id).unwrap_or_default();
        let Some(task) = self.mind.tasks.open.get(&id).cloned() else { return };
        let correlation = self.turn(turn_id).map_or(turn_id, |turn| turn.correlation);
        let steps = self.steps_of(&task);
        self.begin_task(&task, fired, correlation, steps);
    }

    /// A task fires and its chain begins, unless its steps are none.
    fn begin_task(&mut self, task: &Task, fired: TaskFired, correlation: Uuid, steps: Result<Vec<Step>, Vec<String>>) {
        let place = format!("task/{}/{}", task.id, self.decision.events.len());
        let turn = ids::derived(self.decision_id, &place);
        let origin = if matches!(task.what, What::Hook { .. }) { Origin::Hook } else { Origin::Task };
        self.add_to(turn, &task.thread_id, correlation, Event::TaskFired(fired));
        self.settle();
        match steps {
            Ok(steps) => self.start_chain(turn, origin, "", Some(task.id), &steps),
            Err(mistakes) => {
                let reason = mistakes.join("; ");
                self.fail(turn, "invalid_chain", &reason, 1, false);
                self.tell_undone(turn, &reason);
                self.end_chain(turn, Uuid::nil(), &ChainOutcome::Failed, &reason);
            }
        }
    }

    /// Its steps, which were read when it was made: what is wrong with them is that fewer are allowed by now.
    fn steps_of(&self, task: &Task) -> Result<Vec<Step>, Vec<String>> {
        match task.is_of_system() {
            true => Ok(self.end_of_day()),
            false => format::read(&task.action, self.limits.chain_steps),
        }
    }

    /// Writes down what happened in each thread, then digests it.
    fn end_of_day(&self) -> Vec<Step> {
        let is_told = |thread: &Thread| !thread.archived && !thread.work && !thread.fresh.is_empty() && thread.news > 0;
        let told = self.mind.threads.iter().filter(|(_, thread)| is_told(thread));
        let mut threads: Vec<_> = told.map(|(id, thread)| (thread.fresh.len(), id)).collect();
        threads.sort_by_key(|(events, _)| std::cmp::Reverse(*events));
        let mut steps = Vec::new();
        let mut group = 0;
        for threads in threads.iter().take(THREADS_A_DAY).collect::<Vec<_>>().chunks(self.limits.parallel_tools.max(1))
        {
            for (_, id) in threads {
                steps.push(step(group, "memory.append", json!({ "thread_id": id })));
            }
            group += 1;
        }
        steps.push(step(group, "memory.digest", json!({ "period": "daily" })));
        steps
    }

    /// Sees to it that the end of the agent's day is a task, as the profile wants it.
    pub(super) fn keep_the_day(&mut self) {
        let Some(profile) = &self.mind.profile else { return };
        let (now, id) = (self.input.envelope.time, ids::derived(self.decision_id, "day"));
        let task = (!profile.day_ends_at.is_empty()).then(|| tasks::end_of_day(profile, now, id));
        let as_wanted = |kept: &Task| task.as_ref().is_some_and(|wanted| is_scheduled_as(kept, wanted));
        let kept = self.mind.tasks.day_end().map(|kept| (kept.id, as_wanted(kept)));
        if matches!(kept, Some((_, true))) || kept.is_none() && task.is_none() {
            return;
        }
        let (thread, correlation) = (self.thread_id(), self.input.envelope.correlation_id);
        if let Some((before, false)) = kept {
            let changed =
                TaskChanged { task_id: before.to_string(), status: TaskStatus::Canceled.text(), ..Default::default() };
            self.add_to(correlation, &thread, correlation, Event::TaskChanged(changed));
        }
        if let Some(task) = task {
            let scheduled = TaskScheduled { task: Some(task) };
            self.add_to(correlation, &thread, correlation, Event::TaskScheduled(scheduled));
        }
    }

    /// Lets the hooks before a step have their say; none if the step does not go on, or not yet.
    pub(super) fn pass_hooks(
        &mut self,
        turn_id: Uuid,
        mut ready: Ready,
        judged: &BTreeMap<Uuid, bool>,
    ) -> Option<Ready> {
        let turn = self.turn(turn_id)?;
        let (lineage, correlation, user) = (turn.lineage.clone(), turn.correlation, turn.user.clone());
        let outside = self.mind.outside_of(turn);
        let trigger = format!("pre:{}", ready.event);
        let hooks = self.mind.tasks.hooks_of(&trigger, &user).filter(|hook| !lineage.contains(&hook.id));
        let hooks: Vec<Task> = hooks.cloned().collect();
        if hooks.is_empty() {
            return Some(ready);
        }
        let data = Value::Object(ready.params.clone());
        for hook in self.holding(turn_id, hooks, &ready, judged)? {
            // A hook that cannot have its say keeps the step from running: it may be there to do so.
            let steps = format::read(&hook.action, self.limits.chain_steps).ok();
            let Some(steps) = steps.filter(|_| lineage.len() < LINEAGE) else {
                let message = format!("the hook “{}” before it could not run", hook.title);
                self.end_step(turn_id, ready.step, &Ended::Stopped, Value::Null, &message);
                return None;
            };
            let (about_step, rest): (Vec<Step>, Vec<Step>) =
                steps.into_iter().partition(|step| matches!(step.event.as_str(), STOP | CHANGE));
            let (event, now) = (self.input.envelope.id, self.input.envelope.time);
            let mut fired = tasks::fired(&hook, 0, event, now, &kept(data.clone()));
            fired.lineage = lineage.iter().map(Uuid::to_string).collect();
            fired.outside = hook.outside.clone().with(&outside).marks();
            self.begin_task(&hook, fired, correlation, Ok(rest));
            for step in about_step {
                let said = filled(&step, &data);
                if step.event == STOP {
                    let reason = said.get("reason").and_then(Value::as_str).unwrap_or(&hook.title).to_owned();
                    self.end_step(turn_id, ready.step, &Ended::Stopped, Value::Null, &reason);
                    return None;
                }
                if let Some(Value::Object(change)) = said.get("params") {
                    ready.params.extend(change.clone());
                }
            }
        }
        self.settle();
        Some(ready)
    }

    /// Those of the hooks before a step whose condition holds; none as long as a model is to judge one.
    fn holding(
        &mut self,
        turn_id: Uuid,
        hooks: Vec<Task>,
        ready: &Ready,
        judged: &BTreeMap<Uuid, bool>,
    ) -> Option<Vec<Task>> {
        let data = Value::Object(ready.params.clone());
        let mut holding = Vec::new();
        for hook in hooks {
            let What::Hook { condition, .. } = &hook.what else { continue };
            match (conditions::judge(condition, &data), judged.get(&hook.id)) {
                (Verdict::Holds, _) | (Verdict::Unclear, Some(true)) => holding.push(hook),
                (Verdict::DoesNot, _) | (Verdict::Unclear, Some(false)) => {}
                (Verdict::Unclear, None) => {
                    let before = Before::Step { ready: ready.clone(), judged: judged.clone() };
                    self.judge(turn_id, Judging { hook: hook.id, before }, condition, &data);
                    return None;
                }
            }
        }
        Some(holding)
    }

    fn judge(&mut self, turn_id: Uuid, judging: Judging, condition: &str, data: &Value) {
        let asked = json!({ "condition": condition, "event": data, "now": self.input.envelope.time });
        let request = ModelRequest::of("light", prompts::JUDGE, asked.to_string());
        self.ask(turn_id, Purpose::Judge(judging), request.answered_as(answer_forms::judging()));
    }

    /// Acts on a model's verdict on a hook's condition: fires the hook, or goes on with the step that it precedes.
    pub(super) fn judged(&mut self, turn_id: Uuid, judging: &Judging, text: &str) -> Result<(), Failure> {
        let holds = match deciding::read(text)?.action.as_str() {
            "continue" => true,
            "skip" | "break" => false,
            other => return Err(Failure::malformed(format!("the action {other:?} is none: continue or skip"))),
        };
        self.settle();
        match &judging.before {
            Before::Firing(trigger) => {
                if let (true, Some(task)) = (holds, self.mind.tasks.open.get(&judging.hook).cloned()) {
                    self.fire(&task, trigger);
                }
            }
            Before::Step { ready, judged } => {
                let mut judged = judged.clone();
                judged.insert(judging.hook, holds);
                self.run_guarded(turn_id, ready.clone(), &judged);
                self.work.push_back(turn_id);
            }
        }
        Ok(())
    }

    /// Nobody can say whether a hook's condition holds: it does not fire, and what it guards does not happen.
    pub(super) fn unclear(&mut self, turn_id: Uuid, judging: Judging) {
        self.settle();
        let (thread, correlation) = (self.thread_id(), self.input.envelope.correlation_id);
        let message = format!("whether the condition of the hook {} holds could not be judged", judging.hook);
        let failed = kairo_proto::v1::AgentFailed {
            kind: "unclear_condition".to_owned(),
            message: message.clone(),
            attempt: 1,
            retried: false,
            ..Default::default()
        };
        match judging.before {
            Before::Firing(_) => _ = self.add_to(correlation, &thread, correlation, Event::Failed(failed)),
            Before::Step { ready, .. } => {
                self.add(turn_id, Event::Failed(failed));
                self.end_step(turn_id, ready.step, &Ended::Stopped, Value::Null, &message);
                self.work.push_back(turn_id);
            }
        }
    }

    fn refuse_loop(&mut self, task: &Task, correlation: Uuid) {
        let message = format!("the hook {} ({}) was triggered by what it did itself", task.id, task.title);
        let failed = kairo_proto::v1::AgentFailed {
            kind: "hook_loop".to_owned(),
            message,
            attempt: 1,
            retried: false,
            ..Default::default()
        };
        self.add_to(correlation, &task.thread_id, correlation, Event::Failed(failed));
    }
}

fn step(group: u32, event: &str, params: Value) -> Step {
    let params = params.as_object().cloned().unwrap_or_default();
    Step { group, event: event.to_owned(), params, decide: None }
}

/// Returns true if the kept task is due at the same times as the wanted one would be.
fn is_scheduled_as(kept: &Task, wanted: &kairo_proto::v1::Task) -> bool {
    let mut tasks = Tasks::default();
    tasks.schedule(kept.created, wanted);
    let schedule = |task: &Task| match &task.what {
        What::Time { schedule, .. } => Some(schedule.clone()),
        What::Hook { .. } | What::Queue { .. } => None,
    };
    tasks.open.values().next().is_some_and(|wanted| schedule(wanted) == schedule(kept))
}

/// A hook's step with what it says of the event filled in; as it stands where that cannot be.
fn filled(step: &Step, data: &Value) -> Map<String, Value> {
    let scope = references::Scope { outcomes: &[], thread_id: "", analysis: "", summary: "", event: data };
    references::fill(&step.params, &scope).unwrap_or_else(|_| step.params.clone())
}
