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
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};

pub async fn list_approvals(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListApprovalsResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut approvals = query::await_answer(&gateway, snapshot.list_approvals(&wanted)).await?;
    let next_before =
        query::sort_newest_first(&mut approvals, wanted.limit, |row| row.sequence, |row| row.action_id.clone());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListApprovalsResponse { approvals, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<ApprovalsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let expected = format!("one of {}, all", ConsentStatus::WORDS.join(", "));
    let status = fields.optional("status", expected, query_value(parse_status)).flatten();
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ApprovalsQuery { agent, user, status, before, limit }))
}

/// `None` within for any status.
#[allow(clippy::option_option, reason = "the outer one says whether the text can be read")]
fn parse_status(text: &str) -> Option<Option<ConsentStatus>> {
    if text == "all" { Some(None) } else { ConsentStatus::known(text).map(Some) }
}

pub async fn get_approval(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetApprovalResponse>>, Problem> {
    let id = query::path_id("action_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let approval = query::await_answer(&gateway, snapshot.find_approval(id)).await?;
    let approval = approval.filter(|approval| caller.can_see(&approval.agent, Some(&approval.user)));
    let unknown = || {
        let detail = format!("no human was asked about an action {id}; GET /v1/approvals lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetApprovalResponse { approval: Some(approval.ok_or_else(unknown)?), ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_asked_for_by_what_became_of_them() {
        let read = |query| parse_query(Some(query), &GatewayConfig::default());
        assert_eq!(read("").unwrap().status, None);
        assert_eq!(read("status=all").unwrap().status, None);
        let wanted = read("status=rejected&user=ann&before=7&limit=3").unwrap();
        assert_eq!((wanted.status, wanted.before, wanted.limit), (Some(ConsentStatus::Rejected), Some(7), 3));
        let wrong = read("agent=A&user=*&status=maybe&before=x&limit=0&colour=red").unwrap_err();
        let fields: Vec<_> = wrong.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "user", "status", "before", "limit", "colour"]);
    }
}
