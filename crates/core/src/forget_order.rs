//! An order to forget a user, as it is kept beside the data keys as long as it is not carried out, and as a mark from then on.

use jiff::Timestamp;
use kairo_proto::words::ForgettingStep;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ids::Name, principal::Principal};

/// The purpose signed in an order's event.
pub const FORGET: &str = "user.forget";

/// An order, with how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForgetOrder {
    pub order_id: Uuid,
    pub user: Name,
    /// Its progress: a word of [`ForgettingStep`].
    pub step: String,
    /// The principal who gave the order; `None` if only a list shows that there was one.
    pub by_whom: Option<Principal>,
    /// The newest data key that is to be destroyed; 0 where the user has none.
    pub generation: u32,
    /// The last sequence of the log that may be sealed with it.
    pub through: u64,
    /// The agents that have anything of the user.
    pub agents: Vec<Name>,
    /// The generation of the read model that is built without them; 0 until it is asked for.
    pub read_model: i64,
    /// The generation of the search index that is built without them; 0 until it is asked for.
    pub search: i64,
    /// The reason it did not get further; empty if it did.
    pub reason: String,
    /// The gateway that carries it out, and the time until which the others leave it to that one.
    pub by: String,
    pub until: Timestamp,
}

impl ForgetOrder {
    /// Creates an order that is not carried out yet.
    pub fn new(order_id: Uuid, user: Name) -> Self {
        Self {
            order_id,
            user,
            step: ForgettingStep::Asked.as_str().to_owned(),
            by_whom: None,
            generation: 0,
            through: 0,
            agents: Vec::new(),
            read_model: 0,
            search: 0,
            reason: String::new(),
            by: String::new(),
            until: Timestamp::UNIX_EPOCH,
        }
    }

    /// When it was given, as its id says.
    pub fn given_at(&self) -> Timestamp {
        let (seconds, nanos) = self.order_id.get_timestamp().map_or((0, 0), |at| at.to_unix());
        let at = i64::try_from(seconds).ok().zip(i32::try_from(nanos).ok());
        at.and_then(|(seconds, nanos)| Timestamp::new(seconds, nanos).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The text that the event of the order is signed over, for [`FORGET`].
    pub fn to_signed_text(&self) -> String {
        format!("{} {}", self.order_id, self.user)
    }

    pub fn step(&self) -> ForgettingStep {
        ForgettingStep::from(self.step.as_str())
    }
}
