//! Answers of an agent that works in the background which promise work and queue none: a promise becomes a task, or is taken back, in
//! the same turn.
//!
//! The fast model is asked once about each answer that called nothing. Where it gives no usable verdict in time, a rule decides
//! ([`promises`]): what reads like a promise queues the user's own words.

use kairo_proto::words::TaskStatus;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{AwaitedAnswer, Deliberation, Purpose, turn_request, turn_request::TurnMode};
use crate::{
    intrinsics::{
        IntrinsicOutcome,
        tasks::{QUEUE, TEXT_CHARS},
    },
    model_answer::{ModelToolCall, extract_json},
    promises,
    thread::{Thread, ThreadEntry},
};

/// So long the model is waited for, in milliseconds; then the rule decides.
pub(super) const WAIT_MS: u32 = 10_000;
/// Tasks that one answer is found to promise, at most.
const TASKS: usize = 8;
/// Said where a promise cannot be kept and the model has no other words.
const NO_ROOM: &str = "I cannot take this on: it could not be put into the queue.";

#[derive(Deserialize)]
struct PromiseVerdict {
    verdict: PromiseAction,
    #[serde(default)]
    tasks: Vec<PromisedTask>,
    #[serde(default)]
    answer: String,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum PromiseAction {
    /// Nothing is left undone.
    Nothing,
    Queue,
    TakeBack,
}

#[derive(Deserialize)]
struct PromisedTask {
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
}

impl Deliberation<'_> {
    /// Has the words looked at with which a turn is about to end, where they may promise what nothing was queued for. Whether they are.
    pub(super) fn check_for_promise(&mut self, turn_id: Uuid, words: &str) -> bool {
        if self.limits.memory_rules == 0 || !self.may_promise(turn_id) {
            return false;
        }
        if self.is_tier_paused("fast") {
            self.apply_decided();
            self.judge_promise_by_rule(turn_id, words);
            return true;
        }
        let Some(turn) = self.turn(turn_id) else { return false };
        let request = turn_request::promise(&self.mind, turn, words);
        self.ask_model(turn_id, Purpose::Promise { words: words.to_owned() }, request);
        true
    }

    /// Returns true if a turn answers a user beside the work, and has queued and ordered nothing.
    fn may_promise(&self, turn_id: Uuid) -> bool {
        let Some(turn) = self.turn(turn_id) else { return false };
        let is_free = |turn: &crate::state::AgentTurn| {
            turn.chat.as_ref().is_none_or(|chat| !chat.is_aside && chat.response_format.is_empty())
        };
        let acts = |tool: &str| tool.starts_with("task.") || tool.starts_with("process.") || tool.ends_with(".cancel");
        let acted = |thread: &Thread| thread.calls_of(turn_id).any(|call| acts(&call.tool));
        let thread = self.mind.threads.get(&turn.thread_id);
        self.mode_of(turn) == TurnMode::Acknowledge && is_free(turn) && !thread.is_some_and(|thread| acted(thread))
    }

    /// Acts on the model's verdict on whether the words promise work.
    pub(super) fn act_on_promise_verdict(&mut self, turn_id: Uuid, words: &str, text: &str) {
        self.apply_decided();
        let verdict = extract_json(text).ok().and_then(|value| serde_json::from_value::<PromiseVerdict>(value).ok());
        match verdict {
            Some(PromiseVerdict { verdict: PromiseAction::Nothing, .. }) => {
                self.conclude(turn_id, words, &TaskStatus::Completed)
            }
            Some(PromiseVerdict { verdict: PromiseAction::Queue, tasks, answer }) => {
                let tasks: Vec<(String, String)> = tasks
                    .into_iter()
                    .filter(|task| !task.text.trim().is_empty())
                    .take(TASKS)
                    .map(|task| (task.title, task.text))
                    .collect();
                let tasks = if tasks.is_empty() { vec![self.task_from_user_words(turn_id)] } else { tasks };
                self.keep_promise(turn_id, words, &tasks, &answer);
            }
            Some(PromiseVerdict { verdict: PromiseAction::TakeBack, answer, .. }) if !answer.trim().is_empty() => {
                self.conclude(turn_id, answer.trim(), &TaskStatus::Completed);
            }
            Some(PromiseVerdict { verdict: PromiseAction::TakeBack, .. }) | None => {
                self.judge_promise_by_rule(turn_id, words)
            }
        }
    }

    /// No model says whether the words promise anything.
    pub(super) fn resolve_unclear_promise(&mut self, asked: &AwaitedAnswer) {
        if let Purpose::Promise { words } = &asked.purpose {
            self.apply_decided();
            self.judge_promise_by_rule(asked.turn, words);
        }
    }

    fn judge_promise_by_rule(&mut self, turn_id: Uuid, words: &str) {
        match promises::is_promise(words) {
            true => self.keep_promise(turn_id, words, &[self.task_from_user_words(turn_id)], ""),
            false => self.conclude(turn_id, words, &TaskStatus::Completed),
        }
    }

    /// Returns the user's words in this turn, as a task without a title.
    fn task_from_user_words(&self, turn_id: Uuid) -> (String, String) {
        let thread = self.turn(turn_id).and_then(|turn| self.mind.threads.get(&turn.thread_id));
        let said = thread.and_then(|thread| {
            thread.entries().rev().find_map(|entry| match entry {
                ThreadEntry::User { turn, words } if *turn == turn_id => Some(words.in_words()),
                _ => None,
            })
        });
        (String::new(), said.unwrap_or_default())
    }

    /// Queues what was promised, and says the words; where that cannot be, it takes the promise back.
    fn keep_promise(&mut self, turn_id: Uuid, words: &str, tasks: &[(String, String)], instead: &str) {
        let queued: Option<Vec<IntrinsicOutcome>> =
            tasks.iter().enumerate().map(|(at, task)| self.queue_promised(turn_id, at, task)).collect();
        match queued {
            Some(queued) => {
                queued.into_iter().for_each(|done| self.add_intrinsic_events(turn_id, done.events));
                self.say(turn_id, words, true);
            }
            None => {
                let instead = if instead.trim().is_empty() { NO_ROOM } else { instead.trim() };
                self.conclude(turn_id, instead, &TaskStatus::Completed);
            }
        }
    }

    fn queue_promised(&self, turn_id: Uuid, at: usize, (title, text): &(String, String)) -> Option<IntrinsicOutcome> {
        let text: String = text.chars().take(TEXT_CHARS).collect();
        let arguments = json!({ "title": title, "text": text }).to_string();
        let call =
            ModelToolCall { tool: QUEUE.to_owned(), arguments, call_id: String::new(), passed_back: String::new() };
        self.queue_task(turn_id, at, &call)
    }
}
