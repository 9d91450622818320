//! Bounds on what an agent may have open at once, and the handling of anything beyond them.

use kairo_proto::{
    v1::Say,
    words::{ChainOutcome, MatchedBy, ThreadMatch},
};
use std::cmp::Reverse;

use uuid::Uuid;

use super::{Deliberation, background_work::TASK_FAILED};
use crate::{
    chain::{Chain, StepRun, StepState},
    state::{AgentTurn, TurnCause},
    tasks::TaskActivation,
};

/// Chains that run at once, of all users; another one is refused.
const CHAINS: usize = 64;
/// Runs of one task with a time at once, so that one that never ends leaves room for the others.
const RUNS: usize = 8;
/// Chains that one decision begins, so that tasks which run tasks come to an end.
const BEGUN: u32 = 128;
/// Most bytes that all chains may hold when another one begins: parameters, results and the data that triggered them.
const CHAIN_BYTES: usize = 512 * 1024;
/// Actions that wait for a human's consent at once; another one is not done.
const CONSENTS: usize = 32;
/// Longest arguments that a human is asked about, in bytes.
const CONSENT_BYTES: usize = 32 * 1024;
/// Messages of one user, and of all, that wait for the user to choose their thread; the oldest goes on in the thread the
/// user was in.
const OFFERS: usize = 4;
const ALL_OFFERS: usize = 32;
/// Turns that wait for something; beyond that no message begins another one.
const TURNS: usize = 1_000;
/// Told to people where the mind has no room for another chain.
const TOO_MUCH_UNDER_WAY: &str = "too much is under way already";

/// The reason why no chain begins: in full, for operators, and in the words for people.
pub(super) struct NoRoom {
    reason: String,
    for_people: String,
}

impl NoRoom {
    /// Hides the bound of the mind from people, to whom it means nothing.
    fn of_the_mind(reason: String) -> Self {
        Self { reason, for_people: TOO_MUCH_UNDER_WAY.to_owned() }
    }

    fn of_a_task(reason: String) -> Self {
        Self { for_people: reason.clone(), reason }
    }
}

impl Deliberation<'_> {
    /// Returns the reason why this turn may begin no chain, if there is one.
    pub(super) fn no_room_for_a_chain(&self, turn_id: Uuid) -> Option<NoRoom> {
        // What a model begins is bounded by its steps, and by the calls that the message may take.
        let is_bounded = self.limits.memory_rules == 0 || self.turn(turn_id).and_then(AgentTurn::fired_task).is_some();
        if is_bounded && self.chains >= BEGUN {
            return Some(NoRoom::of_the_mind(format!("more than {BEGUN} chains were to begin at once")));
        }
        let others = || self.mind.turns.iter().filter(|(id, _)| **id != turn_id).map(|(_, turn)| turn);
        let running = || others().filter_map(|turn| turn.chain.as_ref()).filter(|chain| !chain.steps.is_empty());
        if running().count() >= CHAINS {
            return Some(NoRoom::of_the_mind(format!("{CHAINS} chains run already")));
        }
        if running().map(Chain::total_bytes).sum::<usize>() > CHAIN_BYTES {
            return Some(NoRoom::of_the_mind("what runs already takes too much room".to_owned()));
        }
        let task = self.turn(turn_id).and_then(AgentTurn::fired_task)?;
        self.mind.tasks.get(task).filter(|task| matches!(task.what, TaskActivation::Time { .. }))?;
        let runs = others().filter(|turn| turn.fired_task() == Some(task)).count();
        (runs >= RUNS).then(|| NoRoom::of_a_task(format!("{runs} earlier runs of it are not over")))
    }

    /// A chain does not begin, and whoever wanted it is told.
    pub(super) fn refuse_chain(&mut self, turn_id: Uuid, no_room: &NoRoom) {
        let NoRoom { reason, for_people } = no_room;
        self.record_failure(turn_id, "too_many_chains", reason, 1, false);
        let reason = if self.limits.memory_rules > 0 { for_people } else { reason };
        if self.turn(turn_id).and_then(AgentTurn::fired_task).is_some() {
            self.tell_task_undone(turn_id, reason);
            return self.end_chain(turn_id, Uuid::nil(), &ChainOutcome::Failed, reason);
        }
        let text = format!("I cannot do this now: {reason}. Please cancel something, or try again later.");
        self.conclude_failed(turn_id, &text, "too_many_chains");
    }

    /// Returns the reason why no human can be asked to consent to this call, if there is one.
    pub(super) fn no_room_for_approval(&self, arguments: &str) -> Option<String> {
        if arguments.len() > CONSENT_BYTES {
            let found = arguments.len();
            let most = CONSENT_BYTES / 1024;
            return Some(format!("its arguments take {found} bytes, and at most {most} KB can be put to a human"));
        }
        let waits = |run: &&StepRun| matches!(run.state, StepState::Asked { .. });
        let chains = self.mind.turns.values().filter_map(|turn| turn.chain.as_ref());
        let waiting = chains.flat_map(|chain| &chain.steps).filter(waits).count();
        (waiting >= CONSENTS).then(|| format!("{waiting} actions wait for a human's consent already"))
    }

    /// Sees to it that another offer to the user is not one too many.
    pub(super) fn make_room_for_offer(&mut self, user: &str) {
        let open = self.mind.turns.iter().filter_map(|(id, turn)| {
            let offer = turn.offer.as_ref().filter(|offer| offer.accepted.is_none())?;
            Some((offer.since, *id, turn.user == user, offer.current_thread_id.clone()))
        });
        let mut open: Vec<_> = open.collect();
        // The last one is the oldest.
        open.sort_by_key(|(since, id, ..)| Reverse((*since, *id)));
        let his = open.iter().filter(|(_, _, his, _)| *his).count();
        let oldest = match () {
            () if his >= OFFERS => open.into_iter().rev().find(|(_, _, his, _)| *his),
            () if open.len() >= ALL_OFFERS => open.pop(),
            () => None,
        };
        if let Some((_, turn_id, _, current)) = oldest {
            self.go_to_thread(
                turn_id,
                &current,
                &ThreadMatch::Continue,
                "too many messages waited for a choice",
                &MatchedBy::Only,
            );
        }
    }

    /// Returns the reason why a message cannot be dealt with at all, if there is one.
    pub(super) fn busy_reason(&self) -> Option<String> {
        let waiting = self.mind.turns.values().filter(|turn| turn.due.is_none()).count();
        (waiting >= TURNS).then(|| format!("{waiting} things are not finished yet"))
    }

    /// A message is answered without being thought about.
    pub(super) fn decline_message(&mut self, turn_id: Uuid, reason: &str) {
        self.record_failure(turn_id, "too_many_turns", reason, 1, false);
        self.join_earlier_messages(turn_id);
        let text = format!("I cannot take this on: {reason}. Please cancel something, or try again later.");
        self.say_failure(turn_id, &text, "too_many_turns");
    }

    /// Tells the user that a task could not be done.
    pub(super) fn tell_task_undone(&mut self, turn_id: Uuid, reason: &str) {
        let Some(turn) = self.turn(turn_id).filter(|turn| !turn.user.is_empty()) else { return };
        let task = turn.fired_task().and_then(|task| self.mind.tasks.get(task));
        let title = task.map(|task| task.title.as_str()).unwrap_or_default();
        let text = format!("The task “{title}” could not be done: {reason}.");
        let failure = if self.limits.is_of_old_build() { "" } else { TASK_FAILED };
        self.say_to_user(turn_id, Say { text, failure: failure.to_owned(), ..Say::default() });
    }
}

impl AgentTurn {
    /// The task it carries out.
    pub(super) fn fired_task(&self) -> Option<Uuid> {
        match self.cause {
            TurnCause::Task(task) => Some(task),
            _ => None,
        }
    }
}
