//! Messages whose calls are ordered to be stopped while no tool-runner is there.

use std::{collections::BTreeMap, time::Duration};

use kairo_local::Service;

use super::{AGENTS, Fault, Message, Settings, Target, Wish, agent};
use crate::chaos::random::Random;

/// When they come after all replicas are gone.
const AFTER: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(900), Duration::from_millis(1_800)];

/// The messages with those that wish for a recall whenever all replicas of tool-runner, and of nothing else, are struck at once.
pub fn among(mut messages: Vec<Message>, faults: &[Fault], settings: &Settings) -> Vec<Message> {
    let mut struck = BTreeMap::<Duration, Vec<Target>>::new();
    faults.iter().for_each(|fault| struck.entry(fault.at).or_default().push(fault.target));
    let is_runner = |target: &Target| matches!(target, Target::Replica(Service::ToolRunner, _));
    // With one replica, each time that it is struck.
    let all =
        struck.into_iter().filter(|(_, targets)| targets.len() == settings.replicas && targets.iter().all(is_runner));
    let times = all.flat_map(|(at, _)| AFTER.map(|after| at + after)).filter(|at| *at < settings.time);
    let mut random = Random::new(settings.seed, "recalls");
    messages.extend(times.enumerate().map(|(number, at)| {
        let id = format!("r{number}");
        let (user, agent) = (format!("user-of-{id}"), agent(random.below(AGENTS - 1)));
        Message { at, id, user, agent, wish: Wish::Recall, copies: 1 }
    }));
    messages.sort_by_key(|message| message.at);
    messages
}
