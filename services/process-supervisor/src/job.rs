//! An invoke, and the events that follow from it.

use std::sync::{Mutex, PoisonError};

use kairo_core::{
    bus::{Bus, append::OutgoingEvent},
    envelope::{Envelope, Origin},
    event_json::invocation_id,
    ids::Name,
    record::Record,
    sharing::{QuotaHolder, permit_pool::Permit},
    subjects::{PROCESS_EXITED, PROCESS_SPAWNED, Service},
};
use uuid::Uuid;

use crate::{
    action_plan::RequestedProcess,
    events::{self, ProcessEnding, exited_id, spawned_id},
    ledgers::LedgerTarget,
    protocol::Spec,
};

/// An invoke that is worked on.
pub struct Job<'a> {
    pub agent: Name,
    pub invoke: &'a Record,
    /// The decision that asked for it: nothing about its actions stands in the log up to here. Not the invoke's own
    /// sequence: the one delivered may be a copy that somebody published again.
    pub since: u64,
    /// The replica that works on it.
    pub bus: &'a Bus,
    /// Room for one process, for whichever action takes it.
    room: Mutex<Option<Permit>>,
}

impl<'a> Job<'a> {
    pub fn new(agent: Name, invoke: &'a Record, since: u64, bus: &'a Bus) -> Self {
        Self { agent, invoke, since, bus, room: Mutex::default() }
    }

    /// Returns the user or agent whose share of the concurrent processes this one counts against.
    pub fn holder(&self, asked: &RequestedProcess) -> QuotaHolder {
        QuotaHolder::on_behalf(asked.user.as_deref(), self.agent.as_str())
    }

    pub fn give_permit(&mut self, room: Permit) {
        self.room = Mutex::new(Some(room));
    }

    pub fn take_permit(&self) -> Option<Permit> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn target(&self, asked: &RequestedProcess) -> LedgerTarget<'_> {
        LedgerTarget { agent: &self.agent, action: asked.action, after: self.since }
    }

    /// That the process of an action exists.
    pub fn spawned_event(&self, asked: &RequestedProcess, pid: u32, spec: &Spec) -> OutgoingEvent {
        let envelope = self.envelope(asked, spawned_id(asked.action), invocation_id(asked.action));
        let body = events::spawned_body(asked, self.since, self.bus.instance.as_str(), pid, spec);
        OutgoingEvent::new(&PROCESS_SPAWNED, &self.agent, envelope, body)
    }

    /// Builds the event that ends the process of an action; it follows from the event `because`.
    pub fn exited_event(
        &self,
        asked: &RequestedProcess,
        because: Uuid,
        program: String,
        end: ProcessEnding,
    ) -> OutgoingEvent {
        let envelope = self.envelope(asked, exited_id(asked.action), because);
        let body = events::exited_body(asked, self.since, self.bus.instance.as_str(), program, end);
        OutgoingEvent::new(&PROCESS_EXITED, &self.agent, envelope, body)
    }

    fn envelope(&self, asked: &RequestedProcess, id: Uuid, because: Uuid) -> Envelope {
        let cause = &self.invoke.envelope;
        let envelope = cause.follow_up(id, Service::ProcessSupervisor, Origin::System, self.bus.now());
        Envelope { causation_id: Some(because), ..envelope }.with_thread(&asked.thread_id)
    }
}
