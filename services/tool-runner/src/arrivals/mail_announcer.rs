//! Tracks which mails have an event in the log, and writes the missing events.
//!
//! An event's id is made from the agent and the mail's id. It is written under the guard of its subject, by somebody who
//! has read all that stands there, so no mail has two.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use kairo_core::bus::append::OutgoingEvent;
use kairo_core::bus::consume::backoff_delay;
use kairo_core::bus::{Bus, BusError};
use kairo_core::envelope::{Envelope, Origin};
use kairo_core::ids::{self, Name};
use kairo_core::record::RawMessage;
use kairo_core::subjects::{EMAIL_RECEIVED, Service};
use kairo_proto::v1::EmailReceived;
use tokio::time::sleep;
use uuid::Uuid;

use super::event::Arrival;

/// Times another replica may be faster before the mail is left to be tried again later.
const RACES: u64 = 16;
/// The header that an event's id is in.
const ID: &str = "ce-id";

pub struct MailAnnouncer {
    bus: Bus,
    agents: BTreeMap<Name, AnnouncedMailIds>,
}

/// All that stands on an agent's subject up to `last`: 16 bytes for every mail the agent ever got.
#[derive(Default)]
struct AnnouncedMailIds {
    last: u64,
    ids: HashSet<Uuid>,
}

impl MailAnnouncer {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), agents: BTreeMap::new() }
    }

    /// Returns true if a mail is known to have an event; only [`MailAnnouncer::announce`] can tell that it has none.
    pub fn has_announced(&self, agent: &Name, email_id: &str) -> bool {
        self.agents.get(agent).is_some_and(|known| known.ids.contains(&event_id(agent, email_id)))
    }

    /// Reads what others have written.
    pub async fn catch_up(&mut self, agent: &Name) -> Result<(), BusError> {
        let known = self.agents.entry(agent.clone()).or_default();
        let subject = EMAIL_RECEIVED.of_owner(agent);
        let after = known.last;
        let take = |raw: RawMessage| {
            known.last = known.last.max(raw.sequence);
            known.ids.extend(raw.header(ID).and_then(|id| Uuid::parse_str(id).ok()));
        };
        self.bus.read_all(&subject, after, take).await
    }

    /// Writes the event of a mail, and says whether it was this that did.
    pub async fn announce(&mut self, agent: &Name, email_id: &str, arrival: Arrival) -> Result<bool, BusError> {
        let id = event_id(agent, email_id);
        let mut event = event(agent, id, arrival, self.bus.now());
        for attempt in 1..=RACES {
            if !self.agents.contains_key(agent) {
                self.catch_up(agent).await?;
            }
            let known = self.agents.entry(agent.clone()).or_default();
            if known.ids.contains(&id) {
                return Ok(false);
            }
            match self.bus.append_with_retry(&event, known.last).await {
                Ok(written) => {
                    known.last = written.sequence;
                    known.ids.insert(id);
                    return Ok(true);
                }
                Err(BusError::Conflict { .. }) => {
                    self.catch_up(agent).await?;
                    // The server that answered may be behind the one that refused.
                    sleep(backoff_delay(&self.bus.limits, attempt)).await;
                }
                Err(BusError::TooLarge { size }) => match shorten_event(event) {
                    Some(shorter) => event = shorter,
                    None => return Err(BusError::TooLarge { size }),
                },
                Err(error) => return Err(error),
            }
        }
        Err(BusError::Unavailable { doing: "announcing a mail", source: "others were faster again and again".into() })
    }
}

fn event_id(agent: &Name, email_id: &str) -> Uuid {
    ids::from_parts("email", &[agent.as_str(), email_id])
}

fn event(agent: &Name, id: Uuid, arrival: Arrival, now: Timestamp) -> OutgoingEvent {
    let entering = Envelope::from_outside(id, Service::ToolRunner, Origin::System, now);
    OutgoingEvent::new(&EMAIL_RECEIVED, agent, Envelope { tags: arrival.tags, ..entering }, arrival.body)
}

/// Without the texts that may be long; none when there are none any more.
fn shorten_event(mut event: OutgoingEvent) -> Option<OutgoingEvent> {
    let kairo_proto::Body::EmailReceived(mail) = &event.body else { return None };
    if mail.body.is_empty() && mail.to.is_empty() {
        return None;
    }
    let mail = EmailReceived { body: String::new(), to: Vec::new(), ..mail.clone() };
    event.body = mail.into();
    event.envelope.tags = vec!["truncated".to_owned()];
    Some(event)
}
