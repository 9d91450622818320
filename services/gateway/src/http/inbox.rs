//! `GET /v1/inbox`: what waits for a user's answer.

use axum::{Extension, extract::State};
use kairo_proto::v1::GetInboxResponse;
use kairo_read_model::Inbox;

use super::{
    Gateway,
    answer::Told,
    query,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};

pub async fn get(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: Asked,
) -> Result<Answer<Told<GetInboxResponse>>, Problem> {
    let user = asked.read(|query| {
        let mut fields = Fields::from_query(query);
        let user = fields.required("user", NAME, value(name));
        fields.complete(|| user)
    })?;
    let snapshot = asked.snapshot(&gateway).await?;
    let Inbox { mut offers, mut approvals } = query::answered(&gateway, snapshot.inbox(user.as_str())).await?;
    offers.retain(|offer| caller.act_on_agent(Some(&offer.agent)).is_ok());
    approvals.retain(|approval| caller.act_on_agent(Some(&approval.agent)).is_ok());
    Ok(Answer::of(&snapshot, Told(GetInboxResponse { offers, approvals, ..Default::default() })))
}
