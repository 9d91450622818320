//! Questions of MCP servers to people while a call waits (elicitation).
//!
//! A question lives as long as the call that waits for it, in the memory of the runner that carries the call out. The gateway
//! shows people the questions that are open and brings the answers ([`requests`]); what they say is checked and goes to the
//! server, into no event and no log. That there is a question, and how it ended, is progress of the call in the log.

mod form;
mod requests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::requests::Answering;

/// Questions that are open at once in one runner; more are declined.
const MAX_OPEN: usize = 256;

/// The kind of answer that a server wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Fields, by their JSON Schema.
    Form(Value),
    /// A visit of the person to this address; nothing here learns what they do there.
    Visit(String),
}

/// The call that a question belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub user: String,
    pub agent: String,
    pub thread_id: String,
    pub action_id: String,
    pub server: String,
}

/// A question to one person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: Uuid,
    pub subject: Subject,
    pub message: String,
    pub wanted: Wanted,
    pub asked_at: Timestamp,
    /// When it counts as not answered.
    pub until: Timestamp,
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// With the fields of a form, or null after a visit.
    Accept(Value),
    Decline,
    /// Nobody answered, or the person wants the whole to end.
    Cancel,
}

/// The reason an answer was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// No such question is open here, or it is not this person's.
    Unknown,
    /// The field that does not fit the schema, and the reason.
    Unfit(String),
}

struct Open {
    question: Question,
    answer: oneshot::Sender<Answer>,
}

/// Gives a question its id and its time.
type Entering = Box<dyn Fn() -> (Uuid, Timestamp) + Send + Sync>;

/// The open questions of one runner.
pub struct Questions {
    entering: Entering,
    patience: Duration,
    open: Mutex<BTreeMap<Uuid, Open>>,
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "questions: {:?}", self.open().keys())
    }
}

/// A question that is open until it is answered, its time is over, or this is dropped.
#[derive(Debug)]
pub struct Opened<'q> {
    questions: &'q Questions,
    id: Uuid,
    answered: oneshot::Receiver<Answer>,
}

impl Opened<'_> {
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The question, as long as it is open.
    pub fn question(&self) -> Option<Question> {
        self.questions.open().get(&self.id).map(|open| open.question.clone())
    }

    /// Waits for the answer.
    pub async fn answer(mut self) -> Answer {
        let answered = timeout(self.questions.patience, &mut self.answered).await;
        answered.map_or(Answer::Cancel, |answer| answer.unwrap_or(Answer::Cancel))
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.questions.open().remove(&self.id);
    }
}

impl Questions {
    /// Questions that wait for so long.
    pub fn new(patience: Duration, entering: impl Fn() -> (Uuid, Timestamp) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { entering: Box::new(entering), patience, open: Mutex::default() })
    }

    /// Puts a question to a person; none when too many are open.
    pub fn put(&self, subject: Subject, message: String, wanted: Wanted) -> Option<Opened<'_>> {
        let (id, asked_at) = (self.entering)();
        let patience = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
        let until = asked_at.checked_add(patience).unwrap_or(Timestamp::MAX);
        let question = Question { id, subject, message, wanted, asked_at, until };
        let (answer, answered) = oneshot::channel();
        let mut open = self.open();
        if open.len() >= MAX_OPEN {
            tracing::warn!(server = question.subject.server, "a question was declined: too many are open");
            return None;
        }
        open.insert(id, Open { question, answer });
        Some(Opened { questions: self, id, answered })
    }

    /// Those that are open of one person.
    pub fn of(&self, user: &str) -> Vec<Question> {
        let open = self.open();
        open.values().map(|open| &open.question).filter(|question| question.subject.user == user).cloned().collect()
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// When the question is not open, or the answer is not what it wants; then it stays open.
    pub fn answer(&self, id: Uuid, user: &str, answer: Answer) -> Result<(), Refused> {
        let mut open = self.open();
        let found = open.get(&id).filter(|open| open.question.subject.user == user).ok_or(Refused::Unknown)?;
        let answer = match (answer, &found.question.wanted) {
            (Answer::Accept(content), Wanted::Form(schema)) => {
                Answer::Accept(form::filled(schema, content).map_err(Refused::Unfit)?)
            }
            (Answer::Accept(_), Wanted::Visit(_)) => Answer::Accept(Value::Null),
            (answer, _) => answer,
        };
        let taken = open.remove(&id).ok_or(Refused::Unknown)?;
        taken.answer.send(answer).map_err(|_| Refused::Unknown)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Uuid, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
