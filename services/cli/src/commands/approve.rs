//! `kairo approve` and `kairo reject`

use std::process::ExitCode;

use clap::Args;
use kairo_core::event_json::EventJson;
use kairo_proto::v1;

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

/// What is said to an action that waits for consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Approved,
    Rejected,
}

pub(super) async fn run(arguments: Arguments, verdict: Verdict, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { action, note, manner } = arguments;
    let requested = |event: &EventJson| (event.type_name == v1::ApprovalRequested::TYPE).then_some(event.event_id);
    let (agent, action_id) = action.find(requested, "request for consent", session).await?;
    let (word, awaited) = match verdict {
        Verdict::Approved => ("approved", Awaited::Result),
        Verdict::Rejected => ("rejected", Awaited::Decision),
    };
    let (user, verdict) = (manner.user.to_string(), word.to_owned());
    let approval = NewApproval { user, agent, action_id, verdict, note };
    manner.give("v1/approvals", &approval, &approval.agent, awaited, session).await
}
