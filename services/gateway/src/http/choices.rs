//! `POST /v1/choices`: a user's answer to something an agent put to them.

use kairo_core::{
    ids::Name,
    subjects::{Route, USER_CHOICE},
};
use kairo_proto::words::OfferAnswer;
use kairo_proto::{Body, v1::UserChoice};
use kairo_read_model::Kind;
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, ingest::Ingest};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{CLIENT_ID, Fields, NAME, UUID, client_id, name, one_of, parsed, text},
    ownership::{self, About},
    problem::Problem,
};

/// A user's choice on an offer of an agent.

#[derive(Clone, Debug)]
pub struct Choice {
    user: Name,
    agent: Name,
    offer_id: Uuid,
    option: &'static str,
    choice_id: Option<String>,
}

impl Ingest for Choice {
    const KIND: &'static str = "choice";
    const ID: &'static str = "choice_id";
    const ROUTE: Route = USER_CHOICE;

    fn read(mut fields: Fields<Value>, _: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, text(name));
        let agent = fields.required("agent", NAME, text(name));
        let offer_id = fields.required("offer_id", UUID, text(parsed));
        let option = fields.required("option", OfferAnswer::WORDS.join(" or "), text(one_of(OfferAnswer::WORDS)));
        let choice_id = fields.optional("choice_id", CLIENT_ID, text(client_id));
        fields.complete(|| Some(Self { user: user?, agent: agent?, offer_id: offer_id?, option: option?, choice_id }))
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn agent(&self) -> Option<&Name> {
        Some(&self.agent)
    }

    fn id(&self) -> Option<&str> {
        self.choice_id.as_deref()
    }

    fn about(&self) -> Option<About> {
        Some(About::Thing("offer_id", Kind::Offer, self.offer_id))
    }

    async fn prepare(&mut self, gateway: &Gateway, _caller: &Caller) -> Result<(), Problem> {
        let (user, agent) = (self.user.as_str(), self.agent.as_str());
        ownership::hold_to_asked(gateway, user, agent, Kind::Offer, self.offer_id).await
    }

    fn body(self, id: &str) -> Body {
        UserChoice {
            choice_id: id.to_owned(),
            user: self.user.to_string(),
            agent: self.agent.to_string(),
            offer_id: self.offer_id.to_string(),
            option: self.option.to_owned(),
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named() {
        let body = br#"{"user": "Ann", "offer_id": "7", "option": "soup", "choice_id": "a b", "mood": "good"}"#;
        let problem = Choice::read(Fields::from_json(body).unwrap(), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["user", "agent", "offer_id", "option", "choice_id", "mood"]);
        assert_eq!(problem.errors.get(3).map(|error| error.expected.as_str()), Some("accept or decline"));
    }
}
