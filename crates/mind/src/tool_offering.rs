//! The tools that a request lists: all that the agent may call or, if these are many, a few of them and those that
//! `tools.find` found in the conversation.
//!
//! Every listed tool is paid for with every request, and models choose worse among many. A conversation's list stays
//! the same except for found tools, which are appended, so that caches of the prefix hold.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::tool_groups;

use super::{
    intrinsics::{self, tool_search},
    prompts,
    request::Tool,
    state::AgentState,
};

/// Groups that the system message names at most.
const GROUPS: usize = 40;
/// Maximum size of the system message's text on the tools of one group, in bytes.
const GROUP_BYTES: usize = 80;

/// The bounds above which a request lists only a few tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingLimits {
    /// Maximum number of listed tools; 0 for all of them, however many there are.
    pub tools: usize,
    /// Maximum size of the names, descriptions and schemas of listed tools together, in bytes.
    pub bytes: usize,
}

impl ListingLimits {
    /// All tools are listed, however many there are, as builds before epoch 10 did.
    pub const ALL: Self = Self { tools: 0, bytes: 0 };

    /// Returns true if there is a bound above which only a few tools are listed.
    pub fn is_bounded(self) -> bool {
        self != Self::ALL
    }

    fn is_exceeded_by(self, tools: &[&Tool]) -> bool {
        let bytes =
            || tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.schema.len()).sum::<usize>();
        self.tools != 0 && tools.len() > self.tools || self.bytes != 0 && bytes() > self.bytes
    }
}

impl Default for ListingLimits {
    fn default() -> Self {
        Self { tools: 40, bytes: 24 * 1024 }
    }
}

/// The tools that an agent may call, by whether a request lists them.
#[derive(Debug, Default)]
pub(super) struct ToolOffering<'t> {
    /// Those that every request lists.
    listed: Vec<&'t Tool>,
    /// Those that `tools.find` found in the conversation; they are listed behind the others.
    found: Vec<&'t Tool>,
    /// Those that can be called, and found.
    pub(super) unlisted: Vec<&'t Tool>,
}

impl<'t> ToolOffering<'t> {
    /// Of all that the agent may call in a conversation.
    pub(super) fn for_thread(state: &AgentState, thread_id: &str, all: Vec<&'t Tool>, listing: ListingLimits) -> Self {
        let profile = state.profile.as_ref();
        let finds = profile.is_none_or(|profile| !profile.excludes_tool(tool_search::FIND));
        if !finds || !listing.is_exceeded_by(&all) {
            return Self { listed: all, ..Self::default() };
        }
        let named: BTreeSet<&str> =
            profile.into_iter().flat_map(|profile| profile.named_tools()).take(listing.tools).collect();
        let is_listed = |tool: &&Tool| is_always_listed(&tool.name) || named.contains(&*tool.name);
        let (mut listed, mut unlisted): (Vec<&Tool>, Vec<&Tool>) = all.into_iter().partition(is_listed);
        if unlisted.is_empty() {
            return Self { listed, ..Self::default() };
        }
        listed.push(&tool_search::intrinsic().tool);
        let names = state.threads.get(thread_id).into_iter().flat_map(|thread| &thread.found);
        let mut found = Vec::new();
        for name in names {
            if let Some(at) = unlisted.iter().position(|tool| tool.name == *name) {
                found.push(unlisted.remove(at));
            }
        }
        Self { listed, found, unlisted }
    }

    /// Returns the tools that a request lists, in order.
    pub(super) fn listed_tools(&self) -> Vec<&'t Tool> {
        self.listed.iter().chain(&self.found).copied().collect()
    }

    /// Describes the tools that not every request lists, for the system message; none if all are listed. It is the same
    /// before and after some are found.
    pub(super) fn describe_groups(&self) -> Option<String> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for tool in self.unlisted.iter().chain(&self.found) {
            groups.entry(tool_groups::group(&tool.name)).or_default().push(&tool.name);
        }
        if groups.is_empty() {
            return None;
        }
        let beyond = groups.len().saturating_sub(GROUPS);
        let lines = groups.iter().take(GROUPS).map(|(group, tools)| group_line(group, tools));
        let more = (beyond > 0).then(|| format!("and {beyond} more groups"));
        let lines: Vec<String> = lines.chain(more).collect();
        Some(format!("{}\n{}", prompts::FURTHER_TOOLS, lines.join("\n")))
    }
}

/// A group with as many names of its tools as there is room for.
fn group_line(group: &str, tools: &[&str]) -> String {
    let mut names: Vec<&str> = tools.to_vec();
    names.sort_unstable();
    let count = names.len();
    let mut line = format!("- {group} ({count}): ");
    for (at, name) in names.into_iter().enumerate() {
        let own = name.strip_prefix(group).and_then(|name| name.strip_prefix('.')).unwrap_or(name);
        if at > 0 && line.len() + own.len() > GROUP_BYTES {
            line.push_str(", …");
            break;
        }
        if at > 0 {
            line.push_str(", ");
        }
        line.push_str(own);
    }
    line
}

/// Returns true for tools that are listed however many there are: those for nearly every conversation, those that stop
/// running work, and those that an agent has because its definition says so.
fn is_always_listed(tool: &str) -> bool {
    let is_common = matches!(
        tool,
        "action.cancel"
            | "chain.cancel"
            | "http.get"
            | "memory.append"
            | "memory.search"
            | "process.cancel"
            | "process.run"
            | "process.spawn"
            | "process.status"
            | "task.cancel"
            | "task.list"
            | "task.schedule"
            | "tools.date_calc"
            | "tools.now"
            | "user.notify"
            | "web.search"
    );
    is_common
        || intrinsics::tasks::is_of_queue(tool)
        || intrinsics::team::is_of_leads(tool)
        || intrinsics::members::is_of_composites(tool)
        || intrinsics::inner_state::is_of_inner_state(tool)
        || intrinsics::submodules::is_of_submodules(tool)
}
