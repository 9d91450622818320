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

use super::{Bus, BusError, append::OutgoingEvent, retry_deadline::RetryDeadline};
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
    windows: KeyedLocks<Name, Option<LedgerWindow>>,
}

/// The outcome of an attempt to write an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerOutcome {
    Written {
        sequence: u64,
    },
    /// There are entries about these actions, or on these consents, already; nothing was written.
    Already(Vec<Uuid>),
}

/// An entry about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    pub sequence: u64,
    /// The replica that made it.
    pub by: String,
}

/// The known part of one agent's subject: every entry with a sequence in (`from`, `last`].
#[derive(Debug, PartialEq)]
struct LedgerWindow {
    from: u64,
    last: u64,
    entries: BTreeMap<Uuid, LedgerEntry>,
    order: VecDeque<(u64, Uuid)>,
}

impl Ledger {
    pub fn new(bus: &Bus, row: &'static Route) -> Self {
        Self { bus: bus.clone(), row, windows: KeyedLocks::new(AGENTS) }
    }

    /// Writes `event` unless there is an entry above sequence `since` about one of its actions, or one on a consent that it begins
    /// an action on ([`consent::used_consent_id`]). While the server is
    /// away it keeps trying for as long as `hold_ms` says; that an earlier try got there is success, too, whoever has
    /// looked at the ledger since.
    pub async fn record_once(
        &self,
        agent: &Name,
        since: u64,
        event: &OutgoingEvent,
    ) -> Result<LedgerOutcome, BusError> {
        let mut patience = RetryDeadline::new(&self.bus.limits);
        loop {
            match self.try_record_once(agent, since, event).await {
                Ok(entered) => return Ok(entered),
                Err(error) => patience.backoff_after(error).await?,
            }
        }
    }

    async fn try_record_once(
        &self,
        agent: &Name,
        since: u64,
        event: &OutgoingEvent,
    ) -> Result<LedgerOutcome, BusError> {
        let EntryContent { actions, consents, by } = entry_content(&event.body);
        let needed: Vec<Uuid> =
            actions.iter().chain(consents.iter().filter(|it| it.begins).map(|it| &it.id)).copied().collect();
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        for _ in 0..RACES {
            let window = self.window_covering(agent, &mut slot, since).await?;
            let already: Vec<Uuid> = needed.iter().copied().filter(|id| window.entries.contains_key(id)).collect();
            if let Some(entry) = already.first().and_then(|id| window.entries.get(id)) {
                let sequence = entry.sequence;
                window.evict_oldest();
                return Ok(match self.is_same_event(event, sequence).await? {
                    true => LedgerOutcome::Written { sequence },
                    false => LedgerOutcome::Already(already),
                });
            }
            match self.bus.append(event, window.last).await {
                Ok(written) => {
                    window.apply_entry(written.sequence, by, &actions, &consents);
                    window.evict_oldest();
                    return Ok(LedgerOutcome::Written { sequence: written.sequence });
                }
                Err(BusError::Conflict { .. }) => self.catch_up_window(agent, window).await?,
                Err(error) => return Err(error),
            }
        }
        Err(BusError::Unavailable { doing: "entering a ledger", source: "others were faster again and again".into() })
    }

    /// Returns true if `event` is the message at `sequence`: it was stored but its acknowledgement was lost, and then
    /// another task of this replica read the ledger or wrote after it, so that [`Bus::append`] does not find it last.
    /// The id alone does not identify it, since replicas at the same work derive the same one; the time in the envelope
    /// does.
    async fn is_same_event(&self, event: &OutgoingEvent, sequence: u64) -> Result<bool, BusError> {
        let record = self.bus.record_at(sequence).await?;
        let same = record.envelope.to_headers() == event.envelope.to_headers();
        Ok(same && record.body.encode() == event.body.encode())
    }

    /// The entries about these actions, or on these consents, above `since`, as the log stands now.
    pub async fn entries_about(
        &self,
        agent: &Name,
        since: u64,
        actions: &[Uuid],
    ) -> Result<BTreeMap<Uuid, LedgerEntry>, BusError> {
        self.inspect_window(agent, since, |window| window.entries_about(actions)).await
    }

    /// Like [`Ledger::entries_about`], but misses nothing that was written before it was asked for, whichever server answers:
    /// the stream's leader says how far the subject goes. An error while the server that answers is behind.
    pub async fn entries_as_of_leader(
        &self,
        agent: &Name,
        since: u64,
        actions: &[Uuid],
    ) -> Result<BTreeMap<Uuid, LedgerEntry>, BusError> {
        let last = self.bus.last_at_leader(&self.row.of_owner(agent)).await?;
        let sure = |window: &LedgerWindow| (window.last >= last).then(|| window.entries_about(actions));
        let behind = || BusError::Unavailable { doing: "reading a ledger", source: "the server is behind".into() };
        self.inspect_window(agent, since, sure).await?.ok_or_else(behind)
    }

    /// All entries above `since`, as the log stands now.
    pub async fn all_entries(&self, agent: &Name, since: u64) -> Result<BTreeMap<Uuid, LedgerEntry>, BusError> {
        self.inspect_window(agent, since, |window| {
            let above = window.entries.iter().filter(|(_, entry)| entry.sequence > since);
            above.map(|(id, entry)| (*id, entry.clone())).collect()
        })
        .await
    }

    /// The record that is the entry about `action` above `since`, if there is one.
    pub async fn entry_record(&self, agent: &Name, since: u64, action: Uuid) -> Result<Option<Record>, BusError> {
        match self.entries_about(agent, since, &[action]).await?.get(&action) {
            Some(entry) => Ok(Some(self.bus.record_at(entry.sequence).await?)),
            None => Ok(None),
        }
    }

    /// Looks at all there is above `since` as the log stands now.
    async fn inspect_window<T>(
        &self,
        agent: &Name,
        since: u64,
        look: impl FnOnce(&LedgerWindow) -> T,
    ) -> Result<T, BusError> {
        let slot = self.windows.get(agent);
        let mut slot = slot.lock().await;
        let window = self.window_covering(agent, &mut slot, since).await?;
        self.catch_up_window(agent, window).await?;
        let seen = look(window);
        window.evict_oldest();
        Ok(seen)
    }

    /// The window, reaching down to `since`.
    async fn window_covering<'w>(
        &self,
        agent: &Name,
        slot: &'w mut Option<LedgerWindow>,
        since: u64,
    ) -> Result<&'w mut LedgerWindow, BusError> {
        if slot.as_ref().is_none_or(|window| window.from > since) {
            let last = self.bus.last_message(&self.row.of_owner(agent)).await?.map_or(0, |last| last.sequence);
            let mut window = LedgerWindow {
                from: since.min(last),
                last: since.min(last),
                entries: BTreeMap::new(),
                order: VecDeque::new(),
            };
            if last > since {
                self.catch_up_window(agent, &mut window).await?;
            }
            *slot = Some(window);
        }
        slot.as_mut().ok_or_else(|| BusError::Unavailable { doing: "reading a ledger", source: "it vanished".into() })
    }

    async fn catch_up_window(&self, agent: &Name, window: &mut LedgerWindow) -> Result<(), BusError> {
        let limit = self.bus.limits.max_body_bytes;
        let after = window.last;
        self.bus
            .read_all(&self.row.of_owner(agent), after, |raw| {
                // What cannot be read is no entry, but the guard counts it.
                let record = raw.read(limit).ok();
                let EntryContent { actions, consents, by } =
                    record.as_ref().map(|it| entry_content(&it.body)).unwrap_or_default();
                window.apply_entry(raw.sequence, by, &actions, &consents);
            })
            .await
    }
}

impl LedgerWindow {
    fn apply_entry(&mut self, sequence: u64, by: &str, actions: &[Uuid], consents: &[ApprovalUse]) {
        self.last = self.last.max(sequence);
        let entry = || LedgerEntry { sequence, by: by.to_owned() };
        for action in actions {
            self.entries.insert(*action, entry());
            self.order.push_back((sequence, *action));
        }
        for ApprovalUse { id, .. } in consents {
            // Who was first on it has it.
            self.entries.entry(*id).or_insert_with(entry);
            self.order.push_back((sequence, *id));
        }
    }

    fn entries_about(&self, actions: &[Uuid]) -> BTreeMap<Uuid, LedgerEntry> {
        actions.iter().filter_map(|id| Some((*id, self.entries.get(id)?.clone()))).collect()
    }

    /// Keeps the newest. Not before what was looked for was looked for: it may be among the oldest.
    fn evict_oldest(&mut self) {
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
fn late_result_id(action: Uuid) -> Uuid {
    ids::derive(action, "late")
}

/// The content of an entry.
#[derive(Debug, Default, PartialEq)]
struct EntryContent<'b> {
    actions: Vec<Uuid>,
    consents: Vec<ApprovalUse>,
    /// The replica that made it.
    by: &'b str,
}

/// A consent that an entry uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ApprovalUse {
    id: Uuid,
    /// True if an action begins on this consent, which then must not have been used. An entry that no action will begin
    /// can be written whatever became of its consent.
    begins: bool,
}

fn entry_content(body: &Body) -> EntryContent<'_> {
    let (actions, by) = actions_and_executor(body);
    let invoked = ToolInvoke::of(body).map(|invoke| invoke.actions.as_slice()).unwrap_or_default();
    let consent = |it: &ToolInvocation| {
        Some(ApprovalUse { id: consent::used_consent_id(&it.approval_id)?, begins: it.executor != NOBODY })
    };
    EntryContent { actions, consents: invoked.iter().filter_map(consent).collect(), by }
}

/// The actions an entry is about, and the replica that made it.
fn actions_and_executor(body: &Body) -> (Vec<Uuid>, &str) {
    let (ids, by): (Vec<&String>, &str) = match body.about() {
        About::Tool(Tool::Invoke(it)) => (it.actions.iter().map(|action| &action.action_id).collect(), &it.runner),
        // Beside the result that it comes after there may be one that came late.
        About::Tool(Tool::Result(result)) if result.late => {
            let late = Uuid::parse_str(&result.action_id).map(late_result_id);
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
        let [first, second] = [false, true].map(|late| actions_and_executor(&result(late).into()).0);
        assert_eq!(first, [action]);
        assert!(second.len() == 1 && second != first, "{second:?}");
    }

    #[test]
    fn a_consent_is_used_up_by_the_first_entry_on_it() {
        let invoke = |action: u128, approval_id: &str, executor: &str| -> Body {
            let action_id = Uuid::from_u128(action).to_string();
            let approval_id = approval_id.to_owned();
            let action = ToolInvocation { action_id, approval_id, executor: executor.to_owned(), ..Default::default() };
            ToolInvoke { actions: vec![action], ..Default::default() }.into()
        };
        let [begun, withdrawn] =
            ["tool-runner", NOBODY].map(|executor| entry_content(&invoke(1, "c", executor)).consents);
        assert_eq!((begun[0].id, begun[0].begins, withdrawn[0].begins), (withdrawn[0].id, true, false));
        assert!(entry_content(&invoke(1, "", "tool-runner")).consents.is_empty());
        assert_ne!(entry_content(&invoke(1, "C", "tool-runner")).consents[0].id, begun[0].id);

        let mut window = LedgerWindow { from: 0, last: 0, entries: BTreeMap::new(), order: VecDeque::new() };
        for (sequence, action) in [(3, 1), (5, 2)] {
            let body = invoke(action, "c", NOBODY);
            let EntryContent { actions, consents, by } = entry_content(&body);
            window.apply_entry(sequence, by, &actions, &consents);
        }
        assert_eq!(window.entries_about(&[begun[0].id])[&begun[0].id].sequence, 3);
    }

    #[test]
    fn a_window_forgets_its_oldest_entries_and_knows_it() {
        let mut window = LedgerWindow { from: 10, last: 10, entries: BTreeMap::new(), order: VecDeque::new() };
        for sequence in 11..=10 + 2 * REMEMBERED as u64 {
            window.apply_entry(sequence, "a", &[Uuid::from_u128(u128::from(sequence))], &[]);
        }
        assert_eq!(window.entries.len(), 2 * REMEMBERED, "all can be looked at first");
        window.evict_oldest();
        assert_eq!(window.entries.len(), REMEMBERED);
        assert_eq!(window.from, 10 + REMEMBERED as u64);
        assert!(window.entries.values().all(|entry| entry.sequence > window.from));
    }
}
