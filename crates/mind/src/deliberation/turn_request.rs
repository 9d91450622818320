//! The request to the heavy model with which a turn goes on, built from the state alone.

use jiff::Timestamp;
use kairo_events::media;
use kairo_proto::v1::Part;
use serde_json::json;
use uuid::Uuid;

use crate::{
    answer_schemas,
    chat_client::{self, ClientCall},
    in_flight_facts,
    intrinsics::{self, tasks::QUEUE, tool_search},
    message_content::MessageContent,
    prompts,
    request::{Catalogue, Conversation, ModelRequest, PLAN, PromptMessage, Tool, ToolCall, ToolChoice},
    state::{AgentState, AgentTurn},
    thread::{Thread, ThreadCall, ThreadEntry, cut_to},
    tool_offering::{ListingLimits, ToolOffering},
};

/// Longest description of a capability that is shown, in bytes.
const CAPABILITY_BYTES: usize = 400;

/// Entries of a conversation that whoever looks for promises is shown, the newest.
const PROMISE_ENTRIES: usize = 8;
/// Longest excerpt that is shown of an answer that may promise something, in bytes.
const PROMISE_BYTES: usize = 8 * 1024;

/// The manner in which a turn is thought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnMode {
    /// It does what was asked for, and answers.
    Answer,
    /// It answers what can be answered at once, and queues what takes work.
    Acknowledge,
    /// It works on a task that was queued; what it says is what came of it.
    Work,
}

/// The inputs for the next request of a turn.
pub(super) struct TurnRequestInputs<'a> {
    pub(super) turn_id: Uuid,
    pub(super) turn: &'a AgentTurn,
    pub(super) mode: TurnMode,
    /// True if the turn may go on acting; otherwise it must answer.
    pub(super) may_call: bool,
    /// The prompt to analyse, within a chain.
    pub(super) prompt: Option<&'a str>,
    /// True if the agent plans instead of calling tools itself.
    pub(super) plans: bool,
    /// The recorded time of the input.
    pub(super) now: Timestamp,
    /// From how many tools on a few of them are listed.
    pub(super) listing: ListingLimits,
    /// By which rules; see [`DecisionLimits`](super::DecisionLimits).
    pub(super) memory_rules: u32,
}

/// The request with which a turn goes on. Its system message and its tools are the same through the conversation, as long as the
/// profile and the catalogue are, and its history only grows: what changes from request to request stands behind all that does not.
pub(super) fn think(state: &AgentState, thinking: &TurnRequestInputs<'_>, catalogue: &Catalogue) -> ModelRequest {
    let TurnRequestInputs { turn_id, turn, mode: manner, may_call, now, .. } = *thinking;
    let plans = thinking.plans && manner != TurnMode::Acknowledge;
    let offering =
        ToolOffering::for_thread(state, &turn.thread_id, callable_tools(state, thinking, catalogue), thinking.listing);
    let at_hand = offering.listed_tools();
    let system = system_prompt(state, manner, plans.then_some(at_hand.as_slice()), offering.describe_groups());
    let mut request =
        ModelRequest::from_messages(state.thinking_tier(Some(turn)), vec![PromptMessage::System { text: system }]);
    let mut conversation = request.conversation();
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        let cutoff = state.profile.as_ref().map(|profile| profile.cutoff).unwrap_or_default();
        thread.shown_entries(cutoff, now, turn_id).for_each(|entry| show_entry(entry, turn_id, &mut conversation));
    }
    facts_of_moment(state, thinking).iter().for_each(|fact| conversation.push_context(fact));
    conversation.end_with_input();
    request.tools = match plans {
        false => at_hand.into_iter().cloned().collect(),
        // What is in flight is dealt with at once, without a plan; and what a plan may need is found before there is one.
        true => {
            at_hand.into_iter().filter(|tool| is_called_by_planners(&tool.name)).cloned().chain([plan_tool()]).collect()
        }
    };
    if !plans {
        request.unlisted = offering.unlisted.into_iter().cloned().collect();
    }
    request.tool_choice = if may_call { ToolChoice::Free } else { ToolChoice::None };
    request.analysis = thinking.prompt.is_some();
    request
}

/// Returns the tools that the agent may call, by itself or in plans.
fn callable_tools<'t>(state: &AgentState, thinking: &TurnRequestInputs<'_>, catalogue: &'t Catalogue) -> Vec<&'t Tool> {
    let acknowledges = thinking.mode == TurnMode::Acknowledge;
    let is_at_hand = |tool: &str| !acknowledges || is_about_work(tool);
    // Whoever works on a task may queue another one; the rest is for those who talk with users.
    let is_of_conduct =
        |tool: &str| (acknowledges || tool == QUEUE) && state.conduct_offers_tool(tool, thinking.memory_rules);
    let offered = |tool: &&Tool| is_at_hand(&tool.name) && (state.offers_tool(&tool.name) || is_of_conduct(&tool.name));
    let intrinsics = intrinsics::all().map(|intrinsic| &intrinsic.tool);
    catalogue.tools.iter().chain(intrinsics).filter(offered).collect()
}

/// Builds the system prompt; `planned` are the tools it can make plans of, and `further` tells of tools that are not
/// listed.
fn system_prompt(state: &AgentState, manner: TurnMode, planned: Option<&[&Tool]>, further: Option<String>) -> String {
    let manners = match manner {
        TurnMode::Answer => None,
        TurnMode::Acknowledge => Some(prompts::ACKNOWLEDGE.to_owned()),
        TurnMode::Work => Some(prompts::WORK.to_owned()),
    };
    let own = state.profile.as_ref().map(|profile| profile.prompt.clone()).filter(|own| !own.is_empty());
    let said = [
        planned.map(planner_prompt),
        manners,
        own,
        in_flight_facts::mission(state),
        in_flight_facts::members(state),
        further,
    ];
    said.into_iter().flatten().chain([prompts::CONTEXT.to_owned()]).collect::<Vec<_>>().join("\n\n")
}

/// Returns the facts of the moment that a model is told, each as a block after the last words.
fn facts_of_moment(state: &AgentState, thinking: &TurnRequestInputs<'_>) -> Vec<String> {
    let TurnRequestInputs { turn_id, turn, mode: manner, may_call, prompt, now, .. } = *thinking;
    let plans = thinking.plans && manner != TurnMode::Acknowledge;
    let mut told = Vec::new();
    told.extend(state.threads.get(&turn.thread_id).and_then(|thread| resume_reminder(thread, turn_id)));
    // What happens in the foreground, or how far something is, changes nothing of what is asked for the sake of work: the
    // answer that was paid for stays one.
    if manner != TurnMode::Work {
        told.extend(in_flight_facts::in_progress_for(state, turn, now));
    }
    told.extend(turn.goal.as_ref().map(|goal| format!("{} {goal}", prompts::GUESSED)));
    told.extend(in_flight_facts::environment(turn));
    told.extend(submodule_facts(state, turn));
    if manner == TurnMode::Acknowledge {
        told.extend(in_flight_facts::queued_tasks(state, &turn.user));
    }
    if let Some(prompt) = prompt {
        told.push(format!("{}{prompt}", prompts::ANALYSE));
    }
    match (may_call, plans) {
        (true, _) => {}
        (false, true) if prompt.is_some() => {}
        (false, true) => told.push(prompts::LAST.to_owned()),
        (false, false) => told.push(prompts::LAST_CALLS.to_owned()),
    }
    told
}

/// Returns the names of the submodules that may be asked, then the thoughts of those that spoke.
fn submodule_facts<'s>(state: &'s AgentState, turn: &'s AgentTurn) -> impl Iterator<Item = String> {
    let names: Vec<&str> = state.active_submodules().map(|voice| voice.name.as_str()).collect();
    let there_are = (!names.is_empty()).then(|| format!("{} {}", prompts::SUBMODULES, names.join(", ")));
    let said = turn.submodule_thoughts(state).map(|said| format!("{} {}: {}", prompts::THINKS, said.module, said.text));
    there_are.into_iter().chain(said)
}

/// The request for what a message is after.
pub(super) fn goal(state: &AgentState, turn: &AgentTurn) -> ModelRequest {
    thread_question(state, turn, prompts::GOAL, &[])
}

/// The request for a review of what is about to be said.
pub(super) fn review(state: &AgentState, turn: &AgentTurn, draft: &str) -> ModelRequest {
    let goal = turn.goal.as_ref().map(|goal| format!("{} {goal}", prompts::GUESSED));
    let told: Vec<String> = goal.into_iter().chain([format!("{} {draft}", prompts::DRAFT)]).collect();
    thread_question(state, turn, prompts::REFLECT, &told).with_answer_schema(answer_schemas::draft_review())
}

/// The request for whether words with which a turn is about to end promise work that nothing was queued for. It is shown the end of the
/// conversation alone.
pub(super) fn promise(state: &AgentState, turn: &AgentTurn, words: &str) -> ModelRequest {
    let system = format!("{}\n\n{}", prompts::PROMISE, prompts::CONTEXT);
    let mut request = ModelRequest::from_messages("fast", vec![PromptMessage::System { text: system }]);
    let mut conversation = request.conversation();
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        let mut newest: Vec<&ThreadEntry> = thread.entries().rev().take(PROMISE_ENTRIES).collect();
        newest.reverse();
        newest.into_iter().for_each(|entry| tell_entry(entry, &mut conversation));
    }
    in_flight_facts::queued_tasks(state, &turn.user).iter().for_each(|fact| conversation.push_context(fact));
    conversation.push_context(&format!("{} {}", prompts::DRAFT, cut_to(words, PROMISE_BYTES)));
    conversation.end_with_input();
    request.with_answer_schema(answer_schemas::promise())
}

/// A question about a turn's thread, which offers no tools: calls in it are told in words, as endpoints want tools beside calls.
pub(super) fn thread_question(state: &AgentState, turn: &AgentTurn, question: &str, told: &[String]) -> ModelRequest {
    let system = format!("{question}\n\n{}", prompts::CONTEXT);
    let mut request = ModelRequest::from_messages("fast", vec![PromptMessage::System { text: system }]);
    let mut conversation = request.conversation();
    if let Some(thread) = state.threads.get(&turn.thread_id) {
        thread.entries().for_each(|entry| tell_entry(entry, &mut conversation));
    }
    told.iter().for_each(|fact| conversation.push_context(fact));
    conversation.end_with_input();
    request
}

/// Builds the prompt of an agent that plans, with the names and descriptions of its tools: schemas are for the models
/// that compile its plans.
fn planner_prompt(tools: &[&Tool]) -> String {
    let lines = tools.iter().map(|tool| format!("- {}: {}", tool.name, cut_to(&tool.description, CAPABILITY_BYTES)));
    format!("{}\n{}", prompts::THINK, lines.collect::<Vec<_>>().join("\n"))
}

/// Returns true if a tool is available while a message is acknowledged: those for the queue, for work in progress, for
/// memory and for the inner state.
fn is_about_work(tool: &str) -> bool {
    let is_kept = tool.starts_with("memory.") || intrinsics::inner_state::is_of_inner_state(tool);
    let is_known = matches!(tool, "team.status" | "submodule.ask" | "history.query");
    is_about_actions(tool) || tool.starts_with("task.") || is_kept || is_known
}

fn is_called_by_planners(tool: &str) -> bool {
    is_about_actions(tool) || tool == tool_search::FIND
}

fn is_about_actions(tool: &str) -> bool {
    let about_processes = tool.starts_with("process.") && !matches!(tool, "process.run" | "process.spawn");
    about_processes || matches!(tool, "action.cancel" | "chain.cancel")
}

/// Returns the tool with which models that call tools hand over a plan.
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
fn show_entry(entry: &ThreadEntry, turn_id: Uuid, conversation: &mut Conversation<'_>) {
    match entry {
        ThreadEntry::User { words: MessageContent { text, parts }, .. } => conversation.push_user(text, parts),
        ThreadEntry::Notice { text, .. } => conversation.push_context(text),
        ThreadEntry::Said { text, .. } => conversation.push_answer(text),
        ThreadEntry::Called { turn, text, calls, reasoning_details, passed_back } => {
            let of_turn = |back: &String| if turn_id == *turn { back.clone() } else { String::new() };
            let made = calls.iter().map(|call| ToolCall {
                id: call.id(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                passed_back: of_turn(&call.passed_back),
            });
            let back = (of_turn(reasoning_details), of_turn(passed_back));
            conversation.push_calls(text, made.collect(), back, calls.iter().map(result_text).collect());
            show_parts(calls, conversation);
        }
        ThreadEntry::Client { text, calls, .. } => show_client_calls(text, calls, conversation),
    }
}

/// Tells of an entry in words alone.
fn tell_entry(entry: &ThreadEntry, conversation: &mut Conversation<'_>) {
    match entry {
        ThreadEntry::User { words: MessageContent { text, parts }, .. } => conversation.push_user(text, parts),
        ThreadEntry::Notice { text, .. } => conversation.push_context(text),
        ThreadEntry::Said { text, .. } => conversation.push_answer(text),
        ThreadEntry::Called { text, calls, .. } => {
            conversation.push_answer(text);
            for call in calls {
                conversation.push_answer(&format!(
                    "({}({}) came to: {})",
                    call.tool,
                    call.arguments,
                    result_text(call)
                ));
            }
        }
        ThreadEntry::Client { text, calls, .. } => {
            conversation.push_answer(&chat_client::client_calls_text(text, calls))
        }
    }
}

/// Shows the images and audio that came with results, and says with which: endpoints take them of users alone.
fn show_parts(calls: &[ThreadCall], conversation: &mut Conversation<'_>) {
    let with = calls.iter().filter(|call| !call.parts.is_empty());
    let named = |call: &ThreadCall| {
        let parts: Vec<String> = call.parts.iter().map(media::describe_part).collect();
        format!("{} {}: {}", call.tool, call.id(), parts.join(", "))
    };
    let told: Vec<String> = with.clone().map(named).collect();
    let parts: Vec<Part> = with.flat_map(|call| call.parts.iter().cloned()).collect();
    if !parts.is_empty() {
        conversation.push_result_parts(&told.join("; "), &parts);
    }
}

/// Returns the result of a call. Models want a result after every call: for one that still runs, it says so.
fn result_text(call: &ThreadCall) -> String {
    let running = || json!({ "status": "still running", "since": call.since.to_string() }).to_string();
    call.result.clone().unwrap_or_else(running)
}

/// Calls that a chat client carried out, each with what came of it.
fn show_client_calls(text: &str, calls: &[ClientCall], conversation: &mut Conversation<'_>) {
    let made = calls.iter().map(|call| ToolCall {
        id: call.call_id.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        passed_back: call.passed_back.clone(),
    });
    let none = || json!({ "status": "no result yet" }).to_string();
    let results = calls.iter().map(|call| call.result.clone().unwrap_or_else(none)).collect();
    // The turn of the calls goes on with their results, so what the model server wants back with them goes, too.
    let back = calls.first().map(|call| call.answer_back.clone()).unwrap_or_default();
    conversation.push_calls(text, made.collect(), (String::new(), back), results);
}

/// When other turns have spoken since, a model must be told which one goes on.
fn resume_reminder(thread: &Thread, turn_id: Uuid) -> Option<String> {
    // What merely happened meanwhile changed no subject.
    let mere_news = |entry: &&ThreadEntry| matches!(entry, ThreadEntry::Notice { turn, .. } if *turn != turn_id);
    if thread.entries().rev().find(|entry| !mere_news(entry))?.turn() == turn_id {
        return None;
    }
    thread.entries().find_map(|entry| {
        Some(match entry {
            ThreadEntry::User { turn, words } if *turn == turn_id => {
                format!("The tools called for this earlier message have ended; answer it now: {}", words.in_words())
            }
            ThreadEntry::Notice { turn, text } if *turn == turn_id => {
                format!("Go on from this earlier event now, and say what the user should know of it: {text}")
            }
            _ => return None,
        })
    })
}
