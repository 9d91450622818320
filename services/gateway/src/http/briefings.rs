//! `GET /v1/briefings`: whether agents with missions told their owners what they came to, and why, the newest first.

use axum::extract::State;
use kairo_proto::v1::ListBriefingsResponse;
use kairo_read_model::BriefingsQuery;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    config::GatewayConfig,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};

pub async fn get(State(gateway): State<Gateway>, asked: Asked) -> Result<Answer<Told<ListBriefingsResponse>>, Problem> {
    let wanted = asked.read(|query| read(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    let mut briefings = query::answered(&gateway, snapshot.briefings(&wanted)).await?;
    let next_before = query::newest_first(&mut briefings, wanted.limit, |row| row.sequence, |row| row.event_id.clone());
    Ok(Answer::of(&snapshot, Told(ListBriefingsResponse { briefings, next_before, ..Default::default() })))
}

fn read(url_query: Option<&str>, config: &GatewayConfig) -> Result<BriefingsQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let agent = fields.optional("agent", NAME, value(name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, value(name)).map(|user| user.to_string());
    let before = query::before(&mut fields);
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(BriefingsQuery { agent, user, before, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named() {
        let problem = read(Some("agent=A&user=*&before=x&limit=0&told=true"), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "user", "before", "limit", "told"]);
        assert_eq!(read(Some("user=ann"), &GatewayConfig::default()).unwrap().user.as_deref(), Some("ann"));
    }
}
