//! Delivering what a user says to the agent it is for.

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
    subjects::{Service, USER_UNDELIVERED},
};
use kairo_proto::v1::UserMessageUndelivered;

use crate::{
    config::RouterConfig,
    directory::Directory,
    inputs::{self, Input},
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

    async fn route(&self, record: &Record, input: Input) -> Result<(), Failure> {
        let outgoing = match &input.to {
            Err(reason) => undelivered(record, &input, reason)?,
            Ok(agent) if self.directory.exists(agent).await? => delivered(record, agent, &input),
            Ok(agent) => {
                let reason = format!("there is no agent named {:?}; define it with POST /v1/agents", agent.as_str());
                undelivered(record, &input, &reason)?
            }
        };
        self.bus.publish(&outgoing).await?;
        Ok(())
    }
}

impl Handler for Router {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let record = &delivery.record;
        match inputs::read(&record.body, record.envelope.id, &self.default_agent) {
            Some(input) => self.route(record, input).await?,
            None => return Err(Failure::Permanent(format!("nothing to do for a {}", record.body.type_name()))),
        }
        Ok(Settled::Done)
    }
}

fn delivered(record: &Record, agent: &Name, input: &Input) -> Outgoing {
    let (route, position) = input.route();
    let envelope = follow(record, position, Origin::User).in_thread(&input.thread_id);
    let envelope = Envelope { modality: record.envelope.modality, ..envelope };
    Outgoing::new(&route, agent, envelope, input.told.clone())
}

fn undelivered(record: &Record, input: &Input, reason: &str) -> Result<Outgoing, Failure> {
    let user = Name::parse(&input.user).map_err(|error| Failure::Permanent(format!("user: {error}")))?;
    let body = UserMessageUndelivered {
        message_id: input.id.clone(),
        user: input.user.clone(),
        agent: input.named.clone(),
        reason: reason.to_owned(),
    };
    Ok(Outgoing::new(&USER_UNDELIVERED, &user, follow(record, "user.undelivered", Origin::System), body))
}

/// What follows has the same id however often the message is delivered.
fn follow(record: &Record, position: &str, origin: Origin) -> Envelope {
    record.envelope.follow(ids::derived(record.envelope.id, position), Service::Router, origin, Timestamp::now())
}
