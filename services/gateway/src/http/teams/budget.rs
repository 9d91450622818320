//! The daily budget of a team, set where the team is resumed.

use kairo_core::ids::Name;
use kairo_proto::v1::{AgentProfile, Team};
use serde_json::Value;

use crate::{
    auth::Caller,
    fields::{RequestFields, json_text},
    http::{
        Gateway,
        agents::{COST, DefinitionWriter, caps, parse_cost, parse_tokens},
    },
    problem::{FieldError, Problem},
};

const TOKENS_PER_DAY: &str = "tokens_per_day";
const COST_PER_DAY: &str = "cost_per_day";

/// The changes to a team's daily budget; every field is none if nothing changes.
#[derive(Clone, Debug, Default)]
pub struct BudgetChange {
    tokens_per_day: Option<u64>,
    cost_per_day: Option<String>,
}

impl BudgetChange {
    pub fn from_fields(fields: &mut RequestFields<Value>) -> Self {
        let has_tokens = fields.has(TOKENS_PER_DAY);
        let tokens = parse_tokens(fields, TOKENS_PER_DAY);
        let cost_per_day = fields.optional(COST_PER_DAY, COST, json_text(parse_cost));
        Self { tokens_per_day: has_tokens.then_some(tokens), cost_per_day }
    }

    /// The first field that is given.
    pub fn first_field(&self) -> Option<&'static str> {
        let tokens = self.tokens_per_day.map(|_| TOKENS_PER_DAY);
        tokens.or_else(|| self.cost_per_day.as_ref().map(|_| COST_PER_DAY))
    }

    /// Changes what the team may spend, if its owner says so.
    pub async fn store_for_team(
        &self,
        gateway: &Gateway,
        caller: &Caller,
        team: &Name,
        user: &Name,
    ) -> Result<(), Problem> {
        if self.first_field().is_none() {
            return Ok(());
        }
        let defining = DefinitionWriter { gateway, caller, traceparent: None };
        let before = defining.current_profile(team).await?;
        let Some((before, of_team)) = before.and_then(|lead| Some((lead.clone(), lead.team?))) else {
            return Err(Problem::not_found(format!("there is no team named {team}")));
        };
        require_owner(&before, user)?;
        let raised = AgentProfile { team: Some(self.merge_into(of_team)), ..before };
        caps::require_prices(gateway, &raised).await?;
        defining.write(team, &raised, |before| require_owner(before, user)).await?;
        Ok(())
    }

    fn merge_into(&self, team: Team) -> Team {
        Team {
            tokens_per_day: self.tokens_per_day.unwrap_or(team.tokens_per_day),
            cost_per_day: self.cost_per_day.clone().unwrap_or(team.cost_per_day),
            workers: team.workers,
        }
    }
}

/// Refuses whoever is not the owner.
fn require_owner(lead: &AgentProfile, user: &Name) -> Result<(), Problem> {
    if lead.owner == user.as_str() {
        return Ok(());
    }
    let expected = format!("the owner of the team {}, who alone says what it may spend", lead.agent);
    Err(Problem::invalid_fields(vec![FieldError { field: "user".to_owned(), expected, found: Some(user.to_string()) }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> BudgetChange {
        BudgetChange::from_fields(&mut RequestFields::from_json(body.as_bytes()).unwrap())
    }

    #[test]
    fn what_is_not_given_stays_as_it_is() {
        let before = || Team { tokens_per_day: 7, cost_per_day: "2.50".to_owned(), ..Team::default() };
        for (body, field, tokens, cost) in [
            ("{}", None, 7, "2.50"),
            (r#"{"tokens_per_day": 0}"#, Some("tokens_per_day"), 0, "2.50"),
            (r#"{"tokens_per_day": 9, "cost_per_day": "3"}"#, Some("tokens_per_day"), 9, "3"),
            (r#"{"cost_per_day": "0.50"}"#, Some("cost_per_day"), 7, "0.50"),
        ] {
            let budget = read(body);
            assert_eq!(budget.first_field(), field, "{body}");
            let Team { tokens_per_day, cost_per_day, .. } = budget.merge_into(before());
            assert_eq!((tokens_per_day, cost_per_day.as_str()), (tokens, cost), "{body}");
        }
    }
}
