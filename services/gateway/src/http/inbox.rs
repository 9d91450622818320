//! `GET /v1/inbox`: what waits for a user's answer, and what they were told unasked.

use axum::{Extension, extract::State};
use kairo_proto::v1::GetInboxResponse;
use kairo_read_model::Inbox;

use super::{
    Gateway,
    answer::Told,
    query, questions,
    read_consistency::{Answer, Asked},
};
use crate::{
    auth::Caller,
    fields::{Fields, NAME, name, value},
    problem::Problem,
};

/// The number of briefings, which a user was told unasked, that are shown: the newest.
const BRIEFINGS: u32 = 20;

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
    let inbox = async {
        let told = snapshot.told(user.as_str(), caller.agents(), BRIEFINGS).await?;
        Ok((snapshot.inbox(user.as_str()).await?, told))
    };
    let (Inbox { mut offers, mut approvals }, briefings) = query::answered(&gateway, inbox).await?;
    // Without NATS nobody could answer one, and the rest is still told.
    let mut questions = questions::of(&gateway, user.as_str()).await.unwrap_or_default();
    questions.retain(|question| caller.act_on_agent(Some(&question.agent)).is_ok());
    offers.retain(|offer| caller.act_on_agent(Some(&offer.agent)).is_ok());
    approvals.retain(|approval| caller.act_on_agent(Some(&approval.agent)).is_ok());
    Ok(Answer::of(&snapshot, Told(GetInboxResponse { offers, approvals, briefings, questions, ..Default::default() })))
}
