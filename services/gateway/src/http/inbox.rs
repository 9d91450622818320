//! `GET /v1/inbox`: what waits for a user's answer, and what they were told unasked.

use axum::{Extension, extract::State};
use kairo_proto::v1::GetInboxResponse;
use kairo_read_model::UserInbox;

use super::{
    Gateway, query, questions,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};

/// The number of briefings, which a user was told unasked, that are shown: the newest.
const BRIEFINGS: u32 = 20;

pub async fn get_inbox(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetInboxResponse>>, Problem> {
    let user = asked.parse_with(|query| {
        let mut fields = RequestFields::from_query(query);
        let user = fields.required("user", NAME, query_value(parse_name));
        fields.complete(|| user)
    })?;
    let snapshot = asked.snapshot(&gateway).await?;
    let inbox = async {
        let told = snapshot.briefings_for_user(user.as_str(), caller.agents(), BRIEFINGS).await?;
        Ok((snapshot.user_inbox(user.as_str()).await?, told))
    };
    let (UserInbox { mut offers, mut approvals }, briefings) = query::await_answer(&gateway, inbox).await?;
    // Without NATS nobody could answer one, and the rest is still told.
    let mut questions = questions::open_questions(&gateway, user.as_str()).await.unwrap_or_default();
    questions.retain(|question| caller.require_agent(Some(&question.agent)).is_ok());
    offers.retain(|offer| caller.require_agent(Some(&offer.agent)).is_ok());
    approvals.retain(|approval| caller.require_agent(Some(&approval.agent)).is_ok());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetInboxResponse { offers, approvals, briefings, questions, ..Default::default() }),
    ))
}
