//! Tasks whose time came, hooks on what happened, hooks before a step, and the end of the day.

use std::collections::BTreeMap;

use kairo_events::ids;
use kairo_proto::v1::{TaskChanged, TaskFired, TaskScheduled, decided_event::Event};
use kairo_proto::words::{ChainOutcome, StepState as Ended, TaskStatus};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose, chain_steps::ReadyStep, step_decisions};
use crate::{
    answer_schemas,
    chain::{Origin, StepSpec, format, references},
    conditions::{self, ConditionVerdict},
    intrinsics::tasks,
    prompts,
    request::ModelRequest,
    tasks::{LINEAGE, Task, TaskActivation, Tasks, Trigger, bound_event_data},
    thread::Thread,
};

/// Threads written to memory at the end of one day, those with the most to tell first; the others the day after.
const THREADS_A_DAY: usize = 48;
/// Steps in the action of a hook before a step that act on that step; all others go on by themselves.
const STOP: &str = "step.stop";
const CHANGE: &str = "step.change";

/// A condition that a model judges.
#[derive(Clone, Debug)]
pub(super) struct HookJudgement {
    hook: Uuid,
    point: HookPoint,
}

#[derive(Clone, Debug)]
enum HookPoint {
    /// The hook fires.
    Firing(Trigger),
    /// The step goes on; with what was judged so far.
    Step { ready: ReadyStep, judged: BTreeMap<Uuid, bool> },
}

impl Deliberation<'_> {
    /// Fires the tasks that wait for what happened at this input, and asks a model where a hook's condition is unclear.
    pub(super) fn fire_triggered(&mut self) {
        for (task, trigger) in self.triggered_tasks() {
            if trigger.lineage.contains(&task.id) || trigger.lineage.len() >= LINEAGE {
                self.refuse_hook_loop(&task, trigger.correlation);
                continue;
            }
            match &task.what {
                TaskActivation::Time { .. } => self.fire_task(&task, &trigger),
                TaskActivation::Queue { .. } => self.retry_task(&task),
                TaskActivation::Hook { condition, .. } => match conditions::judge(condition, &trigger.data) {
                    ConditionVerdict::Holds => self.fire_task(&task, &trigger),
                    ConditionVerdict::DoesNot => {}
                    ConditionVerdict::Unclear => {
                        let turn = ids::derive(self.decision_id, &format!("judge/{}", task.id));
                        let data = trigger.data.clone();
                        let judging = HookJudgement { hook: task.id, point: HookPoint::Firing(trigger) };
                        self.ask_to_judge(turn, judging, condition, &data);
                    }
                },
            }
        }
    }

    /// Notes that tasks were due, without their being done: there is no room for what they do.
    pub(super) fn skip_triggered(&mut self) {
        for (task, trigger) in self.triggered_tasks() {
            if let TaskActivation::Queue { .. } = task.what {
                self.retry_task(&task);
                continue;
            }
            let fired =
                tasks::task_fired(&task, trigger.occurrence, trigger.event, self.input.envelope.time, &Value::Null);
            let turn = ids::derive(self.decision_id, &format!("task/{}", task.id));
            self.add_event_to(turn, &task.thread_id, trigger.correlation, Event::TaskFired(fired));
            self.apply_decided();
            self.end_chain(turn, Uuid::nil(), &ChainOutcome::Failed, "what it came to is too large");
        }
    }

    fn triggered_tasks(&self) -> Vec<(Task, Trigger)> {
        let triggered = self.mind.pending_triggers(self.input.sequence);
        triggered.map(|(task, trigger)| (task.clone(), trigger.clone())).collect()
    }

    fn fire_task(&mut self, task: &Task, trigger: &Trigger) {
        let mut fired =
            tasks::task_fired(task, trigger.occurrence, trigger.event, self.input.envelope.time, &trigger.data);
        fired.lineage = trigger.lineage.iter().map(Uuid::to_string).collect();
        fired.outside = task.outside.clone().merge(&trigger.outside).marks();
        let steps = self.steps_of_task(task);
        self.begin_task(task, fired, trigger.correlation, steps);
    }

    /// A task that is to run now, because somebody says so.
    pub(super) fn fire_now(&mut self, turn_id: Uuid, fired: TaskFired) {
        self.apply_decided();
        let id = Uuid::parse_str(&fired.task_id).unwrap_or_default();
        let Some(task) = self.mind.tasks.open.get(&id).cloned() else { return };
        let correlation = self.turn(turn_id).map_or(turn_id, |turn| turn.correlation);
        let steps = self.steps_of_task(&task);
        self.begin_task(&task, fired, correlation, steps);
    }

    /// A task fires and its chain begins, unless its steps are none.
    fn begin_task(
        &mut self,
        task: &Task,
        fired: TaskFired,
        correlation: Uuid,
        steps: Result<Vec<StepSpec>, Vec<String>>,
    ) {
        let place = format!("task/{}/{}", task.id, self.decision.events.len());
        let turn = ids::derive(self.decision_id, &place);
        let origin = if matches!(task.what, TaskActivation::Hook { .. }) { Origin::Hook } else { Origin::Task };
        self.add_event_to(turn, &task.thread_id, correlation, Event::TaskFired(fired));
        self.apply_decided();
        match steps {
            Ok(steps) => self.start_chain(turn, origin, "", Some(task.id), &steps),
            Err(mistakes) => {
                let reason = mistakes.join("; ");
                self.record_failure(turn, "invalid_chain", &reason, 1, false);
                self.tell_task_undone(turn, &reason);
                self.end_chain(turn, Uuid::nil(), &ChainOutcome::Failed, &reason);
            }
        }
    }

    /// Its steps, which were read when it was made: what is wrong with them is that fewer are allowed by now.
    fn steps_of_task(&self, task: &Task) -> Result<Vec<StepSpec>, Vec<String>> {
        match task.is_of_system() {
            true => Ok(self.end_of_day_steps()),
            false => format::from_json(&task.action, self.limits.chain_steps),
        }
    }

    /// Writes down what happened in each thread, then digests it.
    fn end_of_day_steps(&self) -> Vec<StepSpec> {
        let is_told = |thread: &Thread| !thread.archived && !thread.work && !thread.fresh.is_empty() && thread.news > 0;
        let told = self.mind.threads.iter().filter(|(_, thread)| is_told(thread));
        let mut threads: Vec<_> = told.map(|(id, thread)| (thread.fresh.len(), id)).collect();
        threads.sort_by_key(|(events, _)| std::cmp::Reverse(*events));
        let mut steps = Vec::new();
        let mut group = 0;
        for threads in threads.iter().take(THREADS_A_DAY).collect::<Vec<_>>().chunks(self.limits.parallel_tools.max(1))
        {
            for (_, id) in threads {
                steps.push(step_spec(group, "memory.append", json!({ "thread_id": id })));
            }
            group += 1;
        }
        steps.push(step_spec(group, "memory.digest", json!({ "period": "daily" })));
        steps
    }

    /// Sees to it that the end of the agent's day is a task, as the profile wants it.
    pub(super) fn schedule_end_of_day(&mut self) {
        let Some(profile) = &self.mind.profile else { return };
        let now = self.input.envelope.time;
        let id = ids::derive(self.decision_id, "day");
        let task = (!profile.day_ends_at.is_empty()).then(|| tasks::end_of_day(profile, now, id));
        let as_wanted = |kept: &Task| task.as_ref().is_some_and(|wanted| is_scheduled_as(kept, wanted));
        let kept = self.mind.tasks.day_end().map(|kept| (kept.id, as_wanted(kept)));
        if matches!(kept, Some((_, true))) || kept.is_none() && task.is_none() {
            return;
        }
        let thread = self.thread_id();
        let correlation = self.input.envelope.correlation_id;
        if let Some((before, false)) = kept {
            let changed =
                TaskChanged { task_id: before.to_string(), status: TaskStatus::Canceled.text(), ..Default::default() };
            self.add_event_to(correlation, &thread, correlation, Event::TaskChanged(changed));
        }
        if let Some(task) = task {
            let scheduled = TaskScheduled { task: Some(task) };
            self.add_event_to(correlation, &thread, correlation, Event::TaskScheduled(scheduled));
        }
    }

    /// Lets the hooks before a step have their say; none if the step does not go on, or not yet.
    pub(super) fn run_step_hooks(
        &mut self,
        turn_id: Uuid,
        mut ready: ReadyStep,
        judged: &BTreeMap<Uuid, bool>,
    ) -> Option<ReadyStep> {
        let turn = self.turn(turn_id)?;
        let lineage = turn.lineage.clone();
        let correlation = turn.correlation;
        let user = turn.user.clone();
        let outside = self.mind.provenance_of(turn);
        let trigger = format!("pre:{}", ready.event);
        let hooks = self.mind.tasks.hooks_of(&trigger, &user).filter(|hook| !lineage.contains(&hook.id));
        let hooks: Vec<Task> = hooks.cloned().collect();
        if hooks.is_empty() {
            return Some(ready);
        }
        let data = Value::Object(ready.params.clone());
        for hook in self.hooks_that_hold(turn_id, hooks, &ready, judged)? {
            // A hook that cannot have its say keeps the step from running: it may be there to do so.
            let steps = format::from_json(&hook.action, self.limits.chain_steps).ok();
            let Some(steps) = steps.filter(|_| lineage.len() < LINEAGE) else {
                let message = format!("the hook “{}” before it could not run", hook.title);
                self.end_step(turn_id, ready.step, &Ended::Stopped, Value::Null, &message);
                return None;
            };
            let (about_step, rest): (Vec<StepSpec>, Vec<StepSpec>) =
                steps.into_iter().partition(|step| matches!(step.event.as_str(), STOP | CHANGE));
            let event = self.input.envelope.id;
            let now = self.input.envelope.time;
            let mut fired = tasks::task_fired(&hook, 0, event, now, &bound_event_data(data.clone()));
            fired.lineage = lineage.iter().map(Uuid::to_string).collect();
            fired.outside = hook.outside.clone().merge(&outside).marks();
            self.begin_task(&hook, fired, correlation, Ok(rest));
            for step in about_step {
                let said = fill_hook_step(&step, &data);
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
        self.apply_decided();
        Some(ready)
    }

    /// Those of the hooks before a step whose condition holds; none as long as a model is to judge one.
    fn hooks_that_hold(
        &mut self,
        turn_id: Uuid,
        hooks: Vec<Task>,
        ready: &ReadyStep,
        judged: &BTreeMap<Uuid, bool>,
    ) -> Option<Vec<Task>> {
        let data = Value::Object(ready.params.clone());
        let mut holding = Vec::new();
        for hook in hooks {
            let TaskActivation::Hook { condition, .. } = &hook.what else { continue };
            match (conditions::judge(condition, &data), judged.get(&hook.id)) {
                (ConditionVerdict::Holds, _) | (ConditionVerdict::Unclear, Some(true)) => holding.push(hook),
                (ConditionVerdict::DoesNot, _) | (ConditionVerdict::Unclear, Some(false)) => {}
                (ConditionVerdict::Unclear, None) => {
                    let before = HookPoint::Step { ready: ready.clone(), judged: judged.clone() };
                    self.ask_to_judge(turn_id, HookJudgement { hook: hook.id, point: before }, condition, &data);
                    return None;
                }
            }
        }
        Some(holding)
    }

    fn ask_to_judge(&mut self, turn_id: Uuid, judging: HookJudgement, condition: &str, data: &Value) {
        let asked = json!({ "condition": condition, "event": data, "now": self.input.envelope.time });
        let request = ModelRequest::from_prompt("light", prompts::JUDGE, asked.to_string());
        self.ask_model(turn_id, Purpose::Judge(judging), request.with_answer_schema(answer_schemas::hook_judgement()));
    }

    /// Acts on a model's verdict on a hook's condition: fires the hook, or goes on with the step that it precedes.
    pub(super) fn act_on_judgement(
        &mut self,
        turn_id: Uuid,
        judging: &HookJudgement,
        text: &str,
    ) -> Result<(), AnswerFailure> {
        let holds = match step_decisions::parse_action(text)?.action.as_str() {
            "continue" => true,
            "skip" | "break" => false,
            other => {
                return Err(AnswerFailure::malformed_answer(format!("the action {other:?} is none: continue or skip")));
            }
        };
        self.apply_decided();
        match &judging.point {
            HookPoint::Firing(trigger) => {
                if let (true, Some(task)) = (holds, self.mind.tasks.open.get(&judging.hook).cloned()) {
                    self.fire_task(&task, trigger);
                }
            }
            HookPoint::Step { ready, judged } => {
                let mut judged = judged.clone();
                judged.insert(judging.hook, holds);
                self.run_step_with_hooks(turn_id, ready.clone(), &judged);
                self.work.push_back(turn_id);
            }
        }
        Ok(())
    }

    /// Nobody can say whether a hook's condition holds: it does not fire, and what it guards does not happen.
    pub(super) fn give_up_judgement(&mut self, turn_id: Uuid, judging: HookJudgement) {
        self.apply_decided();
        let thread = self.thread_id();
        let correlation = self.input.envelope.correlation_id;
        let message = format!("whether the condition of the hook {} holds could not be judged", judging.hook);
        let failed = kairo_proto::v1::AgentFailed {
            kind: "unclear_condition".to_owned(),
            message: message.clone(),
            attempt: 1,
            retried: false,
            ..Default::default()
        };
        match judging.point {
            HookPoint::Firing(_) => _ = self.add_event_to(correlation, &thread, correlation, Event::Failed(failed)),
            HookPoint::Step { ready, .. } => {
                self.add_event(turn_id, Event::Failed(failed));
                self.end_step(turn_id, ready.step, &Ended::Stopped, Value::Null, &message);
                self.work.push_back(turn_id);
            }
        }
    }

    fn refuse_hook_loop(&mut self, task: &Task, correlation: Uuid) {
        let message = format!("the hook {} ({}) was triggered by what it did itself", task.id, task.title);
        let failed = kairo_proto::v1::AgentFailed {
            kind: "hook_loop".to_owned(),
            message,
            attempt: 1,
            retried: false,
            ..Default::default()
        };
        self.add_event_to(correlation, &task.thread_id, correlation, Event::Failed(failed));
    }
}

fn step_spec(group: u32, event: &str, params: Value) -> StepSpec {
    let params = params.as_object().cloned().unwrap_or_default();
    StepSpec { group, event: event.to_owned(), params, decide: None }
}

/// Returns true if the kept task is due at the same times as the wanted one would be.
fn is_scheduled_as(kept: &Task, wanted: &kairo_proto::v1::Task) -> bool {
    let mut tasks = Tasks::default();
    tasks.apply_scheduled(kept.created, wanted);
    let schedule = |task: &Task| match &task.what {
        TaskActivation::Time { schedule, .. } => Some(schedule.clone()),
        TaskActivation::Hook { .. } | TaskActivation::Queue { .. } => None,
    };
    tasks.open.values().next().is_some_and(|wanted| schedule(wanted) == schedule(kept))
}

/// A hook's step with what it says of the event filled in; as it stands where that cannot be.
fn fill_hook_step(step: &StepSpec, data: &Value) -> Map<String, Value> {
    let scope = references::ReferenceScope { outcomes: &[], thread_id: "", analysis: "", summary: "", event: data };
    references::fill(&step.params, &scope).unwrap_or_else(|_| step.params.clone())
}
