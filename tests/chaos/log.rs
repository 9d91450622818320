//! The log, read on as it grows, and what is still open in it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusConfig, BusError},
    event_json,
    ids::{self, Name},
    record::{RawMessage, Record},
    subjects::{self, Service},
};
use kairo_proto::{
    About, Decided,
    about::{Agent, Chain, Process, Task, Thread, Tool, Turn},
    v1::{self, DecidedEvent, TaskChanged, TaskFired, agent_action::Action, decided_event::Event},
    words::{RequestKind, ThreadKind},
};

use kairo_local::Login;

use super::{Outcome, store::published_again};
use crate::login;

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
    /// Messages that cannot be read, and the reasons.
    pub unreadable: Vec<String>,
    pub open: Open,
    end: u64,
}

/// Work that was begun and has no end yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Messages, by their id; those that were joined to another are as good as answered: that one waits for both.
    pub answered: BTreeSet<String>,
    pub actions: BTreeSet<String>,
    pub processes: BTreeSet<String>,
    pub chains: BTreeSet<String>,
    /// Those that wait to be due or triggered for the first time, and those that are due again and again.
    pub tasks: BTreeSet<String>,
    /// Threads of work.
    pub sessions: BTreeSet<String>,
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

    fn take_in(&mut self, raw: &RawMessage) {
        self.end = raw.sequence;
        // What other systems say need not be an event of Kairo's.
        if subjects::trigger_of(&raw.subject).is_some() {
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
    fn see_chain(&mut self, chain: Chain<'_>) {
        match chain {
            Chain::Started(chain) => self.chains.extend(self.is_open(&chain.chain_id)),
            Chain::Ended(chain) => {
                self.chains.remove(&chain.chain_id);
                self.ended.insert(chain.chain_id.clone());
            }
            Chain::ApprovalRequested(_) | Chain::StepEnded(_) => {}
        }
    }

    fn see_task(&mut self, task: Task<'_>) {
        match task {
            Task::Scheduled(scheduled) => {
                // Nobody waits for what a lead does next for its mission.
                let counts = |task: &&v1::Task| !self.ended.contains(&task.task_id) && !task.is_next_run;
                let Some(task) = scheduled.task.as_ref().filter(counts) else { return };
                self.tasks.insert(task.task_id.clone());
                if task.r#type == "repeat" {
                    self.repeated.insert(task.task_id.clone());
                }
            }
            Task::Fired(fired) if self.repeated.contains(&fired.task_id) => {}
            Task::Fired(TaskFired { task_id, .. }) => self.end_task(task_id),
            Task::Changed(TaskChanged { task_id, status, .. }) => {
                if status == "canceled" {
                    self.end_task(task_id);
                }
            }
            Task::Started(_) => {}
            Task::Ended(ended) => self.end_task(&ended.task_id),
        }
    }

    fn end_task(&mut self, task_id: &str) {
        self.tasks.remove(task_id);
        self.ended.insert(task_id.to_owned());
    }

    /// The id, unless what it is the id of has ended: an end may be read first.
    fn is_open(&self, id: &str) -> Option<String> {
        (!self.ended.contains(id)).then(|| id.to_owned())
    }

    fn see_decided(&mut self, event: &DecidedEvent) {
        match event.event.as_ref().map(Event::about) {
            Some(Decided::Turn(Turn::Joined(joined))) => _ = self.answered.insert(joined.message_id.clone()),
            Some(Decided::Turn(Turn::Action(action))) => match &action.action {
                Some(Action::Say(say)) => {
                    let answers = say.r#final && !say.message_id.is_empty();
                    self.answered.extend(answers.then(|| say.message_id.clone()));
                }
                Some(Action::ToolCall(_)) => self.actions.extend(self.is_open(&event.event_id)),
                Some(Action::Ask(ask)) => match ask.kind_word() {
                    RequestKind::Work | RequestKind::Call | RequestKind::Think => {
                        self.actions.extend(self.is_open(&event.event_id));
                    }
                    RequestKind::Cancel | RequestKind::Pause | RequestKind::Resume | RequestKind::Unknown(_) => {}
                },
                None => {}
            },
            Some(Decided::Chain(chain)) => self.see_chain(chain),
            Some(Decided::Task(task)) => self.see_task(task),
            Some(Decided::Turn(Turn::Thought(_) | Turn::Failed(_) | Turn::Goal(_) | Turn::Reflected(_))) => {}
            Some(Decided::Turn(Turn::Briefed(_) | Turn::TeamChanged(_) | Turn::Answered(_) | Turn::Broadcast(_))) => {}
            Some(Decided::Turn(Turn::SubmoduleChanged(_) | Turn::SubmoduleFailed(_) | Turn::SubmoduleAsked(_))) => {}
            Some(Decided::Thread(Thread::Created(thread)))
                if matches!(thread.kind_word(), ThreadKind::Work | ThreadKind::Request) =>
            {
                self.sessions.extend(self.is_open(&thread.thread_id));
            }
            Some(Decided::Thread(Thread::Completed(thread))) => {
                self.sessions.remove(&thread.thread_id);
                self.ended.insert(thread.thread_id.clone());
            }
            Some(Decided::Thread(_) | Decided::Memory(_) | Decided::State(_)) | None => {}
        }
    }

    fn see(&mut self, record: &Record) {
        match record.body.about() {
            About::Decision(decision) => decision.events.iter().for_each(|event| self.see_decided(event)),
            About::Agent(Agent::Answer(answer)) => {
                self.actions.remove(&answer.request_id);
                self.ended.insert(answer.request_id.clone());
            }
            About::Tool(Tool::Result(result)) => {
                self.actions.remove(&result.action_id);
                self.ended.insert(result.action_id.clone());
            }
            About::Process(Process::Spawned(process)) => self.processes.extend(self.is_open(&process.process_id)),
            About::Process(Process::Exited(process)) => {
                self.processes.remove(&process.process_id);
                self.ended.insert(process.process_id.clone());
            }
            About::Tool(Tool::Invoke(_) | Tool::Order(_) | Tool::Progress(_)) => {}
            About::Process(Process::Progress(_) | Process::Canceled(_) | Process::Reply(_)) => {}
            About::User(_) | About::Agent(_) | About::Decided(_) | About::Outside(_) => {}
            About::System(_) | About::Live(_) => {}
        }
    }
}

/// A connection of our own to nats-server, which comes back by itself.
pub async fn connect(login: &Login) -> Outcome<Bus> {
    let nats = login::config(login);
    let instance = Name::parse(&format!("chaos-{}", ids::generate().simple()))?;
    let bus = Bus::connect(Service::Gateway, instance, &nats, &BusConfig::default()).await?;
    bus.find_log().await?;
    Ok(bus)
}
