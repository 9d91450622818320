//! Agents that may call more tools than requests list.

use kairo_proto::v1::ChainStepEnded;
use serde_json::{Value, json};

use super::*;
use crate::{tokens, tool_offering::ListingLimits};

/// Nouns for the tools of five servers, twenty of each.
const NOUNS: [&str; 10] =
    ["issue", "pull_request", "branch", "release", "label", "milestone", "comment", "workflow", "secret", "webhook"];

/// The tools of a server as real ones describe them.
fn tools_of(server: &str) -> Vec<Tool> {
    let tool = |verb: &str, noun: &str| {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": { "type": "string", "description": "Account that owns the repository, not case sensitive" },
                "repo": { "type": "string", "description": "Name of the repository without the .git extension" },
                "title": { "type": "string", "description": format!("Title of the {noun}") },
                "labels": { "type": "array", "items": { "type": "string" }, "description": "Labels to be associated" },
                "state": { "type": "string", "enum": ["open", "closed", "all"], "description": "Filter by state" },
                "page": { "type": "number", "description": "Page number for pagination (min 1)", "minimum": 1 },
                "perPage": { "type": "number", "description": "Results per page (min 1, max 100)", "maximum": 100 },
            },
            "required": ["owner", "repo"],
        });
        Tool {
            name: format!("{server}.{verb}_{noun}").into(),
            description: format!("{verb} a {noun} in a repository of {server}").into(),
            schema: schema.to_string().into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }
    };
    NOUNS.iter().flat_map(|noun| ["create", "list"].map(|verb| tool(verb, noun))).collect()
}

/// An agent with a hundred tools of five servers besides those that all have.
fn many(profile: AgentProfile) -> Agent {
    let mut agent = Agent::with(profile);
    let servers = ["github", "gitlab", "jira", "forge", "tracker"];
    agent.catalogue.tools.extend(servers.into_iter().flat_map(tools_of));
    agent
}

fn offered(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| &*tool.name).collect()
}

fn system(request: &ModelRequest) -> &str {
    let Some(PromptMessage::System { text }) = request.messages.first() else { panic!("no system message") };
    text
}

/// Returns the names of the tools that searches in a decision found.
fn offered_names(decided: &Record) -> Vec<String> {
    let of_step = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::ChainStepEnded(ChainStepEnded { result, .. })) = &event.event else { return None };
        serde_json::from_str::<Value>(result).ok()
    };
    let results = decision(decided).events.iter().filter_map(of_step);
    let names = results.flat_map(|result| result["tools"].as_array().cloned().unwrap_or_default());
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn tokens_of_tools(request: &ModelRequest) -> usize {
    request.tools.iter().map(tokens::of_tool).sum()
}

#[test]
fn a_tool_is_found_called_and_stays_listed_behind_the_others() {
    let mut agent = many(AgentProfile::default());
    agent.hears("m1", "file an issue at github");
    let search = asks_for("tools.find", json!({ "query": "create issue", "group": "github" }));
    let decided =
        agent.decides(&[search, asks_for("github.create_issue", json!({ "owner": "ann", "repo": "house" }))]).unwrap();
    assert_eq!(offered_names(&decided)[0], "github.create_issue");
    assert_eq!(acts(&decided), ["github.create_issue!"]);
    agent.learns(&decided, &actions(&decided)[0], "7");
    agent.decides(&[says("filed")]).unwrap();
    agent.hears("m2", "thanks");
    agent.decides(&[says("welcome")]).unwrap();
    agent.hears_in_another_thread();
    let [before, after, .., last, another] = agent.asked.as_slice() else { panic!("asked too little") };
    assert!(offered(before).len() < 30 && offered(before).last() == Some(&"tools.find"), "{:?}", offered(before));
    assert!(offered(after).starts_with(&offered(before)), "what was listed before stays as it was");
    assert_eq!(&offered(after)[offered(before).len()..], offered_names(&decided));
    assert_eq!(offered(last), offered(after));
    assert_eq!(system(before), system(last));
    assert!(system(before).contains("- github (20): create_branch, create_comment"), "{}", system(before));
    assert_eq!(offered(another), offered(before), "what was found is listed in its own conversation");
    agent.is_replayed();
}

impl Agent {
    fn hears_in_another_thread(&mut self) {
        let message =
            AgentMessage { message_id: "m9".into(), user: "bob".into(), text: "hello".into(), ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message);
        self.decides(&[says("hi")]).unwrap();
    }
}

#[test]
fn a_hundred_tools_cost_hundreds_of_tokens() {
    let asked = |listing: ListingLimits, tools: bool| {
        let mut agent = if tools { many(AgentProfile::default()) } else { Agent::with(AgentProfile::default()) };
        agent.limits.listing = listing;
        agent.hears("m1", "hello");
        agent.decides(&[says("hi")]).unwrap();
        agent.asked[0].clone()
    };
    let bare = asked(ListingLimits::ALL, false);
    let all = asked(ListingLimits::ALL, true);
    let few = asked(ListingLimits::default(), true);
    let bare = tokens::of_request(&bare);
    let all = tokens::of_request(&all);
    let few = tokens::of_request(&few);
    println!("without the hundred tools {bare} tokens, all listed {all}, few listed {few}");
    assert!(all > bare + 15_000, "{all} {bare}");
    assert!(few < bare + 900, "{few} {bare}");
}

#[test]
fn few_tools_are_all_listed_as_builds_before_listed_them() {
    let request = |listing: ListingLimits| {
        let mut agent = Agent::with(AgentProfile::default());
        agent.limits.listing = listing;
        agent.hears("m1", "hello");
        agent.decides(&[says("hi")]).unwrap();
        agent.asked[0].digest()
    };
    assert_eq!(request(ListingLimits::default()), request(ListingLimits::ALL));
}

#[test]
fn the_definition_says_which_tools_are_always_listed_and_may_take_the_search_out() {
    let tools = |tools: &[&str]| AgentProfile {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        ..Default::default()
    };
    for (named, is_listed, count) in [
        (&["*", "jira.list_label"][..], "jira.list_label", 30),
        (&["group:jira", "group:time"], "jira.list_label", 22),
        (&["*", "!tools.find"], "jira.list_label", 200),
        (&["github.*", "gitlab.*", "jira.*"], "tools.find", 2),
    ] {
        let mut agent = many(tools(named));
        agent.hears("m1", "hello");
        agent.decides(&[says("hi")]).unwrap();
        let offered = offered(&agent.asked[0]);
        assert!(offered.contains(&is_listed) && offered.len() <= count, "{named:?}: {offered:?}");
        agent.is_replayed();
    }
}

#[test]
fn a_tool_that_is_not_listed_can_be_called_and_one_that_the_agent_has_not_cannot() {
    let profile = AgentProfile { tools: vec!["*".into(), "!gitlab.*".into()], ..Default::default() };
    let mut agent = many(profile);
    agent.hears("m1", "list the labels");
    assert_eq!(acts(&agent.decides(&[calls(&["jira.list_label"])]).unwrap()), ["jira.list_label!"]);
    agent.hears("m2", "of gitlab, too");
    let search = asks_for("tools.find", json!({ "query": "gitlab label" }));
    let decided = agent.decides(&[search, says("there are none")]).unwrap();
    assert!(offered_names(&decided).iter().all(|name| !name.starts_with("gitlab.")), "{:?}", offered_names(&decided));
    let mut agent = many(AgentProfile { tools: vec!["*".into(), "!gitlab.*".into()], ..Default::default() });
    agent.hears("m1", "list the labels of gitlab");
    let decided = agent.decides(&[calls(&["gitlab.list_label"]), says("I cannot")]).unwrap();
    assert!(acts(&decided).iter().all(|act| !act.ends_with('!')), "{:?}", acts(&decided));
}

#[test]
fn so_many_found_tools_are_listed_and_the_oldest_are_forgotten() {
    let mut agent = many(AgentProfile::default());
    let mut listed = Vec::new();
    for (at, noun) in NOUNS.iter().enumerate() {
        agent.hears(&format!("m{at}"), noun);
        let search = asks_for("tools.find", json!({ "query": noun }));
        agent.decides(&[search, says("found")]).unwrap();
        let request = agent.asked.last().unwrap();
        listed.push(offered(request).iter().skip_while(|name| **name != "tools.find").count() - 1);
    }
    assert!(listed.is_sorted() && *listed.last().unwrap() == 32, "{listed:?}");
    assert!(tokens_of_tools(agent.asked.last().unwrap()) < 12_000);
    agent.is_replayed();
}
