//! `kairo choose`

use std::process::ExitCode;

use clap::Args;
use kairo_proto::v1;

use super::{
    Session,
    orders::{Answering, STATUS},
    recent::Chosen,
};
use crate::{Error, client::NewChoice, order::Awaited};

/// Accept or decline the thread that an agent suggested for a message, and wait for its reply
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(super) struct Arguments {
    #[command(flatten)]
    offer: Chosen,
    /// Go on in the suggested thread (accept) or in the current one (decline)
    #[arg(value_parser = ["accept", "decline"], value_name = "accept|decline")]
    option: String,
    #[command(flatten)]
    answering: Answering,
}

pub(super) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { offer, option, answering } = arguments;
    let request = offer.find_request(v1::ThreadSuggested::TYPE, "suggestion", session).await?;
    let manner = answering.into_manner(request.user.as_deref())?;
    let (agent, offer_id) = (request.agent, request.id);
    let choice = NewChoice { user: manner.user.to_string(), agent, offer_id, option };
    manner.give("v1/choices", &choice, &choice.agent, Awaited::Words, session).await
}
