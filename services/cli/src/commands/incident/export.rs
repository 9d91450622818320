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
use kairo_replay::incident::{
    AROUND, Around, Choosing, Manifest, Writing,
    redacting::{Finding, Named, Redacting},
};
use regex::Regex;
use serde_json::json;
use tempfile::NamedTempFile;

use super::super::{Session, name};
use crate::{Error, agent_log::Source, secret_key, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo incident export --agent default -o slot.kairo                all that the agent's log has
  kairo incident export --agent default --around 131 -o slot.kairo   up to the end of what message 131 is part of
  kairo incident export --agent ann --file both.log -o ann.kairo     from a file that `kairo replay --save` wrote
  kairo incident export --agent default -o slot.kairo --redact       without personal data and secrets

The file holds the agent's messages, and the catalogues and bases that its decisions rest on, from the
beginning of the log: decisions are made again from what stands before them. With --around, a sequence or
the id of an event, it ends behind what answers the same request, and is about the decisions of that.

What was said stands in it in the clear. Secrets that are sealed stay sealed: whoever makes decisions again
that seal some needs the key.

With --redact, tokens such as ⟨email-1⟩ stand for e-mail addresses, telephone, account and card numbers, IP addresses,
credentials, what looks like a secret, and for users by name (user-1); the same value has the same token in
all of the file. Names that are no users' and other facts about people are not found: name them with
--redact-word and --redact-pattern, and look at the file before it is handed on. Decisions are made again
from the redacted log. Where that makes another decision, since it depends on such a value, nothing is
written, and the status is 4.";

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
    #[command(flatten)]
    redaction: Redaction,
}

/// What is to be taken out
#[derive(Clone, Debug, Args)]
struct Redaction {
    /// Put tokens in the place of personal data and secrets
    #[arg(long)]
    redact: bool,
    /// A word to replace as well, such as somebody's name; can be repeated
    #[arg(long = "redact-word", requires = "redact", value_name = "WORD")]
    words: Vec<String>,
    /// A regular expression of what to replace as well; can be repeated
    #[arg(long = "redact-pattern", requires = "redact", value_name = "REGEX")]
    patterns: Vec<String>,
}

/// Longest word or expression that is taken, in bytes.
const LONGEST: usize = 1_024;

impl Redaction {
    /// What is named; none where nothing is to be taken out.
    fn named(&self) -> Result<Option<Named>, Error> {
        let wrong = |option: &str, why: &str| Error::Usage(format!("--redact-{option}: {why}"));
        let is_bad = |text: &String| text.trim().is_empty() || text.len() > LONGEST;
        for (option, texts) in [("word", &self.words), ("pattern", &self.patterns)] {
            if texts.iter().any(is_bad) {
                return Err(wrong(option, &format!("expected 1 to {LONGEST} bytes")));
            }
        }
        let patterns = self.patterns.iter().map(|pattern| Regex::new(pattern));
        let patterns: Result<Vec<Regex>, _> = patterns.collect();
        let patterns =
            patterns.map_err(|error| wrong("pattern", &format!("expected a regular expression: {error}")))?;
        Ok(self.redact.then(|| Named { words: self.words.clone(), patterns }))
    }
}

pub(in crate::commands) async fn run(arguments: Arguments, session: &Session) -> Result<ExitCode, Error> {
    let Arguments { agent, file, around, output, redaction } = arguments;
    let named = redaction.named()?;
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
    let redacting = match named {
        Some(named) => Some(find(&source, &choosing, named).await?),
        None => None,
    };
    let manifest = write(&source, &choosing, redacting, here, &output).await?;
    // What is in it is not for everybody.
    let shown = output.display();
    match manifest.redacted {
        true => {
            eprintln!("kairo: {shown} holds tokens for what was found; what is said of people in other words is in it")
        }
        false => eprintln!("kairo: {shown} holds what was said, in the clear; secrets that are sealed stay sealed"),
    }
    told(&manifest, &output, session.json)?;
    Ok(ExitCode::SUCCESS)
}

fn told(manifest: &Manifest, output: &Path, json: bool) -> Result<(), Error> {
    let Manifest { agent, range, messages, decisions, redacted, replaced, .. } = manifest;
    if json {
        let told = json!({
            "file": output, "agent": agent, "messages": messages, "decisions": decisions, "range": range,
            "redacted": redacted, "replaced": replaced,
        });
        return Ok(terminal::json(&told)?);
    }
    terminal::line(format!("{messages} messages of {agent}, {decisions} decisions"))?;
    let counts = replaced.iter().map(|(kind, count)| format!("  {count} {kind}"));
    Ok(counts.into_iter().try_for_each(terminal::line)?)
}

/// Reads what is chosen for what there is to replace.
async fn find(source: &Source<'_>, choosing: &Choosing, named: Named) -> Result<Redacting, Error> {
    let mut finding = Finding::new(choosing.agent().clone(), named);
    let look = |message: &LogMessage| {
        if choosing.wants(message) {
            finding.look(message);
        }
        Ok(ControlFlow::Continue(()))
    };
    source.read(look).await?;
    Ok(finding.end(secret_key::find().ok())?)
}

/// Writes what was chosen, the manifest first.
async fn write(
    source: &Source<'_>,
    choosing: &Choosing,
    mut redacting: Option<Redacting>,
    here: &Path,
    output: &Path,
) -> Result<Manifest, Error> {
    let failed = || Error::file("write", output);
    let mut lines = BufWriter::new(tempfile::tempfile_in(here).map_err(failed())?);
    let mut writing = Writing::new(choosing, secret_key::find().ok());
    let take = |message: &LogMessage| {
        let redacted = match &mut redacting {
            Some(redacting) if choosing.wants(message) => Some(redacting.take(message)?),
            _ => None,
        };
        let line =
            writing.take(redacted.as_ref().unwrap_or(message)).map_err(|broken| Error::Advice(broken.to_string()))?;
        if let Some(line) = line {
            lines.write_all(line.as_bytes()).map_err(failed())?;
        }
        Ok(ControlFlow::Continue(()))
    };
    source.read(take).await?;
    let Some(mut manifest) = writing.end(env!("CARGO_PKG_VERSION")) else {
        return Err(Error::Usage(format!("--agent: the log has nothing of the agent {}", choosing.agent())));
    };
    if let Some(redacting) = &redacting {
        (manifest.redacted, manifest.replaced) = (true, redacting.counts());
    }
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
