//! `POST /v1/approvals`: a human's verdict on an action.

use kairo_core::{
    ids::Name,
    subjects::{Route, USER_APPROVAL},
    vocabulary::ANSWERS,
};
use kairo_proto::words::Verdict;
use kairo_proto::{Body, v1::UserApproval};
use kairo_read_model::OwnedKind;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Gateway, ingest::UserInput, query, tools};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{
        CLIENT_ID, NAME, RequestFields, UUID, bounded_text, json_text, one_of, parse_client_id, parse_name, parse_text,
    },
    ownership::{self, OrderSubject},
    problem::{FieldError, Problem},
};

/// A verdict on an action: the finding about one in doubt, or the answer to one that waits for consent.

#[derive(Clone, Debug)]
pub struct ApprovalInput {
    user: Name,
    agent: Name,
    action_id: Uuid,
    verdict: &'static str,
    note: Option<String>,
    approval_id: Option<String>,
    /// The arguments approved in place of those that were asked for.
    arguments: Option<Map<String, Value>>,
}

/// The largest arguments, in bytes.
const MAX_ARGUMENTS: usize = 32_768;

impl UserInput for ApprovalInput {
    const KIND: &'static str = "approval";
    const ID: &'static str = "approval_id";
    const ROUTE: Route = USER_APPROVAL;

    fn from_fields(mut fields: RequestFields<Value>, limits: &GatewayConfig) -> Result<Self, Problem> {
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.required("agent", NAME, json_text(parse_name));
        let action_id = fields.required("action_id", UUID, json_text(parse_text));
        let verdict = fields.required(
            "verdict",
            format!("one of {}", Verdict::WORDS.join(", ")),
            json_text(one_of(Verdict::WORDS)),
        );
        let longest = limits.max_text_bytes;
        let note = fields.optional("note", format!("text of 1 to {longest} bytes"), json_text(bounded_text(longest)));
        let approval_id = fields.optional("approval_id", CLIENT_ID, json_text(parse_client_id));
        let objects = format!("a JSON object of at most {MAX_ARGUMENTS} bytes");
        let arguments = fields.optional("arguments", objects, parse_arguments);
        if arguments.is_some() && verdict.is_some_and(|verdict| Verdict::from(verdict) != Verdict::Approved) {
            fields.reject("arguments", "no arguments, since only an approved call can have others");
        }
        fields.complete(|| {
            let user = user?;
            let agent = agent?;
            let action_id = action_id?;
            let verdict = verdict?;
            Some(Self { user, agent, action_id, verdict, note, approval_id, arguments })
        })
    }

    /// A program on this machine, which an agent may have started, is not the human who is asked.
    fn authorize(&self, caller: &Caller) -> Result<(), Problem> {
        caller.require_key(self.required_scope())
    }

    fn user(&self) -> &Name {
        &self.user
    }

    fn agent(&self) -> Option<&Name> {
        Some(&self.agent)
    }

    fn id(&self) -> Option<&str> {
        self.approval_id.as_deref()
    }

    fn concerned_object(&self) -> Option<OrderSubject> {
        Some(OrderSubject::Thing("action_id", OwnedKind::Approval, self.action_id))
    }

    /// Lets anybody report the fate of an action in doubt; only the user who was asked may consent or refuse.
    async fn prepare(&mut self, gateway: &Gateway, _caller: &Caller) -> Result<(), Problem> {
        match Verdict::from(self.verdict) {
            Verdict::Approved | Verdict::Rejected => {
                let user = self.user.as_str();
                let agent = self.agent.as_str();
                ownership::require_asked_user(gateway, user, agent, OwnedKind::Approval, self.action_id).await?;
            }
            Verdict::Happened | Verdict::DidNotHappen | Verdict::Unknown(_) => {}
        }
        self.check_arguments(gateway).await
    }

    fn into_body(self, id: &str) -> Body {
        UserApproval {
            approval_id: id.to_owned(),
            user: self.user.to_string(),
            agent: self.agent.to_string(),
            action_id: self.action_id.to_string(),
            verdict: self.verdict.to_owned(),
            note: self.note.unwrap_or_default(),
            arguments: self.arguments.map(|arguments| Value::Object(arguments).to_string()).unwrap_or_default(),
        }
        .into()
    }
}

impl ApprovalInput {
    /// Refuses changed arguments that the tool does not take, or that not every running service understands. If the read
    /// model does not know the call yet, the agent itself has to check them.
    async fn check_arguments(&self, gateway: &Gateway) -> Result<(), Problem> {
        let Some(arguments) = &self.arguments else { return Ok(()) };
        if gateway.bus.current_epoch().await? < ANSWERS {
            let detail = format!("arguments can be changed from epoch {ANSWERS} on: see kairo fleet promote");
            return Err(Problem::conflict(detail));
        }
        let call = async {
            let snapshot = ownership::current_snapshot(gateway, self.user.as_str()).await?;
            query::await_answer(gateway, snapshot.find_approval(self.action_id)).await
        };
        let Ok(Some(call)) = call.await else { return Ok(()) };
        if kairo_mind::intrinsics::by_name(&call.tool).is_some() {
            let expected = format!("no other arguments, since those of {} cannot be changed", call.tool);
            return Err(Problem::invalid_fields(vec![FieldError {
                field: "arguments".to_owned(),
                expected,
                found: None,
            }]));
        }
        let Some(schema) = tools::schema_of(gateway, &call.tool).await? else { return Ok(()) };
        let mistakes = kairo_mind::schema::mistakes(&schema, arguments);
        if mistakes.is_empty() {
            return Ok(());
        }
        let expected = format!("arguments that {} takes: {}", call.tool, mistakes.join("; "));
        Err(Problem::invalid_fields(vec![FieldError { field: "arguments".to_owned(), expected, found: None }]))
    }
}

fn parse_arguments(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().filter(|_| value.to_string().len() <= MAX_ARGUMENTS).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_fields(body: &str) -> Vec<String> {
        let fields = RequestFields::from_json(body.as_bytes()).unwrap();
        let problem = ApprovalInput::from_fields(fields, &GatewayConfig::default()).unwrap_err();
        problem.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn verdicts_are_about_doubts_and_about_consent() {
        for verdict in Verdict::WORDS.iter().copied() {
            let body = format!(
                r#"{{"user": "ann", "agent": "a", "action_id": "{}", "verdict": "{verdict}"}}"#,
                Uuid::from_u128(7)
            );
            let fields = RequestFields::from_json(body.as_bytes()).unwrap();
            let approval = ApprovalInput::from_fields(fields, &GatewayConfig::default()).unwrap();
            let Body::UserApproval(approval) = approval.into_body("p-1") else { panic!() };
            assert_eq!((approval.verdict.as_str(), approval.note.as_str()), (verdict, ""));
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        assert_eq!(wrong_fields("{}"), ["user", "agent", "action_id", "verdict"]);
        let body =
            r#"{"user": 1, "agent": "", "action_id": "x", "verdict": "maybe", "note": "", "approval_id": "", "x": 1}"#;
        assert_eq!(wrong_fields(body), ["user", "agent", "action_id", "verdict", "note", "approval_id", "x"]);
        let with = |verdict: &str, arguments: &str| {
            let id = Uuid::from_u128(7);
            format!(
                r#"{{"user": "ann", "agent": "a", "action_id": "{id}", "verdict": "{verdict}", "arguments": {arguments}}}"#
            )
        };
        assert_eq!(wrong_fields(&with("rejected", "{}")), ["arguments"]);
        let long = format!(r#"{{"text": "{}"}}"#, "x".repeat(MAX_ARGUMENTS));
        for wrong in ["[]", "7", r#""{}""#, &long] {
            assert_eq!(wrong_fields(&with("approved", wrong)), ["arguments"], "{wrong:.20}");
        }
    }
}
