//! Having agents decide: on what users say and what concerns them at once, on what is worked on in between.

use std::sync::Arc;

use kairo_core::{bus::consume, ids::Name, subjects::Consumer};
use kairo_mind::{
    log::{DecisionInput, NextBackgroundInput, NextInput},
    state::AgentState,
};
use kairo_proto::v1::AgentDecision;
use tracing::Instrument;

use super::{Shard, ShardEvent};
use crate::{
    agent_metrics,
    resident::ApplyOutcome,
    spans,
    thinker::ThoughtOutcome,
    turn::{Stage, TurnHandle},
};

impl Shard {
    /// Has the agent decide on what is next, if that may be.
    pub(super) fn decide_next(&mut self, agent: &Name) {
        if !self.catching_up.is_done() || self.releasing {
            return;
        }
        let Some(resident) = self.agents.get_mut(agent) else { return };
        if resident.log.is_some()
            && let Some(left) = self.handovers.remove(agent)
        {
            resident.adopt_handover(left);
        }
        if let Some((state, input)) = resident.background_to_commit() {
            return self.think(agent, state, input, Stage::Commit);
        }
        match resident.next_input() {
            None => {}
            Some(NextInput::Missing(sequences)) => return self.begin_fetch(agent, sequences),
            Some(NextInput::Input(input)) => {
                if let Some(state) = resident.log.as_ref().map(|log| log.state.clone()) {
                    self.think(agent, state, input, Stage::Whole);
                }
            }
        }
        match self.agents.get_awake(agent).and_then(|resident| resident.background_to_prepare()) {
            None => {}
            Some(NextBackgroundInput::Missing(sequences)) => self.begin_fetch(agent, sequences),
            Some(NextBackgroundInput::Input(state, input)) => self.think(agent, state, input, Stage::Prepare),
        }
    }

    fn begin_fetch(&mut self, agent: &Name, sequences: Vec<u64>) {
        if let Some(resident) = self.agents.get_mut(agent) {
            resident.fetching = true;
        }
        self.fetch(agent, sequences);
    }

    fn think(&mut self, agent: &Name, state: Arc<AgentState>, input: DecisionInput, stage: Stage) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        let Some(log) = &resident.log else { return };
        let turn = TurnHandle::for_input(stage, &input.record, &log.chain);
        let paid = resident.completions_in(turn.lane()).clone();
        let shards = self.shards.clone();
        let lease = self.tenure.lease.clone();
        let told = self.events.clone();
        let name = agent.clone();
        let sequence = input.record.sequence;
        // It belongs to the trace of the input.
        let span = consume::processing_span(Consumer::AgentRuntime, &input.record);
        let seen = turn.clone();
        let entry = shards.under_way.enter(agent, &input.record, turn.waiting.since());
        let thinking = async move {
            let _under_way = entry;
            let thought = shards.thinker.think(&name, state, &input, paid, &lease, &seen);
            let thought = thought.instrument(spans::invoke_agent(&name)).await;
            let _ = told.send(ShardEvent::Thought(name, seen, thought));
        };
        let task = self.tasks.spawn(self.shards.bus.host_task(thinking.instrument(span)));
        resident.track_decision(sequence, task, turn);
    }

    /// A task that thought has ended.
    pub(super) fn finish_thinking(&mut self, agent: &Name, turn: &TurnHandle, thought: ThoughtOutcome) {
        let Some(resident) = self.agents.get_mut(agent) else { return };
        if !resident.end_turn(turn) {
            return;
        }
        let taken = match thought {
            ThoughtOutcome::Decided(record, content) => {
                self.shards.bus.standing.count_decision();
                let said = AgentDecision::of(&record.body);
                let given_up = said.map(|said| said.given_up.as_slice()).unwrap_or_default();
                agent_metrics::record_decision(&self.shards.bus, agent, turn, given_up);
                let taken = resident.apply_decision(*record, content);
                if let Some(log) = &resident.log {
                    self.failing.record_decision(agent, &log.state);
                }
                taken
            }
            ThoughtOutcome::Prepared => {
                resident.set_prepared(true);
                ApplyOutcome::NoAction
            }
            ThoughtOutcome::Unprepared => {
                resident.set_prepared(false);
                ApplyOutcome::NoAction
            }
            ThoughtOutcome::Overtaken => {
                resident.note_conflict();
                ApplyOutcome::NoAction
            }
            ThoughtOutcome::Stopped => ApplyOutcome::NoAction,
            // What the state wanted decided, deliberation does not: reading it again will tell who is right.
            ThoughtOutcome::Nothing => ApplyOutcome::Diverged,
            ThoughtOutcome::Failed(error) => {
                tracing::warn!(%agent, %error, "a decision failed, it is made again");
                resident.note_conflict();
                ApplyOutcome::NoAction
            }
        };
        match taken {
            ApplyOutcome::Diverged => self.reload_agent(agent),
            _ => self.decide_next(agent),
        }
    }
}
