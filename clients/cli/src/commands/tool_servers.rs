//! The part of `kairo status` on MCP servers, tool workers, and tools that model endpoints refuse.

use kairo_proto::{
    time,
    v1::{ReplicaRow, ToolServerRow},
    words::ToolServerState,
};

use crate::{event_lines::printable, table::table};

/// Lines of a standard error that are shown.
const STDERR_LINES: usize = 5;

/// A table of all servers, and below it what is wrong with them; nothing where there are none.
pub(super) fn format_servers(replicas: &[ReplicaRow]) -> Vec<String> {
    let servers: Vec<(&ReplicaRow, &ToolServerRow)> =
        replicas.iter().flat_map(|replica| replica.tool_servers.iter().map(move |server| (replica, server))).collect();
    let mut lines = Vec::new();
    if !servers.is_empty() {
        lines.extend(table(HEADS, servers.iter().map(|(replica, server)| server_cells(replica, server))));
        lines.extend(servers.iter().flat_map(|(_, server)| format_problems(server)));
        lines.push(String::new());
    }
    let refused = replicas.iter().flat_map(|replica| replica.refused_tools.iter().map(move |tool| (replica, tool)));
    let refused = refused.map(|(replica, tool)| {
        format!("{}: the endpoint of {} refuses the tool {}", replica.instance, tool.model, printable(&tool.tool))
    });
    lines.extend(refused);
    lines
}

const HEADS: [&str; 7] = ["tool server", "source", "state", "since", "protocol", "tools", "replica"];

fn server_cells(replica: &ReplicaRow, server: &ToolServerRow) -> [String; 7] {
    let since = server.since.as_ref().and_then(time::read);
    let since = since.map_or_else(|| "-".to_owned(), |since| since.strftime("%Y-%m-%d %H:%M:%SZ").to_string());
    let protocol = if server.protocol.is_empty() { "-".to_owned() } else { printable(&server.protocol) };
    let name = printable(&server.name);
    let tools = server.tools.to_string();
    [name, server.source.clone(), server.state.clone(), since, protocol, tools, replica.instance.clone()]
}

/// Returns the problems of a server, a line each.
fn format_problems(server: &ToolServerRow) -> Vec<String> {
    let name = printable(&server.name);
    let is_up = server.state_word() == ToolServerState::Up;
    let mut lines = Vec::new();
    if !server.last_error.is_empty() {
        let when = if is_up { "last error" } else { "error" };
        lines.push(format!("{name}: {when}: {}", printable(&server.last_error)));
    }
    let left_out = server.left_out.iter();
    lines.extend(
        left_out.map(|tool| format!("{name}: left out {}: {}", printable(&tool.name), printable(&tool.reason))),
    );
    lines.extend(server.notes.iter().map(|note| format!("{name}: {}", printable(note))));
    if !is_up {
        let said: Vec<&str> = server.stderr_end.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = said.iter().skip(said.len().saturating_sub(STDERR_LINES));
        lines.extend(end.map(|line| format!("{name}: stderr: {}", printable(line))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_are_shown_with_what_is_wrong_with_them() {
        let replica = json!({
            "service": "tool-runner", "instance": "tool-runner-1",
            "tool_servers": [
                {"name": "files", "source": "mcp", "state": "up", "since": "2026-11-27T10:00:00Z", "protocol": "2026-07-28",
                 "tools": 3, "left_out": [{"name": "odd", "reason": "no schema"}], "notes": ["a banner on standard output"],
                 "last_error": "it exited", "stderr_end": "well"},
                {"name": "mail", "source": "mcp", "state": "down", "last_error": "no such program",
                 "stderr_end": "one\n2\n3\n4\n5\nsix \u{1b}[31m"},
                {"name": "bank", "source": "worker", "state": "starting"},
            ],
            "refused_tools": [{"model": "m", "tool": "files__odd"}],
        });
        let replicas: Vec<ReplicaRow> = serde_json::from_value(json!([replica])).unwrap();
        let text = format_servers(&replicas).join("\n");
        for part in [
            "files        mcp     up        2026-11-27 10:00:00Z  2026-07-28  3      tool-runner-1",
            "bank         worker  starting  -                     -           0      tool-runner-1",
            "files: last error: it exited",
            "files: left out odd: no schema",
            "files: a banner on standard output",
            "mail: error: no such program",
            "mail: stderr: six",
            "tool-runner-1: the endpoint of m refuses the tool files__odd",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        for absent in ["stderr: well", "stderr: one", "\u{1b}"] {
            assert!(!text.contains(absent), "{absent:?} is in\n{text}");
        }
        assert_eq!(format_servers(&[ReplicaRow::default()]), [""; 0]);
    }
}
