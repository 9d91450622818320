//! Agents whose log goes on with something that this build does not understand. They are left as they were before it, and
//! the rest of the partition goes on: its checkpoint stays before what was not understood, so that whoever owns it next
//! begins there. As soon as a replica is there that understands it, the partition is handed over.

use kairo_core::{ids::Name, record::RawMessage, subjects, vocabulary::NotUnderstood};
use kairo_proto::v1::ParkedAgent;

use super::Shard;

impl Shard {
    /// The agent that a message of the partition is for, if it is for one.
    pub(super) fn agent_of(&self, raw: &RawMessage) -> Option<Name> {
        let Some((route, agent)) = subjects::find_route(&raw.subject) else { return self.agent_of_unknown(raw) };
        subjects::is_agent_route(route).then_some(agent)
    }

    /// On a subject that is none of the table stands what newer services write; or what concerns nobody.
    fn agent_of_unknown(&self, raw: &RawMessage) -> Option<Name> {
        let mut tokens = raw.subject.split('.').skip(1);
        let noun = tokens.next()?;
        let owner = tokens.next()?;
        let read = raw.read_or_reject_newer(self.shards.bus.limits.max_body_bytes);
        let is_newer = matches!(read, Err(NotUnderstood::Newer(_)));
        if is_newer && subjects::is_agent_noun(noun) { Name::parse(owner).ok() } else { None }
    }

    /// The agent waits from now on for a replica that understands more.
    pub(super) fn park(&mut self, agent: &Name) {
        let Some(parked) = self.agents.get_awake(agent).and_then(|resident| resident.parked.as_ref()) else { return };
        tracing::warn!(%agent, sequence = parked.sequence, reason = %parked.newer, "an agent is parked");
        self.tenure.require_reader(parked.newer.reader);
        self.report_parked();
    }

    /// Says which agents are, for whoever asks how things stand.
    pub(super) fn report_parked(&self) {
        let parked = self.agents.awake().filter_map(|resident| {
            let parked = resident.parked.as_ref()?;
            Some(ParkedAgent {
                agent: resident.name.to_string(),
                sequence: parked.sequence,
                reader: parked.newer.reader,
                reason: parked.newer.to_string(),
                waiting: parked.waiting as u64,
            })
        });
        self.shards.bus.standing.set_parked_agents(self.partition, parked.collect());
    }
}
