//! `kairo checkpoint`

use std::{collections::BTreeSet, fs, ops::ControlFlow, path::PathBuf, process::ExitCode};

use clap::Args;
use jiff::Timestamp;
use kairo_core::log_message;
use kairo_replay::{
    checkpoint::{Checkpoint, CheckpointKind, FORMAT, SectionBuilder, to_hex},
    proof::{LogExtent, Prover},
};
use serde_json::json;

use super::{
    GatewaySession,
    verify::{progress_bar, proof_lines::pluralize},
};
use crate::{
    Error,
    agent_log::{self, LogSource},
    signing_key, terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo checkpoint --new-key auditor.key             once: a key, and auditor.key.pub beside it
  kairo checkpoint -o today.json --signing-key auditor.key
  kairo verify --all --against today.json --public-key auditor.key.pub

A checkpoint says what the whole log is up to its end: a digest of every thousand messages, and of each agent the
digest of all of its messages. It holds nothing of what they say. Keep it where whoever can write to the log cannot,
such as in another account, or publish it: a log that was changed, cut off or written anew since is held to it.

The key is an Ed25519 key, PKCS #8 in PEM, as `openssl genpkey -algorithm ed25519` makes it too. It is read from where it
is named, and stands nowhere else.

The whole log is read from the gateway, which takes an administrator's key. The status is 0 if it was written, 1 if the
log does not fit the digests that it carries (nothing is written then), and 69 if there is no server.";

/// Write down what the whole log is, signed, to hold it to that later
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckpointArgs {
    /// The file to write; to standard output without it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The key to sign it with: the path of its file, file:PATH or env:NAME; without one it is not signed
    #[arg(long, env = "KAIRO_SIGNING_KEY", value_name = "REFERENCE")]
    signing_key: Option<String>,
    /// Make a key in this file instead, and the public one in a file of that name with .pub
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "signing_key"])]
    new_key: Option<PathBuf>,
}

pub(super) async fn run(arguments: CheckpointArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let CheckpointArgs { output, signing_key, new_key } = arguments;
    if let Some(path) = new_key {
        let public = signing_key::make(&path)?;
        match session.json {
            true => terminal::json(&json!({ "key": path, "public_key": public }))?,
            false => terminal::line(format!("{} is the key, {} the public one", path.display(), public.display()))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let checkpoint = take_checkpoint(session).await?;
    let checkpoint = match signing_key.filter(|reference| !reference.is_empty()) {
        Some(reference) => sign_checkpoint(checkpoint, &reference)?,
        None => checkpoint,
    };
    let Some(path) = output else {
        terminal::piece(&checkpoint.to_line())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::write(&path, checkpoint.to_line()).map_err(Error::file("write", &path))?;
    let Checkpoint { sequence, messages, agents, signature, .. } = &checkpoint;
    let is_signed = !signature.is_empty();
    match session.json {
        true => terminal::json(&json!({ "sequence": sequence, "messages": messages, "signed": is_signed }))?,
        false => {
            let signed = if is_signed { "signed" } else { "not signed" };
            let agents = pluralize(agents.len() as u64, "agent");
            let messages = pluralize(*messages, "message");
            terminal::line(format!("{}: {messages} up to {sequence}, of {agents}, {signed}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a checkpoint of the log, up to its end when this begins.
async fn take_checkpoint(session: &GatewaySession) -> Result<Checkpoint, Error> {
    let end = agent_log::fetch_log_page(&session.client, u64::MAX).await.map_err(Error::into_unavailable)?;
    let log = end.log;
    let sequence = end.end;
    let mut proving = Prover::new(BTreeSet::new(), LogExtent::Whole, Some(sequence));
    let mut adding = SectionBuilder::default();
    let bar = progress_bar();
    let source = LogSource::Whole(&session.client, None);
    let read = source.read(|message| {
        if message.sequence > sequence {
            return Ok(ControlFlow::Break(()));
        }
        bar.inc(1);
        let wrong = |why: String| Error::Client(session.client.unreadable(why));
        adding.add(message.sequence, log_message::content_digest(message).map_err(|error| wrong(error.to_string()))?);
        proving.apply(message).map_err(|error| wrong(error.to_string()))?;
        Ok(ControlFlow::Continue(()))
    });
    let read = read.await.map_err(Error::into_unavailable);
    bar.finish_and_clear();
    read?;
    let proof = proving.finish();
    if let Some((agent, misfit)) = proof.first_misfit() {
        let at = misfit.sequence;
        return Err(Error::Advice(format!("message {at} of {agent} is {}: {}", misfit.kind, misfit.why)));
    }
    let (sections, messages) = adding.finish();
    Ok(Checkpoint {
        kairo: CheckpointKind::Checkpoint,
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        log,
        time: Timestamp::now(),
        sequence,
        messages,
        agents: proof.heads.into_iter().map(|(agent, head)| (agent, to_hex(head))).collect(),
        sections,
        public_key: String::new(),
        signature: String::new(),
    })
}

fn sign_checkpoint(checkpoint: Checkpoint, key: &str) -> Result<Checkpoint, Error> {
    let with = |public: &str| Checkpoint { public_key: public.to_owned(), ..checkpoint.clone() };
    let (signature, public) = signing_key::sign(key, |public| with(public).unsigned_line())?;
    Ok(Checkpoint { signature, ..with(&public) })
}
