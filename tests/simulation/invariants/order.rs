//! Of what users say: agents are told in the order of the log, and decide in that order, but for orders to stop, which
//! overtake, and for consent to what is worked on beside.

use std::collections::BTreeMap;

use kairo_core::{
    ids::Name,
    record::Record,
    subjects::{self, Service},
};
use kairo_proto::Body;
use uuid::Uuid;

/// Checks that messages of one user to one agent are delivered and decided on in the order of the log.
pub fn mistakes(records: &[Record]) -> Vec<String> {
    let said: BTreeMap<Uuid, (u64, Name)> = records.iter().rev().filter_map(said_by).collect();
    let mut wrong = Vec::new();
    // Of each user and agent: what was told last, and what was decided on last.
    let mut told: BTreeMap<(Name, Name), u64> = BTreeMap::new();
    let mut decided: BTreeMap<(Name, Name), u64> = BTreeMap::new();
    // Of each input where it comes from.
    let mut inputs: BTreeMap<Uuid, (Name, Name, u64)> = BTreeMap::new();
    for record in records {
        let Some((_, owner)) = subjects::find_route(&record.subject) else { continue };
        if let Body::AgentDecision(decision) = &record.body {
            let input = Uuid::parse_str(&decision.input_id).ok().and_then(|id| inputs.get(&id));
            if let Some((user, agent, at)) = input.filter(|_| decision.overtaking == 0 && decision.work_input == 0) {
                let last = decided.entry((user.clone(), agent.clone())).or_default();
                if *at < *last {
                    wrong
                        .push(format!("{agent:?} decides on what {user:?} said at {at} after what was said at {last}"));
                }
                *last = *at;
            }
        }
        let routed = record.envelope.source.ends_with(Service::Router.name());
        let cause = record.envelope.causation_id.filter(|_| routed && record.subject.starts_with("kairo.agent."));
        let Some((at, user)) = cause.and_then(|cause| said.get(&cause)) else { continue };
        inputs.insert(record.envelope.id, (user.clone(), owner.clone(), *at));
        let last = told.entry((user.clone(), owner.clone())).or_default();
        if *at < *last {
            wrong.push(format!("{owner:?} is told what {user:?} said at {at} after what was said at {last}"));
        }
        *last = *at;
    }
    wrong
}

fn said_by(record: &Record) -> Option<(Uuid, (u64, Name))> {
    let (route, user) = subjects::find_route(&record.subject)?;
    (route.noun == "user").then_some((record.envelope.id, (record.sequence, user)))
}
