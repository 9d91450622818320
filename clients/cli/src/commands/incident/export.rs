//! `kairo incident export`: an agent's part of the log, or of a file, into an incident file.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Seek, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use kairo_agent_runtime::{PartStore, StoredPart};
use kairo_core::ids::Name;
use kairo_proto::v1::{LogMessage, Part};
use kairo_replay::incident::{
    AROUND, Anchor, IncidentWriter, Manifest, MessageSelection,
    objects::{LARGEST, ObjectWriter, Objects, Reason},
    redaction::{RedactionTerms, Redactor, ValueFinder},
};
use regex::Regex;
use serde_json::json;
use tempfile::NamedTempFile;

use super::{
    super::{GatewaySession, name},
    manifest_summary,
};
use crate::{
    Error,
    agent_log::{self, LogSource},
    client::ClientError,
    objects, secret_key, terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo incident export --agent default -o slot.kairo                all that the agent's log has
  kairo incident export --agent default --around 131 -o slot.kairo   up to the end of what message 131 is part of
  kairo incident export --agent ann --file both.log -o ann.kairo     from a file that `kairo replay --save` wrote
  kairo incident export --agent default -o slot.kairo --redact       without personal data and secrets
  kairo incident export --agent default -o slot.kairo --sealed       as the log has it, for kairo verify

The file holds the agent's messages, and the catalogues and bases that its decisions rest on, from the
beginning of the log: decisions are made again from what stands before them. With --around, a sequence or
the id of an event, it ends behind what answers the same request, and is about the decisions of that.

Images, audio and video that the messages name stand in it as well, as far as they are still stored, but for
--without-objects. What was said stands in it in the clear, also where the log has it sealed; with --sealed it stays so. Secrets that are sealed stay sealed: whoever makes decisions again
that seal some needs the key.

With --redact, there are no images, audio and video, and tokens such as ⟨email-1⟩ stand for e-mail addresses, telephone, account and card numbers, IP addresses,
credentials, what looks like a secret, and for users by name (user-1); the same value has the same token in
all of the file. Names that are no users' and other facts about people are not found: name them with
--redact-word and --redact-pattern, and look at the file before it is handed on. Decisions are made again
from the redacted log. Where that makes another decision, since it depends on such a value, nothing is
written, and the status is 4.";

/// Write an agent's part of the log into one file that needs no server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct IncidentExportArgs {
    /// The agent; its part of the log is read from the gateway, which takes an administrator's key
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Name,
    /// Read the log from a file that `kairo replay --save` wrote
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Subject of the incident: the sequence of a message, or the id of an event
    #[arg(long, value_parser = around, value_name = "SEQUENCE|ID")]
    around: Option<Anchor>,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Leave out images, audio and video
    #[arg(long)]
    without_objects: bool,
    /// Leave what users said sealed: the file shows who spoke when and can be proven, and nobody can read what was said
    #[arg(long, conflicts_with_all = ["redact", "file"])]
    sealed: bool,
    #[command(flatten)]
    redaction: RedactionOptions,
}

/// Data to take out
#[derive(Clone, Debug, Args)]
struct RedactionOptions {
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

impl RedactionOptions {
    /// Returns the words and patterns that are named; `None` if nothing is to be taken out.
    fn redaction_terms(&self) -> Result<Option<RedactionTerms>, Error> {
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
        Ok(self.redact.then(|| RedactionTerms { words: self.words.clone(), patterns }))
    }
}

pub(in crate::commands) async fn run(
    arguments: IncidentExportArgs,
    session: &GatewaySession,
) -> Result<ExitCode, Error> {
    let IncidentExportArgs { agent, file, around, output, without_objects, sealed, redaction } = arguments;
    let named = redaction.redaction_terms()?;
    let redacted_before = earlier_redactions(file.as_deref(), named.is_some())?;
    let mut choosing = MessageSelection::new(agent.clone(), around.clone());
    let here = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let spool = NamedTempFile::new_in(here).map_err(Error::file("write in", here))?;
    let agents = std::slice::from_ref(&agent);
    let save = Some(spool.path().to_owned());
    let source = match sealed {
        true => LogSource::Stored(&session.client, agents, save),
        false => LogSource::file_or_agents(file.as_deref(), &session.client, agents, save),
    };
    let first = source.read(|message| {
        choosing.locate_anchor(message);
        Ok(ControlFlow::Continue(()))
    });
    first.await.map_err(Error::into_unavailable)?;
    if let (Some(around), None) = (&around, choosing.anchor()) {
        return Err(Error::Usage(format!("--around: nothing of the agent {agent} stands at {around}")));
    }
    let objects = match (named.is_some() || redacted_before.is_some(), without_objects) {
        (true, _) => Err(Reason::Redacted),
        (false, true) => Err(Reason::Unwanted),
        // Its bytes would tell what is sealed.
        (false, false) if sealed => Err(Reason::Unwanted),
        (false, false) => objects::open(&source)?.ok_or(Reason::NotAtHand),
    };
    let source = LogSource::File(file.as_deref().unwrap_or(spool.path()));
    source
        .read(|message| {
            choosing.extend_range(message);
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    let redacting = match named {
        Some(named) => Some(find_redactions(&source, &choosing, named).await?),
        None => None,
    };
    let exporting = IncidentExport { source, choosing: &choosing, objects, redacted_before };
    let manifest = exporting.write_file(redacting, here, &output).await?;
    warn_of_content(&manifest, &output);
    print_exported(&manifest, &output, session.json)?;
    Ok(ExitCode::SUCCESS)
}

/// For how many values of each kind tokens stand in an incident file that is redacted already; none for another source.
fn earlier_redactions(file: Option<&Path>, again: bool) -> Result<Option<BTreeMap<String, u64>>, Error> {
    let Some(path) = file else { return Ok(None) };
    let manifest = agent_log::manifest(path)?.filter(|manifest| manifest.redacted);
    if let (Some(_), true) = (&manifest, again) {
        // Tokens are counted from one: another's would be taken for those that are there.
        let shown = path.display();
        return Err(Error::Usage(format!("--redact: {shown} is redacted already; redact what it was exported from")));
    }
    Ok(manifest.map(|manifest| manifest.replaced))
}

/// Warns that the content of the file is not for everybody.
fn warn_of_content(manifest: &Manifest, output: &Path) {
    let shown = output.display();
    let has_objects = manifest.objects.as_ref().is_some_and(|objects| objects.count > 0);
    match (manifest.redacted, has_objects) {
        (true, _) => {
            eprintln!("kairo: {shown} holds tokens for what was found; what is said of people in other words is in it");
        }
        (false, true) => eprintln!(
            "kairo: {shown} holds what was said, images, audio and video, in the clear; secrets that are sealed stay sealed"
        ),
        (false, false) => {
            eprintln!("kairo: {shown} holds what was said, in the clear; secrets that are sealed stay sealed");
        }
    }
}

fn print_exported(manifest: &Manifest, output: &Path, json: bool) -> Result<(), Error> {
    let Manifest { agent, range, messages, decisions, redacted, replaced, objects, .. } = manifest;
    if json {
        let told = json!({
            "file": output, "agent": agent, "messages": messages, "decisions": decisions, "range": range,
            "redacted": redacted, "replaced": replaced, "objects": objects,
        });
        return Ok(terminal::json(&told)?);
    }
    terminal::line(format!("{messages} messages of {agent}, {decisions} decisions"))?;
    Ok(manifest_summary::format_counts(manifest).into_iter().try_for_each(terminal::line)?)
}

/// Reads what is chosen for what there is to replace.
async fn find_redactions(
    source: &LogSource<'_>,
    choosing: &MessageSelection,
    named: RedactionTerms,
) -> Result<Redactor, Error> {
    let mut finding = ValueFinder::new(choosing.agent().clone(), named);
    let look = |message: &LogMessage| {
        if choosing.includes_message(message) {
            finding.scan(message);
        }
        Ok(ControlFlow::Continue(()))
    };
    source.read(look).await?;
    Ok(finding.into_redactor(secret_key::find().ok())?)
}

/// A file that is being written.
struct IncidentExport<'e> {
    source: LogSource<'e>,
    choosing: &'e MessageSelection,
    /// The store of the objects, or the reason why they are left out.
    objects: Result<Arc<dyn PartStore>, Reason>,
    /// The earlier replacements by kind, if the exported log is redacted already.
    redacted_before: Option<BTreeMap<String, u64>>,
}

impl IncidentExport<'_> {
    /// Writes what was chosen, the manifest first.
    async fn write_file(self, redacting: Option<Redactor>, here: &Path, output: &Path) -> Result<Manifest, Error> {
        let failed = || Error::file("write", output);
        let mut lines = BufWriter::new(tempfile::tempfile_in(here).map_err(failed())?);
        let (manifest, named) = self.write_messages(redacting, &mut lines, output).await?;
        let manifest = manifest.with_objects(self.write_objects(&named, &mut lines, output).await?);
        let mut lines = lines.into_inner().map_err(io::IntoInnerError::into_error).map_err(failed())?;
        let mut whole = NamedTempFile::new_in(here).map_err(failed())?;
        let written = whole.write_all(manifest.to_line().as_bytes()).and_then(|()| lines.rewind());
        written.and_then(|()| io::copy(&mut lines, &mut whole)).map_err(failed())?;
        whole.persist(output).map_err(|error| failed()(error.error))?;
        Ok(manifest)
    }

    /// Writes the messages; the manifest of them, and the objects that they name.
    async fn write_messages(
        &self,
        mut redacting: Option<Redactor>,
        lines: &mut impl Write,
        output: &Path,
    ) -> Result<(Manifest, Vec<Part>), Error> {
        let choosing = self.choosing;
        let mut writing = IncidentWriter::new(choosing, secret_key::find().ok());
        let take = |message: &LogMessage| {
            let redacted = match &mut redacting {
                Some(redacting) if choosing.includes_message(message) => Some(redacting.redact(message)?),
                _ => None,
            };
            let line = writing
                .write(redacted.as_ref().unwrap_or(message))
                .map_err(|broken| Error::Advice(broken.to_string()))?;
            if let Some(line) = line {
                lines.write_all(line.as_bytes()).map_err(Error::file("write", output))?;
            }
            Ok(ControlFlow::Continue(()))
        };
        self.source.read(take).await?;
        let Some((mut manifest, named)) = writing.finish(env!("CARGO_PKG_VERSION")) else {
            return Err(Error::Usage(format!("--agent: the log has nothing of the agent {}", choosing.agent())));
        };
        let replaced = redacting.as_ref().map(Redactor::counts).or_else(|| self.redacted_before.clone());
        (manifest.redacted, manifest.replaced) = (replaced.is_some(), replaced.unwrap_or_default());
        Ok((manifest, named))
    }

    /// Writes the objects, of which one at a time is in memory.
    async fn write_objects(&self, named: &[Part], lines: &mut impl Write, output: &Path) -> Result<Objects, Error> {
        let parts = match &self.objects {
            Ok(parts) => parts,
            Err(reason) => return Ok(Objects::left_out(named.len() as u64, *reason)),
        };
        let mut adding = ObjectWriter::default();
        for part in named {
            let found = parts.get(&part.digest, part.size.min(LARGEST)).await;
            match found.map_err(|error| object_error(part, error))? {
                Some(StoredPart { bytes, .. }) => {
                    lines.write_all(adding.write(part, &bytes).as_bytes()).map_err(Error::file("write", output))?;
                }
                None => adding.record_missing(part),
            }
        }
        Ok(adding.finish())
    }
}

/// One that is not there is missing, but one that nobody can tell of is not.
fn object_error(part: &Part, error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match error.downcast::<ClientError>() {
        Ok(error) => Error::Client(*error).into_unavailable(),
        Err(error) => Error::Advice(format!("the object {} cannot be read: {error}", part.digest)),
    }
}

/// For clap.
fn around(text: &str) -> Result<Anchor, String> {
    Anchor::parse(text).ok_or_else(|| format!("expected {AROUND}"))
}
