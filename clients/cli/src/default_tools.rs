//! The tools offered to an agent whose definition names none. Every tool that is offered is paid for with every
//! request, and models choose worse among many.

/// Everything but what a first conversation does not need: tools that are added, such as those of MCP servers, are offered. `*` names
/// all of them.
pub const DEFAULT_TOOLS: [&str; 16] = [
    "*",
    "!calendar.*",
    "!chain.cancel",
    "!document.*",
    "!email.*",
    "!memory.digest",
    "!process.list",
    "!process.signal",
    "!process.write",
    "!step.*",
    "!task.archive",
    "!task.pause",
    "!task.register",
    "!task.resume",
    "!team.members",
    "!thread.*",
];

/// The tools that a definition names or, where it names none and the agent is not composed of others, few.
pub fn tools_or_default(tools: Vec<String>, is_composed: bool) -> Vec<String> {
    match tools.is_empty() && !is_composed {
        true => DEFAULT_TOOLS.map(str::to_owned).into(),
        false => tools,
    }
}
