//! Asking models within what the agent may spend: before each call it is looked at what was spent, as the log says. What is
//! under way when a cap is reached is not cut short, so a cap is passed by no more than one call of each turn.

use kairo_proto::words::{SubmoduleFailure, TaskSource};
use uuid::Uuid;

use super::{AnswerFailure, AwaitedAnswer, Deliberation, Purpose};
use crate::{caps::ReachedCap, state::Profile, team::Amount, tokens};

impl Deliberation<'_> {
    /// Asks a question, unless a cap is reached: then it is dealt with as one that has no answer.
    pub(super) fn enqueue_question(&mut self, asked: AwaitedAnswer) {
        let reached = self.reached_cap(asked.question.request.tier).or_else(|| self.reached_call_cap(asked.turn));
        match reached {
            None => self.asked.push(asked),
            Some(reached) => self.unasked.push_back((asked, reached)),
        }
    }

    /// The turn to go on with, once every question was dealt with that is not asked.
    pub(super) fn next_turn(&mut self) -> Option<Uuid> {
        while let Some((asked, reached)) = self.unasked.pop_front() {
            self.apply_decided();
            self.go_without_answer(asked, reached);
        }
        self.work.pop_front()
    }

    /// The cap that allows no call of this tier. What was asked already in this decision counts with what its requests take.
    fn reached_cap(&self, tier: &str) -> Option<ReachedCap> {
        let profile = self.mind.profile.as_ref().filter(|profile| !profile.caps.is_nothing())?;
        let asked = self.asked.iter().map(|asked| tokens::of_request(&asked.question.request) as u64);
        let here = self.spent_here();
        let here = Amount { tokens: asked.fold(here.tokens, u64::saturating_add), ..here };
        let now = self.input.envelope.time;
        let reached = profile.reached_cap(&self.mind.spending, here, now);
        reached.or_else(|| profile.unknown_cost(&self.limits.prices, tier))
    }

    fn go_without_answer(&mut self, asked: AwaitedAnswer, reached: ReachedCap) {
        if let Purpose::Submodule(voice) = &asked.purpose {
            let voice = voice.clone();
            let said = Err((SubmoduleFailure::Failed, reached.text));
            return self.receive_submodule_reply(&asked, &voice, said);
        }
        if !self.is_answer_wanted(&asked) {
            return self.work.push_back(asked.turn);
        }
        // Nobody waits for a summary, or for keywords.
        if matches!(asked.purpose, Purpose::Summarize { .. } | Purpose::Keywords(_)) {
            return;
        }
        if matches!(asked.purpose, Purpose::Promise { .. }) {
            return self.resolve_unclear_promise(&asked);
        }
        let failure =
            AnswerFailure { kind: reached.kind.to_owned(), message: reached.text, ..AnswerFailure::default() };
        self.record_failure(asked.turn, &failure.kind, &failure.message, asked.question.attempt, false);
        self.give_up(asked, &failure);
    }

    /// A turn ends since a cap is reached. What is queued waits for the next day, where that helps.
    pub(super) fn end_at_cap(&mut self, turn_id: Uuid, failure: &AnswerFailure) {
        let text = format!("I could not finish this: {}.", failure.message);
        let waits = self.queued_task_of(turn_id).zip(self.cap_reset_time());
        let Some((task, until)) = waits else { return self.conclude_for_good(turn_id, &text, &failure.kind) };
        self.requeue_task_until(turn_id, &task, &failure.message, true, until);
        if task.source == TaskSource::User.as_str() && task.failed_sessions() == 0 {
            let text = format!("“{}” has to wait until {until}: {}.", task.title, failure.message);
            self.tell_task_user(turn_id, &task, &text, "");
        }
    }

    /// When a cap of a day begins anew that is reached; none where one in total is, or none of this agent.
    fn cap_reset_time(&self) -> Option<jiff::Timestamp> {
        let reached =
            |profile: &Profile| profile.reached_cap(&self.mind.spending, self.spent_here(), self.input.envelope.time);
        self.mind.profile.as_ref().and_then(reached)?.until
    }
}
