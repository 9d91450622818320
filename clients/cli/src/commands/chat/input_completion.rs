//! Completions of the beginning of a command or of an agent's name.

use kairo_proto::v1::{ListAgentsResponse, ListCommandsResponse};

use super::GatewaySession;
use crate::{Error, event_lines::printable, steps::one_line, table::table};

/// The commands or agents that begin as what was typed, where that is nothing to be sent yet; none where it is.
pub(super) async fn suggest(typed: &str, session: &GatewaySession) -> Result<Vec<String>, Error> {
    if typed.contains(char::is_whitespace) {
        return Ok(Vec::new());
    }
    if let Some(beginning) = typed.strip_prefix('/') {
        let all = session.client.get("v1/commands", &[]).await?;
        return Ok(suggest_commands(beginning, all));
    }
    if let Some(beginning) = typed.strip_prefix('@') {
        let all = session.client.get("v1/agents", &[]).await?;
        return Ok(suggest_agents(beginning, all));
    }
    Ok(Vec::new())
}

/// Nothing where the command is whole: that is a message.
fn suggest_commands(beginning: &str, ListCommandsResponse { commands }: ListCommandsResponse) -> Vec<String> {
    if commands.iter().any(|command| command.command == beginning) {
        return Vec::new();
    }
    let begun = commands.into_iter().filter(|command| command.command.starts_with(beginning));
    let rows: Vec<_> = begun
        .map(|command| {
            let label = printable(&command.label);
            let help = printable(&command.help);
            [format!("/{}", command.command), label, command.agent, help]
        })
        .collect();
    if rows.is_empty() { Vec::new() } else { table(["command", "label", "agent", "help"], rows) }
}

/// A name alone says nothing to anybody, whole or not.
fn suggest_agents(beginning: &str, ListAgentsResponse { agents, .. }: ListAgentsResponse) -> Vec<String> {
    let begun = agents.into_iter().filter(|row| row.agent.starts_with(beginning));
    let rows: Vec<_> = begun
        .map(|row| {
            let description = row.profile.map(|profile| one_line(&profile.description)).unwrap_or_default();
            [format!("@{}", row.agent), printable(&description)]
        })
        .collect();
    if rows.is_empty() { Vec::new() } else { table(["agent", "description"], rows) }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentRow, DeclaredCommand};

    use super::*;

    fn offered(beginning: &str) -> usize {
        let command = |command: &str| DeclaredCommand { command: command.into(), ..Default::default() };
        let all = ListCommandsResponse { commands: vec![command("search"), command("seek"), command("ask")] };
        suggest_commands(beginning, all).len().saturating_sub(1)
    }

    #[test]
    fn a_command_is_offered_until_it_is_whole() {
        assert_eq!(["", "se", "seek", "x"].map(offered), [3, 2, 0, 0]);
    }

    #[test]
    fn a_name_is_offered_as_long_as_nothing_is_said() {
        let row = |agent: &str| AgentRow { agent: agent.into(), ..Default::default() };
        let all = ListAgentsResponse { agents: vec![row("cook"), row("coach"), row("aide")], ..Default::default() };
        let lines = suggest_agents("co", all.clone());
        assert!(lines.len() == 3 && lines[1].contains("@cook"), "{lines:?}");
        assert!(suggest_agents("x", all).is_empty());
    }
}
