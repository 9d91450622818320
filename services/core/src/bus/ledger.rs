//! The log as a ledger: at most one entry about an action on a subject, for ever, with any number of writers.
//!
//! Every entry is written under the guard of its exact subject. Before it is written, all entries that could be about
//! the same action are looked at: those above a sequence that is certainly older, such as that of the decision which
//! asked for the action. What was looked at is remembered, so in the ordinary case nothing is read at all.
//!
//! A human's consent to an action is used up by the entry that begins it, or that says that nobody will: another action cannot be
//! entered on it.

use std::collections::{BTreeMap, VecDeque};

use kairo_proto::{
    About, Body,
    about::{Process, Tool},
    v1::{ToolInvocation, ToolInvoke},
};
use uuid::Uuid;

use super::{Bus, BusError, append::Outgoing, patience::Patience};
use crate::{
    consent,
    ids::{self, Name},
    keyed_locks::KeyedLocks,
    record::Record,
    subjects::Route,
};

/// Entries remembered of each agent's subject.
const REMEMBERED: usize = 1_024;
/// Agents remembered.
const AGENTS: usize = 50_000;
/// The executor an entry names for an action that was canceled before it began.
pub const NOBODY: &str = "nobody";
/// Times another writer may be faster before the entry is left to be tried again later.
const RACES: u32 = 64;

/// The ledger on one row of the table, for every agent.
pub struct Ledger {
    bus: Bus,
    row: &'static Route,
    windows: KeyedLocks<Name, Option<Window>>,
}

/// The outcome of an attempt to write an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    Written {
        sequence: u64,
    },
    /// There are entries about these actions, or on these consents, already; nothing was written.
    Already(Vec<Uuid>),
}

/// An entry about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub sequence: u64,
    /// The replica that made it.
    pub by: String,
}

/// The known part of one agent's subject: every entry with a sequence in (`from`, `last`].
#[derive(Debug, PartialEq)]
struct Window {
    from: u64,
    last: u64,
    entries: BTreeMap<Uuid, Entry>,
    order: VecDeque<(u64, Uuid)>,
}

impl Ledger {
    pub fn new(bus: &Bus, row: &'static Route) -> Self {
        Self { bus: bus.clone(), row, windows: KeyedLocks::new(AGENTS) }
    }

    /// Writes `event` unless there is an entry above sequence `since` about one of its actions, or one on a consent that it begins
    /// an action on ([`consent::used`]). While the server is
    /// away it keeps trying for as long as `hold_ms` says; that an earlier try got there is success, too, whoever has
    /// looked at the ledger since.
    pub async fn enter(&self, agent: &Name, since: u64, event: &Outgoing) -> Result<Entered, BusError> {
        let mut patience = Patience::new(&self.bus.limits);
        loop {
            match self.try_enter(agent, since, event).await {
                Ok(entered) => return Ok(entered),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    async fn try_enter(&self, agent: &Name, since: u64, event: &Outgoing) -> Result<Entered, BusError> {
        let Content { actions, consents, by } = content(&event.body);
        let needed: Vec<Uuid> =
            actions.iter().chain(consents.iter().filter(|it| it.begins).map(|it| &it.id)).copied().collect();
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        for _ in 0..RACES {
            let window = self.cover(agent, &mut slot, since).await?;
            let already: Vec<Uuid> = needed.iter().copied().filter(|id| window.entries.contains_key(id)).collect();
            if let Some(entry) = already.first().and_then(|id| window.entries.get(id)) {
                let sequence = entry.sequence;
                window.forget();
                return Ok(match self.is_the_same(event, sequence).await? {
                    true => Entered::Written { sequence },
                    false => Entered::Already(already),
                });
            }
            match self.bus.append(event, window.last).await {
                Ok(written) => {
                    window.add(written.sequence, by, &actions, &consents);
                    window.forget();
                    return Ok(Entered::Written { sequence: written.sequence });
                }
                Err(BusError::Conflict { .. }) => self.read_on(agent, window).await?,
                Err(error) => return Err(error),
            }
        }
        Err(BusError::Unavailable { doing: "entering a ledger", source: "others were faster again and again".into() })
    }

    /// Returns true if `event` is the message at `sequence`: it was stored but its acknowledgement was lost, and then
    /// another task of this replica read the ledger or wrote after it, so that [`Bus::append`] does not find it last.
    /// The id alone does not identify it, since replicas at the same work derive the same one; the time in the envelope
    /// does.
    async fn is_the_same(&self, event: &Outgoing, sequence: u64) -> Result<bool, BusError> {
        let record = self.bus.at(sequence).await?;
        let same = record.envelope.to_headers() == event.envelope.to_headers();
        Ok(same && record.body.encode() == event.body.encode())
    }

    /// The entries about these actions, or on these consents, above `since`, as the log stands now.
    pub async fn entries(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<BTreeMap<Uuid, Entry>, BusError> {
        self.look(agent, since, |window| window.about(actions)).await
    }

    /// Like [`Ledger::entries`], but misses nothing that was written before it was asked for, whichever server answers:
    /// the stream's leader says how far the subject goes. An error while the server that answers is behind.
    pub async fn entries_for_sure(
        &self,
        agent: &Name,
        since: u64,
        actions: &[Uuid],
    ) -> Result<BTreeMap<Uuid, Entry>, BusError> {
        let last = self.bus.last_at_leader(&self.row.of(agent)).await?;
        let sure = |window: &Window| (window.last >= last).then(|| window.about(actions));
        let behind = || BusError::Unavailable { doing: "reading a ledger", source: "the server is behind".into() };
        self.look(agent, since, sure).await?.ok_or_else(behind)
    }

    /// All entries above `since`, as the log stands now.
    pub async fn all(&self, agent: &Name, since: u64) -> Result<BTreeMap<Uuid, Entry>, BusError> {
        self.look(agent, since, |window| {
            let above = window.entries.iter().filter(|(_, entry)| entry.sequence > since);
            above.map(|(id, entry)| (*id, entry.clone())).collect()
        })
        .await
    }

    /// The record that is the entry about `action` above `since`, if there is one.
    pub async fn record(&self, agent: &Name, since: u64, action: Uuid) -> Result<Option<Record>, BusError> {
        match self.entries(agent, since, &[action]).await?.get(&action) {
            Some(entry) => Ok(Some(self.bus.at(entry.sequence).await?)),
            None => Ok(None),
        }
    }

    /// Looks at all there is above `since` as the log stands now.
    async fn look<T>(&self, agent: &Name, since: u64, look: impl FnOnce(&Window) -> T) -> Result<T, BusError> {
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        let window = self.cover(agent, &mut slot, since).await?;
        self.read_on(agent, window).await?;
        let seen = look(window);
        window.forget();
        Ok(seen)
    }

    /// The window, reaching down to `since`.
    async fn cover<'w>(
        &self,
        agent: &Name,
        slot: &'w mut Option<Window>,
        since: u64,
    ) -> Result<&'w mut Window, BusError> {
        if slot.as_ref().is_none_or(|window| window.from > since) {
            let last = self.bus.last(&self.row.of(agent)).await?.map_or(0, |last| last.sequence);
            let mut window = Window {
                from: since.min(last),
                last: since.min(last),
                entries: BTreeMap::new(),
                order: VecDeque::new(),
            };
            if last > since {
                self.read_on(agent, &mut window).await?;
            }
            *slot = Some(window);
        }
        slot.as_mut().ok_or_else(|| BusError::Unavailable { doing: "reading a ledger", source: "it vanished".into() })
    }

    async fn read_on(&self, agent: &Name, window: &mut Window) -> Result<(), BusError> {
        let limit = self.bus.limits.max_body_bytes;
        let after = window.last;
        self.bus
            .read_all(&self.row.of(agent), after, |raw| {
                // What cannot be read is no entry, but the guard counts it.
                let record = raw.read(limit).ok();
                let Content { actions, consents, by } = record.as_ref().map(|it| content(&it.body)).unwrap_or_default();
                window.add(raw.sequence, by, &actions, &consents);
            })
            .await
    }
}

impl Window {
    fn add(&mut self, sequence: u64, by: &str, actions: &[Uuid], consents: &[Consent]) {
        self.last = self.last.max(sequence);
        let entry = || Entry { sequence, by: by.to_owned() };
        for action in actions {
            self.entries.insert(*action, entry());
            self.order.push_back((sequence, *action));
        }
        for Consent { id, .. } in consents {
            // Who was first on it has it.
            self.entries.entry(*id).or_insert_with(entry);
            self.order.push_back((sequence, *id));
        }
    }

    fn about(&self, actions: &[Uuid]) -> BTreeMap<Uuid, Entry> {
        actions.iter().filter_map(|id| Some((*id, self.entries.get(id)?.clone()))).collect()
    }

    /// Keeps the newest. Not before what was looked for was looked for: it may be among the oldest.
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

/// Returns the id that stands for an action in the ledger of late results.
fn late(action: Uuid) -> Uuid {
    ids::derived(action, "late")
}

/// The content of an entry.
#[derive(Debug, Default, PartialEq)]
struct Content<'b> {
    actions: Vec<Uuid>,
    consents: Vec<Consent>,
    /// The replica that made it.
    by: &'b str,
}

/// A consent that an entry uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Consent {
    id: Uuid,
    /// True if an action begins on this consent, which then must not have been used. An entry that no action will begin
    /// can be written whatever became of its consent.
    begins: bool,
}

fn content(body: &Body) -> Content<'_> {
    let (actions, by) = entry(body);
    let invoked = ToolInvoke::of(body).map(|invoke| invoke.actions.as_slice()).unwrap_or_default();
    let consent =
        |it: &ToolInvocation| Some(Consent { id: consent::used(&it.approval_id)?, begins: it.executor != NOBODY });
    Content { actions, consents: invoked.iter().filter_map(consent).collect(), by }
}

/// The actions an entry is about, and the replica that made it.
fn entry(body: &Body) -> (Vec<Uuid>, &str) {
    let (ids, by): (Vec<&String>, &str) = match body.about() {
        About::Tool(Tool::Invoke(it)) => (it.actions.iter().map(|action| &action.action_id).collect(), &it.runner),
        // Beside the result that it comes after there may be one that came late.
        About::Tool(Tool::Result(result)) if result.late => {
            let late = Uuid::parse_str(&result.action_id).map(late);
            return (late.into_iter().collect(), &result.runner);
        }
        About::Tool(Tool::Result(result)) => (vec![&result.action_id], &result.runner),
        // Of whoever gives the order or replies to it: there may be any number about one process.
        About::Tool(Tool::Order(order)) => (vec![&order.by_action_id], &order.holder),
        About::Process(Process::Reply(reply)) => (vec![&reply.by_action_id], &reply.supervisor),
        About::Process(Process::Spawned(spawned)) => (vec![&spawned.action_id], &spawned.supervisor),
        About::Process(Process::Canceled(canceled)) => (vec![&canceled.action_id], &canceled.supervisor),
        About::Process(Process::Exited(exited)) => (vec![&exited.action_id], &exited.supervisor),
        // Of these there may be any number.
        About::Tool(Tool::Progress(_)) | About::Process(Process::Progress(_)) => (Vec::new(), ""),
        About::User(_) | About::Agent(_) | About::Decision(_) | About::Decided(_) => (Vec::new(), ""),
        About::Outside(_) | About::System(_) | About::Live(_) => (Vec::new(), ""),
    };
    (ids.into_iter().filter_map(|id| Uuid::parse_str(id).ok()).collect(), by)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;

    use super::*;

    #[test]
    fn a_late_result_is_an_entry_beside_the_first() {
        let action = Uuid::from_u128(7);
        let result = |late| v1::ToolResult { action_id: action.to_string(), late, ..Default::default() };
        let [first, second] = [false, true].map(|late| entry(&result(late).into()).0);
        assert_eq!(first, [action]);
        assert!(second.len() == 1 && second != first, "{second:?}");
    }

    #[test]
    fn a_consent_is_used_up_by_the_first_entry_on_it() {
        let invoke = |action: u128, approval_id: &str, executor: &str| -> Body {
            let (action_id, approval_id) = (Uuid::from_u128(action).to_string(), approval_id.to_owned());
            let action = ToolInvocation { action_id, approval_id, executor: executor.to_owned(), ..Default::default() };
            ToolInvoke { actions: vec![action], ..Default::default() }.into()
        };
        let [begun, withdrawn] = ["tool-runner", NOBODY].map(|executor| content(&invoke(1, "c", executor)).consents);
        assert_eq!((begun[0].id, begun[0].begins, withdrawn[0].begins), (withdrawn[0].id, true, false));
        assert!(content(&invoke(1, "", "tool-runner")).consents.is_empty());
        assert_ne!(content(&invoke(1, "C", "tool-runner")).consents[0].id, begun[0].id);

        let mut window = Window { from: 0, last: 0, entries: BTreeMap::new(), order: VecDeque::new() };
        for (sequence, action) in [(3, 1), (5, 2)] {
            let body = invoke(action, "c", NOBODY);
            let Content { actions, consents, by } = content(&body);
            window.add(sequence, by, &actions, &consents);
        }
        assert_eq!(window.about(&[begun[0].id])[&begun[0].id].sequence, 3);
    }

    #[test]
    fn a_window_forgets_its_oldest_entries_and_knows_it() {
        let mut window = Window { from: 10, last: 10, entries: BTreeMap::new(), order: VecDeque::new() };
        for sequence in 11..=10 + 2 * REMEMBERED as u64 {
            window.add(sequence, "a", &[Uuid::from_u128(u128::from(sequence))], &[]);
        }
        assert_eq!(window.entries.len(), 2 * REMEMBERED, "all can be looked at first");
        window.forget();
        assert_eq!(window.entries.len(), REMEMBERED);
        assert_eq!(window.from, 10 + REMEMBERED as u64);
        assert!(window.entries.values().all(|entry| entry.sequence > window.from));
    }
}
