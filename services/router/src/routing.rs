//! Delivering a user's message to the agent it is for.

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus,
        append::Outgoing,
        consume::{Delivery, Failure, Handler, Settled},
    },
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Record,
    subjects::{AGENT_MESSAGE, Service, USER_UNDELIVERED},
};
use kairo_proto::{
    Body,
    v1::{AgentMessage, UserMessage, UserMessageUndelivered},
};

use crate::{
    address::{self, Addressed},
    config::RouterConfig,
    directory::Directory,
};

pub struct Router {
    bus: Bus,
    default_agent: String,
    directory: Directory,
}

impl Router {
    pub fn new(bus: &Bus, config: &RouterConfig) -> Self {
        Self {
            bus: bus.clone(),
            default_agent: config.default_agent.clone(),
            directory: Directory::new(bus, config.known_agents),
        }
    }

    async fn route(&self, record: &Record, message: &UserMessage) -> Result<(), Failure> {
        let outgoing = match address::read(message, &self.default_agent) {
            Err(reason) => undelivered(record, message, &reason)?,
            Ok(to) if self.directory.exists(&to.agent).await? => delivered(record, message, to),
            Ok(to) => {
                let reason = format!("there is no agent named {:?}; define it with POST /v1/agents", to.agent.as_str());
                undelivered(record, message, &reason)?
            }
        };
        self.bus.publish(&outgoing).await?;
        Ok(())
    }
}

impl Handler for Router {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        match &delivery.record.body {
            Body::UserMessage(message) => self.route(&delivery.record, message).await?,
            other => return Err(Failure::Permanent(format!("nothing to do for a {}", other.type_name()))),
        }
        Ok(Settled::Done)
    }
}

fn delivered(record: &Record, message: &UserMessage, to: Addressed) -> Outgoing {
    let body = AgentMessage {
        message_id: ids::message_id(&message.message_id, record.envelope.id),
        user: message.user.clone(),
        text: to.text,
        thread_id: message.thread_id.clone(),
    };
    let envelope = follow(record, "agent.message", Origin::User).in_thread(&message.thread_id);
    Outgoing::new(&AGENT_MESSAGE, &to.agent, envelope, body)
}

fn undelivered(record: &Record, message: &UserMessage, reason: &str) -> Result<Outgoing, Failure> {
    let user = Name::parse(&message.user).map_err(|error| Failure::Permanent(format!("user: {error}")))?;
    let body = UserMessageUndelivered {
        message_id: ids::message_id(&message.message_id, record.envelope.id),
        user: message.user.clone(),
        agent: message.agent.clone(),
        reason: reason.to_owned(),
    };
    Ok(Outgoing::new(&USER_UNDELIVERED, &user, follow(record, "user.undelivered", Origin::System), body))
}

/// What follows has the same id however often the message is delivered.
fn follow(record: &Record, position: &str, origin: Origin) -> Envelope {
    record.envelope.follow(ids::derived(record.envelope.id, position), Service::Router, origin, Timestamp::now())
}
