//! `GET /v1/users/{user}/export`: everything that is held of a user, page by page, with where it came from.

use axum::extract::{Path, State, rejection::PathRejection};
use kairo_core::ids::Name;
use kairo_proto::v1::ExportUserResponse;
use kairo_read_model::{ExportPlace, ExportQuery};

use super::{
    Gateway,
    answer::Told,
    at_least, query,
    read_consistency::{Answer, Asked},
};
use crate::{
    config::GatewayConfig,
    fields::{Fields, parsed, value},
    follow::end_of_log,
    forgetting,
    problem::Problem,
};

const AFTER: &str = "next_after of the page before";

pub async fn get(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    asked: Asked,
) -> Result<Answer<Told<ExportUserResponse>>, Problem> {
    let user = query::user(path)?;
    let wanted = asked.read(|query| read(query, &user, &gateway.config))?;
    let snapshot = match wanted.after {
        Some(_) => asked.snapshot(&gateway).await?,
        // All that was said until now is in it.
        None => {
            let (wanted, wait) = asked.wanted();
            at_least(&gateway, asked.holder(), wanted.max(end_of_log(&gateway.bus).await?), wait).await?
        }
    };
    let forgotten_through = forgetting::read_completion(&gateway.bus, &user).await?.map(|done| done.through);
    let wanted = ExportQuery { forgotten_through: forgotten_through.unwrap_or(0), ..wanted };
    let page = query::answered(&gateway, snapshot.export(&wanted)).await?;
    let next_after = page.next.map(|place| place.to_string());
    let told =
        ExportUserResponse { user: user.to_string(), rows: page.rows, next_after, forgotten_through, position: 0 };
    Ok(Answer::of(&snapshot, Told(told)))
}

fn read(url_query: Option<&str>, user: &Name, config: &GatewayConfig) -> Result<ExportQuery, Problem> {
    let mut fields = Fields::from_query(url_query);
    let after = fields.optional("after", AFTER, value(parsed::<ExportPlace>));
    let limit = query::limit(&mut fields, config);
    fields.complete(|| Some(ExportQuery { user: user.to_string(), after, limit, forgotten_through: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_behind_the_one_before() {
        let ask = |query| read(Some(query), &Name::parse("ann").unwrap(), &GatewayConfig::default());
        let wanted = ask("after=tasks.7.1.x&limit=9").unwrap();
        assert_eq!((wanted.after.map(|after| after.to_string()), wanted.limit), (Some("tasks.7.1.x".to_owned()), 9));
        let wrong = ask("after=gossip.7.1.x&limit=0&agent=bob").unwrap_err().errors;
        assert_eq!(wrong.into_iter().map(|error| error.field).collect::<Vec<_>>(), ["after", "limit", "agent"]);
    }
}
