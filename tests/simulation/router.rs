//! router: the real `inputs` and `address`, and the protocol of `routing.rs`.

use kairo_core::{
    bus::{
        append::Outgoing,
        consume::{Delivery, Failure, Settled},
    },
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{AGENT_DEFINED, Service, USER_UNDELIVERED},
};
use kairo_proto::v1::UserMessageUndelivered;
use kairo_router::inputs::{self, Input};
use uuid::Uuid;

use crate::{flaw::Flaw, replica::Own};

pub struct Router {
    pub replica: Own,
}

impl Router {
    pub async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let record = &delivery.record;
        let Some(input) = inputs::read(&record.body, record.envelope.id, "default") else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", record.body.type_name())));
        };
        let outgoing = match &input.to {
            Ok(agent) if self.replica.exists(&AGENT_DEFINED.of(agent)).await => {
                let (route, position) = input.route();
                let envelope = self.follow(delivery, position, Origin::User).in_thread(&input.thread_id);
                Outgoing::new(&route, agent, envelope, input.told.clone())
            }
            Ok(_) => self.undelivered(delivery, &input, "there is no such agent")?,
            Err(reason) => self.undelivered(delivery, &input, reason)?,
        };
        self.replica.publish(&outgoing).await?;
        Ok(Settled::Done)
    }

    fn undelivered(&self, delivery: &Delivery, input: &Input, reason: &str) -> Result<Outgoing, Failure> {
        let user = Name::parse(&input.user).map_err(|error| Failure::Permanent(error.to_string()))?;
        let body = UserMessageUndelivered {
            message_id: input.id.clone(),
            user: input.user.clone(),
            agent: input.named.clone(),
            reason: reason.to_owned(),
        };
        let envelope = self.follow(delivery, "user.undelivered", Origin::System);
        Ok(Outgoing::new(&USER_UNDELIVERED, &user, envelope, body))
    }

    /// What follows has the same id however often the message is delivered.
    fn follow(&self, delivery: &Delivery, position: &str, origin: Origin) -> Envelope {
        let cause = &delivery.record.envelope;
        let world = self.replica.world.borrow();
        let id = match world.has(Flaw::FreshIds) {
            true => Uuid::from_u128(u128::from(world.chance.borrow_mut().next())),
            false => ids::derived(cause.id, position),
        };
        cause.follow(id, Service::Router, origin, world.now())
    }
}
