//! Answers that come after their calls were in doubt: the agent is told what became of them.

use kairo_events::record::Record;
use kairo_proto::v1::ToolResult;
use uuid::Uuid;

use super::{
    in_flight::DoubtfulAction,
    state::{AgentState, TurnCause, tool_result_json},
    thread::{ThreadEntry, cut_to},
};

/// Longest part of a late answer that the agent is told, in bytes; all of it stands in the log.
const ANSWER_BYTES: usize = 4_096;

impl AgentState {
    /// A late answer settles what was in doubt, and it is the agent's move, whatever a human said of it before.
    pub(super) fn apply_late_answer(&mut self, record: &Record, result: &ToolResult) {
        let doubt = Uuid::parse_str(&result.action_id).ok().and_then(|action| self.doubts.take_settled(action));
        let Some(doubt) = doubt else { return };
        // One whose thread is gone is nobody's to be told of.
        let Some(user) = self.threads.get(&doubt.thread_id).map(|thread| thread.user.clone()) else { return };
        let turn = record.envelope.id;
        let text = late_answer(&doubt, result);
        self.add_entry(record.sequence, &doubt.thread_id, ThreadEntry::Notice { turn, text });
        self.begin_turn(turn, record, TurnCause::Event, &doubt.thread_id, &user);
        self.mark_outside(&doubt.thread_id, turn, &result.outside);
    }
}

fn late_answer(doubt: &DoubtfulAction, result: &ToolResult) -> String {
    let DoubtfulAction { action, tool, arguments, .. } = doubt;
    let what = match (result.ok, doubt.has_verdict) {
        (true, false) => "it did happen, do not do it again",
        (true, true) => "it did happen, whatever was found out about it before",
        (false, _) => "it failed",
    };
    format!(
        "Event: the answer to the action {action} ({tool} {arguments}), which was in doubt, came late: {what}. The answer: {}",
        cut_to(&tool_result_json(result), ANSWER_BYTES)
    )
}
