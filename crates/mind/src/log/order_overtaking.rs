//! Orders to stop, which do not wait behind what was said before them.

use std::{collections::BTreeSet, sync::Arc};

use kairo_events::record::Record;
use kairo_proto::{
    Body,
    v1::{AgentCommand, AgentRequest},
    words::{OrderedCommand, RequestKind},
};

use super::{CommittedState, DecisionInput, Log};

/// Maximum number of orders that overtake in a row: a user who gives orders without end holds nobody up.
const IN_A_ROW: u32 = 16;

/// An order of a user or, to leave what it asked for, of another agent.
pub(super) struct IncomingOrder<'r> {
    /// The source of the order: a user's name, or the id of the request that is withdrawn.
    from: (&'static str, &'r str),
    stops: bool,
}

pub(super) fn order_in(body: &Body) -> Option<IncomingOrder<'_>> {
    if let Some(order) = AgentCommand::of(body) {
        let stops = matches!(order.command_word(), OrderedCommand::Cancel | OrderedCommand::Pause);
        return Some(IncomingOrder { from: ("user", &order.user), stops });
    }
    // Each of them is about another request: one does not wait for the other.
    let request = AgentRequest::of(body).filter(|request| request.kind_word() == RequestKind::Cancel)?;
    Some(IncomingOrder { from: ("request", &request.request_id), stops: true })
}

impl Log {
    /// Returns true if this order ends the request being decided on: the agent that made it has withdrawn it.
    pub fn withdraws_current_request(&self, body: &Body) -> bool {
        let withdrawn = AgentRequest::of(body).filter(|request| request.kind_word() == RequestKind::Cancel);
        let (Some(withdrawn), Some(base)) = (withdrawn, &self.base) else { return false };
        let due = self.state.due_turn(base.input).and_then(|(_, turn)| turn.agent_request());
        due.is_some_and(|of| of.from == withdrawn.from && of.request_id == withdrawn.request_id)
    }

    /// An order to stop that stands behind what is to be decided on comes first: on the state that stands, to which only it
    /// is added.
    pub(super) fn overtake_with_order(&mut self) -> Option<DecisionInput> {
        let base = self.base.as_ref().filter(|base| base.overtakes || self.overtaken < IN_A_ROW)?;
        let first = self.pending.get(self.first_foreground_index())?.sequence;
        let cursor = base.observed;
        if base.overtakes {
            let order = self.pending.get(self.pending_index(base.input)?)?.record.clone()?;
            return Some(DecisionInput { record: Box::new(order), cursor, is_work: false });
        }
        let order = self.first_stop_order_after(first)?.clone();
        let before = base.state.clone();
        let mut state = before.clone();
        Arc::make_mut(&mut state).apply_record(&order);
        // One that was given before, or about a call of the work lane that waits for consent.
        if !state.needs_decision(order.sequence) || state.is_background_input(order.sequence) {
            return None;
        }
        self.state = state;
        self.observed = cursor;
        self.base = Some(CommittedState { state: before, observed: cursor, input: order.sequence, overtakes: true });
        Some(DecisionInput { record: Box::new(order), cursor, is_work: false })
    }

    /// The first order to stop behind this sequence, if whoever gave it gave no other before it.
    fn first_stop_order_after(&self, first: u64) -> Option<&Record> {
        let mut gave = BTreeSet::new();
        for ahead in &self.pending {
            let Some(order) = ahead.as_order() else { continue };
            let is_first = gave.insert(order.from);
            if is_first && ahead.sequence > first && order.stops {
                return ahead.record.as_ref();
            }
        }
        None
    }
}
