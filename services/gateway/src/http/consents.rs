//! `GET /v1/approvals`: calls that a human was asked about, the newest first. `GET /v1/approvals/{id}`: one.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::{
    v1::{GetApprovalResponse, ListApprovalsResponse},
    words::ConsentStatus,
};
use kairo_read_model::ApprovalsQuery;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<Told<ListApprovalsResponse>>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut approvals = query::answered(&gateway, snapshot.approvals(&wanted)).await?;
    let next_before =
        query::newest_first(&mut approvals, wanted.limit, |row| row.sequence, |row| row.action_id.clone());
    Ok(Answer::of(&snapshot, Told(ListApprovalsResponse { approvals, next_before, ..Default::default() })))
}

fn read(url_query: Option<&str>, config: &GatewayConfig) -> Result<ApprovalsQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let expected = format!("one of {}, all", ConsentStatus::WORDS.join(", "));
    let status = fields.optional("status", expected, value(status)).flatten();
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(ApprovalsQuery { agent, user, status, before, limit }))
}

/// `None` within for any status.
#[allow(clippy::option_option, reason = "the outer one says whether the text can be read")]
fn status(text: &str) -> Option<Option<ConsentStatus>> {
    if text == "all" { Some(None) } else { ConsentStatus::known(text).map(Some) }
}

pub async fn one(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<GetApprovalResponse>>, Problem> {
    let id = query::id("action_id", path)?;
    asked.nothing_else()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let approval = query::answered(&gateway, snapshot.approval(id)).await?;
    let approval = approval.filter(|approval| caller.sees(&approval.agent, Some(&approval.user)));
    let unknown = || {
        let detail = format!("no human was asked about an action {id}; GET /v1/approvals lists those there are");
        Problem::not_found(detail).at(snapshot.position())
    };
    Ok(Answer::of(
        &snapshot,
        Told(GetApprovalResponse { approval: Some(approval.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_asked_for_by_what_became_of_them() {
        let read = |query| read(Some(query), &GatewayConfig::default());
        assert_eq!(read("").unwrap().status, None);
        assert_eq!(read("status=all").unwrap().status, None);
        let wanted = read("status=rejected&user=ann&before=7&limit=3").unwrap();
        assert_eq!((wanted.status, wanted.before, wanted.limit), (Some(ConsentStatus::Rejected), Some(7), 3));
        let wrong = read("agent=A&user=*&status=maybe&before=x&limit=0&colour=red").unwrap_err();
        let fields: Vec<_> = wrong.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "user", "status", "before", "limit", "colour"]);
    }
}
