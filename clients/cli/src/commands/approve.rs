//! `kairo approve` and `kairo reject`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1;
use kairo_proto::words::Verdict;

use super::{
    GatewaySession,
    event_lookup::RecentEventSelector,
    orders::{AnswerOptions, STATUS},
};
use crate::{Error, client::NewApproval, order::AwaitedEvent};

#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct ApproveArgs {
    #[command(flatten)]
    action: RecentEventSelector,
    /// Note to the agent about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    answering: AnswerOptions,
}

pub(super) async fn run(arguments: ApproveArgs, verdict: Verdict, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ApproveArgs { action, note, answering } = arguments;
    let request = action.find_request(v1::ApprovalRequested::TYPE, "request for consent", session).await?;
    let manner = answering.into_order_options(request.user.as_deref())?;
    let agent = request.agent;
    let action_id = request.id;
    let awaited = if verdict == Verdict::Approved { AwaitedEvent::Result } else { AwaitedEvent::Decision };
    let user = manner.user.to_string();
    let verdict = verdict.text();
    let approval = NewApproval { user, agent, action_id, verdict, note };
    manner.post_and_wait("v1/approvals", &approval, &approval.agent, awaited, session).await
}
