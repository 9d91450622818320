//! Orders to stop, which do not wait behind what was said before them.

use std::{collections::BTreeSet, sync::Arc};

use kairo_events::record::Record;
use kairo_proto::words::OrderedCommand;

use super::{Base, Input, Log};

/// So many overtake one after the other: whoever gives orders without end holds nobody up.
const IN_A_ROW: u32 = 16;

impl Log {
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
            let is_first = gave.insert(&order.user);
            let stops = matches!(order.command_word(), OrderedCommand::Cancel | OrderedCommand::Pause);
            if is_first && ahead.sequence > first && stops {
                return ahead.record.as_ref();
            }
        }
        None
    }
}
