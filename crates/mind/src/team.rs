//! An agent's standing in the team that it leads or works in: permission to begin tasks, and spending. Built from the
//! log.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use kairo_events::{
    prices::{TokenCost, parse_budget},
    record::Record,
};
use kairo_proto::{
    v1::{self, AgentDecision, AgentProfile, Completion, Spent, TeamChanged},
    words::TeamStatus,
};
use serde::{Deserialize, Serialize};

use super::{
    intrinsics,
    state::{AgentState, DirectOrder, Profile, TurnCause},
    thread::Thread,
};

/// A lead's team, as its profile defines it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// By agent, what it is good for.
    pub workers: Vec<(String, String)>,
    /// Daily limits of tokens and of cost; none for no limit.
    pub tokens_per_day: Option<u64>,
    pub cost_per_day: Option<u64>,
}

/// The standing of a lead or a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeamMembership {
    pub status: TeamActivity,
    /// It goes on by itself when the day is over.
    pub over_budget: bool,
    /// Of a worker: where the decision of its lead stands that said last how it is.
    pub told: u64,
    /// Of a lead: the day that the team's spending is counted of, in its zone.
    pub day: Option<Date>,
    /// Of a lead: what the team spent on that day. Of a worker: what it has not told its lead of yet.
    pub spent: Amount,
}

/// The status of a lead or a worker; only an active one begins tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TeamActivity {
    #[default]
    Active,
    Paused,
    Archived,
}

/// As [`Spent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    pub tokens: u64,
    pub cost: u64,
    /// Of the tokens, those whose price is not known: the cost says nothing of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unpriced: u64,
}

// As serde wants it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Amount {
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost.saturating_add(other.cost),
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }

    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: self.cost.saturating_sub(other.cost),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }

    pub fn to_proto(self) -> Spent {
        Spent { tokens: self.tokens, cost: self.cost, unpriced_tokens: self.unpriced }
    }

    pub fn from_proto(spent: Option<&Spent>) -> Self {
        let of = |spent: &Spent| Self { tokens: spent.tokens, cost: spent.cost, unpriced: spent.unpriced_tokens };
        spent.map(of).unwrap_or_default()
    }

    /// Returns the cost of a decision, including the calls given up before it.
    pub fn cost_of(decision: &AgentDecision) -> Self {
        let AgentDecision { cost, unpriced_tokens, given_up_cost, given_up_unpriced_tokens, .. } = decision;
        Self {
            tokens: 0,
            cost: cost.saturating_add(*given_up_cost),
            unpriced: unpriced_tokens.saturating_add(*given_up_unpriced_tokens),
        }
    }

    /// The money, as a decimal number; none where it is not known.
    pub fn money(self) -> Option<String> {
        (self.unpriced == 0).then(|| TokenCost::of_units(self.cost).to_string())
    }
}

/// The tokens of some answers of models.
pub fn completion_tokens(completions: &[Completion]) -> u64 {
    completions.iter().fold(0, |sum: u64, it| sum.saturating_add(it.input_tokens).saturating_add(it.output_tokens))
}

impl Team {
    pub(super) fn from_proto(team: &v1::Team) -> Self {
        Self {
            workers: team.workers.iter().map(|worker| (worker.agent.clone(), worker.description.clone())).collect(),
            tokens_per_day: (team.tokens_per_day > 0).then_some(team.tokens_per_day),
            cost_per_day: parse_budget(&team.cost_per_day),
        }
    }

    /// Returns the daily limit that is reached, in words; none while more may be spent.
    pub fn reached_limit(&self, spent: Amount) -> Option<String> {
        let tokens = self.tokens_per_day.filter(|most| spent.tokens >= *most);
        let cost = || self.cost_per_day.and_then(|most| Some((most, spent.reached_cost(most)?)));
        match (tokens, cost()) {
            (Some(most), _) => Some(format!("{} of {most} tokens of the day are spent", spent.tokens)),
            (None, Some((_, unknown))) if spent.unpriced > 0 => Some(unknown),
            (None, Some(_)) => Some("the money of the day is spent".to_owned()),
            (None, None) => None,
        }
    }
}

impl TeamMembership {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the amount spent on this day.
    pub fn spent_on(&self, day: Date) -> Amount {
        if self.day == Some(day) { self.spent } else { Amount::default() }
    }
}

impl Profile {
    /// Returns true if the agent works for a mission of its own and briefs its owner.
    pub fn is_lead(&self) -> bool {
        !self.mission.is_empty() && self.background
    }

    /// Returns true if the agent's decisions record their cost.
    pub fn records_cost(&self) -> bool {
        self.counts_spending() || self.session.cost.is_some() || self.caps.bounds_money()
    }

    /// Returns true if the agent's spending is counted: it leads a team or has a lead.
    pub fn counts_spending(&self) -> bool {
        self.team.is_some() || !self.lead.is_empty()
    }

    /// The day of its zone.
    pub fn day_of(&self, at: Timestamp) -> Date {
        at.to_zoned(TimeZone::get(&self.time_zone).unwrap_or(TimeZone::UTC)).date()
    }

    /// When the day after this time begins in its zone.
    pub fn next_day(&self, at: Timestamp) -> Timestamp {
        let zone = TimeZone::get(&self.time_zone).unwrap_or(TimeZone::UTC);
        let next = self.day_of(at).tomorrow().and_then(|day| day.to_zoned(zone));
        next.map_or(at, |start| start.timestamp())
    }
}

impl AgentState {
    /// Takes in a profile. One that has a mission where none was before goes to work on it.
    pub(super) fn apply_profile(&mut self, record: &Record, profile: &AgentProfile) {
        let had_mission = self.profile.as_ref().is_some_and(Profile::is_lead);
        self.reset_removed_submodules();
        let before = self.profile.replace(Profile::new(record.sequence, profile));
        self.reset_spending_for_new_caps(before.as_ref().map(|before| &before.caps));
        let Some(profile) = &self.profile else { return };
        if !had_mission && profile.is_lead() {
            let order = DirectOrder { tool: intrinsics::team::START.to_owned(), arguments: "{}".to_owned() };
            let owner = profile.owner.clone();
            self.begin_turn(record.envelope.id, record, TurnCause::Order(order), "", &owner);
        }
    }

    /// Adds the thread of a message that the agent sends unasked, unless it is known.
    pub(super) fn ensure_thread(&mut self, thread_id: &str, user: &str) {
        if !thread_id.is_empty() && !user.is_empty() {
            let thread = Thread { user: user.to_owned(), ..Thread::default() };
            self.threads.entry(thread_id.to_owned()).or_insert_with(|| thread.into());
        }
    }

    /// The team it leads.
    pub fn led_team(&self) -> Option<&Team> {
        self.profile.as_ref()?.team.as_ref()
    }

    /// Returns true if the agent may begin tasks.
    pub fn may_begin_tasks(&self) -> bool {
        self.team.status == TeamActivity::Active
    }

    pub(super) fn apply_team_changed(&mut self, changed: &TeamChanged) {
        self.team.status = match changed.status_word() {
            TeamStatus::Active => TeamActivity::Active,
            TeamStatus::Paused => TeamActivity::Paused,
            TeamStatus::Archived => TeamActivity::Archived,
            TeamStatus::Unknown(_) => return,
        };
        self.team.over_budget = changed.over_budget;
        self.team.told = changed.decided;
    }

    /// Takes in what a decision took.
    pub(super) fn count_team_spending(&mut self, at: Timestamp, decision: &AgentDecision) {
        let Some(profile) = self.profile.as_ref().filter(|profile| profile.counts_spending()) else { return };
        let given_up = decision.given_up.iter().map(|call| call.input_tokens.saturating_add(call.output_tokens));
        let tokens = given_up.fold(completion_tokens(&decision.completions), u64::saturating_add);
        let day = profile.team.is_some().then(|| profile.day_of(at));
        self.spend_on_day(day, Amount { tokens, ..Amount::cost_of(decision) });
    }

    /// Takes in what a worker told.
    pub(super) fn add_worker_spending(&mut self, at: Timestamp, spent: Amount) {
        if let Some(day) = self.profile.as_ref().filter(|it| it.team.is_some()).map(|profile| profile.day_of(at)) {
            self.spend_on_day(Some(day), spent);
        }
    }

    fn spend_on_day(&mut self, day: Option<Date>, amount: Amount) {
        if day.is_some() && self.team.day != day {
            (self.team.day, self.team.spent) = (day, Amount::default());
        }
        self.team.spent = self.team.spent.plus(amount);
    }
}
