//! `kairo_core::bus::ledger`, on the log in memory: the same protocol, line by line.

use std::collections::{BTreeMap, VecDeque};

use kairo_core::{
    bus::{BusError, append::Outgoing},
    ids::Name,
    slots::Slots,
    subjects::Route,
};
use kairo_proto::Body;
use uuid::Uuid;

use crate::{
    flaw::Flaw,
    replica::{Own, unavailable},
};

/// Entries remembered of each agent's subject: few, so that forgetting them happens, too.
const REMEMBERED: usize = 3;
const RACES: u32 = 64;

pub struct Ledger {
    replica: Own,
    row: &'static Route,
    windows: Slots<Name, Option<Window>>,
}

pub enum Entered {
    Written,
    Already,
}

#[derive(Clone)]
pub struct Entry {
    pub sequence: u64,
    /// The replica that made it.
    pub by: String,
}

/// What is known of one agent's subject: every entry with a sequence in (`from`, `last`].
struct Window {
    from: u64,
    last: u64,
    entries: BTreeMap<Uuid, Entry>,
    order: VecDeque<(u64, Uuid)>,
}

impl Ledger {
    pub fn new(replica: &Own, row: &'static Route) -> Self {
        Self { replica: replica.clone(), row, windows: Slots::new(64) }
    }

    pub async fn enter(&self, agent: &Name, since: u64, event: &Outgoing) -> Result<Entered, BusError> {
        loop {
            match self.try_enter(agent, since, event).await {
                Ok(entered) => return Ok(entered),
                Err(error) => self.replica.patience(error)?,
            }
        }
    }

    async fn try_enter(&self, agent: &Name, since: u64, event: &Outgoing) -> Result<Entered, BusError> {
        let (actions, by) = entry(&event.body);
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        for _ in 0..RACES {
            let window = self.cover(agent, &mut slot, since).await?;
            if actions.iter().any(|action| window.entries.contains_key(action)) {
                return Ok(Entered::Already);
            }
            match self.replica.append(event, window.last).await {
                Ok(sequence) => {
                    window.add(sequence, by, &actions);
                    window.forget();
                    return Ok(Entered::Written);
                }
                Err(BusError::Conflict { .. }) => self.read_on(agent, window).await,
                Err(error) => return Err(error),
            }
        }
        Err(unavailable("entering a ledger"))
    }

    /// The entries about these actions above `since`.
    pub async fn entries(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<BTreeMap<Uuid, Entry>, BusError> {
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        let window = self.cover(agent, &mut slot, since).await?;
        self.read_on(agent, window).await;
        let found = actions.iter().filter_map(|id| Some((*id, window.entries.get(id)?.clone()))).collect();
        window.forget();
        Ok(found)
    }

    async fn cover<'w>(
        &self,
        agent: &Name,
        slot: &'w mut Option<Window>,
        since: u64,
    ) -> Result<&'w mut Window, BusError> {
        if slot.as_ref().is_none_or(|window| window.from > since) {
            let last = self.replica.last(&self.row.of(agent)).await?.map_or(0, |last| last.sequence);
            let (from, last_known) = (since.min(last), since.min(last));
            let mut window = Window { from, last: last_known, entries: BTreeMap::new(), order: VecDeque::new() };
            if last > since {
                self.read_on(agent, &mut window).await;
            }
            *slot = Some(window);
        }
        slot.as_mut().ok_or_else(|| unavailable("reading a ledger"))
    }

    async fn read_on(&self, agent: &Name, window: &mut Window) {
        for record in self.replica.read_subject(&self.row.of(agent), window.last).await {
            let (actions, by) = entry(&record.body);
            window.add(record.sequence, by, &actions);
            if self.replica.has(Flaw::ForgetfulLedger) {
                window.forget();
            }
        }
    }
}

impl Window {
    fn add(&mut self, sequence: u64, by: &str, actions: &[Uuid]) {
        self.last = self.last.max(sequence);
        for action in actions {
            self.entries.insert(*action, Entry { sequence, by: by.to_owned() });
            self.order.push_back((sequence, *action));
        }
    }

    /// Makes room, when nobody looks for anything among the entries.
    fn forget(&mut self) {
        while self.order.len() > REMEMBERED
            && let Some((sequence, action)) = self.order.pop_front()
        {
            self.from = self.from.max(sequence);
            if self.entries.get(&action).is_some_and(|entry| entry.sequence == sequence) {
                self.entries.remove(&action);
            }
        }
    }
}

fn entry(body: &Body) -> (Vec<Uuid>, &str) {
    let (ids, by): (Vec<&String>, &str) = match body {
        Body::ToolInvoke(invoke) => (invoke.actions.iter().map(|action| &action.action_id).collect(), &invoke.runner),
        Body::ToolResult(result) => (vec![&result.action_id], &result.runner),
        Body::ProcessSpawned(spawned) => (vec![&spawned.action_id], &spawned.supervisor),
        Body::ProcessCanceled(canceled) => (vec![&canceled.action_id], &canceled.supervisor),
        Body::ProcessExited(exited) => (vec![&exited.action_id], &exited.supervisor),
        _ => (Vec::new(), ""),
    };
    (ids.into_iter().filter_map(|id| Uuid::parse_str(id).ok()).collect(), by)
}
