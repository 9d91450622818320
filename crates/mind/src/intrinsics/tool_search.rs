//! `tools.find`: searches the tools that an agent may call and that its requests do not list. Those that are found are listed from
//! then on in the conversation.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use kairo_events::tool_groups;
use serde_json::{Map, Value, json};

use super::{Intrinsic, IntrinsicContext, IntrinsicStart, all, finish_without_model, tasks};
use crate::{provenance::Provenance, request::Tool, thread::cut_to};

/// Finds tools by words.
pub const FIND: &str = "tools.find";

/// Tools that one search finds at most.
const FOUND: usize = 8;
/// Longest part shown of a tool's description, in bytes.
const DESCRIPTION_BYTES: usize = 160;
/// Longest words that are looked for, in characters.
const QUERY_CHARS: usize = 300;
/// Words of these that count.
const QUERY_WORDS: usize = 24;
/// The worst that is told scores this part of the best.
const WORST_PART: u32 = 3;
/// Shortest beginning by which a word is found, in bytes.
const BEGINNING_BYTES: usize = 4;

/// Scores of a search word by the place where it is found.
const IN_NAME: u32 = 8;
const IN_GROUP: u32 = 5;
const IN_DESCRIPTION: u32 = 2;

/// Words that say nothing of what a tool does.
const EMPTY_WORDS: [&str; 24] = [
    "a", "all", "an", "and", "can", "do", "find", "for", "from", "i", "in", "into", "is", "me", "my", "of", "on", "or",
    "the", "to", "tool", "tools", "with", "you",
];

/// It is among no others: requests list it where they do not list all tools.
pub fn intrinsic() -> &'static Intrinsic {
    static INTRINSIC: LazyLock<Intrinsic> = LazyLock::new(|| {
        let properties = json!({
            "query": {
                "type": "string", "minLength": 1, "maxLength": QUERY_CHARS,
                "description": "What the tool is to do, in a few words in English; or its name",
            },
            "group": { "type": "string", "maxLength": 64, "description": "Only tools of this group" },
        });
        let described =
            "Finds tools that are not listed here, by what they do. Those that it finds can be called from then on.";
        let made = tasks::intrinsic(FIND, described, properties, json!(["query"]), find);
        Intrinsic { finish: finish_without_model, ..made }
    });
    &INTRINSIC
}

fn find(context: &IntrinsicContext<'_>, params: &Map<String, Value>) -> Result<IntrinsicStart, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let query = text("query");
    let group = text("group");
    let own = all().map(|intrinsic| &intrinsic.tool);
    let known = context.catalogue.tools.iter().chain(own).filter(|tool| (context.known)(&tool.name));
    let searched: Vec<&Tool> =
        known.filter(|tool| group.is_empty() || tool_groups::group(&tool.name) == group).collect();
    let found = rank_tools(query, &searched);
    let told = found
        .iter()
        .take(FOUND)
        .map(|tool| json!({ "name": tool.name, "description": cut_to(&tool.description, DESCRIPTION_BYTES) }));
    let tools: Vec<Value> = told.collect();
    let result = match tools.is_empty() {
        false => json!({ "tools": tools, "note": "these can be called now" }),
        true => {
            json!({ "tools": [], "groups": group_names(&searched), "note": "nothing has these words: try others, or the name of a group" })
        }
    };
    Ok(IntrinsicStart::Read { result, outside: Provenance::default() })
}

/// The names that a result of `tools.find` tells.
pub fn found_names(result: &Value) -> impl Iterator<Item = &str> {
    let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
    tools.filter_map(|tool| tool.get("name")?.as_str()).take(FOUND)
}

fn group_names(tools: &[&Tool]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool_groups::group(&tool.name).to_owned()).collect()
}

/// The words by which a tool is found.
struct ToolWords {
    name: BTreeSet<String>,
    group: BTreeSet<String>,
    description: BTreeSet<String>,
}

impl ToolWords {
    fn from_tool(tool: &Tool) -> Self {
        let group = split_words(tool_groups::group(&tool.name))
            .chain(split_words(tool.name.split('.').next().unwrap_or_default()));
        let own = tool.name.split_once('.').map_or(&*tool.name, |(_, own)| own);
        Self {
            name: split_words(own).collect(),
            group: group.collect(),
            description: split_words(&tool.description).collect(),
        }
    }

    /// Returns the score of a search word in a tool: highest in its name, and half where only a beginning matches.
    fn score_word(&self, word: &str) -> u32 {
        let places = [(&self.name, IN_NAME), (&self.group, IN_GROUP), (&self.description, IN_DESCRIPTION)];
        let worth = places.into_iter().map(|(words, worth)| match words {
            words if words.contains(word) => worth,
            words if words.iter().any(|other| shares_prefix(word, other)) => worth / 2,
            _ => 0,
        });
        worth.max().unwrap_or_default()
    }
}

fn shares_prefix(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    short.len() >= BEGINNING_BYTES && long.starts_with(short)
}

/// The tools that have words of the query, the best first. A word that few tools have is worth more than one that many have. Of
/// equal ones the first by name comes first.
fn rank_tools<'t>(query: &str, tools: &[&'t Tool]) -> Vec<&'t Tool> {
    let looked_for: BTreeSet<String> =
        split_words(query).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).take(QUERY_WORDS).collect();
    let indexed: Vec<(ToolWords, &Tool)> = tools.iter().map(|tool| (ToolWords::from_tool(tool), *tool)).collect();
    let mut scores: BTreeMap<&str, (u32, &Tool)> = BTreeMap::new();
    for word in &looked_for {
        let worths: Vec<(u32, &Tool)> = indexed.iter().map(|(words, tool)| (words.score_word(word), *tool)).collect();
        let having = worths.iter().filter(|(worth, _)| *worth > 0).count().max(1);
        // 1 for a word that all have, and 1 more each time that half as many have it.
        let rarity = 1 + (tools.len() / having).checked_ilog2().unwrap_or_default();
        for (worth, tool) in worths.into_iter().filter(|(worth, _)| *worth > 0) {
            scores.entry(&tool.name).or_insert((0, tool)).0 += worth * rarity;
        }
    }
    let is_named = |tool: &Tool| query.eq_ignore_ascii_case(&tool.name);
    let mut found: Vec<(bool, u32, &Tool)> =
        scores.into_values().map(|(score, tool)| (is_named(tool), score, tool)).collect();
    found.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)).then_with(|| one.2.name.cmp(&other.2.name)));
    let best = found.first().map_or(0, |(_, score, _)| *score);
    found.into_iter().filter(|(_, score, _)| score * WORST_PART >= best).map(|(_, _, tool)| tool).collect()
}

/// The words of a text in small letters and in their singular; `listPull_requests` has three.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && was_small {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase() || letter.is_numeric();
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).map(singular)
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.into(),
            description: description.into(),
            schema: "{}".into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }
    }

    fn search_tools(query: &str) -> Vec<String> {
        let tools = [
            tool("github.create_issue", "Create a new issue in a repository"),
            tool("github.list_issues", "List issues of a repository"),
            tool("github.createPullRequest", "Open a pull request"),
            tool("github.search_code", "Search code in all repositories"),
            tool("slack.post_message", "Post a message to a channel"),
            tool("slack.list_channels", "List the channels of the workspace"),
            tool("email.send", "Sends a mail"),
            tool("calendar.create", "Adds an appointment"),
            tool("box.read", "Reads entries of a box"),
        ];
        let tools: Vec<&Tool> = tools.iter().collect();
        rank_tools(query, &tools).iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn tools_are_found_by_the_words_of_their_names_groups_and_descriptions() {
        for (query, first) in [
            ("create an issue", "github.create_issue"),
            ("issues", "github.create_issue"),
            ("list issues", "github.list_issues"),
            ("open pull requests", "github.createPullRequest"),
            ("pull_request", "github.createPullRequest"),
            ("GitHub code search", "github.search_code"),
            ("send a message to a channel", "slack.post_message"),
            ("mail", "email.send"),
            ("appointment", "calendar.create"),
            ("slack.list_channels", "slack.list_channels"),
            ("repositories", "github.create_issue"),
        ] {
            assert_eq!(
                search_tools(query).first().map(String::as_str),
                Some(first),
                "{query}: {:?}",
                search_tools(query)
            );
        }
        assert_eq!(search_tools("the of and"), [""; 0]);
        assert_eq!(search_tools("weather"), [""; 0]);
        assert_eq!(search_tools("slack").len(), 2, "all tools of a group are found by its name");
        assert_eq!(search_tools("slack.list_channels")[0], "slack.list_channels");
    }

    #[test]
    fn words_are_parted_where_names_are() {
        let parted = |text: &str| split_words(text).collect::<Vec<_>>();
        assert_eq!(parted("listPull_requests"), ["list", "pull", "request"]);
        assert_eq!(parted("Get-HTTPStatus v2"), ["get", "httpstatu", "v2"]);
        assert_eq!(parted("repositories, classes"), ["repository", "classe"]);
        assert_eq!(parted("Überweisung"), ["überweisung"]);
    }
}
