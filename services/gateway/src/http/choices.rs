//! `POST /v1/choices`: a user's answer to something an agent put to them.

use kairo_core::{
    ids::Name,
    subjects::{Route, USER_CHOICE},
};
use kairo_proto::words::OfferAnswer;
use kairo_proto::{Body, v1::UserChoice};
use kairo_read_model::OwnedKind;
use serde_json::Value;
use uuid::Uuid;

use super::{Gateway, ingest::UserInput};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{CLIENT_ID, NAME, RequestFields, UUID, json_text, one_of, parse_client_id, parse_name, parse_text},
    ownership::{self, OrderSubject},
    problem::Problem,
};

/// A user's choice on an offer of an agent.

#[derive(Clone, Debug)]
pub struct ChoiceInput {
    user: Name,
    agent: Name,
    offer_id: Uuid,
    option: &'static str,
    choice_id: Option<String>,
}

impl UserInput for ChoiceInput {
    const KIND: &'static str = "choice";
    const ID: &'static str = "choice_id";
    const ROUTE: Route = USER_CHOICE;

    fn from_fields(mut fields: RequestFields<Value>, _: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.required("agent", NAME, json_text(parse_name));
        let offer_id = fields.required("offer_id", UUID, json_text(parse_text));
        let option = fields.required("option", OfferAnswer::WORDS.join(" or "), json_text(one_of(OfferAnswer::WORDS)));
        let choice_id = fields.optional("choice_id", CLIENT_ID, json_text(parse_client_id));
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

    fn concerned_object(&self) -> Option<OrderSubject> {
        Some(OrderSubject::Thing("offer_id", OwnedKind::Offer, self.offer_id))
    }

    async fn prepare(&mut self, gateway: &Gateway, _caller: &Caller) -> Result<(), Problem> {
        let user = self.user.as_str();
        let agent = self.agent.as_str();
        ownership::require_asked_user(gateway, user, agent, OwnedKind::Offer, self.offer_id).await
    }

    fn into_body(self, id: &str) -> Body {
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
        let problem =
            ChoiceInput::from_fields(RequestFields::from_json(body).unwrap(), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["user", "agent", "offer_id", "option", "choice_id", "mood"]);
        assert_eq!(problem.errors.get(3).map(|error| error.expected.as_str()), Some("accept or decline"));
    }
}
