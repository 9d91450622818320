//! The log, read on as it grows, and what is still open in it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusConfig, BusError, NatsConfig},
    event_json,
    ids::{self, Name},
    record::{Raw, Record},
    subjects::{self, Service},
};
use kairo_proto::{
    Body,
    v1::{TaskScheduled, agent_action::Action, decided_event::Event},
};

use super::{Outcome, store::published_again};

/// Larger than any event may be.
pub const MAX_BODY: usize = 1_000_000;

/// An event, when the server stored it, and whether it is one that was published again.
#[derive(Clone, Debug)]
pub struct Entry {
    pub stored: Timestamp,
    pub record: Record,
    pub again: bool,
}

/// All that was read so far.
#[derive(Default)]
pub struct Log {
    pub entries: Vec<Entry>,
    /// What cannot be read, and why.
    pub unreadable: Vec<String>,
    pub open: Open,
    end: u64,
}

/// What was begun and has no end yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Messages, by their id; those that were joined to another are as good as answered: that one waits for both.
    pub answered: BTreeSet<String>,
    pub actions: BTreeSet<String>,
    pub processes: BTreeSet<String>,
    pub chains: BTreeSet<String>,
    /// Those that wait to be due or triggered for the first time, and those that are due again and again.
    pub tasks: BTreeSet<String>,
    repeated: BTreeSet<String>,
    ended: BTreeSet<String>,
}

impl Log {
    /// Reads what was written since. Returns the sequence of the last message.
    pub async fn read_on(&mut self, bus: &Bus) -> Result<u64, BusError> {
        let mut messages = Vec::new();
        bus.read_all("kairo.>", self.end, |raw| messages.push(raw)).await?;
        messages.iter().for_each(|raw| self.take_in(raw));
        Ok(self.end)
    }

    /// The sequence of the last message read.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn take_in(&mut self, raw: &Raw) {
        self.end = raw.sequence;
        // What other systems say need not be an event of Kairo's.
        if subjects::outside(&raw.subject).is_some() {
            return;
        }
        match raw.read(MAX_BODY) {
            Ok(record) => {
                self.open.see(&record);
                self.entries.push(Entry { stored: raw.stored, record, again: published_again(raw) });
            }
            Err(error) => self.unreadable.push(format!("{} on {}: {error}", raw.sequence, raw.subject)),
        }
    }

    /// A line an event, for people.
    pub fn text(&self) -> String {
        let mut lines = String::new();
        for entry in &self.entries {
            for event in event_json::events(&entry.record) {
                let again = if entry.again { " (again)" } else { "" };
                lines.push_str(&format!(
                    "{:>6}.{} {} {} {} corr={} id={}{again} {}\n",
                    event.sequence,
                    event.position,
                    entry.stored,
                    event.subject,
                    event.type_name,
                    event.correlation_id,
                    event.event_id,
                    event.payload
                ));
            }
        }
        lines
    }
}

impl Open {
    /// Chains and tasks.
    fn see_mind(&mut self, event: &Option<Event>) {
        match event {
            Some(Event::ChainStarted(chain)) if !self.ended.contains(&chain.chain_id) => {
                self.chains.insert(chain.chain_id.clone());
            }
            Some(Event::ChainEnded(chain)) => {
                self.chains.remove(&chain.chain_id);
                self.ended.insert(chain.chain_id.clone());
            }
            Some(Event::TaskScheduled(TaskScheduled { task: Some(task) })) if !self.ended.contains(&task.task_id) => {
                self.tasks.insert(task.task_id.clone());
                if task.r#type == "repeat" {
                    self.repeated.insert(task.task_id.clone());
                }
            }
            Some(Event::TaskFired(fired)) if !self.repeated.contains(&fired.task_id) => {
                self.tasks.remove(&fired.task_id);
                self.ended.insert(fired.task_id.clone());
            }
            Some(Event::TaskChanged(changed)) if changed.status == "canceled" => {
                self.tasks.remove(&changed.task_id);
                self.ended.insert(changed.task_id.clone());
            }
            _ => {}
        }
    }

    fn see(&mut self, record: &Record) {
        match &record.body {
            Body::AgentDecision(decision) => {
                for event in &decision.events {
                    if let Some(Event::Joined(joined)) = &event.event {
                        self.answered.insert(joined.message_id.clone());
                    }
                    self.see_mind(&event.event);
                    let Some(Event::Action(action)) = &event.event else { continue };
                    match &action.action {
                        Some(Action::Say(say)) if say.r#final && !say.message_id.is_empty() => {
                            self.answered.insert(say.message_id.clone());
                        }
                        Some(Action::ToolCall(_)) if !self.ended.contains(&event.event_id) => {
                            self.actions.insert(event.event_id.clone());
                        }
                        _ => {}
                    }
                }
            }
            Body::ToolResult(result) => {
                self.actions.remove(&result.action_id);
                self.ended.insert(result.action_id.clone());
            }
            Body::ProcessSpawned(process) if !self.ended.contains(&process.process_id) => {
                self.processes.insert(process.process_id.clone());
            }
            Body::ProcessExited(process) => {
                self.processes.remove(&process.process_id);
                self.ended.insert(process.process_id.clone());
            }
            _ => {}
        }
    }
}

/// A connection of our own to nats-server, which comes back by itself.
pub async fn connect(url: &str) -> Outcome<Bus> {
    let nats = NatsConfig { url: url.to_owned(), ..NatsConfig::default() };
    let instance = Name::parse(&format!("chaos-{}", ids::entering().simple()))?;
    let bus = Bus::connect(Service::Gateway, instance, &nats, &BusConfig::default()).await?;
    bus.find_log().await?;
    Ok(bus)
}
