//! `kairo conversation export`: a conversation as one document, made of what queries show, page by page.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use jiff::Timestamp;
use kairo_core::{ids::Name, imports::FORMAT};
use kairo_proto::{
    time,
    v1::{
        DocumentMessage, DocumentPart, DocumentThread, GetConversationResponse, ListThreadsResponse, MessageRow,
        ThreadRow,
    },
    words::{MessageRole, ThreadKind},
};
use serde_json::json;
use tempfile::NamedTempFile;

use super::super::{GatewaySession, name};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo conversation export cook --user ann -o dinner.json
  kairo conversation export cook --user ann | jq .messages

What is in no thread yet, or reached nobody, is left out; standard error says how much. Images, audio and video are named by the
digests of their bytes, which GET /v1/objects/{digest} answers with.";

/// Write a conversation to a file, to be imported elsewhere
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConversationExportArgs {
    /// The agent
    #[arg(value_parser = name, default_value = "default")]
    agent: Name,
    /// The user who spoke with it
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Name,
    /// File to write, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(arguments: ConversationExportArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let left_out = match &arguments.output {
        None => write_document(&arguments, session, &mut terminal::JsonOutput(io::stdout().lock())).await?,
        Some(path) => export_to_file(&arguments, session, path).await?,
    };
    if left_out > 0 {
        writeln!(io::stderr(), "{left_out} messages are in no thread, and were left out")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A file is there once it is whole, and nobody else may read it. Until then it has a name that nobody knows before, and so leads
/// nowhere else.
async fn export_to_file(
    arguments: &ConversationExportArgs,
    session: &GatewaySession,
    path: &Path,
) -> Result<u64, Error> {
    let here = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = BufWriter::new(NamedTempFile::new_in(here).map_err(Error::file("write in", here))?);
    let left_out = write_document(arguments, session, &mut file).await?;
    let whole = file.into_inner().map_err(io::IntoInnerError::into_error).map_err(Error::file("write", path))?;
    whole.persist(path).map_err(|error| Error::file("write", path)(error.error))?;
    Ok(left_out)
}

/// Writes the document as its pages come; how many messages were left out.
async fn write_document(
    arguments: &ConversationExportArgs,
    session: &GatewaySession,
    out: &mut impl Write,
) -> Result<u64, Error> {
    let threads = fetch_threads(arguments, session).await?;
    let known: BTreeSet<&str> = threads.iter().map(|thread| thread.thread_id.as_str()).collect();
    let agent = arguments.agent.as_str();
    let user = arguments.user.as_str();
    let head = [("format", json!(FORMAT)), ("agent", json!(agent)), ("user", json!(user))];
    let head = head.into_iter().chain([("exported_at", json!(Timestamp::now())), ("threads", json!(threads))]);
    for (at, (field, value)) in head.enumerate() {
        write!(out, "{}\n  \"{field}\": {value}", if at == 0 { "{" } else { "," })?;
    }
    write!(out, ",\n  \"messages\": [")?;
    let path = format!("v1/conversations/{agent}");
    let mut after = None;
    let mut left_out = 0;
    let mut is_first = true;
    loop {
        let mut query = vec![("user", user.to_owned())];
        query.extend(after.map(|after: u64| ("after", after.to_string())));
        let page: GetConversationResponse = session.client.get(&path, &query).await?;
        for said in page.messages {
            match to_document_message(said, &known) {
                Some(message) => {
                    write!(out, "{}\n    {}", if is_first { "" } else { "," }, json!(message))?;
                    is_first = false;
                }
                None => left_out += 1,
            }
        }
        after = page.next_after.map(|place| place.sequence);
        if after.is_none() {
            break;
        }
    }
    writeln!(out, "\n  ]\n}}")?;
    Ok(left_out)
}

/// The threads of the conversation, the oldest first; none of work.
async fn fetch_threads(
    arguments: &ConversationExportArgs,
    session: &GatewaySession,
) -> Result<Vec<DocumentThread>, Error> {
    let agent = arguments.agent.to_string();
    let user = arguments.user.to_string();
    let mut threads = Vec::new();
    let mut before = None;
    loop {
        let mut query = vec![("agent", agent.clone()), ("user", user.clone()), ("status", "all".to_owned())];
        query.extend(before.map(|before: u64| ("before", before.to_string())));
        let page: ListThreadsResponse = session.client.get("v1/threads", &query).await?;
        threads.extend(page.threads.into_iter().filter(is_topic).map(to_document_thread));
        before = page.next_before;
        if before.is_none() {
            threads.reverse();
            return Ok(threads);
        }
    }
}

fn is_topic(thread: &ThreadRow) -> bool {
    thread.kind_word() == ThreadKind::Topic
}

fn to_document_thread(thread: ThreadRow) -> DocumentThread {
    DocumentThread { thread_id: thread.thread_id, title: thread.title, summary: thread.summary }
}

/// A message as the document has it; none for one that is in none of these threads.
fn to_document_message(said: MessageRow, threads: &BTreeSet<&str>) -> Option<DocumentMessage> {
    let speaks = matches!(said.role_word(), MessageRole::User | MessageRole::Agent);
    let thread_id = said.thread_id.filter(|thread| speaks && threads.contains(thread.as_str()))?;
    let part = |part: kairo_proto::v1::PartRow| DocumentPart {
        media_type: part.media_type,
        digest: part.digest,
        size: part.size,
        name: part.name,
    };
    Some(DocumentMessage {
        id: said.event_id,
        thread_id,
        role: said.role,
        text: said.text,
        time: said.ts.as_ref().and_then(time::read).map(|at| at.to_string()).unwrap_or_default(),
        parts: said.parts.into_iter().map(part).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_in_a_thread_of_the_conversation_is_in_the_document() {
        let said = |role: &str, thread: Option<&str>| MessageRow {
            role: role.into(),
            thread_id: thread.map(str::to_owned),
            text: "soup?".into(),
            ts: Some(time::message("2026-11-21T10:00:00Z".parse().unwrap())),
            ..MessageRow::default()
        };
        let threads = BTreeSet::from(["dinner"]);
        let written = to_document_message(said("user", Some("dinner")), &threads).unwrap();
        assert_eq!((written.time.as_str(), written.text.as_str()), ("2026-11-21T10:00:00Z", "soup?"));
        for left_out in [said("failure", Some("dinner")), said("agent", Some("work")), said("user", None)] {
            assert_eq!(to_document_message(left_out, &threads), None);
        }
    }
}
