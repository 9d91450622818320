//! `kairo choose`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1;

use super::{
    GatewaySession,
    event_lookup::RecentEventSelector,
    orders::{AnswerOptions, STATUS},
};
use crate::{Error, client::NewChoice, order::AwaitedEvent};

/// Accept or decline the thread that an agent suggested for a message, and wait for its reply
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct ChooseArgs {
    #[command(flatten)]
    offer: RecentEventSelector,
    /// Go on in the suggested thread (accept) or in the current one (decline)
    #[arg(value_parser = ["accept", "decline"], value_name = "accept|decline")]
    option: String,
    #[command(flatten)]
    answering: AnswerOptions,
}

pub(super) async fn run(arguments: ChooseArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ChooseArgs { offer, option, answering } = arguments;
    let request = offer.find_request(v1::ThreadSuggested::TYPE, "suggestion", session).await?;
    let manner = answering.into_order_options(request.user.as_deref())?;
    let agent = request.agent;
    let offer_id = request.id;
    let choice = NewChoice { user: manner.user.to_string(), agent, offer_id, option };
    manner.post_and_wait("v1/choices", &choice, &choice.agent, AwaitedEvent::Words, session).await
}
