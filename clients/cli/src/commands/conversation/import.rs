//! `kairo conversation import`: a document becomes history of an agent.

use std::{
    io::{self, Read},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::v1::ImportConversationResponse;
use serde_json::{Value, json};

use super::super::{GatewaySession, name};
use crate::{Error, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo conversation import dinner.json
  kairo conversation import dinner.json --agent chef --user joe
  kairo conversation export cook --user ann | kairo conversation import - --agent chef

No model is asked, and nobody is told. Whoever goes on there has seen content from outside: what acts outside needs consent then.
The same document again changes nothing.";

/// Take in a conversation that was had elsewhere
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConversationImportArgs {
    /// The file that kairo conversation export wrote; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The agent whose history it becomes, instead of the one that the document names
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Owner of the conversation from here on, instead of the user that the document names
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
}

pub(super) async fn run(arguments: ConversationImportArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let ConversationImportArgs { file, agent, user } = arguments;
    let mut text = String::new();
    match file.as_os_str() == "-" {
        true => io::stdin().lock().read_to_string(&mut text),
        false => std::fs::File::open(&file).and_then(|mut opened| opened.read_to_string(&mut text)),
    }
    .map_err(Error::file("read", &file))?;
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| Error::Advice(format!("{} is no document: {error}", file.display())))?;
    let agent = match agent {
        Some(agent) => agent,
        None => document_agent(&document)
            .map_err(|why| Error::Advice(format!("{}: {why}; name one with --agent", file.display())))?,
    };
    let mut body = json!({ "document": document });
    if let (Some(user), Value::Object(fields)) = (user, &mut body) {
        fields.insert("user".to_owned(), json!(user));
    }
    let answer: Value = session.client.post(&format!("v1/conversations/{agent}/import"), &body).await?;
    if session.json {
        terminal::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ImportConversationResponse { sequence, messages, threads, .. } = session.parse_answer(answer)?;
    terminal::line(format!("{messages} messages are known to {agent} from {sequence} on, in these threads:"))?;
    threads.iter().try_for_each(|thread| terminal::line(format!("{}  (there {})", thread.thread_id, thread.named)))?;
    Ok(ExitCode::SUCCESS)
}

/// The agent that a document names.
fn document_agent(document: &Value) -> Result<Name, String> {
    let agent = document.get("agent").and_then(Value::as_str).ok_or("agent: expected the name of an agent")?;
    Name::parse(agent).map_err(|error| format!("agent: {error}"))
}
