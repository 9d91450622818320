//! Taking in what happens to an agent's actions and processes, and what users say about them that is not words.

use kairo_events::{ids::process_id, record::Record};
use kairo_proto::{
    about,
    v1::{AgentApproval, AgentChoice, AgentCommand, ProcessExited, ProcessSpawned, ToolOrder, tool_order},
    words::{OfferAnswer, OrderedCommand, Verdict},
};
use serde_json::json;
use uuid::Uuid;

use super::{
    chain::{StepRun, StepState},
    in_flight::{ActionProgress, ActionTarget, BackgroundProcess, StartedProcess},
    intrinsics::tasks,
    state::{AgentState, AgentTurn, DirectOrder, TurnCause},
    thread::{ThreadEntry, cut_to},
};

/// Of each stream of a process that has ended, so much is shown to the model, in bytes; the log has more.
const TAIL_BYTES: usize = 4_096;
/// Longest part kept of a human's note, in bytes.
const NOTE_BYTES: usize = 4_096;
/// Longest part of a call's arguments in a notice, in bytes.
const ARGUMENT_BYTES: usize = 4_096;

impl AgentState {
    /// Takes in how an action or a process is getting on.
    /// Takes in how far an action is, or how it ended.
    pub(super) fn apply_tool_event(&mut self, record: &Record, tool: about::Tool<'_>) {
        match tool {
            about::Tool::Invoke(invoke) => {
                for action in invoke.actions.iter().filter_map(|action| Uuid::parse_str(&action.action_id).ok()) {
                    if let Some(known) = self.in_flight.get_mut(&action) {
                        known.begun = true;
                    }
                }
            }
            about::Tool::Progress(progress) => {
                let known = Uuid::parse_str(&progress.action_id).ok().and_then(|id| self.in_flight.get_mut(&id));
                if let Some(known) = known {
                    known.progress = Some(ActionProgress::from_tool(record.envelope.time, progress));
                    let thread_id = known.thread_id.clone();
                    let turn = known.turn;
                    self.mark_outside(&thread_id, turn, &progress.outside);
                }
            }
            about::Tool::Order(order) => self.apply_tool_order(order),
            about::Tool::Result(result) => self.apply_tool_result(record, result),
        }
    }

    /// A call or a process is to be stopped. What came of a signal or a text, the result of the call says that sent it.
    fn apply_tool_order(&mut self, order: &ToolOrder) {
        if let Some(tool_order::Order::Stop(_)) = &order.order {
            let process = Uuid::parse_str(&order.action_id).map(process_id).unwrap_or_default();
            self.update_process(&process.to_string(), &order.action_id, |_, cancel_requested| *cancel_requested = true);
        }
    }

    /// Takes in how far a process is, or how it ended.
    pub(super) fn apply_process_event(&mut self, record: &Record, process: about::Process<'_>) {
        match process {
            about::Process::Spawned(spawned) => self.apply_process_spawned(record, spawned),
            about::Process::Progress(progress) => {
                let now = Some(ActionProgress::from_process(record.envelope.time, progress));
                self.update_process(&progress.process_id, &progress.action_id, |progress, _| *progress = now);
            }
            about::Process::Canceled(canceled) => {
                self.update_process(&canceled.process_id, &canceled.action_id, |_, cancel_requested| {
                    *cancel_requested = true;
                });
            }
            // The result of the call that sent it says the same.
            about::Process::Reply(_) => {}
            about::Process::Exited(exited) => self.apply_process_exited(record, exited),
        }
    }

    fn apply_process_spawned(&mut self, record: &Record, spawned: &ProcessSpawned) {
        let Ok(action) = Uuid::parse_str(&spawned.action_id) else { return };
        let Some(known) = self.in_flight.get_mut(&action) else { return };
        match spawned.background {
            true => self.processes.record_spawn(spawned, known, record.envelope.time),
            false => known.process = StartedProcess::from_spawned(spawned),
        }
    }

    /// Changes what is known of a process, whether it runs in the background or an action waits for it.
    fn update_process(
        &mut self,
        process_id: &str,
        action_id: &str,
        change: impl FnOnce(&mut Option<ActionProgress>, &mut bool),
    ) {
        let process = Uuid::parse_str(process_id).ok().and_then(|id| self.processes.running.get_mut(&id));
        if let Some(process) = process {
            return change(&mut process.progress, &mut process.cancel_requested);
        }
        if let Some(action) = Uuid::parse_str(action_id).ok().and_then(|id| self.in_flight.get_mut(&id)) {
            change(&mut action.progress, &mut action.cancel_requested);
        }
    }

    /// A process in the background is over. Unless that was asked for, it is the agent's move.
    fn apply_process_exited(&mut self, record: &Record, exited: &ProcessExited) {
        let thread_id = Uuid::parse_str(&exited.process_id).ok().and_then(|id| self.processes.running.get(&id));
        let thread = thread_id.and_then(|process| self.threads.get(&process.thread_id));
        let user = thread.map(|thread| thread.user.clone()).unwrap_or_default();
        let Some(process) = self.processes.record_exit(exited, &user) else { return };
        let turn = record.envelope.id;
        let lived = record.envelope.time.duration_since(process.since).as_secs().max(0);
        let text = exit_notice(&process, exited, lived);
        self.add_entry(record.sequence, &process.thread_id, ThreadEntry::Notice { turn, text });
        // One whose thread is gone is nobody's to be told of.
        if !process.cancel_requested && self.threads.contains_key(&process.thread_id) {
            self.begin_turn(turn, record, TurnCause::Event, &process.thread_id, &user);
        }
    }

    /// A user's choice between the thread that was suggested and the one they are in.
    pub(super) fn apply_choice(&mut self, record: &Record, choice: &AgentChoice) {
        if !self.seen.insert(&format!("choice/{}/{}", choice.user, choice.choice_id)) {
            return;
        }
        let open = |turn: &&mut AgentTurn| {
            turn.user == choice.user
                && turn
                    .offer
                    .as_ref()
                    .is_some_and(|offer| offer.accepted.is_none() && offer.id.to_string() == choice.offer_id)
        };
        let accepted = match choice.option_word() {
            OfferAnswer::Accept => true,
            OfferAnswer::Decline => false,
            OfferAnswer::Unknown(other) => {
                let message = format!("the option {other:?} is none; say accept or decline");
                return self.refuse_input(record, "unknown_offer", message, &choice.user);
            }
        };
        match self.turns.values_mut().find(open) {
            Some(turn) => {
                turn.due = Some(record.sequence);
                if let Some(offer) = &mut turn.offer {
                    offer.accepted = Some(accepted);
                }
            }
            None => {
                let message = format!("there is no offer {:?} to choose from", choice.offer_id);
                self.refuse_input(record, "unknown_offer", message, &choice.user);
            }
        }
    }

    /// A human's verdict, on an action in doubt or on one that waits for consent.
    pub(super) fn apply_approval(&mut self, record: &Record, approval: &AgentApproval) {
        if !self.seen.insert(&format!("approval/{}/{}", approval.user, approval.approval_id)) {
            return;
        }
        let found = match approval.verdict_word() {
            Verdict::Approved | Verdict::Rejected => return self.apply_step_approval(record, approval),
            Verdict::Happened => "it did happen: do not do it again",
            Verdict::DidNotHappen => "it did not happen: do it again if it is still wanted",
            Verdict::Unknown(other) => {
                let message =
                    format!("the verdict {other:?} is none; say happened, did_not_happen, approved or rejected");
                return self.refuse_input(record, "unknown_verdict", message, &approval.user);
            }
        };
        let doubt = Uuid::parse_str(&approval.action_id).ok().and_then(|action| self.doubts.record_verdict(action));
        let Some(doubt) = doubt else {
            let message = format!("no action {:?} of this agent is in doubt", approval.action_id);
            return self.refuse_input(record, "not_in_doubt", message, &approval.user);
        };
        // Whoever asked for it has a doubt of its own, and is told of that.
        if doubt.asked {
            return;
        }
        let note = match approval.note.as_str() {
            "" => String::new(),
            note => format!(" They say: {}", cut_to(note, NOTE_BYTES)),
        };
        let text = format!(
            "Event: {} found out about the action {} ({} {}), which was in doubt: {found}.{note}",
            approval.user, doubt.action, doubt.tool, doubt.arguments
        );
        let turn = record.envelope.id;
        let user = self.threads.get(&doubt.thread_id).map(|thread| thread.user.clone());
        self.add_entry(record.sequence, &doubt.thread_id, ThreadEntry::Notice { turn, text });
        self.begin_turn(turn, record, TurnCause::Event, &doubt.thread_id, &user.unwrap_or(approval.user.clone()));
    }

    /// A step may call its tool, or may not.
    fn apply_step_approval(&mut self, record: &Record, approval: &AgentApproval) {
        let of_user = self.turns.values_mut().filter(|turn| turn.user == approval.user);
        let Some((step, due)) = step_awaiting_approval(of_user, &approval.action_id) else {
            let message = format!("no action {:?} of this agent waits for consent", approval.action_id);
            return self.refuse_input(record, "not_in_doubt", message, &approval.user);
        };
        *due = Some(record.sequence);
        let StepState::Asked { request, at, arguments: asked } = &step.state else { return };
        let is_changed = !approval.arguments.is_empty() && approval.arguments != *asked;
        let notice = is_changed.then(|| changed_arguments_notice(approval, &step.step.event, asked));
        let arguments = if is_changed { &approval.arguments } else { asked }.clone();
        step.state = match approval.verdict_word() {
            Verdict::Approved => StepState::Approved { request: *request, at: *at, arguments, is_changed },
            _ => StepState::Rejected { reason: rejection_reason(approval) },
        };
        if let (Some(text), Verdict::Approved) = (notice, approval.verdict_word()) {
            self.add_notice_of_step(record.sequence, &approval.action_id, text);
        }
    }

    /// Adds a notice to the turn that asked for consent: the model sees the call with the changed arguments, and must know
    /// who changed them.
    fn add_notice_of_step(&mut self, sequence: u64, request: &str, text: String) {
        let is_it =
            |run: &StepRun| matches!(&run.state, StepState::Approved { request: of, .. } if of.to_string() == request);
        let has_step = |turn: &AgentTurn| turn.chain.as_ref().is_some_and(|chain| chain.steps.iter().any(is_it));
        let of_step = self.turns.iter().find(|(_, turn)| has_step(turn));
        let Some((turn, thread_id)) = of_step.map(|(id, turn)| (*id, turn.thread_id.clone())) else { return };
        self.add_entry(sequence, &thread_id, ThreadEntry::Notice { turn, text });
    }

    /// Sees to it that a call is never made that waits for consent; whether there is such a call.
    fn cancel_pending_approval(&mut self, record: &Record, command: &AgentCommand) -> bool {
        let Some((step, due)) = step_awaiting_approval(self.turns.values_mut(), &command.action_id) else {
            return false;
        };
        step.state = StepState::Rejected { reason: format!("{} canceled it", command.user) };
        *due = Some(record.sequence);
        true
    }

    /// Rejects a call that nobody has answered in time. Returns true if there was such a call.
    pub(super) fn expire_approval(&mut self, record: &Record, request: &str, due_at: &str) -> bool {
        let Some((step, due)) = step_awaiting_approval(self.turns.values_mut(), request) else { return false };
        step.state = StepState::Rejected { reason: format!("nobody had answered by {due_at}") };
        *due = Some(record.sequence);
        true
    }

    /// A direct order.
    pub(super) fn apply_command(&mut self, record: &Record, command: &AgentCommand) {
        if !self.seen.insert(&format!("command/{}/{}", command.user, command.command_id)) {
            return;
        }
        if let Some((order, thread_id)) = order_of_command(command) {
            return self.begin_turn(record.envelope.id, record, TurnCause::Order(order), &thread_id, &command.user);
        }
        if command.command_word() != OrderedCommand::Cancel {
            let message = format!(
                "the command {:?} is none for this; say cancel, of a task also pause, resume or run, of a thread archive \
                 or unarchive",
                command.command
            );
            return self.refuse_input(record, "unknown_command", message, &command.user);
        }
        let action = Uuid::parse_str(&command.action_id).ok();
        if command.includes_consents && self.cancel_pending_approval(record, command) {
            return;
        }
        let process = Uuid::parse_str(&command.process_id).ok().filter(|id| self.process_target(*id).is_some());
        // An action that became a process in the background is over; what is meant is the process.
        let background = |action| self.processes.running.values().find(|process| Some(process.action) == action);
        let process = process.or_else(|| background(action).map(|process| process.started.process_id));
        let order = match (process, action.filter(|action| self.action_target(*action).is_some())) {
            (Some(id), _) => {
                DirectOrder { tool: "process.cancel".into(), arguments: json!({ "process_id": id }).to_string() }
            }
            (None, Some(id)) => {
                DirectOrder { tool: "action.cancel".into(), arguments: json!({ "action_id": id }).to_string() }
            }
            (None, None) => {
                let message = match command.process_id.as_str() {
                    "" => format!("no action {:?} of this agent is known", command.action_id),
                    id => format!("no process {id:?} of this agent is known"),
                };
                return self.refuse_input(record, "unknown_action", message, &command.user);
            }
        };
        let thread_id = self.thread_of_target(process, action).unwrap_or_default();
        self.begin_turn(record.envelope.id, record, TurnCause::Order(order), &thread_id, &command.user);
    }

    /// Returns the thread that is told of an order about these: only the work lane adds to a thread of work.
    fn thread_of_target(&self, process: Option<Uuid>, action: Option<Uuid>) -> Option<String> {
        let running = process.and_then(|id| self.processes.running.get(&id)).map(|process| &process.thread_id);
        let in_flight = action.and_then(|id| self.in_flight.get(&id));
        let thread_id = running.or(in_flight.map(|known| &known.thread_id))?;
        if !self.is_background_thread(thread_id) {
            return Some(thread_id.clone());
        }
        Some(self.conversation_of(self.turns.get(&in_flight?.turn)?)).filter(|id| !self.is_background_thread(id))
    }

    fn refuse_input(&mut self, record: &Record, kind: &str, message: String, user: &str) {
        let cause = TurnCause::Refused { kind: kind.to_owned(), message };
        self.begin_turn(record.envelope.id, record, cause, "", user);
    }

    /// Returns an action of this agent, in flight or over, with the position to search the log from; `None` if unknown.
    pub fn action_target(&self, action: Uuid) -> Option<ActionTarget> {
        let in_flight = self.in_flight.get(&action).map(|known| known.after);
        let over = || self.threads.values().find_map(|thread| thread.find_call(action)).map(|call| call.after);
        in_flight.or_else(over).map(|after| ActionTarget { action, after })
    }

    /// On whose behalf an action was asked for that is in flight, is a process, or stands in a thread.
    pub fn user_of_action(&self, action: Uuid) -> Option<&str> {
        if let Some(user) = self.processes.user_of_ended(action) {
            return Some(user);
        }
        let in_flight = self.in_flight.get(&action);
        if let Some(turn) = in_flight.and_then(|known| self.turns.get(&known.turn)) {
            return Some(&turn.user);
        }
        let in_flight = in_flight.map(|known| &known.thread_id);
        let running = || self.processes.running.values().find(|process| process.action == action);
        let thread_id = in_flight.or_else(|| running().map(|process| &process.thread_id));
        let thread = match thread_id {
            Some(id) => self.threads.get(id),
            None => self.threads.values().find(|thread| thread.find_call(action).is_some()),
        };
        thread.map(|thread| thread.user.as_str())
    }

    /// The action that became a process of this agent, and how far back to look for it.
    pub fn process_target(&self, process_id: Uuid) -> Option<ActionTarget> {
        let waited_for = || {
            let is_it = |known: &super::in_flight::InFlightAction| {
                known.process.as_ref().is_some_and(|process| process.process_id == process_id)
            };
            let (action, known) = self.in_flight.iter().find(|(_, known)| is_it(known))?;
            Some(ActionTarget { action: *action, after: known.after })
        };
        self.processes.target(process_id).or_else(waited_for)
    }
}

/// The intrinsic that an order about a chain, a task or a thread comes to, and the thread it is about.
fn order_of_command(ordered: &AgentCommand) -> Option<(DirectOrder, String)> {
    let order = |tool: &str, key: &str, id: &str| DirectOrder {
        tool: tool.to_owned(),
        arguments: json!({ key: id }).to_string(),
    };
    let AgentCommand { command, chain_id, task_id, thread_id, .. } = ordered;
    Some(match ordered.command_word() {
        OrderedCommand::Cancel if !chain_id.is_empty() => (order("chain.cancel", "chain_id", chain_id), String::new()),
        OrderedCommand::Cancel
        | OrderedCommand::Pause
        | OrderedCommand::Resume
        | OrderedCommand::Run
        | OrderedCommand::Share
        | OrderedCommand::Unshare
            if !task_id.is_empty() =>
        {
            (order(&format!("task.{command}"), "task_id", task_id), String::new())
        }
        OrderedCommand::Pause | OrderedCommand::Resume | OrderedCommand::Archive if !ordered.team.is_empty() => {
            (order(&format!("team.{command}"), "team", &ordered.team), String::new())
        }
        OrderedCommand::Add | OrderedCommand::Remove => (order_of_submodule(ordered)?, String::new()),
        OrderedCommand::Queue => (order_of_task(ordered)?, String::new()),
        OrderedCommand::Archive | OrderedCommand::Unarchive if !thread_id.is_empty() => {
            (order(&format!("thread.{command}"), "thread_id", thread_id), thread_id.clone())
        }
        _ => return None,
    })
}

/// The human who orders it is the one who would be asked.
fn order_of_submodule(ordered: &AgentCommand) -> Option<DirectOrder> {
    let submodule = ordered.submodule.as_ref()?;
    let arguments = match ordered.command_word() {
        OrderedCommand::Remove => json!({ "name": submodule.name }),
        _ => json!({
            "name": submodule.name,
            "prompt": submodule.prompt,
            "tier": submodule.tier,
            "hears": submodule.hears,
            "deadline_ms": submodule.deadline_ms,
            "wants_decisions": submodule.wants_decisions,
        }),
    };
    Some(DirectOrder { tool: format!("submodule.{}", ordered.command), arguments: arguments.to_string() })
}

fn order_of_task(ordered: &AgentCommand) -> Option<DirectOrder> {
    let task = ordered.task.as_ref()?;
    let arguments = json!({ "task_id": task.task_id, "text": task.text, "title": task.title });
    Some(DirectOrder { tool: tasks::QUEUE.to_owned(), arguments: arguments.to_string() })
}

/// The step that waits for consent to this action, and where its turn says that it is due.
fn step_awaiting_approval<'t>(
    turns: impl Iterator<Item = &'t mut AgentTurn>,
    action: &str,
) -> Option<(&'t mut StepRun, &'t mut Option<u64>)> {
    let waits = |run: &StepRun| matches!(&run.state, StepState::Asked { request, .. } if request.to_string() == action);
    turns.into_iter().find_map(|turn| {
        let step = turn.chain.as_mut()?.steps.iter_mut().find(|run| waits(run))?;
        Some((step, &mut turn.due))
    })
}

fn changed_arguments_notice(approval: &AgentApproval, tool: &str, asked: &str) -> String {
    let note = match approval.note.as_str() {
        "" => String::new(),
        note => format!(" They say: {}", cut_to(note, NOTE_BYTES)),
    };
    format!(
        "Event: {} approved the call of {tool} with other arguments: you asked for {}, and it is made with {}.{note}",
        approval.user,
        cut_to(asked, ARGUMENT_BYTES),
        cut_to(&approval.arguments, ARGUMENT_BYTES)
    )
}

fn rejection_reason(approval: &AgentApproval) -> String {
    match approval.note.as_str() {
        "" => format!("{} rejected it", approval.user),
        note => format!("{} rejected it: {}", approval.user, cut_to(note, NOTE_BYTES)),
    }
}

/// Builds the text about a process that is over after so many seconds.
fn exit_notice(process: &BackgroundProcess, exited: &ProcessExited, seconds: i64) -> String {
    let how = match (exited.code, exited.signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => format!("{}: {}", exited.outcome, exited.reason),
    };
    let mut text = format!(
        "Event: the process {} that you spawned ({}) is over after {seconds} s: {how}.",
        process.started.process_id, process.arguments
    );
    for (stream, tail) in [("stdout", &exited.stdout_tail), ("stderr", &exited.stderr_tail)] {
        if !tail.is_empty() {
            let end = tail.get(tail.ceil_char_boundary(tail.len().saturating_sub(TAIL_BYTES))..).unwrap_or_default();
            text.push_str(&format!(" Its {stream} ends: {end:?}."));
        }
    }
    text
}
