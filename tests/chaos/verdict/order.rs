//! Checks that agents deal with a user's messages in the order in which the gateway acknowledged them.

use std::collections::BTreeMap;

use kairo_core::subjects::find_route;
use kairo_proto::{Body, v1::decided_event::Event};

use super::{Evidence, Verdict};
use crate::audit::decision;

/// The last message of a user that an agent dealt with.
struct Last {
    /// The position of the decision in the log.
    decision: u64,
    message: String,
}

impl Evidence<'_> {
    pub(super) fn judge_order(&self, verdict: &mut Verdict) {
        let dealt_with = self.dealt_with();
        let mut last = BTreeMap::<(String, String), Last>::new();
        // The log holds them in the order of their acknowledgements.
        for entry in self.own() {
            let Body::UserMessage(message) = &entry.record.body else { continue };
            let correlation = entry.record.envelope.correlation_id.to_string();
            // Sent twice, it was dealt with once: what is lost or doubled is said elsewhere.
            let Some((agent, decision)) = dealt_with.get(&correlation) else { continue };
            let pair = (message.user.clone(), agent.clone());
            if let Some(last) = last.get(&pair).filter(|last| last.decision > *decision) {
                let told = format!(
                    "{} to {agent}: {} before {}, which was acknowledged first",
                    message.user, message.message_id, last.message
                );
                verdict.out_of_order.push(told);
                continue;
            }
            last.insert(pair, Last { decision: *decision, message: message.message_id.clone() });
        }
    }

    /// The agent of each message, and where its decision stands, by what the message began.
    fn dealt_with(&self) -> BTreeMap<String, (String, u64)> {
        let inputs: BTreeMap<String, String> = self
            .own()
            .filter(|entry| matches!(entry.record.body, Body::AgentMessage(_)))
            .map(|entry| (entry.record.envelope.id.to_string(), entry.record.envelope.correlation_id.to_string()))
            .collect();
        let (mut dealt_with, mut joins) = (BTreeMap::new(), Vec::new());
        for entry in self.own() {
            let (Some(decision), Some((_, agent))) = (decision(&entry.record), find_route(&entry.record.subject))
            else {
                continue;
            };
            let joined = decision.events.iter().filter_map(|event| {
                let Some(Event::Joined(joined)) = &event.event else { return None };
                Some((&event.correlation_id, &joined.into_correlation_id))
            });
            joins.extend(joined.clone().map(|(message, into)| (message.clone(), into.clone())));
            let joined = joined.map(|(message, _)| message);
            for message in inputs.get(&decision.input_id).into_iter().chain(joined) {
                dealt_with.entry(message.clone()).or_insert_with(|| (agent.to_string(), entry.record.sequence));
            }
        }
        // One is dealt with together with the other, whose first decision may be a question to its user.
        for (message, into) in joins {
            if let Some(place) = dealt_with.get(&into).cloned() {
                dealt_with.insert(message, place);
            }
        }
        dealt_with
    }
}

#[cfg(test)]
mod tests;
