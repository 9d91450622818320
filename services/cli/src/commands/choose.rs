//! `kairo choose`

use std::process::ExitCode;

use clap::Args;
use kairo_core::event_json::EventJson;
use kairo_proto::v1;

use super::{
    Session,
    orders::{Manner, STATUS},
    recent::Chosen,
};
use crate::{Error, client::NewChoice, order::Awaited};

/// Accept or decline the thread that an agent suggested for a message, and wait for its reply
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct Arguments {
    #[command(flatten)]
    offer: Chosen,
    /// Whether to go on in the suggested thread, or in the current one
    #[arg(value_parser = ["accept", "decline"], value_name = "accept|decline")]
    option: String,
    #[command(flatten)]
    manner: Manner,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { offer, option, manner } = arguments;
    let suggested = |event: &EventJson| (event.type_name == v1::ThreadSuggested::TYPE).then_some(event.event_id);
    let (agent, offer_id) = offer.find(suggested, "suggestion", session).await?;
    let choice = NewChoice { user: manner.user.to_string(), agent, offer_id, option };
    manner.give("v1/choices", &choice, &choice.agent, Awaited::Words, session).await
}
