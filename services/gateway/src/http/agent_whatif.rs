//! `POST /v1/agents/{agent}/whatif`: which decisions would be others, had a message of an agent's log not been there or said something
//! else. No model is asked.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::LogMessage;
use kairo_replay::whatif::{Cone, MessageChange, WhatIf, WhatIfError};
use serde::Serialize;
use serde_json::Value;

use super::{
    Gateway,
    blocking_computation::{WaitingClient, compute_on_agent_log},
    body::JsonBody,
    query,
};
use crate::{
    fields::{RequestFields, json_bool},
    problem::{FieldError, Problem},
};

/// A cone of which as much is told as an answer may have.
#[derive(Debug, Serialize)]
pub struct ConeReport {
    #[serde(flatten)]
    cone: Cone,
    /// Messages that it reaches and that are not told.
    left_out: usize,
}

pub async fn compute_whatif(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Json<ConeReport>, Problem> {
    let agent = query::path_agent(path)?;
    let (at, change) = parse_body(&body)?;
    let most = gateway.config.max_limit as usize;
    let told = compute_on_agent_log(&gateway, &agent, u64::MAX, move |messages, wanted| {
        trace_cone(at, change, messages, wanted).map(|cone| truncate_cone(cone, most))
    });
    told.await?.map(Json).map_err(|why| impossible_problem(at, &why))
}

pub fn parse_body(body: &[u8]) -> Result<(u64, MessageChange), Problem> {
    let mut fields = RequestFields::from_json(body)?;
    let at = fields.required("at", "the sequence of a message", Value::as_u64);
    let drop = fields.optional("drop", "true or false", json_bool).unwrap_or(false);
    let edit = fields.optional("edit", "a JSON object", |edit| edit.is_object().then(|| edit.to_string()));
    if drop == edit.is_some() && !fields.has_errors() {
        fields.reject("drop", "true, or else the new body in edit");
    }
    fields.complete(|| Some((at?, edit.map_or(MessageChange::Drop, |edit| MessageChange::Edit(edit.into_bytes())))))
}

fn trace_cone(
    at: u64,
    change: MessageChange,
    messages: &[LogMessage],
    wanted: &WaitingClient,
) -> Result<Cone, WhatIfError> {
    let mut whatif = WhatIf::new(at, change, None);
    for message in wanted.while_waiting(messages) {
        whatif.apply(message)?;
    }
    whatif.into_cone()
}

fn truncate_cone(mut cone: Cone, most: usize) -> ConeReport {
    let left_out = cone.reached.len().saturating_sub(most);
    cone.reached.truncate(most);
    ConeReport { cone, left_out }
}

fn impossible_problem(at: u64, why: &WhatIfError) -> Problem {
    match why {
        WhatIfError::Broken(broken) => Problem::unreplayable(broken),
        WhatIfError::NotThere(_) => Problem::not_found(format!("message {at} is not in the log of this agent")),
        WhatIfError::Decision { .. } | WhatIfError::Unreadable(_) => field_problem("at", why, Some(at.to_string())),
        WhatIfError::Body { .. } | WhatIfError::Unchanged(_) => field_problem("edit", why, None),
    }
}

fn field_problem(field: &str, why: &WhatIfError, found: Option<String>) -> Problem {
    Problem::invalid_fields(vec![FieldError { field: field.to_owned(), expected: why.to_string(), found }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_thing_or_the_other() {
        assert_eq!(parse_body(br#"{ "at": 7, "drop": true }"#).unwrap(), (7, MessageChange::Drop));
        let edit = parse_body(br#"{ "at": 7, "edit": { "text": "hi" } }"#).unwrap();
        assert_eq!(edit, (7, MessageChange::Edit(br#"{"text":"hi"}"#.to_vec())));
        let fields = |body: &str| {
            let problem = parse_body(body.as_bytes()).unwrap_err();
            problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
        };
        assert_eq!(fields(r#"{ "at": 7 }"#), ["drop"]);
        assert_eq!(fields(r#"{ "at": 7, "drop": true, "edit": {} }"#), ["drop"]);
        assert_eq!(fields(r#"{ "at": "x", "edit": 1 }"#), ["at", "edit"]);
    }

    #[test]
    fn what_cannot_be_changed_is_told_by_its_field() {
        let decision = impossible_problem(7, &WhatIfError::Decision { at: 7, input: 6 });
        assert_eq!((decision.errors[0].field.as_str(), decision.status.as_u16()), ("at", 400));
        assert_eq!(impossible_problem(7, &WhatIfError::NotThere(7)).status.as_u16(), 404);
        assert_eq!(impossible_problem(7, &WhatIfError::Unchanged(7)).errors[0].field, "edit");
    }
}
