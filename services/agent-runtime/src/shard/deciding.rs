//! Having agents decide: on what users say and what concerns them at once, on what is worked on in between.

use std::sync::Arc;

use kairo_core::{bus::consume, ids::Name, subjects::Consumer};
use kairo_mind::{
    log::{Input, Ready, ReadyWork},
    state::AgentState,
};
use kairo_proto::v1::AgentDecision;
use tracing::Instrument;

use super::{Shard, Told};
use crate::{
    measures,
    resident::Taken,
    spans,
    thinking::Thought,
    turn::{Stage, Turn},
};

impl Shard {
    /// Has the agent decide on what is next, if that may be.
    pub(super) fn go_on(&mut self, agent: &Name) {
        if !self.catching_up.is_done() || self.releasing {
            return;
        }
        let Some(resident) = self.agents.get_mut(agent) else { return };
        if resident.log.is_some()
            && let Some(left) = self.left.remove(agent)
        {
            resident.go_on_with(left);
        }
        if let Some((state, input)) = resident.work_to_commit() {
            return self.think(agent, state, input, Stage::Commit);
        }
        match resident.next() {
            None => {}
            Some(Ready::Missing(sequences)) => return self.fetch_for(agent, sequences),
            Some(Ready::Input(input)) => {
                if let Some(state) = resident.log.as_ref().map(|log| log.state.clone()) {
                    self.think(agent, state, input, Stage::Whole);
                }
            }
        }
        match self.agents.get_awake(agent).and_then(|resident| resident.work_to_prepare()) {
            None => {}
            Some(ReadyWork::Missing(sequences)) => self.fetch_for(agent, sequences),
            Some(ReadyWork::Input(state, input)) => self.think(agent, state, input, Stage::Prepare),
        }
    }

    fn fetch_for(&mut self, agent: &Name, sequences: Vec<u64>) {
        if let Some(resident) = self.agents.get_mut(agent) {
            resident.fetching = true;
        }
        self.fetch(agent, sequences);
    }

    fn think(&mut self, agent: &Name, state: Arc<AgentState>, input: Input, stage: Stage) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        let Some(log) = &resident.log else { return };
        let turn = Turn::of(stage, &input.record, &log.chain);
        let paid = resident.paid_in(turn.lane()).clone();
        let (shards, lease, told) = (self.shards.clone(), self.tenure.lease.clone(), self.told.clone());
        let (name, sequence) = (agent.clone(), input.record.sequence);
        // It belongs to the trace of the input.
        let span = consume::span(Consumer::AgentRuntime, &input.record);
        let seen = turn.clone();
        let entry = shards.under_way.enter(agent, &input.record, turn.waiting.since());
        let thinking = async move {
            let _under_way = entry;
            let thought = shards.thinker.think(&name, state, &input, paid, &lease, &seen);
            let thought = thought.instrument(spans::invoke_agent(&name)).await;
            let _ = told.send(Told::Thought(name, seen, thought));
        };
        let task = self.tasks.spawn(self.shards.bus.host(thinking.instrument(span)));
        resident.run(sequence, task, turn);
    }

    /// A task that thought has ended.
    pub(super) fn thought(&mut self, agent: &Name, turn: &Turn, thought: Thought) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        if !resident.ended(turn) {
            return;
        }
        let taken = match thought {
            Thought::Decided(record, content) => {
                self.shards.bus.standing.count_decision();
                let said = AgentDecision::of(&record.body);
                let given_up = said.map(|said| said.given_up.as_slice()).unwrap_or_default();
                measures::decided(&self.shards.bus, agent, turn, given_up);
                let taken = resident.decided(*record, content);
                if let Some(log) = &resident.log {
                    self.failing.note(agent, &log.state);
                }
                taken
            }
            Thought::Prepared => {
                resident.prepared(true);
                Taken::Well
            }
            Thought::Unprepared => {
                resident.prepared(false);
                Taken::Well
            }
            Thought::Overtaken => {
                resident.overtaken();
                Taken::Well
            }
            Thought::Stopped => Taken::Well,
            // What the state wanted decided, deliberation does not: reading it again will tell who is right.
            Thought::Nothing => Taken::Diverged,
            Thought::Failed(error) => {
                tracing::warn!(%agent, %error, "a decision failed, it is made again");
                resident.overtaken();
                Taken::Well
            }
        };
        match taken {
            Taken::Diverged => self.load_again(agent),
            _ => self.go_on(agent),
        }
    }
}
