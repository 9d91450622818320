//! `POST /v1/agents/{agent}/whatif`: which decisions would be others, had a message of an agent's log not been there or said something
//! else. No model is asked.

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::v1::LogMessage;
use kairo_replay::whatif::{Change, Cone, Impossible, WhatIf};
use serde::Serialize;
use serde_json::Value;

use super::{
    Gateway,
    body::JsonBody,
    computing::{Wanted, of_part},
    query,
};
use crate::{
    fields::{Fields, flag},
    problem::{FieldError, Problem},
};

/// A cone of which as much is told as an answer may have.
#[derive(Debug, Serialize)]
pub struct Told {
    #[serde(flatten)]
    cone: Cone,
    /// Messages that it reaches and that are not told.
    left_out: usize,
}

pub async fn post(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    JsonBody(body): JsonBody,
) -> Result<Json<Told>, Problem> {
    let agent = query::agent(path)?;
    let (at, change) = read(&body)?;
    let most = gateway.config.max_limit as usize;
    let told = of_part(&gateway, &agent, u64::MAX, move |messages, wanted| {
        cone(at, change, messages, wanted).map(|cone| told(cone, most))
    });
    told.await?.map(Json).map_err(|why| refused(at, &why))
}

pub fn read(body: &[u8]) -> Result<(u64, Change), Problem> {
    let mut fields = Fields::from_json(body)?;
    let at = fields.required("at", "the sequence of a message", Value::as_u64);
    let drop = fields.optional("drop", "true or false", flag).unwrap_or(false);
    let edit = fields.optional("edit", "a JSON object", |edit| edit.is_object().then(|| edit.to_string()));
    if drop == edit.is_some() && !fields.is_wrong() {
        fields.reject("drop", "true, or else the new body in edit");
    }
    fields.complete(|| Some((at?, edit.map_or(Change::Drop, |edit| Change::Edit(edit.into_bytes())))))
}

fn cone(at: u64, change: Change, messages: &[LogMessage], wanted: &Wanted) -> Result<Cone, Impossible> {
    let mut whatif = WhatIf::new(at, change, None);
    for message in wanted.each(messages) {
        whatif.take(message)?;
    }
    whatif.cone()
}

fn told(mut cone: Cone, most: usize) -> Told {
    let left_out = cone.reached.len().saturating_sub(most);
    cone.reached.truncate(most);
    Told { cone, left_out }
}

fn refused(at: u64, why: &Impossible) -> Problem {
    match why {
        Impossible::Broken(broken) => Problem::unreplayable(broken),
        Impossible::NotThere(_) => Problem::not_found(format!("message {at} is not in the log of this agent")),
        Impossible::Decision { .. } | Impossible::Unreadable(_) => wrong("at", why, Some(at.to_string())),
        Impossible::Body { .. } | Impossible::Unchanged(_) => wrong("edit", why, None),
    }
}

fn wrong(field: &str, why: &Impossible, found: Option<String>) -> Problem {
    Problem::invalid(vec![FieldError { field: field.to_owned(), expected: why.to_string(), found }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_thing_or_the_other() {
        assert_eq!(read(br#"{ "at": 7, "drop": true }"#).unwrap(), (7, Change::Drop));
        let edit = read(br#"{ "at": 7, "edit": { "text": "hi" } }"#).unwrap();
        assert_eq!(edit, (7, Change::Edit(br#"{"text":"hi"}"#.to_vec())));
        let fields = |body: &str| {
            let problem = read(body.as_bytes()).unwrap_err();
            problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
        };
        assert_eq!(fields(r#"{ "at": 7 }"#), ["drop"]);
        assert_eq!(fields(r#"{ "at": 7, "drop": true, "edit": {} }"#), ["drop"]);
        assert_eq!(fields(r#"{ "at": "x", "edit": 1 }"#), ["at", "edit"]);
    }

    #[test]
    fn what_cannot_be_changed_is_told_by_its_field() {
        let decision = refused(7, &Impossible::Decision { at: 7, input: 6 });
        assert_eq!((decision.errors[0].field.as_str(), decision.status.as_u16()), ("at", 400));
        assert_eq!(refused(7, &Impossible::NotThere(7)).status.as_u16(), 404);
        assert_eq!(refused(7, &Impossible::Unchanged(7)).errors[0].field, "edit");
    }
}
