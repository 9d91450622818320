//! What the heavy model is asked when a turn goes on, built from the state alone.

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::{
    chat::ClientCall,
    facts, intrinsics, prompts,
    request::{Catalogue, Message, ModelRequest, PLAN, Tool, ToolCall},
    state::{AgentState, Turn},
    thread::{Call, Entry, Thread, cut_to},
    words::Words,
};

/// What is shown of a capability's description, in bytes.
const CAPABILITY_BYTES: usize = 400;

/// How a turn is thought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It does what was asked for, and answers.
    Answer,
    /// It answers what can be answered at once, and queues what takes work.
    Acknowledge,
    /// It works on a task that was queued; what it says is what came of it.
    Work,
}

/// What a turn is about to think about.
pub(super) struct Thinking<'a> {
    pub(super) turn_id: Uuid,
    pub(super) turn: &'a Turn,
    pub(super) manner: Manner,
    /// Whether it may go on acting, or must answer.
    pub(super) may_call: bool,
    /// What to analyse, within a chain.
    pub(super) prompt: Option<&'a str>,
    /// Whether the agent plans, instead of calling tools itself.
    pub(super) plans: bool,
    /// The recorded time of the input.
    pub(super) now: Timestamp,
}

/// The request with which a turn goes on.
pub(super) fn think(state: &AgentState, thinking: &Thinking<'_>, catalogue: &Catalogue) -> ModelRequest {
    let Thinking { turn_id, turn, manner, may_call, prompt, now, .. } = *thinking;
    let plans = thinking.plans && manner != Manner::Acknowledge;
    let own = state.profile.as_ref().map(|profile| profile.prompt.clone()).unwrap_or_default();
    let is_at_hand = |tool: &str| manner != Manner::Acknowledge || is_about_work(tool);
    let offered = |tool: &&Tool| is_at_hand(&tool.name) && state.offers(&tool.name);
    let intrinsics = intrinsics::all().map(|intrinsic| &intrinsic.tool);
    let all: Vec<&Tool> = catalogue.tools.iter().chain(intrinsics).filter(offered).collect();
    let own = match manner {
        Manner::Answer => own,
        Manner::Acknowledge => format!("{}\n\n{own}", prompts::ACKNOWLEDGE),
        Manner::Work => format!("{}\n\n{own}", prompts::WORK),
    };
    let own = [Some(own), facts::mission(state), facts::members(state)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n\n");
    let system = if plans { format!("{}\n\n{own}", planner(&all)) } else { own };
    let mut messages = vec![Message::System { text: system }];
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        let cutoff = state.profile.as_ref().map(|profile| profile.cutoff).unwrap_or_default();
        thread.shown(cutoff, now, turn_id).for_each(|entry| show(entry, Some(turn_id), &mut messages));
        messages.extend(reminder(thread, turn_id));
    }
    // What happens in the foreground, or how far something is, changes nothing of what is asked for the sake of work: the
    // answer that was paid for stays one.
    if manner != Manner::Work {
        messages.extend(facts::in_progress_for(state, turn, now).map(|text| Message::System { text }));
    }
    if let Some(goal) = &turn.goal {
        messages.push(Message::System { text: format!("{} {goal}", prompts::GUESSED) });
    }
    messages.extend(facts::environment(turn).into_iter().map(|text| Message::System { text }));
    messages.extend(counsel(state, turn));
    if manner == Manner::Acknowledge {
        messages.extend(facts::queue(state, &turn.user).map(|text| Message::System { text }));
    }
    if let Some(prompt) = prompt {
        messages.push(Message::System { text: format!("{}{prompt}", prompts::ANALYSE) });
    } else if plans && !may_call {
        messages.push(Message::System { text: prompts::LAST.to_owned() });
    }
    let tools = match (may_call, plans) {
        (false, _) => Vec::new(),
        (true, false) => all.into_iter().cloned().collect(),
        // What is in flight is dealt with at once, without a plan.
        (true, true) => {
            all.into_iter().filter(|tool| is_about_actions(&tool.name)).cloned().chain([plan_tool()]).collect()
        }
    };
    ModelRequest { tier: state.thinks_with(Some(turn)), messages, tools, analysis: prompt.is_some(), is_work: false }
}

/// What submodules said, and which may be asked.
fn counsel<'s>(state: &'s AgentState, turn: &'s Turn) -> impl Iterator<Item = Message> {
    let names: Vec<&str> = state.voices().map(|voice| voice.name.as_str()).collect();
    let there_are = (!names.is_empty()).then(|| format!("{} {}", prompts::SUBMODULES, names.join(", ")));
    let said = turn.counsel(state).map(|said| format!("{} {}: {}", prompts::THINKS, said.module, said.text));
    there_are.into_iter().chain(said).map(|text| Message::System { text })
}

/// The request for what a message is after.
pub(super) fn goal(state: &AgentState, turn: &Turn) -> ModelRequest {
    about(state, turn, prompts::GOAL)
}

/// The request for a review of what is about to be said.
pub(super) fn review(state: &AgentState, turn: &Turn, draft: &str) -> ModelRequest {
    let mut request = about(state, turn, prompts::REFLECT);
    if let Some(goal) = &turn.goal {
        request.messages.push(Message::System { text: format!("{} {goal}", prompts::GUESSED) });
    }
    request.messages.push(Message::System { text: format!("{} {draft}", prompts::DRAFT) });
    request
}

/// A question about a turn's thread, which offers no tools.
pub(super) fn about(state: &AgentState, turn: &Turn, question: &str) -> ModelRequest {
    let mut messages = vec![Message::System { text: question.to_owned() }];
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        thread.entries().for_each(|entry| show(entry, None, &mut messages));
    }
    ModelRequest::with("fast", messages)
}

/// What an agent that plans is told it is, with names and descriptions of what there is: schemas are for those who
/// compile its plans.
fn planner(tools: &[&Tool]) -> String {
    let lines = tools.iter().map(|tool| format!("- {}: {}", tool.name, cut_to(&tool.description, CAPABILITY_BYTES)));
    format!("{}\n{}", prompts::THINK, lines.collect::<Vec<_>>().join("\n"))
}

/// What there is at hand while a message is acknowledged: the queue, what is in progress, memory and inner state.
fn is_about_work(tool: &str) -> bool {
    let is_kept = tool.starts_with("memory.") || intrinsics::inner_state::is_of_inner_state(tool);
    let is_known = matches!(tool, "team.status" | "submodule.ask" | "history.query");
    is_about_actions(tool) || tool.starts_with("task.") || is_kept || is_known
}

fn is_about_actions(tool: &str) -> bool {
    let about_processes = tool.starts_with("process.") && !matches!(tool, "process.run" | "process.spawn");
    about_processes || matches!(tool, "action.cancel" | "chain.cancel")
}

/// How a plan is handed over by models that call tools.
fn plan_tool() -> Tool {
    Tool {
        name: PLAN.into(),
        description: "Hands a plan over to be carried out.".into(),
        schema: json!({
            "type": "object",
            "properties": { "plan": { "type": "string", "description": "Numbered steps, one a line." } },
            "required": ["plan"],
        })
        .to_string()
        .into(),
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
    }
}

/// Shows an entry. What the model server wants back with its calls is for the turn in which they were made, and no later one.
fn show(entry: &Entry, turn_id: Option<Uuid>, messages: &mut Vec<Message>) {
    match entry {
        Entry::User { words: Words { text, parts }, .. } => {
            messages.push(Message::User { text: text.clone(), parts: parts.clone() });
        }
        Entry::Notice { text, .. } => messages.push(Message::System { text: text.clone() }),
        Entry::Said { text, .. } => messages.push(Message::answered(text)),
        Entry::Called { turn, text, calls, reasoning_details } => {
            let as_call = |call: &Call| ToolCall {
                id: call.action.to_string(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            };
            let (text, calls_made) = (text.clone(), calls.iter().map(as_call).collect());
            let reasoning_details = match turn_id == Some(*turn) {
                true => reasoning_details.clone(),
                false => String::new(),
            };
            messages.push(Message::Assistant { text, calls: calls_made, reasoning_details });
            // Models want a result behind every call; for one that still runs, that it does is the fact.
            messages.extend(calls.iter().map(|call| Message::Tool {
                call_id: call.action.to_string(),
                text: call.result.clone().unwrap_or_else(|| {
                    json!({ "status": "still running", "since": call.since.to_string() }).to_string()
                }),
            }));
        }
        Entry::Client { text, calls, .. } => show_client_calls(text, calls, messages),
    }
}

/// Calls that a chat client carried out, each with what came of it.
fn show_client_calls(text: &str, calls: &[ClientCall], messages: &mut Vec<Message>) {
    let call = |call: &ClientCall| ToolCall {
        id: call.call_id.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
    };
    let made = calls.iter().map(call).collect();
    messages.push(Message::Assistant { text: text.to_owned(), calls: made, reasoning_details: String::new() });
    messages.extend(calls.iter().map(|call| Message::Tool {
        call_id: call.call_id.clone(),
        text: call.result.clone().unwrap_or_else(|| json!({ "status": "no result yet" }).to_string()),
    }));
}

/// When other turns have spoken since, a model must be told which one goes on.
fn reminder(thread: &Thread, turn_id: Uuid) -> Option<Message> {
    // What merely happened meanwhile changed no subject.
    let mere_news = |entry: &&Entry| matches!(entry, Entry::Notice { turn, .. } if *turn != turn_id);
    if thread.entries().rev().find(|entry| !mere_news(entry))?.turn() == turn_id {
        return None;
    }
    thread.entries().find_map(|entry| {
        let text = match entry {
            Entry::User { turn, words } if *turn == turn_id => {
                format!("The tools called for this earlier message have ended; answer it now: {}", words.in_words())
            }
            Entry::Notice { turn, text } if *turn == turn_id => {
                format!("Go on from this earlier event now, and say what the user should know of it: {text}")
            }
            _ => return None,
        };
        Some(Message::System { text })
    })
}
