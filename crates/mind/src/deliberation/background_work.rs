//! Work beside the conversation: what takes some is acknowledged and queued, worked on when its turn comes, answered where it
//! was asked for, and learned from.

use jiff::{SignedDuration, Timestamp};
use kairo_events::ids;
use kairo_proto::{
    v1::{
        AgentAction, Completion, Say, TaskChanged, TaskEnded, TaskStarted, ThreadCompleted, ThreadCreated,
        agent_action::Action, decided_event::Event,
    },
    words::{ChainOutcome, TaskSource, TaskStatus, ThreadKind},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{AnswerFailure, AwaitedAnswer, Deliberation, Purpose, turn_request::TurnMode};
use crate::{
    background_lane::NextWork,
    intrinsics::{
        IntrinsicOutcome, IntrinsicStart,
        memory::lessons::{self, BriefingAnswer},
        tasks::QUEUE,
    },
    model_answer::ModelToolCall,
    state::{AgentTurn, TurnCause},
    tasks::Task,
};

/// Sessions in which a task may fail; after the last of them it has failed for good.
const SESSIONS: u32 = 3;
/// As `Say.failure`: a task ended without a result.
pub(super) const TASK_FAILED: &str = "task_failed";

/// The words that a turn ends with, and its status.
pub(super) struct TurnConclusion<'a> {
    pub(super) text: &'a str,
    pub(super) status: &'a TaskStatus,
    /// The ending of the model's answer; empty for a complete one.
    pub(super) ending: &'a str,
    /// The kind of a failure; empty for an answer.
    pub(super) failure: &'a str,
    /// True if another try would end in the same way.
    pub(super) is_for_good: bool,
}

impl<'a> TurnConclusion<'a> {
    pub(super) fn answer(text: &'a str) -> Self {
        Self { text, status: &TaskStatus::Completed, ending: "", failure: "", is_for_good: false }
    }

    pub(super) fn failure(text: &'a str, kind: &'a str) -> Self {
        Self { status: &TaskStatus::Failed, failure: kind, ..Self::answer(text) }
    }
}

impl Deliberation<'_> {
    /// Returns the manner in which a turn is thought about.
    pub(super) fn mode_of(&self, turn: &AgentTurn) -> TurnMode {
        match () {
            () if self.mind.is_background_turn(turn) || turn.agent_request().is_some() => TurnMode::Work,
            () if self.mind.works_in_background() && turn.cause == TurnCause::Message => TurnMode::Acknowledge,
            () => TurnMode::Answer,
        }
    }

    /// Begins the work that is next by itself: a task of the queue, lessons, a broadcast, a summary or keywords.
    pub(super) fn begin_background_work(&mut self) {
        match self.mind.work.next.clone() {
            Some((NextWork::Task(task), _)) => self.begin_queued_task(task),
            Some((NextWork::Lessons(thread_id), _)) => self.ask_for_lessons(&thread_id),
            Some((NextWork::Broadcast { thread_id, through }, _)) => self.broadcast_decisions(&thread_id, through),
            Some((NextWork::Summary(thread_id), _)) => self.ask_for_summary(&thread_id),
            Some((NextWork::Keywords(memories), _)) => self.find_keywords(&memories),
            None => {}
        }
    }

    /// A task begins, in the thread of its user.
    fn begin_queued_task(&mut self, task: Uuid) {
        let Some(task) = self.mind.tasks.get(task).cloned() else { return };
        let turn_id = ids::derive(self.decision_id, &format!("work/{}", task.id));
        if let Some(reached) = self.reached_session_bound() {
            return self.postpone_task(turn_id, &task, &reached);
        }
        if let Some(reached) = self.reached_task_bound(&task) {
            return self.end_over_bound(turn_id, &task, &reached);
        }
        let thread_id = self.background_thread_for(turn_id, &task);
        // It stands in the log before a model is asked, so that nobody takes a task for one that waits.
        let before_work = self.limits.memory_rules > 0;
        let started = TaskStarted { task_id: task.id.to_string(), thread_id: thread_id.clone(), before_work };
        self.add_event_to(turn_id, &thread_id, task.correlation(), Event::TaskStarted(started));
        self.apply_decided();
        if !before_work {
            self.work.push_back(turn_id);
        }
    }

    /// Nothing is left to do in a thread of work: what is to be learned from it is found out.
    fn ask_for_lessons(&mut self, thread_id: &str) {
        let turn_id = ids::derive(self.decision_id, "lessons");
        match lessons::request(&self.mind, thread_id, self.limits.memory_rules) {
            Some(_) if self.is_tier_paused("fast") => {
                self.complete_without_lessons(turn_id, thread_id, "the model failed lately")
            }
            Some(request) => self.ask_model(turn_id, Purpose::Learn { thread_id: thread_id.to_owned() }, request),
            None => self.complete_thread(turn_id, thread_id),
        }
    }

    /// Records the lessons that a model found in a thread of work, and completes the thread.
    pub(super) fn record_lessons(&mut self, turn_id: Uuid, thread_id: &str, text: &str) -> Result<(), AnswerFailure> {
        let thread = self.mind.threads.get(thread_id);
        let user = thread.map(|thread| thread.user.clone()).unwrap_or_default();
        let turn = AgentTurn::new(TurnCause::Event, self.input.envelope.correlation_id, thread_id, &user);
        let context = self.intrinsic_context(turn_id, &turn, turn_id, &|_| false);
        let learned = lessons::read(&context, thread_id, text).map_err(AnswerFailure::malformed_answer)?;
        let briefing = lessons::may_brief_on(&self.mind, thread_id).then(|| lessons::read_briefing(text)).transpose();
        let briefing = briefing.map_err(AnswerFailure::malformed_answer)?;
        let correlation = turn.correlation;
        for memory in learned {
            self.add_event_to(turn_id, thread_id, correlation, Event::MemoryAppended(memory));
        }
        if let Some(briefing) = briefing {
            self.brief_owner(turn_id, thread_id, briefing);
        }
        self.complete_thread(turn_id, thread_id);
        Ok(())
    }

    /// Completes a thread of work from which no lessons could be learned; `why` is the reason.
    pub(super) fn complete_without_lessons(&mut self, turn_id: Uuid, thread_id: &str, why: &str) {
        if lessons::may_brief_on(&self.mind, thread_id) {
            let reason = format!("whether it is worth telling could not be found out: {why}");
            self.brief_owner(turn_id, thread_id, BriefingAnswer { reason, ..BriefingAnswer::default() });
        }
        self.complete_thread(turn_id, thread_id);
    }

    /// A thread of work is over.
    pub(super) fn complete_thread(&mut self, turn_id: Uuid, thread_id: &str) {
        let completed = ThreadCompleted { thread_id: thread_id.to_owned() };
        self.add_event_to(turn_id, thread_id, self.input.envelope.correlation_id, Event::ThreadCompleted(completed));
        self.apply_decided();
        let is_over = self.mind.work.threads.is_empty() && self.mind.work.rests.is_none();
        if is_over && self.mind.tasks.next_queued().is_none() {
            self.plan_run_after_pause(turn_id);
        }
    }

    /// The thread in which tasks of this one's user are worked on, begun if there is none.
    fn background_thread_for(&mut self, turn_id: Uuid, task: &Task) -> String {
        if let Some(thread_id) = self.mind.work.threads.get(&task.user) {
            return thread_id.clone();
        }
        let thread_id = ids::derive(turn_id, "thread").to_string();
        let user = task.user.clone();
        let title = task.title.clone();
        let created = ThreadCreated { thread_id: thread_id.clone(), kind: ThreadKind::Work.text(), user, title };
        self.add_event_to(turn_id, &thread_id, task.correlation(), Event::ThreadCreated(created));
        thread_id
    }

    /// There is no room for what came of what was begun.
    pub(super) fn skip_next_background_work(&mut self, reason: &str) {
        match self.mind.work.next.clone() {
            Some((NextWork::Task(task), _)) => {
                if let Some(task) = self.mind.tasks.get(task).cloned() {
                    let turn_id = ids::derive(self.decision_id, &format!("work/{}", task.id));
                    self.end_task(turn_id, &task, &TaskStatus::Failed, reason);
                }
            }
            Some((NextWork::Lessons(thread_id), _)) => {
                self.complete_thread(ids::derive(self.decision_id, "lessons"), &thread_id);
            }
            Some((NextWork::Broadcast { thread_id, through }, _)) => {
                self.end_broadcast(&thread_id, through, Vec::new())
            }
            // It is over with the decision.
            Some((NextWork::Summary(_) | NextWork::Keywords(_), _)) | None => {}
        }
    }

    /// A model's words to an acknowledged message: what is to be done is queued, and the words say so. False where the calls
    /// are others, or cannot be made.
    pub(super) fn queue_and_acknowledge(
        &mut self,
        asked: &AwaitedAnswer,
        words: &str,
        calls: &[ModelToolCall],
    ) -> Result<bool, AnswerFailure> {
        let turn_id = asked.turn;
        let acknowledges = self.turn(turn_id).is_some_and(|turn| self.mode_of(turn) == TurnMode::Acknowledge);
        if !acknowledges || calls.is_empty() || calls.iter().any(|call| call.tool != QUEUE) {
            return Ok(false);
        }
        let Some(queued) = calls.iter().enumerate().map(|(at, call)| self.queue_task(turn_id, at, call)).collect()
        else {
            return Ok(false);
        };
        let queued: Vec<IntrinsicOutcome> = queued;
        if words.is_empty() && asked.question.attempt < self.limits.tries {
            let missing = format!("call {QUEUE} and say, in the same answer, in a sentence what you will do");
            return Err(AnswerFailure::malformed_answer(missing));
        }
        let titles = queued.iter().filter_map(|done| done.result.get("title")?.as_str().map(str::to_owned));
        let instead = || titles.collect::<Vec<_>>().join("; ");
        let words = if words.is_empty() { instead() } else { words.to_owned() };
        queued.into_iter().for_each(|done| self.add_intrinsic_events(turn_id, done.events));
        self.say(turn_id, &words, true);
        Ok(true)
    }

    pub(super) fn queue_task(&self, turn_id: Uuid, at: usize, call: &ModelToolCall) -> Option<IntrinsicOutcome> {
        let params: Map<String, Value> = serde_json::from_str(&call.arguments).ok()?;
        if !self.param_mistakes(QUEUE, &params).is_empty() {
            return None;
        }
        let name = match self.limits.memory_rules {
            0 => format!("queue/{at}"),
            // Messages that are dealt with in one decision each queue a first task.
            _ => format!("queue/{turn_id}/{at}"),
        };
        let id = ids::derive(self.decision_id, &name);
        let begun = self.with_intrinsic(turn_id, QUEUE, id, |intrinsic, context| (intrinsic.begin)(context, &params));
        match begun {
            Ok(IntrinsicStart::Done(done)) => Some(done),
            Ok(
                IntrinsicStart::Ask(_)
                | IntrinsicStart::Question(_)
                | IntrinsicStart::Read { .. }
                | IntrinsicStart::Request(_),
            )
            | Err(_) => None,
        }
    }

    /// A turn ends with words: for whoever it answers or, of one that works on a task, as what came of that.
    pub(super) fn conclude(&mut self, turn_id: Uuid, text: &str, status: &TaskStatus) {
        self.conclude_with(turn_id, TurnConclusion { status, ..TurnConclusion::answer(text) });
    }

    /// A turn ends without an answer, for a reason of this kind.
    pub(super) fn conclude_failed(&mut self, turn_id: Uuid, text: &str, kind: &str) {
        self.conclude_with(turn_id, TurnConclusion::failure(text, kind));
    }

    /// A turn ends without an answer, and trying again would come to the same.
    pub(super) fn conclude_for_good(&mut self, turn_id: Uuid, text: &str, kind: &str) {
        self.conclude_with(turn_id, TurnConclusion { is_for_good: true, ..TurnConclusion::failure(text, kind) });
    }

    pub(super) fn conclude_with(&mut self, turn_id: Uuid, conclusion: TurnConclusion<'_>) {
        let TurnConclusion { text, status, ending, failure, is_for_good } = conclusion;
        let is_failed = *status == TaskStatus::Failed;
        match self.queued_task_of(turn_id) {
            Some(task) if is_failed && !is_for_good && self.should_retry_task(&task) => {
                self.requeue_task(turn_id, &task, text, false);
            }
            Some(task) if *status == TaskStatus::Completed && self.all_requests_failed(turn_id) => {
                self.end_task(turn_id, &task, &TaskStatus::Failed, text);
            }
            Some(task) => self.end_task(turn_id, &task, status, text),
            None if self.is_request_turn(turn_id) => self.answer_in_words(turn_id, text, status),
            None if failure.is_empty() => {
                let text = text.to_owned();
                let ending = ending.to_owned();
                self.say_to_user(turn_id, Say { text, r#final: true, ending, ..Say::default() });
            }
            None => self.say_failure(turn_id, text, failure),
        }
    }

    /// Returns true if a failed task is tried again in another session. One that another agent asked for is not: that
    /// agent is told at once, and may ask again.
    fn should_retry_task(&self, task: &Task) -> bool {
        let is_told = self.limits.memory_rules > 0 && task.requester().is_some();
        !is_told && task.failed_sessions() + 1 < SESSIONS
    }

    fn is_request_turn(&self, turn_id: Uuid) -> bool {
        self.turn(turn_id).is_some_and(|turn| turn.agent_request().is_some())
    }

    /// The queued task that a turn works on.
    pub(super) fn queued_task_of(&self, turn_id: Uuid) -> Option<Task> {
        self.turn(turn_id).and_then(AgentTurn::queued_task).and_then(|id| self.mind.tasks.get(id)).cloned()
    }

    /// Returns the bound that the session has reached, if any.
    fn reached_session_bound(&self) -> Option<String> {
        let profile = self.mind.profile.as_ref().filter(|profile| !profile.session.is_nothing())?;
        let session = self.mind.work.session.with_usage(self.decision.completions.len(), self.spent_here());
        profile.session.reached_bound(&session, self.input.envelope.time)
    }

    /// Stops a turn that works on a task if the task or the session has reached a bound. Returns true if one has.
    pub(super) fn stop_if_over_bounds(&mut self, turn_id: Uuid) -> bool {
        let Some(task) = self.queued_task_of(turn_id) else { return false };
        if let Some(reached) = self.reached_task_bound(&task) {
            self.end_over_bound(turn_id, &task, &reached);
            return true;
        }
        let Some(reached) = self.reached_session_bound() else { return false };
        let bounds_sessions = self.mind.profile.as_ref().is_none_or(|profile| profile.task.is_nothing());
        let is_alone = bounds_sessions && self.mind.work.session.is_of_one_task();
        let reason = format!("the session took {reached}");
        self.apply_decided();
        self.end_chain_of(turn_id, &ChainOutcome::Failed, &reason);
        match is_alone && task.failed_sessions() + 1 >= SESSIONS {
            true => self.end_task(turn_id, &task, &TaskStatus::Failed, &reason),
            false => self.postpone_task(turn_id, &task, &reached),
        }
        true
    }

    /// A task waits for another session, and everything that is queued with it.
    fn postpone_task(&mut self, turn_id: Uuid, task: &Task, reached: &str) {
        let reason = format!("the session took {reached}");
        self.requeue_task(turn_id, task, &reason, true);
        if task.source == TaskSource::User.as_str() {
            let pause = self.mind.profile.as_ref().map_or(0, |profile| profile.session_pause);
            let text = format!("“{}” has to wait: {reason}. I go on in {pause} seconds.", task.title);
            self.tell_task_user(turn_id, task, &text, "");
        }
    }

    /// A task goes back into the queue, for another session.
    fn requeue_task(&mut self, turn_id: Uuid, task: &Task, reason: &str, rests: bool) {
        let pause = self.mind.profile.as_ref().map_or(0, |profile| profile.session_pause);
        let pause = SignedDuration::from_secs(i64::from(pause));
        let next = self.now().checked_add(pause).unwrap_or(self.now());
        self.requeue_task_until(turn_id, task, reason, rests, next);
    }

    /// Puts a task back into the queue, for a session that begins at `next`.
    pub(super) fn requeue_task_until(
        &mut self,
        turn_id: Uuid,
        task: &Task,
        reason: &str,
        rests: bool,
        next: Timestamp,
    ) {
        let changed = TaskChanged {
            task_id: task.id.to_string(),
            status: TaskStatus::Pending.text(),
            reason: reason.to_owned(),
            next_at: next.to_string(),
            occurrence: task.last_occurrence() + 1,
            rests,
            ..TaskChanged::default()
        };
        let thread_id = self.turn(turn_id).map(|turn| turn.thread_id.clone()).unwrap_or_default();
        self.add_event_to(turn_id, &thread_id, task.correlation(), Event::TaskChanged(changed));
        self.apply_decided();
    }

    /// The time has come to try a task again that failed: it waits for its turn.
    pub(super) fn retry_task(&mut self, task: &Task) {
        let task_id = task.id.to_string();
        let status = TaskStatus::Pending.text();
        let reason = "to be tried again".to_owned();
        let mut changed = TaskChanged { task_id, status, reason, ..TaskChanged::default() };
        let turn_id = ids::derive(self.decision_id, &format!("again/{}", task.id));
        if task.is_next_run()
            && let Err(tomorrow) = self.resume_on_new_day(turn_id)
        {
            changed.reason = "nothing may be spent until then".to_owned();
            (changed.next_at, changed.occurrence) = (tomorrow.to_string(), task.last_occurrence() + 1);
        }
        self.add_event_to(turn_id, &task.thread_id, task.correlation(), Event::TaskChanged(changed));
    }

    pub(super) fn end_task(&mut self, turn_id: Uuid, task: &Task, status: &TaskStatus, text: &str) {
        let mut result = text.to_owned();
        let mut reason = String::new();
        if *status != TaskStatus::Completed {
            std::mem::swap(&mut result, &mut reason);
        }
        let answer = self.task_answer(turn_id, task);
        let ended = TaskEnded { task_id: task.id.to_string(), status: status.text(), result, reason, answer };
        let thread_id = self.turn(turn_id).map(|turn| turn.thread_id.clone()).unwrap_or_default();
        self.add_event_to(turn_id, &thread_id, task.correlation(), Event::TaskEnded(ended));
        if task.source == TaskSource::User.as_str() && *status != TaskStatus::Canceled {
            let is_failure = *status == TaskStatus::Failed && !self.limits.is_of_old_build();
            self.tell_task_user(turn_id, task, text, if is_failure { TASK_FAILED } else { "" });
        }
        self.apply_decided();
    }

    /// Says something in the conversation in which a task was asked for; `failure` is the kind of a failure that it tells of.
    pub(super) fn tell_task_user(&mut self, turn_id: Uuid, task: &Task, text: &str, failure: &str) {
        let text = text.to_owned();
        let failure = failure.to_owned();
        let say = Say { text, failure, user: task.user.clone(), ..Say::default() };
        let action = AgentAction { action: Some(Action::Say(say)) };
        self.add_event_to(turn_id, &task.thread_id, task.correlation(), Event::Action(action));
    }

    /// Words for the user of a turn, where they are in conversation with the agent.
    pub(super) fn notify_user(&mut self, turn_id: Uuid, event: Event) {
        let Some(turn) = self.turn(turn_id) else { return };
        let thread_id = self.mind.conversation_of(turn);
        let correlation = turn.correlation;
        self.add_event_to(turn_id, &thread_id, correlation, event);
    }

    /// A task is not to be done: what it has in flight is stopped, and its turn is over.
    pub(super) fn cancel_task(&mut self, turn_id: Uuid, mut ended: TaskEnded) {
        self.apply_decided();
        let id = Uuid::parse_str(&ended.task_id).unwrap_or_default();
        let working = self.mind.turns.iter().find(|(_, turn)| turn.queued_task() == Some(id));
        let working = working.map(|(owner, turn)| (*owner, turn.thread_id.clone(), turn.waiting.clone()));
        let mut owner = turn_id;
        let mut thread_id = String::new();
        if let Some((worker, thread, in_flight)) = working {
            self.cancel_actions(turn_id, in_flight);
            self.end_chain_of(worker, &ChainOutcome::Canceled, &ended.reason);
            (owner, thread_id) = (worker, thread);
        }
        let task = self.mind.tasks.get(id);
        let correlation = task.map(Task::correlation).unwrap_or_default();
        ended.answer = task.and_then(|task| self.task_answer(owner, task));
        self.add_event_to(owner, &thread_id, correlation, Event::TaskEnded(ended));
        self.apply_decided();
    }

    /// Answers of the model that thinks, for this turn in this decision.
    pub(super) fn thought_count(&self, turn: &AgentTurn) -> u32 {
        let tier = self.mind.thinking_tier(Some(turn));
        let of_tier = |completion: &&Completion| {
            completion.tier == tier && completion.module.is_empty() && self.mind.models.is_step(completion)
        };
        u32::try_from(self.decision.completions.iter().filter(of_tier).count()).unwrap_or(u32::MAX)
    }
}
