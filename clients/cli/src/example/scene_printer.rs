//! The conversation beside what the agent does, for people.

use std::collections::BTreeSet;

use console::{style, truncate_str};
use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::{RequestKind, StepState};
use serde_json::Value;

use super::{
    files::Example,
    investigation::CommandResult,
    player::{SceneResult, event_agent},
    scene_chains::{self, SceneChain, SceneStep, chains},
};
use crate::{event_lines::printable, terminal};

/// The columns shown of a step's parameters and of its result.
const SHOWN: usize = 72;

/// Fields of a result that say it all; lists that are what a result is about; and what the things in them are called.
const NAMING: [&str; 5] = ["analysis", "now", "description", "path", "next_at"];
const LISTS: [&str; 8] = ["events", "tasks", "messages", "matches", "members", "free", "results", "memories"];
const CALLED: [&str; 6] = ["title", "subject", "name", "content", "start", "kind"];

/// Writes one scene.
pub fn print_scene(example: &Example, played: &SceneResult) -> std::io::Result<()> {
    let agent = example.agent();
    let who = if played.said { "you" } else { "·" };
    terminal::line("")?;
    print_speech(&style(who).bold().to_string(), who.len(), &played.cue)?;
    let chains = chains(&played.events);
    let mut plans = chains.iter();
    let mut reply = played.reply.as_deref();
    let mut known = BTreeSet::new();
    for (at, event) in played.events.iter().enumerate() {
        if let Some((_, words)) = played.meanwhile.as_ref().filter(|(before, _)| *before == at) {
            print_fact("meanwhile", &format!("you say: {words}"))?;
        }
        print_ended_groups(&chains, at)?;
        // Much may happen behind the reply of an agent that works in the background.
        if let Some(text) = reply.filter(|text| event.is_final_reply() && event.text() == *text) {
            print_speech(&style(agent).bold().green().to_string(), agent.len(), text)?;
            reply = None;
        }
        match event.type_name.as_str() {
            v1::ChainStarted::TYPE => plans.next().map_or(Ok(()), print_plan)?,
            v1::ThreadSuggested::TYPE => {
                print_fact("thread", &format!("{} {}", field(event, "action"), field(event, "reason")))?;
                if let Some(chose) = &played.chose {
                    print_fact("you", &format!("{chose} it"))?;
                }
            }
            // A memory is stored first and told again with its keywords.
            v1::MemoryAppended::TYPE if !known.insert((field(event, "memory_id"), field(event, "content"))) => {}
            type_name => {
                if let Some((label, text)) = describe_event(type_name, event, example.zone()) {
                    let of =
                        Some(event_agent(event)).filter(|of| *of != agent && event.subject.starts_with("kairo.agent."));
                    print_fact(label, &of.map_or_else(|| text.clone(), |of| format!("{of}: {text}")))?;
                }
            }
        }
    }
    print_pending_groups(&chains)?;
    if let Some(text) = reply {
        print_speech(&style(agent).bold().green().to_string(), agent.len(), text)?;
    }
    print_differences(&played.unmet)
}

/// Writes a command, and what it wrote.
pub fn print_command(ran: &CommandResult) -> std::io::Result<()> {
    terminal::line("")?;
    terminal::line(format!("{:<9} {}", style("·").bold(), printable(&ran.title)))?;
    terminal::line(format!("{} {}", style("$").dim(), style(printable(&ran.command)).bold()))?;
    ran.output.lines().try_for_each(|line| terminal::line(printable(line)))?;
    print_differences(&ran.unmet)
}

/// Prints the differences from what was expected.
fn print_differences(unmet: &[String]) -> std::io::Result<()> {
    unmet.iter().try_for_each(|unmet| terminal::line(format!("{:>9} {}", style("✘").red(), printable(unmet))))
}

/// Describes an event that is no step of a chain.
fn describe_event(type_name: &str, event: &EventJson, zone: &str) -> Option<(&'static str, String)> {
    let task = |name: &str| {
        let value = event.payload.get("task").and_then(|task| task.get(name)).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    Some(match type_name {
        v1::ThreadMatched::TYPE => ("thread", format!("{} {}", field(event, "action"), field(event, "reason"))),
        v1::ThreadSummarized::TYPE => {
            ("thread", format!("now “{}”: {}", field(event, "title"), field(event, "summary")))
        }
        v1::TaskScheduled::TYPE => {
            let when = [local_time(&task("next_at"), zone), task("trigger"), task("condition")].join(" ");
            ("task", format!("{} {}", task("title"), when.trim()))
        }
        v1::TaskFired::TYPE => ("task", "fired".to_owned()),
        v1::MemoryAppended::TYPE => {
            ("memory", format!("{} {}: {}", field(event, "kind"), field(event, "day"), field(event, "content")))
        }
        v1::StateWritten::TYPE | v1::StateDeleted::TYPE => ("state", event.text().to_owned()),
        v1::EmailReceived::TYPE => ("mail", format!("{}: {}", field(event, "sender"), field(event, "subject"))),
        v1::TaskEnded::TYPE => {
            let came = [field(event, "result"), field(event, "reason")].concat();
            ("task", format!("{}: {came}", field(event, "status")))
        }
        v1::AgentGoal::TYPE => ("goal", event.text().to_owned()),
        v1::AgentReflected::TYPE => ("review", describe_review(event)),
        v1::AgentThought::TYPE if !field(event, "module").is_empty() => {
            ("thought", format!("{}: {}", field(event, "module"), event.text()))
        }
        v1::SubmoduleFailed::TYPE => ("thought", format!("{} is {}", field(event, "module"), field(event, "kind"))),
        v1::AgentRequest::TYPE if field(event, "kind") != RequestKind::Cancel.as_str() => {
            ("asked", event.text().to_owned())
        }
        v1::AgentAction::TYPE if field(event, "kind") == RequestKind::Cancel.as_str() => {
            ("asked", format!("{}: to stop", field(event, "agent")))
        }
        v1::AgentBriefed::TYPE => ("briefing", event.text().to_owned()),
        v1::ThreadCompacted::TYPE => ("thread", format!("summed up: {}", field(event, "summary"))),
        v1::AgentFailed::TYPE => ("failed", event.text().to_owned()),
        v1::AgentAction::TYPE if is_remark(event) => ("says", event.text().to_owned()),
        _ => return None,
    })
}

/// A draft, and what the review said of it.
fn describe_review(event: &EventJson) -> String {
    let reason = field(event, "reason");
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("“{}” {}{colon}{reason}", field(event, "draft"), field(event, "verdict"))
}

fn print_plan(chain: &SceneChain) -> std::io::Result<()> {
    let plan: Vec<&str> = chain.plan.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if plan.is_empty() { Ok(()) } else { print_fact("plan", &plan.join("  ")) }
}

/// Writes the groups of steps whose last outcome this event tells, so that a line stands where its result came.
fn print_ended_groups(chains: &[SceneChain], at: usize) -> std::io::Result<()> {
    let groups = chains.iter().flat_map(SceneChain::groups);
    groups.filter(|steps| scene_chains::group_end(steps) == Some(at)).try_for_each(print_group)
}

/// Writes the groups that have not ended.
fn print_pending_groups(chains: &[SceneChain]) -> std::io::Result<()> {
    chains
        .iter()
        .flat_map(SceneChain::groups)
        .filter(|steps| scene_chains::group_end(steps).is_none())
        .try_for_each(print_group)
}

fn print_group(steps: &[SceneStep]) -> std::io::Result<()> {
    for (at, step) in steps.iter().enumerate() {
        let bracket = match (steps.len(), at) {
            (1, _) => " ",
            (_, 0) => "┌",
            (several, at) if at + 1 == several => "└",
            _ => "│",
        };
        terminal::row(format!("{:>9} {bracket} {}", "", printable(&format_step(step))))?;
    }
    Ok(())
}

/// A time as a clock on the user's wall shows it; a text that is no time stays as it is.
pub(super) fn local_time(text: &str, zone: &str) -> String {
    let time = text.parse::<Timestamp>().ok().and_then(|time| time.in_tz(zone).ok());
    time.map_or_else(|| text.to_owned(), |time| time.strftime("%A, %-d %B, %H:%M").to_string())
}

/// A step, what it was given, and what came of it.
fn format_step(step: &SceneStep) -> String {
    let mark = match StepState::from(step.outcome.as_str()) {
        StepState::Done => "✔",
        StepState::Skipped => "–",
        _ if step.outcome.is_empty() => "…",
        _ => "✘",
    };
    let given = match step.params.as_object() {
        Some(fields) if fields.is_empty() => String::new(),
        _ => format!(" {}", short(&step.params)),
    };
    let came = match (&step.result, step.reason.is_empty()) {
        (_, false) => step.reason.clone(),
        (Value::Null, true) => String::new(),
        (result, true) => outcome(result),
    };
    let decide = if step.decide.is_empty() { String::new() } else { format!(" (decide: {})", step.decide) };
    let came = came.split_whitespace().collect::<Vec<_>>().join(" ");
    let arrow = if came.is_empty() { "" } else { " → " };
    format!("{mark} {}{given}{decide}{arrow}{came}", step.event)
}

/// A result in a few words: the analysis, how many things it lists and what they are called, else its JSON.
fn outcome(result: &Value) -> String {
    let cut = |text: &str| truncate_str(text, SHOWN, "…").into_owned();
    let Some(fields) = result.as_object() else { return short(result) };
    if fields.is_empty() {
        return String::new();
    }
    if let Some(text) = NAMING.iter().find_map(|name| fields.get(*name).and_then(Value::as_str)) {
        return cut(text);
    }
    let list = LISTS.iter().find_map(|name| Some((*name, fields.get(*name)?.as_array()?)));
    let Some((name, items)) = list else { return short(result) };
    let called: Vec<&str> = items.iter().filter_map(item_name).collect();
    let name = if items.len() == 1 { singular(name) } else { name };
    let colon = if called.is_empty() { "" } else { ": " };
    cut(&format!("{} {name}{colon}{}", items.len(), called.join(", ")))
}

/// The name of a list that holds one thing.
fn singular(list: &str) -> &str {
    match list {
        "matches" => "match",
        "memories" => "memory",
        _ => list.strip_suffix('s').unwrap_or(list),
    }
}

/// Returns the name of an item of a list.
fn item_name(item: &Value) -> Option<&str> {
    CALLED.iter().find_map(|name| item.get(*name)?.as_str().filter(|text| !text.is_empty()))
}

fn short(value: &Value) -> String {
    truncate_str(&value.to_string(), SHOWN, "…").into_owned()
}

fn print_fact(label: &str, text: &str) -> std::io::Result<()> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    terminal::row(format!("{:>9} {}", style(label).dim(), printable(&text)))
}

/// Prints what somebody says, its lines below one another.
fn print_speech(who: &str, width: usize, text: &str) -> std::io::Result<()> {
    let text = printable(text);
    let mut lines = text.lines();
    let padding = " ".repeat(10_usize.saturating_sub(width).max(1));
    terminal::line(format!("{who}{padding}{}", lines.next().unwrap_or_default()))?;
    lines.try_for_each(|line| terminal::line(format!("{:10}{line}", "")))
}

fn field(event: &EventJson, name: &str) -> String {
    event.payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns true if the agent says something on the way: the reply is shown at the end.
fn is_remark(event: &EventJson) -> bool {
    event.payload.get("type").and_then(Value::as_str) == Some("say") && !event.is_final_reply()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::scene_chains::tests::events;

    #[test]
    fn a_step_is_a_line() {
        let chains = chains(&events());
        let lines: Vec<String> = chains[0].steps.iter().map(format_step).collect();
        assert_eq!(
            lines,
            [
                "✔ tools.now {\"n\":0} → {\"total\":3}",
                "✔ calendar.check {\"n\":1} → {\"total\":3}",
                "✘ task.list {\"n\":2} → failed: no",
                "✔ agent.think → x",
            ]
        );
    }

    #[test]
    fn a_list_is_told_by_what_is_in_it() {
        let events = json!({"zone": "UTC", "events": [{"title": "Standup"}, {"title": "Client call"}]});
        assert_eq!(outcome(&events), "2 events: Standup, Client call");
        assert_eq!(outcome(&json!({"matches": [{"subject": "", "content": "Notes"}]})), "1 match: Notes");
        assert_eq!(outcome(&json!({"now": "2026-11-21T08:00:00Z", "unix": 1})), "2026-11-21T08:00:00Z");
        assert_eq!((outcome(&json!({})), outcome(&json!([1]))), (String::new(), "[1]".to_owned()));
    }
}
