//! Agents that ask agents, what a team may spend, and what its owner is told unasked.

use jiff::{SignedDuration, Timestamp};
use kairo_events::ids;
use kairo_proto::{
    v1::{AgentAction, AgentBriefed, Ask, DecidedEvent, Say, TaskAnswer, agent_action::Action, decided_event::Event},
    words::{RequestKind, StepState as Ended},
};
use serde_json::json;
use uuid::Uuid;

use super::{Deliberation, decision_events::saturating_index};
use crate::{
    call_target,
    intrinsics::{memory::lessons::BriefingAnswer, team},
    state::{AgentTurn, Profile, TurnCause},
    tasks::Task,
    team::{Amount, TeamActivity},
};

impl Deliberation<'_> {
    /// Asks another agent, as a step of a chain or by itself. The step is over when the answer comes.
    pub(super) fn ask_agent(&mut self, turn_id: Uuid, step: Option<(Uuid, usize)>, ask: Ask) {
        let chain_id = step.map(|(chain, _)| chain.to_string()).unwrap_or_default();
        let due_at = ask.due_at.clone();
        let at = step.map(|(_, step)| step);
        let due_at = if due_at.is_empty() { self.request_deadline(None) } else { due_at };
        // What was asked before in this decision is folded first: it has its share.
        self.apply_decided();
        let model_calls = self.share_of_calls(turn_id, at, &ask.kind_word());
        let step = at.map(saturating_index).unwrap_or_default();
        let ask = Ask { chain_id, step, due_at, model_calls, ..ask };
        self.add_event(turn_id, Event::Action(AgentAction { action: Some(Action::Ask(ask)) }));
    }

    /// Returns true if a call stops something that another agent does.
    pub(super) fn is_withdrawal(&self, tool: &str, arguments: &str) -> bool {
        tool == "action.cancel" && self.withdrawal_target(tool, arguments, call_target::TargetScope::All).is_some()
    }

    fn withdrawal_target(
        &self,
        tool: &str,
        arguments: &str,
        reach: call_target::TargetScope<'_>,
    ) -> Option<(Uuid, String)> {
        let (action, _) = call_target::find_target(&self.mind, tool, arguments, reach, self.decision.cursor);
        let asked = self.mind.in_flight.get(&action?)?.asked.clone()?;
        Some((action?, asked))
    }

    /// Has another agent stop what it was asked for, instead of calling a tool. False where it is about something else.
    pub(super) fn withdraw_from_agent(
        &mut self,
        turn_id: Uuid,
        step: Option<usize>,
        arguments: &str,
        reach: call_target::TargetScope<'_>,
    ) -> bool {
        let Some((action, agent)) = self.withdrawal_target("action.cancel", arguments, reach) else { return false };
        let user = self.turn(turn_id).map(|turn| turn.user.clone()).unwrap_or_default();
        let kind = RequestKind::Cancel.text();
        let ask = Ask { agent, kind, request_id: action.to_string(), user, ..Ask::default() };
        self.add_event(turn_id, Event::Action(AgentAction { action: Some(Action::Ask(ask)) }));
        if let Some(step) = step {
            self.end_step(turn_id, step, &Ended::Done, json!({ "status": "asked to stop" }), "");
        }
        true
    }

    /// Builds the answer to the agent that asked for a task, beside the task's ending; none if no agent asked for it.
    pub(super) fn task_answer(&self, turn_id: Uuid, task: &Task) -> Option<TaskAnswer> {
        let asked = task.requester()?;
        let is_member = self.mind.profile.as_ref().is_some_and(|profile| !profile.lead.is_empty());
        let told = |event: &DecidedEvent| {
            let Some(Event::TaskEnded(ended)) = &event.event else { return None };
            Some(Amount::from_proto(ended.answer.as_ref()?.spent.as_ref()))
        };
        let told = self.decision.events.iter().filter_map(told).fold(Amount::default(), Amount::plus);
        let spent = self.spent_before.plus(self.spent_here()).minus(told);
        let outside = self.turn(turn_id).map(|turn| self.mind.provenance_of(turn).marks());
        Some(TaskAnswer {
            agent: asked.agent.clone(),
            request_id: asked.request_id.clone(),
            spent: is_member.then(|| spent.to_proto()),
            model_calls_left: self.calls_to_return(turn_id, task.correlation(), asked.model_calls, Some(task.id)),
            outside: outside.unwrap_or_default(),
        })
    }

    /// Returns the amount that this decision has spent so far.
    pub(super) fn spent_here(&self) -> Amount {
        self.limits.prices.bill(&self.decision.completions)
    }

    /// Says what it cost.
    fn record_cost(&mut self) {
        let Amount { cost, unpriced, .. } = self.spent_here();
        (self.decision.cost, self.decision.unpriced_tokens) = (cost, unpriced);
    }

    /// Accounts for the decision as a whole, once it is complete: its cost, and the budget of the team.
    pub(super) fn account_cost(&mut self) {
        let due = self.mind.due_turn(self.input.sequence);
        let is_asked_for = due.is_some_and(|(_, turn)| turn.agent_request().is_some());
        let tells = |profile: &&Profile| profile.records_cost() || is_asked_for;
        let Some(profile) = self.mind.profile.as_ref().filter(tells) else { return };
        if !profile.counts_spending() {
            self.record_cost();
            return;
        }
        self.apply_decided();
        let Some(profile) = &self.mind.profile else { return };
        let spent = self.mind.team.spent_on(profile.day_of(self.input.envelope.time)).plus(self.spent_here());
        let reason = profile.team.as_ref().and_then(|team| team.reached_limit(spent));
        self.record_cost();
        match reason {
            Some(reason) if self.mind.may_begin_tasks() => self.pause_until_tomorrow(&reason),
            Some(_) => {}
            // Whatever an agent decides on the next day wakes its team: the task that was to do so may have been canceled.
            None => _ = self.resume_on_new_day(ids::derive(self.decision_id, "budget")),
        }
    }

    /// Nothing may be spent any more: nobody begins anything until the day is over, and the owner is told.
    fn pause_until_tomorrow(&mut self, reason: &str) {
        let Some(profile) = self.mind.profile.clone() else { return };
        let turn_id = ids::derive(self.decision_id, "budget");
        let thread_id = self.conversation_with(&profile.owner);
        let tomorrow = profile.next_day(self.input.envelope.time);
        for event in team::status_events(&profile, TeamActivity::Paused, RequestKind::Pause, reason, true) {
            self.add_team_event(turn_id, &thread_id, event);
        }
        let text = format!("The team rests until {tomorrow}: {reason}. What is under way is still finished.");
        self.say_unasked(turn_id, &thread_id, &profile.owner, text);
        self.plan_next_run(turn_id, tomorrow);
    }

    /// Resumes a team that was paused for its budget. Fails with the time of the next day if today's budget is still
    /// spent.
    pub(super) fn resume_on_new_day(&mut self, turn_id: Uuid) -> Result<(), Timestamp> {
        let leads = |profile: &Profile| profile.team.is_some() && self.mind.team.over_budget;
        let Some(profile) = self.mind.profile.clone().filter(leads) else { return Ok(()) };
        let now = self.input.envelope.time;
        let spent = self.mind.team.spent_on(profile.day_of(now));
        if profile.team.as_ref().is_some_and(|team| team.reached_limit(spent).is_some()) {
            return Err(profile.next_day(now));
        }
        for event in team::status_events(&profile, TeamActivity::Active, RequestKind::Resume, "a new day", false) {
            self.add_team_event(turn_id, "", event);
        }
        Ok(())
    }

    fn add_team_event(&mut self, turn_id: Uuid, thread_id: &str, event: Event) {
        self.add_event_to(turn_id, thread_id, self.input.envelope.correlation_id, event);
        self.apply_decided();
    }

    /// Sees to it that the agent asks itself what to do for its mission at this time.
    pub(super) fn plan_next_run(&mut self, turn_id: Uuid, at: Timestamp) {
        self.apply_decided();
        let turn = AgentTurn::new(TurnCause::Event, self.input.envelope.correlation_id, "", "");
        let context = self.intrinsic_context(turn_id, &turn, turn_id, &|_| false);
        if let Some(event) = team::next_run(&context, at) {
            self.add_event_to(turn_id, "", self.input.envelope.correlation_id, event);
            self.apply_decided();
        }
    }

    /// When the work is over: in a while or, where nothing may be spent any more, on the next day.
    pub(super) fn plan_run_after_pause(&mut self, turn_id: Uuid) {
        let Some(profile) = self.mind.profile.as_ref().filter(|profile| profile.is_lead()) else { return };
        let now = self.input.envelope.time;
        let pause = SignedDuration::from_secs(i64::from(profile.next_run_after));
        let at = match self.mind.team {
            ref team if team.over_budget => profile.next_day(now),
            ref team if team.status == TeamActivity::Archived => return,
            _ => now.checked_add(pause).unwrap_or(now),
        };
        self.plan_next_run(turn_id, at);
    }

    /// Tells the owner the outcome of a session, or records the reason for not telling it.
    pub(super) fn brief_owner(&mut self, turn_id: Uuid, thread_id: &str, briefing: BriefingAnswer) {
        let Some(owner) = self.mind.profile.as_ref().map(|profile| profile.owner.clone()) else { return };
        let BriefingAnswer { told, reason, summary, text } = briefing;
        let briefed = AgentBriefed { thread_id: thread_id.to_owned(), user: owner.clone(), told, reason, summary };
        let conversation = if told { self.conversation_with(&owner) } else { String::new() };
        self.add_event_to(turn_id, &conversation, self.input.envelope.correlation_id, Event::Briefed(briefed));
        if told {
            self.apply_decided();
            self.say_unasked(turn_id, &conversation, &owner, text);
        }
    }

    fn say_unasked(&mut self, turn_id: Uuid, thread_id: &str, user: &str, text: String) {
        let say = Say { text, user: user.to_owned(), ..Say::default() };
        let action = AgentAction { action: Some(Action::Say(say)) };
        self.add_event_to(turn_id, thread_id, self.input.envelope.correlation_id, Event::Action(action));
    }

    /// The thread in which a user is told what they did not ask for: the one they are in, or their own.
    pub(super) fn conversation_with(&self, user: &str) -> String {
        self.mind.conversation_with(self.agent_name(), user)
    }
}
