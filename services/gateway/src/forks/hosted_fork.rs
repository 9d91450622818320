//! One fork, and the task that drives it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use jiff::{SignedDuration, Timestamp};
use kairo_core::{event_json, ids::Name};
use kairo_fork::{Clock, Fork, ForkError, ForkEvent, tools::CallResult};
use kairo_proto::v1::{UserApproval, UserMessage};
use serde::{Serialize, Serializer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    fork_history::{ForkHistory, HistoryPage},
    limits::{ForkLimits, ForkUsage, LastActivity},
    models::BudgetedModels,
    questions::ForkQuestions,
};
use crate::problem::Problem;

/// Capacity of the queue of client actions that the driver has not taken in yet.
const SAID: usize = 16;
/// The reason given to clients when the gateway's shutdown ends a fork.
const STOPPED: &str = "the gateway stops";

/// The settings a fork began with, as shown to clients.
#[derive(Debug, Serialize)]
pub struct ForkDescription {
    pub fork: Uuid,
    #[serde(serialize_with = "as_text")]
    pub agent: Name,
    pub at: u64,
    /// The user in whose name messages and approvals enter the fork.
    #[serde(serialize_with = "as_text")]
    pub user: Name,
    /// Number of calls and requests in flight at the cut.
    pub in_flight: usize,
    /// True if models are asked whenever the log has no answer.
    pub models: bool,
}

/// The settings, limits and current usage of a fork, as shown to clients.
#[derive(Debug, Serialize)]
pub struct ForkStatus<'h> {
    #[serde(flatten)]
    about: &'h ForkDescription,
    begun_at: Timestamp,
    /// Time of the last action by a client in the fork.
    spoken_at: Timestamp,
    idle_ms: u128,
    used: ForkUsage,
    limits: ForkUsage,
    /// The currency of the costs; none if no cost is shown.
    currency: Option<String>,
}

/// The parts of a hosted fork other than its driver.
pub struct HostedForkParts {
    pub about: ForkDescription,
    pub telling: ForkHistory,
    pub questions: ForkQuestions,
    pub limits: ForkLimits,
    /// `None` if no model is asked.
    pub models: Option<Arc<BudgetedModels>>,
    /// The users whose words are in the log messages the fork was cut from.
    pub holds: BTreeSet<String>,
}

/// Something that somebody does to it.
enum ClientAction {
    Message(String),
    Approval { action_id: Uuid, verdict: &'static str },
    Wait(SignedDuration),
}

/// As clients have it.
pub struct HostedFork {
    parts: HostedForkParts,
    clock: Clock,
    said: mpsc::Sender<ClientAction>,
    /// Messages that may still be said.
    left: AtomicU32,
    begun_at: Timestamp,
    spoken: LastActivity,
    end: CancellationToken,
    why: Arc<OnceLock<&'static str>>,
}

/// Drives it until it ends.
pub struct ForkDriver {
    fork: Fork,
    telling: ForkHistory,
    said: mpsc::Receiver<ClientAction>,
    user: Name,
    agent: Name,
    limits: ForkLimits,
    spoken: LastActivity,
    end: CancellationToken,
    why: Arc<OnceLock<&'static str>>,
}

impl HostedFork {
    pub fn new(parts: HostedForkParts, fork: Fork, ending: &CancellationToken) -> (Self, ForkDriver) {
        let (say, said) = mpsc::channel(SAID);
        let end = ending.child_token();
        let why = Arc::default();
        let spoken = LastActivity::now();
        let clock = fork.clock();
        let HostedForkParts { about: ForkDescription { user, agent, .. }, limits, telling, .. } = &parts;
        let driver = ForkDriver {
            fork,
            telling: telling.clone(),
            said,
            user: user.clone(),
            agent: agent.clone(),
            limits: *limits,
            spoken: spoken.clone(),
            end: end.clone(),
            why: Arc::clone(&why),
        };
        let left = AtomicU32::new(limits.messages);
        let begun_at = spoken.time();
        (Self { parts, clock, said: say, left, begun_at, spoken, end, why }, driver)
    }

    pub fn description(&self) -> &ForkDescription {
        &self.parts.about
    }

    /// Returns the fork's limits and its usage so far.
    pub fn status(&self) -> ForkStatus<'_> {
        let HostedForkParts { about, telling, limits, models, .. } = &self.parts;
        let spent = models.as_ref().map(|models| models.spending());
        let (cost, budget) = spent.as_ref().map(|spent| (spent.cost.clone(), spent.budget.clone())).unwrap_or_default();
        let used = ForkUsage {
            messages: limits.messages.saturating_sub(self.left.load(Ordering::Relaxed)),
            bytes: telling.bytes(),
            model_calls: spent.as_ref().map_or(0, |spent| spent.calls),
            cost,
        };
        ForkStatus {
            about,
            begun_at: self.begun_at,
            spoken_at: self.spoken.time(),
            idle_ms: limits.idle.as_millis(),
            used,
            limits: ForkUsage {
                messages: limits.messages,
                bytes: limits.bytes,
                model_calls: limits.model_calls.into(),
                cost: budget,
            },
            currency: spent.map(|spent| spent.currency),
        }
    }

    pub fn send_message(&self, text: String) -> Result<(), Problem> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let over =
            || format!("{} were said in this fork: fork again to say more", self.parts.limits.describe_messages());
        left.map_err(|_| Problem::conflict(over()))?;
        self.enqueue_action(ClientAction::Message(text))
    }

    pub fn approve(&self, action_id: Uuid, verdict: &'static str) -> Result<(), Problem> {
        self.enqueue_action(ClientAction::Approval { action_id, verdict })
    }

    /// Lets so much time pass, or what it takes until the next timer goes off.
    pub fn advance_clock(&self, time: Option<SignedDuration>) -> Result<(), Problem> {
        let until_next = || self.clock.next_timer().map(|at| at.duration_since(self.clock.now()));
        let none = "no timer is set in this fork: say how many seconds are to pass";
        let time = time.or_else(until_next).ok_or_else(|| Problem::conflict(none))?;
        self.enqueue_action(ClientAction::Wait(time.max(SignedDuration::ZERO)))
    }

    /// Answers a question with the result of its call; `None` fails the call as `locked`.
    pub fn answer_question(&self, question: u64, result: Option<CallResult>) -> Result<(), Problem> {
        self.spoken.touch();
        match self.parts.questions.answer(question, result) {
            true => Ok(()),
            false => Err(Problem::not_found("no call of this fork waits for an answer to this question")),
        }
    }

    /// Returns the entries after a place, waiting until there is one.
    pub async fn entries_after(&self, place: usize) -> HistoryPage {
        self.parts.telling.entries_after(place).await
    }

    /// Returns true if the fork contains words of this user.
    pub fn holds_words_of(&self, user: &Name) -> bool {
        self.parts.about.user == *user || self.parts.holds.contains(user.as_str())
    }

    pub fn began_before(&self, time: Timestamp) -> bool {
        self.begun_at < time
    }

    /// Ends it; the first reason is told.
    pub fn end(&self, why: &'static str) {
        let _ = self.why.set(why);
        self.end.cancel();
    }

    /// Waits until it has ended, and its place is free.
    pub async fn wait_until_ended(&self) {
        self.parts.telling.wait_until_closed().await;
    }

    fn enqueue_action(&self, said: ClientAction) -> Result<(), Problem> {
        self.spoken.touch();
        self.said.try_send(said).map_err(|_| {
            Problem::unavailable(
                "the fork has not taken in yet what was said before, or has ended; try again in a moment",
            )
        })
    }
}

/// A fork that has ended, which is yet to be told.
#[must_use]
pub struct EndedFork {
    telling: ForkHistory,
    why: String,
}

impl EndedFork {
    pub fn announce_end(self) {
        self.telling.close("fork.ended", &json!({ "why": self.why }));
    }
}

impl ForkDriver {
    pub async fn run(mut self) -> EndedFork {
        let why = self.drive().await;
        self.fork.stop().await;
        EndedFork { telling: self.telling, why }
    }

    /// Until it ends; says why.
    async fn drive(&mut self) -> String {
        loop {
            if self.telling.is_full() {
                return format!("more has happened in it than {}", self.limits.describe_bytes());
            }
            tokio::select! {
                biased;
                () = self.end.cancelled() => return (*self.why.get().unwrap_or(&STOPPED)).to_owned(),
                Some(said) = self.said.recv() => self.apply_action(said),
                happened = self.fork.next_event() => match happened {
                    Ok(happened) => self.record_happening(happened),
                    Err(error) => return log_failure(&error),
                },
                () = self.spoken.wait_for_idle(self.limits.idle) => {
                    return format!("nobody spoke in it for {}", self.limits.describe_idle());
                }
            }
        }
    }

    fn apply_action(&mut self, said: ClientAction) {
        let user = self.user.to_string();
        let agent = self.agent.to_string();
        match said {
            ClientAction::Message(text) => {
                let message = UserMessage { user, agent, text, ..Default::default() };
                self.fork.say(&self.user, message);
            }
            ClientAction::Approval { action_id, verdict } => {
                let action_id = action_id.to_string();
                let verdict = verdict.to_owned();
                let approval = UserApproval { user, agent, action_id, verdict, ..Default::default() };
                self.fork.approve(&self.user, approval);
            }
            ClientAction::Wait(time) => self.fork.advance(time),
        }
    }

    fn record_happening(&self, happened: ForkEvent) {
        match happened {
            ForkEvent::Record(record) => {
                event_json::events(&record).iter().for_each(|event| self.telling.append("message", event));
            }
            ForkEvent::Answered(told) => self.telling.append("fork.answered", &told),
            ForkEvent::AtRest => {
                let clock = self.fork.clock();
                self.telling.append("fork.at_rest", &json!({ "now": clock.now(), "next_timer": clock.next_timer() }));
            }
        }
    }
}

fn log_failure(error: &ForkError) -> String {
    tracing::error!(%error, "a fork has stopped by itself");
    error.to_string()
}

fn as_text<S: Serializer>(name: &Name, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}
