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

pub use self::requests::QuestionResponder;

/// Questions that are open at once in one runner; more are declined.
const MAX_OPEN: usize = 256;

/// The kind of answer that a server wants.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionKind {
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
pub struct UserQuestion {
    pub id: Uuid,
    pub subject: Subject,
    pub message: String,
    pub kind: QuestionKind,
    pub asked_at: Timestamp,
    /// When it counts as not answered.
    pub until: Timestamp,
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum UserAnswer {
    /// With the fields of a form, or null after a visit.
    Accept(Value),
    Decline,
    /// Nobody answered, or the person wants the whole to end.
    Cancel,
}

/// The reason an answer was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerRefusal {
    /// No such question is open here, or it is not this person's.
    Unknown,
    /// The field that does not fit the schema, and the reason.
    Unfit(String),
}

struct UnansweredQuestion {
    question: UserQuestion,
    answer: oneshot::Sender<UserAnswer>,
}

/// Gives a question its id and its time.
type Entering = Box<dyn Fn() -> (Uuid, Timestamp) + Send + Sync>;

/// The open questions of one runner.
pub struct Questions {
    entering: Entering,
    patience: Duration,
    open: Mutex<BTreeMap<Uuid, UnansweredQuestion>>,
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "questions: {:?}", self.lock_open().keys())
    }
}

/// A question that is open until it is answered, its time is over, or this is dropped.
#[derive(Debug)]
pub struct QuestionHandle<'q> {
    questions: &'q Questions,
    id: Uuid,
    answered: oneshot::Receiver<UserAnswer>,
}

impl QuestionHandle<'_> {
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The question, as long as it is open.
    pub fn question(&self) -> Option<UserQuestion> {
        self.questions.lock_open().get(&self.id).map(|open| open.question.clone())
    }

    /// Waits for the answer.
    pub async fn wait_for_answer(mut self) -> UserAnswer {
        let answered = timeout(self.questions.patience, &mut self.answered).await;
        answered.map_or(UserAnswer::Cancel, |answer| answer.unwrap_or(UserAnswer::Cancel))
    }
}

impl Drop for QuestionHandle<'_> {
    fn drop(&mut self) {
        self.questions.lock_open().remove(&self.id);
    }
}

impl Questions {
    /// Questions that wait for so long.
    pub fn new(patience: Duration, entering: impl Fn() -> (Uuid, Timestamp) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { entering: Box::new(entering), patience, open: Mutex::default() })
    }

    /// Puts a question to a person; none when too many are open.
    pub fn ask_user(&self, subject: Subject, message: String, wanted: QuestionKind) -> Option<QuestionHandle<'_>> {
        let (id, asked_at) = (self.entering)();
        let patience = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
        let until = asked_at.checked_add(patience).unwrap_or(Timestamp::MAX);
        let question = UserQuestion { id, subject, message, kind: wanted, asked_at, until };
        let (answer, answered) = oneshot::channel();
        let mut open = self.lock_open();
        if open.len() >= MAX_OPEN {
            tracing::warn!(server = question.subject.server, "a question was declined: too many are open");
            return None;
        }
        open.insert(id, UnansweredQuestion { question, answer });
        Some(QuestionHandle { questions: self, id, answered })
    }

    /// Those that are open of one person.
    pub fn open_for_user(&self, user: &str) -> Vec<UserQuestion> {
        let open = self.lock_open();
        open.values().map(|open| &open.question).filter(|question| question.subject.user == user).cloned().collect()
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// When the question is not open, or the answer is not what it wants; then it stays open.
    pub fn accept_answer(&self, id: Uuid, user: &str, answer: UserAnswer) -> Result<(), AnswerRefusal> {
        let mut open = self.lock_open();
        let found = open.get(&id).filter(|open| open.question.subject.user == user).ok_or(AnswerRefusal::Unknown)?;
        let answer = match (answer, &found.question.kind) {
            (UserAnswer::Accept(content), QuestionKind::Form(schema)) => {
                UserAnswer::Accept(form::complete_answer(schema, content).map_err(AnswerRefusal::Unfit)?)
            }
            (UserAnswer::Accept(_), QuestionKind::Visit(_)) => UserAnswer::Accept(Value::Null),
            (answer, _) => answer,
        };
        let taken = open.remove(&id).ok_or(AnswerRefusal::Unknown)?;
        taken.answer.send(answer).map_err(|_| AnswerRefusal::Unknown)
    }

    fn lock_open(&self) -> MutexGuard<'_, BTreeMap<Uuid, UnansweredQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
