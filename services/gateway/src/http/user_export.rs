//! `GET /v1/users/{user}/export`: everything that is held of a user, page by page, with where it came from.

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_core::ids::Name;
use kairo_proto::v1::ExportUserResponse;
use kairo_read_model::{ExportCursor, ExportQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    snapshot_at_least,
    sorted_json::SortedJson,
};
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, parse_text, query_value},
    forgetting,
    log_follower::end_of_log,
    problem::Problem,
};

const AFTER: &str = "next_after of the page before";

pub async fn export_user(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ExportUserResponse>>, Problem> {
    let user = query::path_user(path)?;
    let wanted = asked.parse_with(|query| parse_query(query, &user, &gateway.config))?;
    let snapshot = match wanted.after {
        Some(_) => asked.snapshot(&gateway).await?,
        // All that was said until now is in it.
        None => {
            let (wanted, wait) = asked.freshness();
            snapshot_at_least(&gateway, asked.holder(), wanted.max(end_of_log(&gateway.bus).await?), wait).await?
        }
    };
    let forgotten_through = forgetting::read_completion(&gateway.bus, &user).await?.map(|done| done.through);
    let wanted = ExportQuery { forgotten_through: forgotten_through.unwrap_or(0), ..wanted };
    let page = query::await_answer(&gateway, snapshot.export_page(&wanted)).await?;
    let next_after = page.next.map(|place| place.to_string());
    let told =
        ExportUserResponse { user: user.to_string(), rows: page.rows, next_after, forgotten_through, position: 0 };
    Ok(PositionedResponse::from_snapshot(&snapshot, SortedJson(told)))
}

fn parse_query(url_query: Option<&str>, user: &Name, config: &GatewayConfig) -> Result<ExportQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let after = fields.optional("after", AFTER, query_value(parse_text::<ExportCursor>));
    let limit = query::parse_limit(&mut fields, config);
    fields.complete(|| Some(ExportQuery { user: user.to_string(), after, limit, forgotten_through: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_behind_the_one_before() {
        let ask = |query| parse_query(Some(query), &Name::parse("ann").unwrap(), &GatewayConfig::default());
        let wanted = ask("after=tasks.7.1.x&limit=9").unwrap();
        assert_eq!((wanted.after.map(|after| after.to_string()), wanted.limit), (Some("tasks.7.1.x".to_owned()), 9));
        let wrong = ask("after=gossip.7.1.x&limit=0&agent=bob").unwrap_err().errors;
        assert_eq!(wrong.into_iter().map(|error| error.field).collect::<Vec<_>>(), ["after", "limit", "agent"]);
    }
}
