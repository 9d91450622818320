//! The work lane of an agent with conduct `background`: the turns, inputs and facts that belong to it, beside the
//! agent's conversations. Built from the log.
//!
//! A session of work begins when a task is queued and none is worked on, and is over when nothing is left to do. Each user
//! whose tasks are worked on has one thread in it: nobody's task sees what another's did.

use std::collections::{BTreeMap, VecDeque};

use kairo_events::{ids::process_id, record::Record, threads};
use kairo_proto::words::TaskStatus;
use kairo_proto::{
    About,
    about::{Agent, Outside, Process, Tool},
    v1::{AgentDecision, DecidedEvent, TaskChanged, TaskEnded, TaskStarted, decided_event::Event},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    chain::StepState,
    intrinsics, memories,
    pending_keywords::KeywordQueue,
    state::{AgentState, AgentTurn, TurnCause},
    submodules::is_broadcast,
    tasks::{Task, TaskHistory},
    team::Amount,
    thread::{ThreadEntry, cut_to_entry},
    thread_summaries::DueSummary,
    work_session::WorkSession,
};

/// Result of a call that was still running when its task ended.
const LEFT: &str = r#"{"status":"the task was over before this was"}"#;

/// Heading of the memories recalled for a task.
const RECALLED: &str = "What you learned at work before:";

/// The session of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundLane {
    /// The next item, and the position of the decision after which it begins; none while a task is worked on or nothing
    /// is to be done.
    pub next: Option<(NextWork, u64)>,
    /// The threads of the session, by user.
    pub threads: BTreeMap<String, String>,
    /// Resources the session has used.
    #[serde(default, skip_serializing_if = "WorkSession::is_nothing")]
    pub session: WorkSession,
    /// The task with whose time work goes on, where a session came to one of its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests: Option<Uuid>,
    /// The conversations that are to be summed up when nothing else is to be done.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub summaries: VecDeque<DueSummary>,
    /// The memories whose keywords are to be found when nothing else is to be done.
    #[serde(default, skip_serializing_if = "KeywordQueue::is_nothing")]
    pub keywords: KeywordQueue,
}

/// Work that the lane begins by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextWork {
    /// A queued task.
    Task(Uuid),
    /// Finding out what is to be learned from this thread, in which nothing is left to do: then it is over.
    Lessons(String),
    /// Showing submodules what was decided in a thread, up to there.
    Broadcast { thread_id: String, through: u64 },
    /// Summing this conversation up.
    Summary(String),
    /// Finding keywords for these memories.
    Keywords(Vec<String>),
}

impl BackgroundLane {
    /// Returns true if nothing is in progress and nothing waits, keywords included.
    pub fn is_nothing(&self) -> bool {
        self.keywords.is_nothing() && self.is_idle()
    }

    /// Returns true if nothing is in progress or about to begin. Paused keywords do not count: they wait until the
    /// agent has decided on other things.
    pub fn is_idle(&self) -> bool {
        let keywords_wait = !self.keywords.is_nothing() && self.keywords.pause == 0;
        let waits = !self.summaries.is_empty() || keywords_wait;
        self.next.is_none() && self.threads.is_empty() && self.rests.is_none() && !waits
    }

    /// Returns the position of the decision after which the next item begins.
    pub fn begins_after(&self) -> Option<u64> {
        self.next.as_ref().map(|(_, begins)| *begins)
    }
}

impl AgentTurn {
    /// The queued task that it works on.
    pub(super) fn queued_task(&self) -> Option<Uuid> {
        match self.cause {
            TurnCause::Work(task) => Some(task),
            TurnCause::Message | TurnCause::Event | TurnCause::Task(_) | TurnCause::Order(_) => None,
            TurnCause::Request(_) | TurnCause::Refused { .. } => None,
        }
    }
}

impl AgentState {
    /// Returns true if the agent acknowledges requests that take work, and works on them beside the conversation.
    pub fn works_in_background(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.background)
    }

    /// Returns true if a tool belongs to the agent's conduct and is offered whatever the profile lists: tools that add
    /// to the queue, change it or stop its tasks. Builds before epoch 10 offered only listed tools.
    pub(super) fn conduct_offers_tool(&self, tool: &str, memory_rules: u32) -> bool {
        memory_rules > 0 && self.works_in_background() && intrinsics::tasks::is_of_conduct(tool)
    }

    /// Returns true if the turn belongs to the work lane.
    pub fn is_background_turn(&self, turn: &AgentTurn) -> bool {
        turn.queued_task().is_some() || self.is_background_thread(&turn.thread_id)
    }

    pub(super) fn is_background_thread(&self, thread_id: &str) -> bool {
        self.threads.get(thread_id).is_some_and(|thread| thread.work)
    }

    /// Returns true if the work lane decides on this observed input.
    pub fn is_background_input(&self, input: u64) -> bool {
        self.work.begins_after() == Some(input)
            || self.due_turn(input).is_some_and(|(_, turn)| self.is_background_turn(turn))
            || self.late_at(input).any(|late| self.is_background_thread(&late.thread_id))
    }

    /// Returns true if the decision at this sequence is the work lane's next input: something begins after it, or it
    /// started work on a task.
    pub(super) fn background_follows(&self, sequence: u64) -> bool {
        let is_its_move = |(_, turn): (&Uuid, &AgentTurn)| turn.queued_task().is_some();
        self.work.begins_after() == Some(sequence) || self.due_turn(sequence).is_some_and(is_its_move)
    }

    /// Counts for its task what a decision of the work lane took.
    pub(super) fn spend_on_task(&mut self, decided: Option<Uuid>, decision: &AgentDecision) {
        let started = || {
            decision.events.iter().find_map(|it| {
                let Some(Event::TaskStarted(started)) = &it.event else { return None };
                Uuid::parse_str(&started.task_id).ok()
            })
        };
        let of_turn = decided.and_then(|id| self.turns.get(&id)).and_then(AgentTurn::queued_task);
        if let Some(task) = of_turn.or_else(started).filter(|_| !decision.completions.is_empty()) {
            self.tasks.spend_on(task, decision);
        }
    }

    /// Returns true if a record concerns a work thread, or work follows it.
    pub(super) fn concerns_background(&self, record: &Record) -> bool {
        if self.work.is_nothing() {
            return false;
        }
        match record.body.about() {
            About::Decision(_) => self.background_follows(record.sequence),
            About::Tool(Tool::Invoke(invoke)) => {
                invoke.actions.iter().any(|it| self.is_background_action(&it.action_id))
            }
            About::Tool(Tool::Progress(progress)) => self.is_background_action(&progress.action_id),
            About::Tool(Tool::Result(result)) if result.late => self.is_background_doubt(&result.action_id),
            About::Tool(Tool::Result(result)) => self.is_background_action(&result.action_id),
            About::Tool(Tool::Order(order)) => {
                let process = Uuid::parse_str(&order.action_id).ok().map(process_id);
                self.is_background_process(process, &order.action_id)
            }
            About::Process(process) => {
                let (process, action) = process_and_action(process);
                self.is_background_process(Uuid::parse_str(process).ok(), action)
            }
            About::Agent(Agent::Approval(approval)) => {
                self.is_background_approval(&approval.action_id) || self.is_background_doubt(&approval.action_id)
            }
            About::Agent(Agent::Command(order)) => {
                order.includes_consents && self.is_background_approval(&order.action_id)
            }
            About::Agent(Agent::Answer(answer)) => self.is_background_action(&answer.request_id),
            About::Outside(Outside::Due(due)) => {
                self.is_background_action(&due.task_id) || self.is_background_approval(&due.task_id)
            }
            About::Agent(Agent::Defined(_) | Agent::Message(_) | Agent::Choice(_)) => false,
            About::Agent(Agent::Request(_) | Agent::Imported(_) | Agent::Forgotten(_)) => false,
            About::User(_) | About::Decided(_) | About::Outside(_) | About::System(_) | About::Live(_) => false,
        }
    }

    /// Returns true if a process belongs to work: a background process by its thread, any other by its action.
    fn is_background_process(&self, process: Option<Uuid>, action: &str) -> bool {
        let running = process.and_then(|id| self.processes.running.get(&id));
        running.map_or_else(|| self.is_background_action(action), |it| self.is_background_thread(&it.thread_id))
    }

    fn is_background_action(&self, action: &str) -> bool {
        let known = Uuid::parse_str(action).ok().and_then(|id| self.in_flight.get(&id));
        known.is_some_and(|known| self.is_background_thread(&known.thread_id))
    }

    fn is_background_approval(&self, asked: &str) -> bool {
        let waits =
            |state: &StepState| matches!(state, StepState::Asked { request, .. } if request.to_string() == asked);
        let of_work = self.turns.values().filter(|turn| self.is_background_turn(turn));
        let mut steps = of_work.filter_map(|turn| turn.chain.as_ref()).flat_map(|chain| &chain.steps);
        steps.any(|run| waits(&run.state))
    }

    fn is_background_doubt(&self, action: &str) -> bool {
        let doubt = Uuid::parse_str(action).ok().and_then(|id| self.doubts.get(id));
        doubt.is_some_and(|doubt| self.is_background_thread(&doubt.thread_id))
    }

    /// The thread in which a user is told what they did not ask for: the one they are in, or their own.
    pub(super) fn conversation_with(&self, agent: &str, user: &str) -> String {
        let of_user =
            self.threads.iter().filter(|(_, thread)| thread.user == user && !thread.archived && thread.heard > 0);
        let current = of_user.min_by_key(|(_, thread)| std::cmp::Reverse(thread.heard)).map(|(id, _)| id.clone());
        current.unwrap_or_else(|| threads::single_thread_id(agent, user))
    }

    /// The conversation that a turn is of: its thread or, of one that works on a task, the one in which it was asked for.
    pub fn conversation_of(&self, turn: &AgentTurn) -> String {
        let of_task = |task: Uuid| self.tasks.get(task).map(|task| task.thread_id.clone());
        turn.queued_task().and_then(of_task).unwrap_or_else(|| turn.thread_id.clone())
    }

    /// After each decision: what begins, if something is to. What submodules are to be shown comes before the next task, and
    /// between the steps of one; but behind a broadcast a task comes first, so that neither waits for ever. Conversations are
    /// summed up when nothing else is to be done.
    pub(super) fn choose_next_work(&mut self, sequence: u64, decision: &AgentDecision) {
        if let Some(thread_id) = self.summarized_thread(decision).map(str::to_owned) {
            self.end_summary(&thread_id);
        }
        self.end_keyword_attempt(decision);
        let before = self.work.next.take().filter(|(_, begins)| *begins != decision.work_input);
        let is_working = self.turns.values().any(|turn| turn.queued_task().is_some());
        let shown = || self.next_broadcast();
        let next = match before.as_ref().map(|(next, _)| next) {
            // What was begun is ended first: a model may have answered already.
            Some(as_before @ NextWork::Broadcast { .. }) if self.is_broadcast_pending(as_before) => {
                Some(as_before.clone())
            }
            Some(as_before @ NextWork::Summary(thread_id)) if self.due_summary(thread_id).is_some() => {
                Some(as_before.clone())
            }
            Some(as_before @ NextWork::Keywords(batch))
                if batch.iter().any(|id| self.work.keywords.find(id).is_some()) =>
            {
                Some(as_before.clone())
            }
            // First comes the work that begins with this decision.
            _ if self.background_follows(sequence) => None,
            _ if is_working => shown(),
            // A session that has come to one of its bounds is ended first: nothing begins in it any more.
            None if !is_broadcast(decision) && self.work.rests.is_none() => shown().or_else(|| self.next_work(None)),
            before => self.next_work(before).or_else(shown),
        };
        let upkeep = || self.next_summary().or_else(|| self.next_keywords()).filter(|_| !is_working);
        let next = next.or_else(upkeep);
        let goes_on = before.filter(|(as_before, _)| next.as_ref() == Some(as_before));
        if let Some(NextWork::Summary(thread_id)) = next.as_ref().filter(|_| goes_on.is_none()) {
            self.begin_summary(thread_id);
        }
        self.work.next = goes_on.or_else(|| next.map(|next| (next, sequence)));
    }

    /// The next task, or what is to be learned from those that are over.
    fn next_work(&self, before: Option<&NextWork>) -> Option<NextWork> {
        let is_worked = || self.turns.values().any(|turn| self.is_background_turn(turn));
        let lessons = || self.work.threads.values().next().filter(|_| !is_worked()).cloned().map(NextWork::Lessons);
        match before {
            Some(NextWork::Lessons(_)) => lessons(),
            Some(NextWork::Task(_) | NextWork::Broadcast { .. } | NextWork::Summary(_) | NextWork::Keywords(_))
            | None => {
                let queued = || self.tasks.next_queued().map(|task| NextWork::Task(task.id));
                let may_begin = self.may_begin_tasks() && self.work.rests.is_none();
                may_begin.then(queued).flatten().or_else(lessons)
            }
        }
    }

    pub(super) fn apply_task_started(
        &mut self,
        record: &Record,
        event: &DecidedEvent,
        turn_id: Uuid,
        started: &TaskStarted,
    ) {
        let now = record.envelope.time;
        let Some(task) = Uuid::parse_str(&started.task_id).ok().and_then(|id| self.tasks.apply_started(id, now)) else {
            return;
        };
        let id = task.id;
        let user = task.user.clone();
        let text = task.text().to_owned();
        let outside = task.outside.marks();
        let lineage = task.lineage();
        self.work.session.begin_task(now);
        let correlation = Uuid::parse_str(&event.correlation_id).unwrap_or(record.envelope.correlation_id);
        let turn = AgentTurn::new(TurnCause::Work(id), correlation, &started.thread_id, &user);
        let due = started.before_work.then_some(record.sequence);
        self.turns.insert(turn_id, AgentTurn { lineage, due, ..turn });
        let done = self.tasks.take_history(id).filter(|_| started.before_work);
        if let (Some(done), Some(thread)) = (&done, self.threads.get_mut(&started.thread_id)) {
            thread.remove_turn(done.turn);
        }
        let words = cut_to_entry(&text).as_str().into();
        self.recall_memories(record.sequence, turn_id, &started.thread_id, &user, &text);
        self.add_entry(record.sequence, &started.thread_id, ThreadEntry::User { turn: turn_id, words });
        self.mark_outside(&started.thread_id, turn_id, &outside);
        if let Some(done) = done {
            self.mark_outside(&started.thread_id, turn_id, &done.outside.marks());
            done.into_entries(turn_id)
                .into_iter()
                .for_each(|entry| self.add_entry(record.sequence, &started.thread_id, entry));
        }
    }

    /// Keeps the history of a turn whose task is put back, so that the task resumes where it stopped.
    fn keep_task_history(&mut self, record: &Record, task: &str, reason: &str) {
        let Ok(id) = Uuid::parse_str(task) else { return };
        let Some((turn_id, turn)) = self.turns.iter().find(|(_, turn)| turn.queued_task() == Some(id)) else { return };
        let Some(thread) = self.threads.get(&turn.thread_id) else { return };
        let outside = thread.outside.clone();
        let room = self.tasks.history_room();
        let done = TaskHistory::from_entries(*turn_id, reason, thread.history_of(*turn_id, RECALLED), outside, room);
        self.tasks.keep_history(id, record.envelope.time, done);
    }

    /// Adds the memories that may matter for a task to its thread when work on it begins. They are chosen once, so that
    /// later memories change nothing.
    fn recall_memories(&mut self, sequence: u64, turn: Uuid, thread_id: &str, user: &str, task: &str) {
        let is_told = |content: &str| self.threads.get(thread_id).is_some_and(|thread| thread.has_notice(content));
        let mut recalled = self.memories.recall_for(user, task);
        recalled.retain(|known| !is_told(&known.content));
        if recalled.is_empty() {
            return;
        }
        let marks: Vec<String> = recalled.iter().flat_map(|known| known.outside.marks()).collect();
        let text = format!("{RECALLED}\n{}", memories::in_lines(&recalled));
        self.add_entry(sequence, thread_id, ThreadEntry::Notice { turn, text });
        self.mark_outside(thread_id, turn, &marks);
    }

    pub(super) fn apply_task_changed(&mut self, record: &Record, changed: &TaskChanged) {
        let is_put_back = self.tasks.is_put_back(changed);
        if is_put_back {
            self.keep_task_history(record, &changed.task_id, &changed.reason);
            self.stop_task(record, &changed.task_id, &changed.reason, Some("put back"));
        }
        self.set_rest(&changed.task_id, changed.rests);
        self.tasks.apply_changed(changed);
        // It had all of the session to itself, and that was too little.
        let bounds_sessions = self.profile.as_ref().is_none_or(|profile| profile.task.is_nothing());
        if is_put_back && changed.rests && bounds_sessions && self.work.session.is_of_one_task() {
            self.tasks.count_failure(&changed.task_id);
        }
    }

    /// Work goes on at the time of this task or, if that was so, whenever something is to be done.
    fn set_rest(&mut self, task: &str, rests: bool) {
        let Ok(id) = Uuid::parse_str(task) else { return };
        match rests {
            true => self.work.rests = Some(id),
            false if self.work.rests == Some(id) => self.work.rests = None,
            false => {}
        }
    }

    pub(super) fn apply_task_ended(&mut self, record: &Record, ended: &TaskEnded) {
        let text = if ended.result.is_empty() { &ended.reason } else { &ended.result };
        let failure = (ended.status_word() == TaskStatus::Failed).then_some("failed");
        self.stop_task(record, &ended.task_id, text, failure);
        self.set_rest(&ended.task_id, false);
        if let (Some(answer), Ok(id)) = (&ended.answer, Uuid::parse_str(&ended.task_id)) {
            let correlation = self.tasks.get(id).map(Task::correlation).unwrap_or_default();
            self.call_bounds.return_to_asker(correlation, u64::from(answer.model_calls_left));
        }
        self.tasks.apply_ended(ended);
        let is_member = || self.profile.as_ref().is_some_and(|profile| !profile.lead.is_empty());
        if let Some(answer) = ended.answer.as_ref().filter(|_| is_member()) {
            self.team.spent = self.team.spent.minus(Amount::from_proto(answer.spent.as_ref()));
        }
    }

    /// Records the outcome of a task in its work thread and in the thread that asked for it.
    fn stop_task(&mut self, record: &Record, task: &str, text: &str, failure: Option<&str>) {
        let Ok(id) = Uuid::parse_str(task) else { return };
        let working = self.turns.iter().find(|(_, turn)| turn.queued_task() == Some(id));
        if let Some((turn_id, thread_id)) = working.map(|(turn_id, turn)| (*turn_id, turn.thread_id.clone())) {
            // From when it is known how answers end, it is known of a failure, too, that no model said it.
            let entry = match failure.filter(|_| self.models.records_endings()) {
                Some(kind) => ThreadEntry::failure_notice(turn_id, kind, text),
                None => ThreadEntry::Said { turn: turn_id, text: cut_to_entry(text) },
            };
            self.add_entry(record.sequence, &thread_id, entry);
            let marks = self.threads.get(&thread_id).map(|thread| thread.outside.marks()).unwrap_or_default();
            let asked_in = self.tasks.get(id).map(|task| task.thread_id.clone()).unwrap_or_default();
            self.mark_outside(&asked_in, turn_id, &marks);
            self.detach_in_flight(record, turn_id, &thread_id, &asked_in);
            self.turns.remove(&turn_id);
        }
    }

    /// Detaches a finished task from its calls in flight, so that their results change nothing in the work thread. Its
    /// background processes and doubtful actions move to the conversation.
    fn detach_in_flight(&mut self, record: &Record, turn_id: Uuid, thread_id: &str, asked_in: &str) {
        let keeping = self.entry_retention();
        for (action, known) in self.in_flight.iter_mut().filter(|(_, known)| known.turn == turn_id) {
            asked_in.clone_into(&mut known.thread_id);
            if let Some(thread) = self.threads.get_mut(thread_id) {
                thread.end_call(record.sequence, *action, LEFT, &[], keeping);
            }
        }
        let running = self.processes.running.values_mut().map(|process| &mut process.thread_id);
        for of in running.chain(self.doubts.threads_mut()).filter(|of| *of == thread_id) {
            asked_in.clone_into(of);
        }
    }

    pub(super) fn apply_thread_completed(&mut self, thread_id: &str) {
        self.threads.remove(thread_id);
        self.work.threads.retain(|_, thread| thread != thread_id);
        if self.work.threads.is_empty() {
            self.work.session = WorkSession::default();
        }
    }
}

/// The process and the action that this is about.
fn process_and_action(process: Process<'_>) -> (&str, &str) {
    match process {
        Process::Spawned(it) => (&it.process_id, &it.action_id),
        Process::Progress(it) => (&it.process_id, &it.action_id),
        Process::Canceled(it) => (&it.process_id, &it.action_id),
        Process::Reply(it) => (&it.process_id, &it.action_id),
        Process::Exited(it) => (&it.process_id, &it.action_id),
    }
}
