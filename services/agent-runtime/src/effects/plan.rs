//! Derives the effects of a decision. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kairo_core::{
    hooks::HookState,
    ids::{self, Name},
};
use kairo_proto::words::{RequestKind, TaskKind, TaskStatus};
use kairo_proto::{
    Decided, about,
    v1::{
        AgentAnswer, AgentAnswered, AgentDecision, AgentRequest, Ask, DecidedEvent, Task, TaskAnswer, TaskChanged,
        TaskEnded, TaskFired, decided_event::Event,
    },
};
use uuid::Uuid;

/// Something to be done because of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// At this time the task is due.
    Arm { task: Uuid, occurrence: u64, at: Timestamp },
    /// The task has no time any more.
    Disarm { task: Uuid },
    /// The state of a task that waits, or may wait, for something outside: `trigger` is `<source>.<verb>`, empty if the
    /// event does not name it.
    Register { task: Uuid, trigger: String, state: HookState },
    /// Another agent is asked for something.
    Ask(PeerMessage<AgentRequest>),
    /// Another agent is told what came of what it asked for.
    Answer(PeerMessage<AgentAnswer>),
}

/// Something that another agent is told, once: whoever tells it again uses the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerMessage<T> {
    pub id: Uuid,
    pub agent: Name,
    pub correlation: Uuid,
    pub body: T,
}

/// An effect, and which event of the decision has it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedEffect {
    pub position: usize,
    pub effect: Effect,
}

/// The kind of event that a task waits for, as far as one decision shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Time,
    Outside,
    /// Something that the agent itself notices.
    Inside,
}

/// The effects of an agent's decision, in its order. An event that makes no sense has none.
pub fn effects(agent: &Name, decision: &AgentDecision) -> Vec<PlannedEffect> {
    let mut plan = EffectPlan::default();
    for (position, event) in decision.events.iter().enumerate() {
        plan.position = position;
        if let Some(ask) = event.ask() {
            plan.arm_due_time(event, &ask.due_at);
            plan.effects.extend(request_effect(agent, event, ask).map(|effect| PlannedEffect { position, effect }));
            continue;
        }
        if let Some(Event::Answered(answered)) = &event.event {
            plan.effects
                .extend(request_answer_effect(agent, event, answered).map(|effect| PlannedEffect { position, effect }));
            continue;
        }
        if let Some(Event::ApprovalRequested(requested)) = &event.event {
            plan.arm_due_time(event, &requested.expires_at);
            continue;
        }
        let Some(Decided::Task(task)) = event.event.as_ref().map(Event::about) else { continue };
        match task {
            about::Task::Scheduled(scheduled) => {
                if let Some(task) = &scheduled.task {
                    plan.schedule_task(task);
                }
            }
            about::Task::Fired(fired) => plan.rearm_fired(fired),
            about::Task::Changed(changed) => plan.apply_change(changed),
            about::Task::Ended(ended) => {
                plan.effects
                    .extend(task_answer_effect(agent, event, ended).map(|effect| PlannedEffect { position, effect }));
            }
            // A queued task waits for nothing but its turn.
            about::Task::Started(_) => {}
        }
    }
    plan.effects
}

#[derive(Default)]
struct EffectPlan {
    position: usize,
    kinds: BTreeMap<Uuid, TriggerKind>,
    effects: Vec<PlannedEffect>,
}

impl EffectPlan {
    fn schedule_task(&mut self, task: &Task) {
        let Ok(id) = Uuid::parse_str(&task.task_id) else { return };
        if task.kind_word() == TaskKind::Queued {
            // Unless it has a time before which it does not even wait for that.
            if task.next_at.is_empty() {
                self.kinds.insert(id, TriggerKind::Inside);
                return;
            }
            self.kinds.insert(id, TriggerKind::Time);
            self.arm(id, task.occurrence, &task.next_at);
            return;
        }
        if task.kind_word() != TaskKind::Hook {
            self.kinds.insert(id, TriggerKind::Time);
            self.arm(id, task.occurrence, &task.next_at);
            return;
        }
        let Some(trigger) = outside_event(&task.trigger) else {
            self.kinds.insert(id, TriggerKind::Inside);
            return;
        };
        self.kinds.insert(id, TriggerKind::Outside);
        self.add(Effect::Register { task: id, trigger, state: HookState::Active });
    }

    fn rearm_fired(&mut self, fired: &TaskFired) {
        let Ok(id) = Uuid::parse_str(&fired.task_id) else { return };
        if fired.occurrence > 0 {
            self.kinds.insert(id, TriggerKind::Time);
            self.arm(id, fired.occurrence.saturating_add(1), &fired.next_at);
        }
    }

    fn apply_change(&mut self, changed: &TaskChanged) {
        let Ok(id) = Uuid::parse_str(&changed.task_id) else { return };
        let Some(state) = registration_state(&changed.status_word()).filter(|_| !changed.first) else { return };
        if changed.occurrence > 0 {
            self.kinds.insert(id, TriggerKind::Time);
        }
        let kind = self.kinds.get(&id).copied();
        if matches!(kind, None | Some(TriggerKind::Time)) {
            match state {
                HookState::Active => self.arm(id, changed.occurrence, &changed.next_at),
                HookState::Paused | HookState::Ended => self.add(Effect::Disarm { task: id }),
            }
        }
        if matches!(kind, None | Some(TriggerKind::Outside)) {
            self.add(Effect::Register { task: id, trigger: String::new(), state });
        }
    }

    /// Arms the time at which an event that asked an agent or a human for an answer becomes due.
    fn arm_due_time(&mut self, event: &DecidedEvent, at: &str) {
        if let Ok(request) = Uuid::parse_str(&event.event_id) {
            self.arm(request, 1, at);
        }
    }

    fn arm(&mut self, task: Uuid, occurrence: u64, next_at: &str) {
        if let (1.., Ok(at)) = (occurrence, next_at.parse()) {
            self.add(Effect::Arm { task, occurrence, at });
        }
    }

    fn add(&mut self, effect: Effect) {
        self.effects.push(PlannedEffect { position: self.position, effect });
    }
}

fn request_effect(from: &Name, event: &DecidedEvent, ask: &Ask) -> Option<Effect> {
    let Ask { kind, user, title, text, path, outside, model_calls, .. } = ask.clone();
    // Of anything but a call, it is the asker's own tool that asks.
    let is_call = ask.kind_word() == RequestKind::Call;
    let of_call = |text: &String| if is_call { text.clone() } else { String::new() };
    let tool = of_call(&ask.tool);
    let arguments = of_call(&ask.arguments);
    let action = Uuid::parse_str(&event.event_id).ok()?;
    // What is withdrawn is named by the action that asked for it.
    let request_id = match ask.kind_word() {
        RequestKind::Cancel => ask.request_id.clone(),
        _ => event.event_id.clone(),
    };
    let from = from.to_string();
    // Where the decision stands, whoever publishes it knows.
    let decided = 0;
    let request = AgentRequest {
        request_id,
        from,
        kind,
        user,
        title,
        text,
        path,
        outside,
        tool,
        arguments,
        decided,
        model_calls,
    };
    Some(Effect::Ask(peer_message(ids::derive(action, "request"), &ask.agent, event, request)?))
}

fn task_answer_effect(from: &Name, event: &DecidedEvent, ended: &TaskEnded) -> Option<Effect> {
    let TaskEnded { status, result, reason, answer, .. } = ended.clone();
    let TaskAnswer { agent, request_id, spent, outside, model_calls_left } = answer?;
    let id = ids::derive(Uuid::parse_str(&request_id).ok()?, "answer");
    let from = from.to_string();
    let body = AgentAnswer {
        request_id,
        from,
        status,
        result,
        reason,
        outside,
        spent,
        model_calls_left,
        ..AgentAnswer::default()
    };
    Some(Effect::Answer(peer_message(id, &agent, event, body)?))
}

/// As the end of a task, so that whatever is asked for has one answer.
fn request_answer_effect(from: &Name, event: &DecidedEvent, answered: &AgentAnswered) -> Option<Effect> {
    let AgentAnswered { kind, status, result, reason, error, answer } = answered.clone();
    let TaskAnswer { agent, request_id, spent, outside, model_calls_left } = answer?;
    let id = ids::derive(Uuid::parse_str(&request_id).ok()?, "answer");
    let from = from.to_string();
    let body = AgentAnswer { request_id, from, status, result, reason, outside, spent, error, kind, model_calls_left };
    Some(Effect::Answer(peer_message(id, &agent, event, body)?))
}

fn peer_message<T>(id: Uuid, agent: &str, event: &DecidedEvent, body: T) -> Option<PeerMessage<T>> {
    let correlation = Uuid::parse_str(&event.correlation_id).ok()?;
    Some(PeerMessage { id, agent: Name::parse(agent).ok()?, correlation, body })
}

fn registration_state(status: &TaskStatus) -> Option<HookState> {
    match status {
        TaskStatus::Pending | TaskStatus::Active => Some(HookState::Active),
        TaskStatus::Paused => Some(HookState::Paused),
        TaskStatus::Completed | TaskStatus::Canceled | TaskStatus::Archived | TaskStatus::Failed => {
            Some(HookState::Ended)
        }
        TaskStatus::InProgress | TaskStatus::Unknown(_) => None,
    }
}

/// The `<source>.<verb>` that a hook waits for, if another system can say it: the name of a tool has the same form, and
/// nobody here knows tools. The agent itself is told of its mails.
fn outside_event(trigger: &str) -> Option<String> {
    let event = trigger.strip_prefix("post:").filter(|event| *event != "email.received")?;
    let (source, verb) = event.split_once('.')?;
    (Name::parse(source).is_ok() && Name::parse(verb).is_ok()).then(|| event.to_owned())
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{DecidedEvent, TaskScheduled};

    use super::*;

    const AT: &str = "2026-11-22T07:00:00Z";
    const TASK: Uuid = Uuid::from_u128(7);

    fn of(events: Vec<Event>) -> Vec<Effect> {
        let events = events.into_iter().map(|event| DecidedEvent { event: Some(event), ..Default::default() });
        let planned =
            effects(&Name::parse("lead").unwrap(), &AgentDecision { events: events.collect(), ..Default::default() });
        planned.into_iter().map(|planned| planned.effect).collect()
    }

    fn scheduled(task: Task) -> Event {
        Event::TaskScheduled(TaskScheduled { task: Some(Task { task_id: TASK.to_string(), ..task }) })
    }

    fn changed(status: &str, next_at: &str, occurrence: u64) -> Event {
        Event::TaskChanged(TaskChanged {
            task_id: TASK.to_string(),
            status: status.into(),
            next_at: next_at.into(),
            occurrence,
            ..Default::default()
        })
    }

    fn fired(next_at: &str, occurrence: u64) -> Event {
        let task_id = TASK.to_string();
        let next_at = next_at.to_owned();
        Event::TaskFired(TaskFired { task_id, next_at, occurrence, ..Default::default() })
    }

    fn timed(occurrence: u64) -> Event {
        scheduled(Task { kind: "scheduled".into(), next_at: AT.into(), occurrence, ..Default::default() })
    }

    fn hook(trigger: &str) -> Event {
        scheduled(Task { kind: "hook".into(), trigger: trigger.into(), ..Default::default() })
    }

    fn arm(occurrence: u64) -> Effect {
        Effect::Arm { task: TASK, occurrence, at: AT.parse().unwrap() }
    }

    fn register(trigger: &str, state: HookState) -> Effect {
        Effect::Register { task: TASK, trigger: trigger.into(), state }
    }

    #[test]
    fn whatever_says_when_a_task_is_due_next_sets_its_timer() {
        assert_eq!(of(vec![timed(1)]), [arm(1)]);
        assert_eq!(of(vec![fired(AT, 4)]), [arm(5)]);
        assert_eq!(of(vec![changed("active", AT, 9)]), [arm(9)]);
        assert_eq!(of(vec![fired("", 4)]), []);
        assert_eq!(of(vec![fired("", 0)]), []);
    }

    #[test]
    fn a_task_that_is_over_or_rests_has_no_timer_and_waits_for_nothing() {
        for (status, state) in
            [("paused", HookState::Paused), ("canceled", HookState::Ended), ("failed", HookState::Ended)]
        {
            assert_eq!(of(vec![changed(status, "", 0)]), [Effect::Disarm { task: TASK }, register("", state)]);
        }
        // Of what kind the task is, is known here.
        assert_eq!(of(vec![fired("", 1), changed("completed", "", 0)]), [Effect::Disarm { task: TASK }]);
        assert_eq!(
            of(vec![hook("post:github.push"), changed("paused", "", 0)]),
            [register("github.push", HookState::Active), register("", HookState::Paused)]
        );
        assert_eq!(of(vec![hook("post:http.get"), changed("active", "", 0)]).len(), 2);
        assert_eq!(of(vec![hook("pre:email.send"), changed("canceled", "", 0)]), []);
    }

    #[test]
    fn only_what_another_system_can_say_is_registered() {
        assert_eq!(of(vec![hook("post:git-hub_2.push")]), [register("git-hub_2.push", HookState::Active)]);
        for other in ["pre:github.push", "post:email.received", "post:push", "post:a.b.c", "post:A.b", "post:*.>", ""] {
            assert_eq!(of(vec![hook(other)]), [], "{other}");
        }
    }

    #[test]
    fn what_makes_no_sense_has_no_effect() {
        let nonsense = [
            Event::TaskScheduled(TaskScheduled { task: None }),
            Event::TaskChanged(TaskChanged { task_id: "7".into(), status: "paused".into(), ..Default::default() }),
            changed("resting", AT, 1),
            scheduled(Task { next_at: "2026-02-30T00:00:00Z".into(), occurrence: 1, ..Default::default() }),
            timed(0),
        ];
        assert_eq!(of(nonsense.to_vec()), []);
        assert_eq!(of(vec![fired(AT, u64::MAX)]), [arm(u64::MAX)]);
    }

    #[test]
    fn each_effect_says_which_event_has_it() {
        let events = [hook("pre:x"), timed(1), changed("canceled", "", 0)];
        let events = events.map(|event| DecidedEvent { event: Some(event), ..Default::default() });
        let lead = Name::parse("lead").unwrap();
        let planned = effects(&lead, &AgentDecision { events: events.to_vec(), ..Default::default() });
        assert_eq!(planned.iter().map(|planned| planned.position).collect::<Vec<_>>(), [1, 2]);
    }
}
