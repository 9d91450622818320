//! Orders to stop, which do not wait behind what was said before them.

use std::{collections::BTreeSet, sync::Arc};

use kairo_events::record::Record;
use kairo_proto::{
    Body,
    v1::{AgentCommand, AgentRequest},
    words::{OrderedCommand, RequestKind},
};

use super::{Base, Input, Log};

/// Maximum number of orders that overtake in a row: a user who gives orders without end holds nobody up.
const IN_A_ROW: u32 = 16;

/// An order of a user or, to leave what it asked for, of another agent.
pub(super) struct Order<'r> {
    /// The source of the order: a user's name, or the id of the request that is withdrawn.
    from: (&'static str, &'r str),
    stops: bool,
}

pub(super) fn order(body: &Body) -> Option<Order<'_>> {
    if let Some(order) = AgentCommand::of(body) {
        let stops = matches!(order.command_word(), OrderedCommand::Cancel | OrderedCommand::Pause);
        return Some(Order { from: ("user", &order.user), stops });
    }
    // Each of them is about another request: one does not wait for the other.
    let request = AgentRequest::of(body).filter(|request| request.kind_word() == RequestKind::Cancel)?;
    Some(Order { from: ("request", &request.request_id), stops: true })
}

impl Log {
    /// Returns true if this order ends the request being decided on: the agent that made it has withdrawn it.
    pub fn ends_what_is_decided_on(&self, body: &Body) -> bool {
        let withdrawn = AgentRequest::of(body).filter(|request| request.kind_word() == RequestKind::Cancel);
        let (Some(withdrawn), Some(base)) = (withdrawn, &self.base) else { return false };
        let due = self.state.due(base.input).and_then(|(_, turn)| turn.requested());
        due.is_some_and(|of| of.from == withdrawn.from && of.request_id == withdrawn.request_id)
    }

    /// An order to stop that stands behind what is to be decided on comes first: on the state that stands, to which only it
    /// is added.
    pub(super) fn overtake(&mut self) -> Option<Input> {
        let base = self.base.as_ref().filter(|base| base.overtakes || self.overtaken < IN_A_ROW)?;
        let first = self.ahead.get(self.first_of_foreground())?.sequence;
        let cursor = base.observed;
        if base.overtakes {
            let order = self.ahead.get(self.at(base.input)?)?.record.clone()?;
            return Some(Input { record: Box::new(order), cursor, is_work: false });
        }
        let order = self.stop_behind(first)?.clone();
        let before = base.state.clone();
        let mut state = before.clone();
        Arc::make_mut(&mut state).observe(&order);
        // One that was given before, or about a call of the work lane that waits for consent.
        if !state.wants(order.sequence) || state.wants_work(order.sequence) {
            return None;
        }
        self.state = state;
        self.observed = cursor;
        self.base = Some(Base { state: before, observed: cursor, input: order.sequence, overtakes: true });
        Some(Input { record: Box::new(order), cursor, is_work: false })
    }

    /// The first order to stop behind this sequence, if whoever gave it gave no other before it.
    fn stop_behind(&self, first: u64) -> Option<&Record> {
        let mut gave = BTreeSet::new();
        for ahead in &self.ahead {
            let Some(order) = ahead.order() else { continue };
            let is_first = gave.insert(order.from);
            if is_first && ahead.sequence > first && order.stops {
                return ahead.record.as_ref();
            }
        }
        None
    }
}
