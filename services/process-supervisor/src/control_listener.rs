//! Hearing what others want of the processes that run here.
//!
//! Orders stand in the log. Questions come as core NATS requests, to this supervisor by name; every one gets an answer. Late
//! listeners ask for the end of what an agent's processes wrote. Where the readers of the log know no orders, they are
//! questions, too, and a stop is one to whichever supervisor is given it.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use kairo_core::{
    bus::{
        Bus, BusError,
        orders::{AgentToolOrder, OrderFollower},
        port::{LiveMessage, LiveSubscription},
    },
    ids::Name,
    subjects::{SUPERVISORS_CONTROL, TAILS, control_of},
};
use kairo_proto::v1::{ProcessAnswer, ProcessRequest, tool_order};
use prost::Message as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::request_handler::{RequestHandler, refused_answer};

/// Questions dealt with at once, as a stop is answered when it is over. More are refused.
const QUESTIONS: usize = 1_024;
/// The longest time for pending answers when the service stops.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Signal and write orders that are carried out at once; more wait. Stop orders never wait.
const ORDERS: usize = 1_024;

/// Answers and carries out orders until it is dropped or finished.
pub struct ControlListener {
    listening: AbortOnDropHandle<()>,
    following: AbortOnDropHandle<()>,
    answers: TaskTracker,
}

impl ControlListener {
    pub async fn start(requests: RequestHandler, orders: OrderFollower) -> Result<Self, BusError> {
        let bus = requests.bus.clone();
        let requests = Arc::new(requests);
        let own = bus.subscribe(control_of(bus.instance.as_str())).await?;
        let any = bus.subscribe_shared(SUPERVISORS_CONTROL).await?;
        let tails = bus.subscribe(TAILS).await?;
        let answers = TaskTracker::new();
        let listening = serve_questions(requests.clone(), stream::select(own, any), tails, answers.clone());
        let following = follow(requests, orders, answers.clone());
        let listening = bus.spawn(listening);
        let following = bus.spawn(following);
        Ok(Self { listening: AbortOnDropHandle::new(listening), following: AbortOnDropHandle::new(following), answers })
    }

    /// Takes no more questions and orders, and gives the answers that are due.
    pub async fn finish(self) {
        drop((self.listening, self.following));
        self.answers.close();
        if timeout(LAST_WORDS, self.answers.wait()).await.is_err() {
            tracing::warn!(left = self.answers.len(), "questions were left unanswered");
        }
    }
}

async fn follow(requests: Arc<RequestHandler>, orders: OrderFollower, answers: TaskTracker) {
    let bus = requests.bus.clone();
    let room = Arc::new(Semaphore::new(ORDERS));
    let following = orders.follow(|order| {
        if requests.concerns(&order) {
            // Each by a task of its own: a process may be slow to read.
            bus.spawn(answers.track_future(carry_out_with_permit(requests.clone(), order, room.clone())));
        }
    });
    following.await;
}

async fn carry_out_with_permit(requests: Arc<RequestHandler>, order: AgentToolOrder, room: Arc<Semaphore>) {
    let is_stop = matches!(order.body.order, Some(tool_order::Order::Stop(_)));
    let _room = if is_stop { None } else { room.acquire_owned().await.ok() };
    requests.carry_out(&order).await;
}

async fn serve_questions(
    requests: Arc<RequestHandler>,
    mut questions: impl Stream<Item = LiveMessage> + Unpin,
    mut tails: LiveSubscription,
    answers: TaskTracker,
) {
    let bus = requests.bus.clone();
    let room = Arc::new(Semaphore::new(QUESTIONS));
    loop {
        // Each is dealt with by a task of its own: a stop takes its time.
        tokio::select! {
            biased;
            Some(question) = questions.next() => {
                let room = room.clone().try_acquire_owned().ok();
                bus.spawn(answers.track_future(answer_question(requests.clone(), question, room)));
            }
            Some(question) = tails.next() => {
                let room = room.clone().try_acquire_owned().ok();
                bus.spawn(answers.track_future(repeat_tails(requests.clone(), question, room)));
            }
            else => return,
        }
    }
}

async fn answer_question(requests: Arc<RequestHandler>, question: LiveMessage, room: Option<OwnedSemaphorePermit>) {
    let Some(reply) = question.reply else {
        tracing::debug!(subject = %question.subject, "a question without a reply subject was passed over");
        return;
    };
    let answer = match ProcessRequest::decode(question.payload) {
        _ if room.is_none() => refused_answer("this supervisor is asked too much at once; ask again in a moment"),
        Ok(request) => requests.answer(request).await,
        Err(error) => refused_answer(&format!("this is no ProcessRequest: {error}")),
    };
    send_answer(&requests.bus, &reply, answer).await;
}

async fn send_answer(bus: &Bus, reply: &str, answer: ProcessAnswer) {
    if let Err(error) = bus.send_live(reply, answer.encode_to_vec()).await {
        tracing::debug!(%error, "an answer went nowhere");
    }
}

/// The agent is the one that the subject names.
async fn repeat_tails(requests: Arc<RequestHandler>, question: LiveMessage, room: Option<OwnedSemaphorePermit>) {
    let agent = question.subject.split('.').nth(2).and_then(|agent| Name::parse(agent).ok());
    let (Some(reply), Some(agent), Some(_room)) = (question.reply, agent, room) else {
        tracing::debug!(subject = %question.subject, "a request for a tail was passed over");
        return;
    };
    for process in requests.registry.processes_of(&agent) {
        if let Some(live) = &process.live {
            live.repeat_tail(&reply).await;
        }
    }
}
