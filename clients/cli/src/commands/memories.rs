//! `kairo memories`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::civil::Date;
use kairo_core::{ids::Name, sealing};
use kairo_proto::{
    time,
    v1::{GetMemoryHistoryResponse, ListMemoriesResponse, MemoryRow, SealedSecret},
};
use uuid::Uuid;

use super::{
    GatewaySession,
    id_prefix::{IdPrefix, short_id},
    name,
};
use crate::{
    Error,
    event_lines::{in_one_line, printable},
    secret_key,
    table::table,
    terminal,
};

const EXAMPLES: &str = "\
Examples:
  kairo memories
  kairo memories --agent default budget review
  kairo memories --type person --json
  kairo memories history 1f0c2ab4
  kairo memories reveal 1f0c2ab4";

/// Show what agents remember, or search it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct MemoriesArgs {
    #[command(subcommand)]
    command: Option<MemoriesCommand>,
    /// Words to search for; any of them may match
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only of this agent
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
    /// Only what was written for this user, or for all
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    /// Only of this type: journal, person, project, preference, decision, insight, fact, state or secret
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only about this day, in the agent's time zone
    #[arg(long, value_name = "YYYY-MM-DD")]
    day: Option<Date>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
}

#[derive(Debug, Subcommand)]
enum MemoriesCommand {
    /// Show the secrets of a memory, opened on this machine
    ///
    /// The key is the one that agent-runtime has: KAIRO_SECRET_KEY, else agent_runtime.secret_key of the configuration
    /// (KAIRO_CONFIG, KAIRO_AGENT_RUNTIME__SECRET_KEY), else that of the kairo dev in this folder or one above it. It
    /// is sent to nobody.
    Reveal(MemorySelector),
    /// Show what a memory said before, and which events each version comes from
    History(MemorySelector),
}

#[derive(Debug, Args)]
struct MemorySelector {
    /// The memory, or the first digits of its id
    #[arg(value_name = "ID")]
    id: IdPrefix,
    /// Agent of the memory; only needed where several agents have one of this id
    #[arg(long, value_parser = name, value_name = "NAME")]
    agent: Option<Name>,
}

pub(super) async fn run(arguments: MemoriesArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    match arguments.command {
        Some(MemoriesCommand::Reveal(wanted)) => reveal_secrets(wanted, session).await,
        Some(MemoriesCommand::History(wanted)) => show_history(wanted, session).await,
        None => list_memories(arguments, session).await,
    }
}

async fn list_memories(arguments: MemoriesArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let mut query = vec![("limit", arguments.limit.to_string())];
    query.extend((!arguments.words.is_empty()).then(|| ("q", arguments.words.join(" "))));
    query.extend(arguments.agent.map(|agent| ("agent", agent.to_string())));
    query.extend(arguments.user.map(|user| ("user", user.to_string())));
    query.extend(arguments.kind.map(|kind| ("type", kind)));
    if let Some(day) = arguments.day {
        query.extend([("from", day.to_string()), ("to", day.to_string())]);
    }
    if let Some(ListMemoriesResponse { memories, .. }) = session.get_or_print_json("v1/memories", &query).await? {
        format_memories(&memories).into_iter().try_for_each(terminal::row)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn format_memories(memories: &[MemoryRow]) -> Vec<String> {
    let rows = memories.iter().map(|memory| {
        [
            memory.day.clone().unwrap_or_default(),
            memory.agent.clone(),
            in_one_line(&memory.r#type),
            short_id(&memory.memory_id),
            match memory.subject.as_str() {
                "" => in_one_line(&memory.content),
                subject => format!("{}: {}", in_one_line(subject), in_one_line(&memory.content)),
            },
        ]
    });
    table(["day", "agent", "type", "memory", "content"], rows)
}

/// The memory that is named by its id or the beginning of it.
async fn find_memory(wanted: MemorySelector, session: &GatewaySession) -> Result<MemoryRow, Error> {
    let mut query = vec![("limit", "1000".to_owned())];
    query.extend(wanted.agent.map(|agent| ("agent", agent.to_string())));
    query.extend(wanted.id.full_id().map(|id| ("memory_id", id)));
    let ListMemoriesResponse { memories, .. } = session.client.get("v1/memories", &query).await?;
    wanted.id.find_unique(memories, |memory| &memory.memory_id, "memory", "kairo memories")
}

async fn show_history(wanted: MemorySelector, session: &GatewaySession) -> Result<ExitCode, Error> {
    let MemoryRow { agent, memory_id, .. } = find_memory(wanted, session).await?;
    let path = format!("v1/memories/{agent}/{memory_id}/history");
    if let Some(GetMemoryHistoryResponse { versions, next_before, .. }) = session.get_or_print_json(&path, &[]).await? {
        format_versions(&versions).into_iter().try_for_each(terminal::row)?;
        if let Some(before) = next_before {
            terminal::line(format!("Older: GET /{path}?before={before}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn format_versions(versions: &[MemoryRow]) -> Vec<String> {
    let rows = versions.iter().map(|version| {
        let sources: Vec<String> = version.source_event_ids.iter().map(|event| short_id(event)).collect();
        [
            version.sequence.to_string(),
            version.updated_at.as_ref().and_then(time::read).map(|at| format!("{at:.0}")).unwrap_or_default(),
            in_one_line(&version.content),
            sources.join(" "),
        ]
    });
    table(["message", "written", "content", "from events"], rows)
}

async fn reveal_secrets(wanted: MemorySelector, session: &GatewaySession) -> Result<ExitCode, Error> {
    let key = secret_key::find()?;
    let memory = find_memory(wanted, session).await?;
    if memory.secrets.is_empty() {
        return Err(Error::Advice(format!("nothing is sealed in the memory {}", memory.memory_id)));
    }
    let secrets =
        memory.secrets.iter().map(|secret| Ok((secret.name.as_str(), open_memory_secret(&key, &memory, secret)?)));
    let secrets: Vec<(&str, String)> = secrets.collect::<Result<_, Error>>()?;
    if session.json {
        let secrets: serde_json::Map<_, _> =
            secrets.into_iter().map(|(name, secret)| (name.to_owned(), secret.into())).collect();
        terminal::json(&secrets)?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::line(printable(&memory.content))?;
    let rows = secrets.into_iter().map(|(name, secret)| [printable(name), printable(&secret)]);
    table(["name", "secret"], rows).into_iter().try_for_each(terminal::line)?;
    Ok(ExitCode::SUCCESS)
}

fn open_memory_secret(key: &sealing::SealingKey, memory: &MemoryRow, secret: &SealedSecret) -> Result<String, Error> {
    open_secret(key, &memory.memory_id, secret)
}

/// A secret that was sealed for this id.
pub(super) fn open_secret(key: &sealing::SealingKey, id: &str, secret: &SealedSecret) -> Result<String, Error> {
    let opened = Uuid::parse_str(id)
        .map_err(|_| sealing::SealingError::NotOpened)
        .and_then(|id| sealing::open_secret(key, id, &secret.name, &secret.sealed));
    opened.map_err(|error| Error::Advice(format!("cannot open {:?}: {error}", secret.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(key: &sealing::SealingKey) -> MemoryRow {
        let id = Uuid::from_u128(1);
        let sealed = sealing::seal_secret(key, id, "pin", "4711").unwrap();
        let memory = MemoryRow {
            memory_id: id.to_string(),
            agent: "default".into(),
            r#type: "journal".into(),
            content: "The PIN is [secret pin].\nPeople: Sarah".into(),
            day: Some("2026-11-21".into()),
            secrets: vec![SealedSecret { name: "pin".into(), sealed }],
            ..MemoryRow::default()
        };
        // As the gateway tells it.
        serde_json::from_value(serde_json::to_value(memory).unwrap()).unwrap()
    }

    #[test]
    fn secrets_open_with_the_key_only_and_are_not_listed() {
        let memory = memory(&[7; 32]);
        assert_eq!(open_memory_secret(&[7; 32], &memory, &memory.secrets[0]).unwrap(), "4711");
        let refused = open_memory_secret(&[8; 32], &memory, &memory.secrets[0]).unwrap_err().to_string();
        assert!(refused.contains("does not open it"), "{refused}");
        let text = format_memories(&[memory]).join("\n");
        assert!(
            text.contains("2026-11-21  default  journal  00000000  The PIN is [secret pin]. People: Sarah"),
            "{text}"
        );
        assert!(!text.contains("4711"));
    }
}
