//! `kairo approve` and `kairo reject`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1;
use kairo_proto::words::Verdict;

use super::{
    Session,
    orders::{Answering, STATUS},
    recent::Chosen,
};
use crate::{Error, client::NewApproval, order::Awaited};

#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct Arguments {
    #[command(flatten)]
    action: Chosen,
    /// Note to the agent about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    answering: Answering,
}

pub(super) async fn run(arguments: Arguments, verdict: Verdict, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { action, note, answering } = arguments;
    let request = action.find_request(v1::ApprovalRequested::TYPE, "request for consent", session).await?;
    let manner = answering.into_manner(request.user.as_deref())?;
    let (agent, action_id) = (request.agent, request.id);
    let awaited = if verdict == Verdict::Approved { Awaited::Result } else { Awaited::Decision };
    let (user, verdict) = (manner.user.to_string(), verdict.text());
    let approval = NewApproval { user, agent, action_id, verdict, note };
    manner.give("v1/approvals", &approval, &approval.agent, awaited, session).await
}
