//! Taking in what decisions say of threads, chains, tasks and memory, and how chains' steps end.

use std::collections::BTreeSet;

use kairo_events::record::Record;
use kairo_proto::words::{ChainOutcome, StepState as Ended, ThreadKind};
use kairo_proto::{
    Decided,
    about::{self, Outside},
    v1::{
        self, ChainEnded, ChainStarted, ChainStepEnded, DecidedEvent, TaskFired, ThreadMatched, ToolCall, ToolResult,
    },
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    chain::{Chain, Origin, RESULT_BYTES, StepRun, StepSpec, StepState, THINK},
    deliberation::CallPassback,
    in_flight::InFlightAction,
    intrinsics::tool_search,
    provenance::Provenance,
    state::{AgentState, AgentTurn, ThreadSuggestion, TurnCause},
    tasks::{Trigger, bound_event_data},
    thread::{AnswerFields, ThreadCall, ThreadEntry, cut_to_entry},
};

/// Something that hooks may wait for.
struct HookEvent<'a> {
    data: Value,
    /// As in [`Trigger`].
    user: Option<String>,
    lineage: &'a [Uuid],
    outside: Provenance,
}

impl AgentState {
    pub(super) fn dispatch_decided(
        &mut self,
        record: &Record,
        cursor: u64,
        event: &DecidedEvent,
        turn_id: Uuid,
        what: Decided<'_>,
    ) {
        match what {
            Decided::Turn(turn) => self.apply_turn_event(record, cursor, event, turn_id, turn),
            Decided::Thread(thread) => self.apply_thread_event(record, event, turn_id, thread),
            Decided::Chain(about::Chain::Started(started)) => self.apply_chain_started(turn_id, started),
            Decided::Chain(about::Chain::StepEnded(ended)) => self.apply_step_ended(record, event, turn_id, ended),
            Decided::Chain(about::Chain::Ended(ended)) => self.apply_chain_ended(turn_id, ended),
            Decided::Chain(about::Chain::ApprovalRequested(requested)) => {
                let request = Uuid::parse_str(&event.event_id).unwrap_or_default();
                let arguments = requested.arguments.clone();
                self.set_step(turn_id, requested.step, StepState::Asked { request, at: record.sequence, arguments });
            }
            Decided::Task(about::Task::Scheduled(scheduled)) => {
                if let Some(task) = &scheduled.task {
                    let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or_default();
                    self.tasks.apply_scheduled(record.envelope.time, task);
                    self.tasks.append_to_queue(task, correlation);
                }
            }
            Decided::Task(about::Task::Started(started)) => self.apply_task_started(record, event, turn_id, started),
            Decided::Task(about::Task::Ended(ended)) => self.apply_task_ended(record, ended),
            Decided::Task(about::Task::Fired(fired)) => self.apply_task_fired(record, event, turn_id, fired),
            Decided::Task(about::Task::Changed(changed)) => self.apply_task_changed(record, changed),
            Decided::Memory(about::Memory::Appended(appended)) => {
                self.apply_memory_appended(appended);
                self.note_keywords(appended, &event.thread_id, &event.correlation_id);
            }
            Decided::State(change) => self.apply_inner_state_change(&event.event_id, change),
        }
    }

    fn apply_thread_event(&mut self, record: &Record, event: &DecidedEvent, turn_id: Uuid, what: about::Thread<'_>) {
        match what {
            about::Thread::Created(created) => {
                if created.kind_word() == ThreadKind::Work {
                    let user = created.user.clone();
                    let title = created.title.clone();
                    let thread = super::thread::Thread { user: user.clone(), title, work: true, ..Default::default() };
                    self.threads.insert(created.thread_id.clone(), thread.into());
                    self.work.threads.insert(user, created.thread_id.clone());
                } else if self.turns.get(&turn_id).is_some_and(AgentTurn::is_order) {
                    // Nobody has spoken in the conversation that a program's task begins.
                    let user = created.user.clone();
                    let thread = super::thread::Thread { user, touched: record.sequence, ..Default::default() };
                    self.threads.entry(created.thread_id.clone()).or_insert_with(|| thread.into());
                }
                if let Some(thread) = self.threads.get_mut(&event.thread_id) {
                    thread.announced = true;
                }
            }
            about::Thread::Compacted(compacted) => {
                let open: BTreeSet<Uuid> = self.turns.keys().copied().collect();
                if let Some(thread) = self.threads.get_mut(&compacted.thread_id) {
                    thread.compact(compacted.entries, &compacted.summary, &open);
                }
            }
            about::Thread::Completed(completed) => self.apply_thread_completed(&completed.thread_id),
            about::Thread::Matched(matched) => self.apply_thread_match(record, turn_id, matched),
            about::Thread::Suggested(suggested) => {
                let id = Uuid::parse_str(&event.event_id).unwrap_or_default();
                if let Some(turn) = self.turns.get_mut(&turn_id) {
                    turn.offer = Some(ThreadSuggestion {
                        id,
                        since: record.sequence,
                        thread_id: suggested.thread_id.clone(),
                        current_thread_id: suggested.current_thread_id.clone(),
                        accepted: None,
                    });
                }
            }
            about::Thread::Summarized(summarized) => {
                if let Some(thread) = self.threads.get_mut(&summarized.thread_id) {
                    thread.set_summary(&summarized.title, &summarized.summary);
                }
                self.end_summary(&summarized.thread_id);
            }
            about::Thread::Archived(archived) => {
                if let Some(thread) = self.threads.get_mut(&archived.thread_id) {
                    thread.archived = archived.archived;
                }
            }
        }
    }

    fn apply_thread_match(&mut self, record: &Record, turn_id: Uuid, matched: &ThreadMatched) {
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.offer = None;
            if turn.unplaced.is_some() {
                self.place_in_thread(record.sequence, turn_id, &matched.thread_id);
            }
        }
        if let Some(thread) = self.threads.get_mut(&matched.thread_id) {
            thread.heard = record.sequence;
            thread.archived = false;
        }
    }

    fn apply_chain_started(&mut self, turn_id: Uuid, started: &ChainStarted) {
        let step = |step: &v1::ChainStep| StepRun {
            step: StepSpec {
                group: step.group,
                event: step.event.clone(),
                params: serde_json::from_str(&step.params).unwrap_or_default(),
                decide: (!step.decide.is_empty()).then(|| step.decide.clone()),
            },
            state: StepState::Pending,
            call_id: step.call_id.clone(),
            passed_back: step.passed_back.clone(),
        };
        let Some(turn) = self.turns.get_mut(&turn_id) else { return };
        let data = turn.chain.take().map_or(Value::Null, |before| before.data);
        turn.chain = Some(Chain {
            id: Uuid::parse_str(&started.chain_id).unwrap_or_default(),
            origin: Origin::from_word(&started.origin_word()),
            task: Uuid::parse_str(&started.task_id).ok(),
            data,
            steps: started.steps.iter().map(step).collect(),
            passed_back: started.passed_back.clone(),
        });
    }

    /// A step that called no tool, or a thinking one, is over.
    fn apply_step_ended(&mut self, record: &Record, event: &DecidedEvent, turn_id: Uuid, ended: &ChainStepEnded) {
        let result: Value = serde_json::from_str(&ended.result).unwrap_or(Value::Null);
        let reason = ended.reason.clone();
        let shown = match ended.outcome_word() {
            Ended::Done => ended.result.clone(),
            _ => json!({ &ended.outcome: reason }).to_string(),
        };
        let state = match ended.outcome_word() {
            Ended::Done => StepState::Done { result: result.clone() },
            Ended::Skipped => StepState::Skipped { reason },
            Ended::Stopped => StepState::Stopped { reason },
            _ => StepState::Failed { reason },
        };
        let back = self.step_passback(turn_id, ended.step).unwrap_or_default();
        let Some(step) = self.set_step(turn_id, ended.step, state).filter(|_| !self.is_perceiving(turn_id)) else {
            return;
        };
        self.mark_outside(&event.thread_id, turn_id, &ended.outside);
        let limit = self.entry_retention();
        let Some(thread) = self.threads.get_mut(&event.thread_id) else { return };
        if step.event == THINK {
            let analysis = result.get("analysis").and_then(Value::as_str).map(cut_to_entry);
            if let Some(text) = analysis.filter(|text| !text.is_empty()) {
                thread.analysis.clone_from(&text);
                let text = format!("Analysis: {text}");
                thread.push(record.sequence, ThreadEntry::Notice { turn: turn_id, text }, limit);
            }
            return;
        }
        if step.event == tool_search::FIND && ended.outcome_word() == Ended::Done {
            thread.list_found_tools(tool_search::found_names(&result));
        }
        let Ok(action) = Uuid::parse_str(&event.event_id) else { return };
        let arguments = match ended.params.as_str() {
            "" => cut_to_entry(&Value::Object(step.params).to_string()),
            params => cut_to_entry(params),
        };
        let call = ThreadCall {
            action,
            tool: step.event,
            arguments,
            since: record.envelope.time,
            after: self.cursor,
            result: Some(cut_to_entry(&shown)),
            call_id: back.call_id,
            passed_back: back.passed_back,
            parts: Vec::new(),
        };
        let with = AnswerFields { reasoning_details: "", passed_back: &back.answer_passed_back };
        thread.push_call(record.sequence, turn_id, call, with, limit);
    }

    fn apply_chain_ended(&mut self, turn_id: Uuid, ended: &ChainEnded) {
        let Some(turn) = self.turns.get_mut(&turn_id) else { return };
        let its = |chain: &Chain| chain.id.to_string() == ended.chain_id;
        if let Some(chain) = turn.chain.take_if(|chain| its(chain)) {
            self.store_perceptions(turn_id, &chain);
        }
        let Some(turn) = self.turns.get(&turn_id) else { return };
        // Nobody waits for the reply of a task, and what was canceled is over. Of what was queued or asked
        // for its own end tells.
        let outcome = ended.outcome_word();
        let is_of_task = matches!(turn.cause, TurnCause::Task(_));
        let is_asked_for = turn.queued_task().is_some() || turn.agent_request().is_some();
        let is_canceled = outcome == ChainOutcome::Canceled && !is_asked_for;
        if is_canceled || is_of_task && outcome != ChainOutcome::Replaced {
            self.turns.remove(&turn_id);
        }
    }

    fn apply_task_fired(&mut self, record: &Record, event: &DecidedEvent, turn_id: Uuid, fired: &TaskFired) {
        let Ok(id) = Uuid::parse_str(&fired.task_id) else { return };
        self.tasks.apply_fired(fired);
        let task = self.tasks.open.get(&id).or_else(|| self.tasks.ended.iter().rev().find(|task| task.id == id));
        let Some((user, thread_id)) = task.map(|task| (task.user.clone(), task.thread_id.clone())) else { return };
        let lineage = fired.lineage.iter().filter_map(|hook| Uuid::parse_str(hook).ok());
        let chain = Chain {
            id: Uuid::nil(),
            origin: Origin::Task,
            task: Some(id),
            data: serde_json::from_str(&fired.data).unwrap_or(Value::Null),
            steps: Vec::new(),
            passed_back: String::new(),
        };
        let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or(record.envelope.correlation_id);
        let mut turn = AgentTurn::new(TurnCause::Task(id), correlation, &thread_id, &user);
        turn.chain = Some(chain);
        turn.lineage = lineage.chain([id]).collect();
        self.turns.insert(turn_id, turn);
        if !thread_id.is_empty() {
            let thread = super::thread::Thread { user, ..Default::default() };
            self.threads.entry(thread_id.clone()).or_insert_with(|| thread.into());
        }
        self.mark_outside(&thread_id, turn_id, &fired.outside);
    }

    /// Returns the data to send back to the model with a step's call; `None` if there is no such step.
    pub(super) fn step_passback(&self, turn_id: Uuid, step: u32) -> Option<CallPassback> {
        let chain = self.turns.get(&turn_id)?.chain.as_ref()?;
        let run = chain.steps.get(usize::try_from(step).ok()?)?;
        Some(CallPassback {
            call_id: run.call_id.clone(),
            passed_back: run.passed_back.clone(),
            answer_passed_back: chain.passed_back.clone(),
            reasoning_details: String::new(),
        })
    }

    /// Changes a step's state; returns the step as it was written.
    fn set_step(&mut self, turn_id: Uuid, step: u32, state: StepState) -> Option<StepSpec> {
        let chain = self.turns.get_mut(&turn_id)?.chain.as_mut()?;
        let is_too_large =
            |result: &Value| result.to_string().len() > RESULT_BYTES.saturating_sub(chain.result_bytes());
        let state = match state {
            StepState::Done { result } if is_too_large(&result) => {
                StepState::Done { result: json!({ "left_out": "the result is too large to be referred to" }) }
            }
            state => state,
        };
        let run = chain.steps.get_mut(usize::try_from(step).ok()?)?;
        run.state = state;
        Some(run.step.clone())
    }

    pub(super) fn begin_step(&mut self, turn_id: Uuid, action: Uuid, call: &ToolCall) {
        if !call.chain_id.is_empty() {
            self.set_step(turn_id, call.step, StepState::Running { action });
        }
    }

    pub(super) fn end_step(&mut self, turn_id: Uuid, action: Uuid, result: &ToolResult) {
        let chain = self.turns.get(&turn_id).and_then(|turn| turn.chain.as_ref());
        let running = |step: &StepRun| step.state == StepState::Running { action };
        let Some(at) = chain.and_then(|chain| chain.steps.iter().position(running)) else { return };
        let state = match &result.error {
            None => StepState::Done { result: serde_json::from_str(&result.result).unwrap_or(json!(result.result)) },
            Some(error) => StepState::Failed { reason: format!("{}: {}", error.kind, error.message) },
        };
        self.set_step(turn_id, u32::try_from(at).unwrap_or(u32::MAX), state);
    }

    /// Notes the hooks that wait for the end of this call.
    pub(super) fn trigger_post_hooks(&mut self, record: &Record, known: &InFlightAction, result: &ToolResult) {
        let name = format!("post:{}", known.tool);
        if !result.ok || self.tasks.hooks(&name).next().is_none() {
            return;
        }
        // The thread has longer arguments whole.
        let called = Uuid::parse_str(&result.action_id).ok();
        let called = called.and_then(|action| self.threads.get(&known.thread_id)?.find_call(action));
        let arguments = called.map_or(&known.arguments, |call| &call.arguments);
        let params: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        let value: Value = serde_json::from_str(&result.result).unwrap_or(json!(result.result));
        let mut data = params;
        if let Value::Object(fields) = &value {
            data.extend(fields.clone());
        }
        data.insert("result".to_owned(), value);
        let user = self.turns.get(&known.turn).map(|turn| turn.user.clone());
        let of_thread = || self.threads.get(&known.thread_id).map(|thread| thread.user.clone());
        let user = user.or_else(of_thread).unwrap_or_default();
        let turn = self.turns.get(&known.turn).map(|turn| self.provenance_of(turn));
        let mut outside = turn.unwrap_or_default();
        outside.add_marks(&result.outside);
        let happened = HookEvent { data: Value::Object(data), user: Some(user), lineage: &known.lineage, outside };
        self.trigger_hooks(record, &name, happened);
    }

    /// Notes the hooks that wait for this, for the decision on it.
    fn trigger_hooks(&mut self, record: &Record, name: &str, happened: HookEvent<'_>) {
        let HookEvent { data, user, lineage, outside } = happened;
        let waiting: Vec<Uuid> = self.tasks.hooks(name).map(|task| task.id).collect();
        // What happened before and was not decided on was nobody's move.
        self.tasks.triggered.retain(|trigger| trigger.input == record.sequence);
        let data = if waiting.is_empty() { Value::Null } else { bound_event_data(data) };
        for task in waiting {
            self.tasks.triggered.push(Trigger {
                task,
                input: record.sequence,
                event: record.envelope.id,
                occurrence: 0,
                data: data.clone(),
                user: user.clone(),
                lineage: lineage.to_vec(),
                correlation: record.envelope.correlation_id,
                outside: outside.clone(),
            });
        }
    }

    /// Takes in what happened outside the agent: a time, a mail, an event of another system.
    pub(super) fn apply_outside_event(&mut self, record: &Record, outside: Outside<'_>) {
        match outside {
            Outside::Due(due) => {
                let Ok(task) = Uuid::parse_str(&due.task_id) else { return };
                if self.expire_approval(record, &due.task_id, &due.due_at) {
                    return;
                }
                if self.tasks.due_task(task, due.occurrence).is_none() {
                    return self.apply_deadline_passed(record, task);
                }
                self.tasks.triggered.push(Trigger {
                    task,
                    input: record.sequence,
                    event: record.envelope.id,
                    occurrence: due.occurrence,
                    data: json!({ "due_at": due.due_at }),
                    user: None,
                    lineage: Vec::new(),
                    correlation: record.envelope.correlation_id,
                    outside: Provenance::default(),
                });
            }
            Outside::Triggered(triggered) => {
                let data = serde_json::from_str(&triggered.data).unwrap_or(Value::Null);
                self.trigger_outside_hooks(record, &format!("post:{}", triggered.trigger), data, &triggered.outside);
            }
            Outside::Email(mail) => {
                let data = json!({
                    "email_id": mail.email_id,
                    "sender": mail.sender,
                    "from": mail.sender,
                    "to": mail.to,
                    "subject": mail.subject,
                    "body": mail.body,
                    "date": mail.date,
                });
                self.trigger_outside_hooks(record, "post:email.received", data, &mail.outside);
            }
        }
    }

    /// Notes what happened outside for the hooks that wait for it, once: whoever tells of it may do so again.
    fn trigger_outside_hooks(&mut self, record: &Record, name: &str, data: Value, marks: &[String]) {
        let waited_for = self.tasks.hooks(name).next().is_some();
        if waited_for && self.seen.insert(&format!("event/{}", record.envelope.id)) {
            let mut outside = Provenance::default();
            outside.add_marks(marks);
            self.trigger_hooks(record, name, HookEvent { data, user: None, lineage: &[], outside });
        }
    }
}
