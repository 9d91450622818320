//! Groups of tools: tools that belong together have one name, by which profiles name all of them.
//!
//! The group of a tool follows from its name. An MCP server, a worker or a document of OpenAPI has the first segment of its
//! tools' names for itself, so its tools are a group. Kairo's own tools are grouped by what they are about.

/// Prefix of a group's name where a profile lists tools: `group:mail`.
pub const PREFIX: &str = "group:";

/// Groups of Kairo's own tools, by name or by its first segment; the first that fits counts.
const GROUPS: [(&str, &str); 20] = [
    ("tools.find", "tools"),
    ("tools", "time"),
    ("http", "web"),
    ("web", "web"),
    ("email", "mail"),
    ("document", "documents"),
    ("memory", "memory"),
    ("state", "memory"),
    ("history", "memory"),
    ("task", "tasks"),
    ("chain", "tasks"),
    ("step", "tasks"),
    ("thread", "conversation"),
    ("user", "conversation"),
    ("process", "processes"),
    ("action", "processes"),
    ("agent", "agents"),
    ("member", "agents"),
    ("submodule", "agents"),
    ("team", "agents"),
];

/// The group that a tool of this name belongs to.
///
/// ```
/// assert_eq!(kairo_events::tool_groups::group("email.send"), "mail");
/// assert_eq!(kairo_events::tool_groups::group("github.create_issue"), "github");
/// ```
pub fn group(tool: &str) -> &str {
    let first = tool.split('.').next().unwrap_or(tool);
    let is_it = |(name, _): &&(&str, &'static str)| *name == tool || *name == first;
    GROUPS.iter().find(is_it).map_or(first, |(_, group)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_tools_are_grouped_by_what_they_are_about_and_others_by_their_server() {
        let table = [
            ("tools.now", "time"),
            ("tools.date_calc", "time"),
            ("tools.find", "tools"),
            ("http.get", "web"),
            ("web.search", "web"),
            ("email.send", "mail"),
            ("calendar.create", "calendar"),
            ("memory.search", "memory"),
            ("state.write", "memory"),
            ("task.schedule", "tasks"),
            ("chain.cancel", "tasks"),
            ("process.run", "processes"),
            ("action.cancel", "processes"),
            ("github.create_issue", "github"),
            ("a.b.c", "a"),
            ("alone", "alone"),
            ("", ""),
        ];
        for (tool, expected) in table {
            assert_eq!(group(tool), expected, "{tool}");
        }
    }
}
