//! `kairo approve` and `kairo reject`

use std::process::ExitCode;

use clap::Args;
use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::Verdict;

use super::{
    Session,
    orders::{Manner, STATUS},
    recent::Chosen,
};
use crate::{Error, client::NewApproval, order::Awaited};

#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct Arguments {
    #[command(flatten)]
    action: Chosen,
    /// What the agent should know about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    manner: Manner,
}

pub(super) async fn run(arguments: Arguments, verdict: Verdict, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { action, note, manner } = arguments;
    let requested = |event: &EventJson| (event.type_name == v1::ApprovalRequested::TYPE).then_some(event.event_id);
    let (agent, action_id) = action.find(requested, "request for consent", session).await?;
    let awaited = if verdict == Verdict::Approved { Awaited::Result } else { Awaited::Decision };
    let (user, verdict) = (manner.user.to_string(), verdict.text());
    let approval = NewApproval { user, agent, action_id, verdict, note };
    manner.give("v1/approvals", &approval, &approval.agent, awaited, session).await
}
