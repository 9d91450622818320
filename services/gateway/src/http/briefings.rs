//! `GET /v1/briefings`: whether agents with missions told their owners what they came to, and why, the newest first.

use axum::extract::State;
use kairo_proto::v1::ListBriefingsResponse;
use kairo_read_model::BriefingsQuery;

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};

pub async fn list_briefings(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListBriefingsResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut briefings = query::await_answer(&gateway, snapshot.list_briefings(&wanted)).await?;
    let next_before =
        query::sort_newest_first(&mut briefings, wanted.limit, |row| row.sequence, |row| row.event_id.clone());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListBriefingsResponse { briefings, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<BriefingsQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(BriefingsQuery { agent, user, before, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named() {
        let problem =
            parse_query(Some("agent=A&user=*&before=x&limit=0&told=true"), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "user", "before", "limit", "told"]);
        assert_eq!(parse_query(Some("user=ann"), &GatewayConfig::default()).unwrap().user.as_deref(), Some("ann"));
    }
}
