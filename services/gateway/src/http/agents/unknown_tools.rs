//! Names of tools in a profile that match no tool.

use std::collections::BTreeSet;

use kairo_core::tool_groups;
use kairo_proto::v1::AgentProfile;

/// The least similarity (Jaro-Winkler, 0 to 1) of a name that is suggested.
const ALIKE: f64 = 0.8;
/// The least similarity at which an excluded name counts as mistyped.
const MISTYPED: f64 = 0.9;

/// A warning for each name, prefix or group in a profile that matches none of these tools. Tools may come later, with a
/// server or a worker, so the profile is accepted. An exclusion (`!email.*`) of tools that do not exist is no mistake,
/// unless it is almost the name of one.
pub fn warnings(profile: &AgentProfile, tools: &BTreeSet<String>) -> Vec<String> {
    let own = profile.tools.iter().enumerate().map(|(at, tool)| (format!("tools[{at}]"), tool));
    let of_members = profile.members.iter().enumerate().flat_map(|(at, member)| {
        member.tools.iter().enumerate().map(move |(number, tool)| (format!("members[{at}].tools[{number}]"), tool))
    });
    let unknown = own.chain(of_members).filter(|(_, pattern)| !tools.iter().any(|tool| matches(pattern, tool)));
    unknown.filter_map(|(field, pattern)| warning(&field, pattern, tools)).collect()
}

fn matches(pattern: &str, tool: &str) -> bool {
    let pattern = pattern.strip_prefix('!').unwrap_or(pattern);
    if let Some(group) = pattern.strip_prefix(tool_groups::PREFIX) {
        return tool_groups::group(tool) == group;
    }
    match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == pattern,
    }
}

fn warning(field: &str, pattern: &str, tools: &BTreeSet<String>) -> Option<String> {
    let closest = closest_name(pattern, tools);
    let is_exclusion = pattern.starts_with('!');
    if is_exclusion && (pattern.ends_with('*') || closest.as_ref().is_none_or(|(alike, _)| *alike < MISTYPED)) {
        return None;
    }
    let suggestion =
        closest.map(|(_, name)| format!("; did you mean {}?", with_prefix(pattern, &name))).unwrap_or_default();
    Some(format!("{field}: {pattern} matches no tool{suggestion}"))
}

/// The name as it would stand in the profile in place of the pattern.
fn with_prefix(pattern: &str, name: &str) -> String {
    let exclusion = if pattern.starts_with('!') { "!" } else { "" };
    let is_group = pattern.trim_start_matches('!').starts_with(tool_groups::PREFIX);
    format!("{exclusion}{}{name}", if is_group { tool_groups::PREFIX } else { "" })
}

/// The name of the tool or group that is most like the pattern, if one is alike.
fn closest_name(pattern: &str, tools: &BTreeSet<String>) -> Option<(f64, String)> {
    let wanted = pattern.trim_start_matches('!').trim_end_matches(['*', '.']);
    let (wanted, candidates) = match wanted.strip_prefix(tool_groups::PREFIX) {
        Some(group) => (group, tools.iter().map(|tool| tool_groups::group(tool)).collect::<BTreeSet<_>>()),
        None => (wanted, tools.iter().map(String::as_str).collect()),
    };
    let alike = candidates.into_iter().map(|candidate| (strsim::jaro_winkler(wanted, candidate), candidate.to_owned()));
    alike.max_by(|(one, _), (other, _)| one.total_cmp(other)).filter(|(alike, _)| *alike >= ALIKE)
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::Member;

    use super::*;

    fn warned(patterns: &[&str]) -> Vec<String> {
        let tools = ["email.send", "email.search", "http.get", "memory.append", "github.create_issue"];
        let tools = tools.into_iter().map(str::to_owned).collect();
        let patterns: Vec<String> = patterns.iter().copied().map(str::to_owned).collect();
        let member = Member { tools: patterns.clone(), ..Member::default() };
        let own = warnings(&AgentProfile { tools: patterns, ..AgentProfile::default() }, &tools);
        let of_members = warnings(&AgentProfile { members: vec![member], ..AgentProfile::default() }, &tools);
        let expected: Vec<String> = own.iter().map(|warning| format!("members[0].{warning}")).collect();
        assert_eq!(of_members, expected);
        own
    }

    #[test]
    fn patterns_that_match_a_tool_raise_no_warning() {
        let good = [
            "*",
            "email.*",
            "email.send",
            "group:mail",
            "group:github",
            "!email.*",
            "!http.get",
            "e*",
            "!calendar.*",
            "!zzz",
        ];
        assert_eq!(warned(&good), Vec::<String>::new());
    }

    #[test]
    fn a_mistyped_name_is_named_with_the_one_that_is_probably_meant() {
        let mistyped = ["email.sned", "email.send", "group:mial", "!memry.append", "slack.*", "zzz"];
        let expected = [
            "tools[0]: email.sned matches no tool; did you mean email.send?",
            "tools[2]: group:mial matches no tool; did you mean group:mail?",
            "tools[3]: !memry.append matches no tool; did you mean !memory.append?",
            "tools[4]: slack.* matches no tool",
            "tools[5]: zzz matches no tool",
        ];
        assert_eq!(warned(&mistyped), expected);
    }
}
