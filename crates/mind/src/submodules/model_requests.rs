//! Requests to submodules, built from the state alone.

use std::collections::VecDeque;

use jiff::Timestamp;
use kairo_proto::words::HeardKind;
use uuid::Uuid;

use super::Submodule;
use crate::{
    intrinsics::{self, threads},
    prompts,
    request::{ModelRequest, PromptMessage},
    state::{AgentState, AgentTurn},
    thread::{ThreadEntry, cut_to},
};

/// Of a conversation, so much is shown, in bytes: its end. Of each entry, so much.
const SHOWN_BYTES: usize = 16 * 1024;
const ENTRY_BYTES: usize = 2 * 1024;
/// Maximum size of the new input that is shown, in bytes.
const NEW_BYTES: usize = 8 * 1024;

/// Builds the request that shows a submodule the new input of a turn, of this kind.
pub fn new_input_request(
    state: &AgentState,
    turn_id: Uuid,
    turn: &AgentTurn,
    voice: &Submodule,
    kind: &HeardKind,
    now: Timestamp,
) -> ModelRequest {
    let (before, new) = split_conversation(state, turn_id, turn, now);
    let shown = format!("{before}What is new ({kind}):\n{new}");
    base_request(state, voice, prompts::SUBMODULE, shown)
}

/// A question of the agent.
pub fn question_request(
    state: &AgentState,
    turn_id: Uuid,
    turn: &AgentTurn,
    voice: &Submodule,
    question: &str,
    now: Timestamp,
) -> ModelRequest {
    let (before, new) = split_conversation(state, turn_id, turn, now);
    let said = turn.counsel.said.iter().map(|said| format!("{}: {}\n", said.module, said.text));
    let thoughts: String = said.collect();
    let thoughts = if thoughts.is_empty() { thoughts } else { format!("\n\nWhat was thought along:\n{thoughts}") };
    let shown = format!("{before}What is new:\n{new}{thoughts}\n\nThe agent asks you: {question}");
    base_request(state, voice, prompts::SUBMODULE_ASKED, shown)
}

/// Builds the request that shows a submodule the decisions of a thread, up to `through`.
pub fn broadcast_request(state: &AgentState, voice: &Submodule, thread_id: &str, through: u64) -> ModelRequest {
    let shown = state.submodules.shown.iter().filter(|shown| shown.thread_id == thread_id && shown.at <= through);
    let acts: Vec<&str> = shown.map(|shown| shown.text.as_str()).collect();
    let mut request = base_request(state, voice, prompts::SUBMODULE_TOLD, format!("The agent\n{}", acts.join("\n")));
    // What was done in no conversation was done for anybody: nothing of it may become what all users are shown.
    if !state.threads.contains_key(thread_id) {
        request.tools.clear();
    }
    request
}

fn base_request(state: &AgentState, voice: &Submodule, what: &str, shown: String) -> ModelRequest {
    let system = format!("{what}\nYour name is {}. What you are:\n{}", voice.name, voice.prompt);
    let theirs = intrinsics::all().map(|intrinsic| &intrinsic.tool);
    let offered = theirs.filter(|tool| intrinsics::submodules::is_callable_by_submodules(&tool.name));
    let tools = offered.filter(|tool| state.offers_tool(&tool.name)).cloned().collect();
    let messages = vec![PromptMessage::System { text: system }, PromptMessage::user(shown)];
    ModelRequest { tools, ..ModelRequest::from_messages(voice.tier(), messages) }
}

/// The end of a turn's thread, as far as it is shown, and what is new in it.
fn split_conversation(state: &AgentState, turn_id: Uuid, turn: &AgentTurn, now: Timestamp) -> (String, String) {
    let cutoff = state.profile.as_ref().map(|profile| profile.cutoff).unwrap_or_default();
    let Some(thread) = state.threads.get(&turn.thread_id) else { return Default::default() };
    let mut entries: Vec<&ThreadEntry> = thread.shown_entries(cutoff, now, turn_id).collect();
    // What is new is the turn's own, though others may have spoken since.
    let own = entries.iter().rposition(|entry| entry.turn() == turn_id);
    let new = own.or(entries.len().checked_sub(1)).map(|at| entries.remove(at));
    let mut lines: VecDeque<String> = VecDeque::new();
    let mut size = 0;
    for entry in entries.into_iter().rev() {
        let line = cut_to(&threads::entry_text(entry), ENTRY_BYTES);
        size += line.len() + 1;
        if size > SHOWN_BYTES {
            break;
        }
        lines.push_front(line);
    }
    let before = match lines.is_empty() {
        true => String::new(),
        false => format!("What was before:\n{}\n\n", Vec::from(lines).join("\n")),
    };
    (before, new.map(|entry| cut_to(&threads::entry_text(entry), NEW_BYTES)).unwrap_or_default())
}
