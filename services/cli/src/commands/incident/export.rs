//! `kairo incident export`: an agent's part of the log, or of a file, into an incident file.

use std::{
    io::{self, BufWriter, Seek, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::incident::{AROUND, Around, Choosing, Manifest, Writing};
use serde_json::json;
use tempfile::NamedTempFile;

use super::super::{Session, name};
use crate::{Error, agent_log::Source, secret_key, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo incident export --agent default -o slot.kairo                all that the agent's log has
  kairo incident export --agent default --around 131 -o slot.kairo   up to the end of what message 131 is part of
  kairo incident export --agent ann --file both.log -o ann.kairo     from a file that `kairo replay --save` wrote

The file holds the agent's messages, and the catalogues and bases that its decisions rest on, from the
beginning of the log: decisions are made again from what stands before them. With --around, a sequence or
the id of an event, it ends behind what answers the same request, and is about the decisions of that.

What was said stands in it in the clear. Secrets that are sealed stay sealed: whoever makes decisions again
that seal some needs the key.";

/// Write an agent's part of the log into one file that needs no server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The agent; its part of the log is read from the gateway, which takes an administrator's key
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    /// Read the log from a file that `kairo replay --save` wrote
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What it is about: the sequence of a message, or the id of an event
    #[arg(long, value_parser = around, value_name = "SEQUENCE|ID")]
    around: Option<Around>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub(in crate::commands) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { agent, file, around, output } = arguments;
    let mut choosing = Choosing::new(agent.clone(), around.clone());
    let here = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let spool = NamedTempFile::new_in(here).map_err(Error::file("write in", here))?;
    let agents = std::slice::from_ref(&agent);
    let source = Source::of(file.as_deref(), &session.client, agents, Some(spool.path().to_owned()));
    let first = source.read(|message| {
        choosing.look(message);
        Ok(ControlFlow::Continue(()))
    });
    first.await.map_err(Error::without_server)?;
    if let (Some(around), None) = (&around, choosing.met()) {
        return Err(Error::Usage(format!("--around: nothing of the agent {agent} stands at {around}")));
    }
    let source = Source::File(file.as_deref().unwrap_or(spool.path()));
    source
        .read(|message| {
            choosing.measure(message);
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    let manifest = write(&source, &choosing, here, &output).await?;
    // What is in it is not for everybody.
    eprintln!("kairo: {} holds what was said, in the clear; secrets that are sealed stay sealed", output.display());
    let Manifest { range, messages, decisions, .. } = &manifest;
    match session.json {
        true => terminal::json(
            &json!({ "file": output, "agent": agent, "messages": messages, "decisions": decisions, "range": range }),
        )?,
        false => terminal::line(format!("{messages} messages of {agent}, {decisions} decisions"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what was chosen, the manifest first.
async fn write(source: &Source<'_>, choosing: &Choosing, here: &Path, output: &Path) -> Result<Manifest, Error> {
    let failed = || Error::file("write", output);
    let mut lines = BufWriter::new(tempfile::tempfile_in(here).map_err(failed())?);
    let mut writing = Writing::new(choosing, secret_key::find().ok());
    let take = |message: &LogMessage| {
        let line = writing.take(message).map_err(|broken| Error::Advice(broken.to_string()))?;
        if let Some(line) = line {
            lines.write_all(line.as_bytes()).map_err(failed())?;
        }
        Ok(ControlFlow::Continue(()))
    };
    source.read(take).await?;
    let Some(manifest) = writing.end(env!("CARGO_PKG_VERSION")) else {
        return Err(Error::Usage(format!("--agent: the log has nothing of the agent {}", choosing.agent())));
    };
    let mut lines = lines.into_inner().map_err(io::IntoInnerError::into_error).map_err(failed())?;
    let mut whole = NamedTempFile::new_in(here).map_err(failed())?;
    let written = whole.write_all(manifest.line().as_bytes()).and_then(|()| lines.rewind());
    written.and_then(|()| io::copy(&mut lines, &mut whole)).map_err(failed())?;
    whole.persist(output).map_err(|error| failed()(error.error))?;
    Ok(manifest)
}

/// For clap.
fn around(text: &str) -> Result<Around, String> {
    Around::read(text).ok_or_else(|| format!("expected {AROUND}"))
}
