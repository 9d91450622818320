//! The grammar of tool names, and how the names that MCP servers choose are fitted into it.

use uuid::Uuid;

/// Longest name on the wire of the OpenAI API, where "." is written "__".
pub const MAX_WIRE_NAME: usize = 64;
/// Longest name of an MCP server, which leaves its tools at least 30 characters.
pub const MAX_SERVER_NAME: usize = 32;
/// First segments that belong to Kairo's own tools.
pub const RESERVED_NAMESPACES: [&str; 6] = ["tools", "http", "process", "agent", "action", "memory"];

/// First segments of the names of Kairo's own tools, those of agents' minds among them: no custom tool begins with one.
pub const BUILT_IN_NAMESPACES: [&str; 20] = [
    "action",
    "agent",
    "calendar",
    "chain",
    "document",
    "email",
    "history",
    "http",
    "member",
    "memory",
    "process",
    "state",
    "step",
    "submodule",
    "task",
    "team",
    "thread",
    "tools",
    "user",
    "web",
];

/// Hexadecimal digits of the digest that keeps mangled names apart.
const DIGEST_CHARS: usize = 8;

/// The name as a model sees it: APIs of the OpenAI kind allow no dot.
pub fn wire_name(name: &str) -> String {
    name.replace('.', "__")
}

/// Returns true if `name` is `[a-z0-9_-]+(\.[A-Za-z0-9_-]+)*` and fits the wire.
pub fn is_valid(name: &str) -> bool {
    let mut segments = name.split('.');
    let namespace = segments.next().unwrap_or_default();
    is_namespace(namespace) && segments.all(is_segment) && wire_length(name) <= MAX_WIRE_NAME
}

/// Returns true if `name` can be the first segment of a tool name, which has no uppercase letters.
pub fn is_namespace(name: &str) -> bool {
    is_segment(name) && !name.contains(|c: char| c.is_ascii_uppercase())
}

fn is_segment(segment: &str) -> bool {
    !segment.is_empty() && segment.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn wire_length(name: &str) -> usize {
    name.len() + name.matches('.').count()
}

/// The name of an MCP tool: `<server>.<tool>` where that is valid. Otherwise what does not fit is
/// replaced or cut off and a digest of the original is appended, so that the same tool has the
/// same name for ever and two tools never share one.
pub fn mcp_tool_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}.{tool}");
    if is_valid(&plain) {
        return plain;
    }
    let digest = Uuid::new_v5(&Uuid::NAMESPACE_URL, tool.as_bytes()).simple().to_string();
    let digest = digest.get(..DIGEST_CHARS).unwrap_or(&digest);
    // Two for the separating dot on the wire, one for the underscore before the digest.
    let room = MAX_WIRE_NAME.saturating_sub(server.len() + DIGEST_CHARS + 3);
    let readable: String = tool.chars().map(|c| if is_name_char(c) { c } else { '_' }).take(room).collect();
    format!("{server}.{readable}_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in ["tools.now", "a", "my-server.getThing", "x.y.z", "x_1.A-b"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "A.b", "a b", "a..b", "a.é", "a/b"] {
            assert!(!is_valid(bad), "{bad}");
        }
        assert!(is_valid(&format!("a.{}", "b".repeat(61))));
        assert!(!is_valid(&format!("a.{}", "b".repeat(62))));
    }

    #[test]
    fn names_that_fit_are_kept() {
        assert_eq!(mcp_tool_name("time", "get_current_time"), "time.get_current_time");
        assert_eq!(mcp_tool_name("files", "read.File"), "files.read.File");
    }

    #[test]
    fn names_that_do_not_fit_are_mangled_apart_and_stay_valid() {
        let server = "s".repeat(MAX_SERVER_NAME);
        let long = "t".repeat(200);
        let cases = ["", "a/b", "a b", "naïve", "..", &long, "東京"];
        let mut seen = std::collections::BTreeSet::new();
        for tool in cases {
            let name = mcp_tool_name(&server, tool);
            assert!(is_valid(&name), "{tool:?} became {name:?}");
            assert_eq!(name, mcp_tool_name(&server, tool));
            assert!(seen.insert(name));
        }
    }
}
