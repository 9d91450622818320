//! A chat client's wishes for an answer: its instructions, tools that it carries out itself, and the form of the
//! answer.

use kairo_events::ids;
use kairo_proto::v1::{AgentAction, Completion, CompletionToolCall, Say, agent_action::Action, decided_event::Event};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AnswerFailure, AwaitedAnswer, Deliberation, Purpose, turn_request};
use crate::{
    chat_client::ChatSettings,
    chat_completions::to_wire_name,
    model_answer::{ModelAnswer, ModelToolCall, extract_json},
    prompts,
    request::{AnswerSchema, ModelRequest, PromptMessage, Tool, ToolChoice, defuse_markers, short_call_id},
    schema,
    state::AgentTurn,
    thread::cut_to,
};

/// Tools of a client that are offered; the gateway takes no more.
const TOOLS: usize = 128;
/// Of a tool's description, so much is shown, in bytes.
const DESCRIPTION_BYTES: usize = 8 * 1024;
/// Longest id of a call that is kept as the model made it, in bytes.
const CALL_ID_BYTES: usize = 64;

/// The words by which a client says which tool is to be called; any other is the name of a tool.
const AUTO: &str = "auto";
const NONE: &str = "none";
const REQUIRED: &str = "required";

#[derive(Deserialize)]
struct ClientToolSpec {
    function: ClientFunction,
}

#[derive(Deserialize)]
struct ClientFunction {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

impl ChatSettings {
    /// The client's tools, as a model is offered them; those that may not be called now are left out.
    fn offered_tools(&self) -> Vec<Tool> {
        if self.tool_choice == NONE {
            return Vec::new();
        }
        let is_meant = |tool: &Tool| self.named_tool().is_none_or(|named| *tool.name == *named);
        self.all_tools().into_iter().filter(is_meant).collect()
    }

    fn all_tools(&self) -> Vec<Tool> {
        if self.tools.is_empty() {
            return Vec::new();
        }
        let all: Vec<ClientToolSpec> = serde_json::from_str(&self.tools).unwrap_or_default();
        let tools = all.into_iter().take(TOOLS).map(|offered| {
            let ClientFunction { name, description, parameters } = offered.function;
            let parameters =
                if parameters.is_object() { parameters } else { json!({ "type": "object", "properties": {} }) };
            Tool {
                name: name.into(),
                description: cut_to(&description, DESCRIPTION_BYTES).into(),
                schema: parameters.to_string().into(),
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
            }
        });
        tools.collect()
    }

    /// The one tool that is to be called.
    fn named_tool(&self) -> Option<&str> {
        let is_word = self.tool_choice.is_empty() || [AUTO, NONE, REQUIRED].contains(&self.tool_choice.as_str());
        (!is_word).then_some(self.tool_choice.as_str())
    }

    /// Returns true if the answer must be a call of one of the client's tools.
    fn must_call(&self) -> bool {
        !self.has_results && (self.tool_choice == REQUIRED || self.named_tool().is_some())
    }

    /// Puts the client's wishes into words for the agent; the words stay the same as long as the client sends the same.
    fn wishes_in_words(&self) -> Option<String> {
        let instructions = (!self.instructions.is_empty())
            .then(|| format!("{}\n{}", prompts::CLIENT_INSTRUCTIONS, defuse_markers(&self.instructions)));
        let form = match self.answer_schema() {
            Some(schema) => Some(format!("{} {schema}", prompts::CLIENT_SCHEMA)),
            None => self.wants_json().then(|| prompts::CLIENT_JSON.to_owned()),
        };
        let words: Vec<String> = instructions.into_iter().chain(form).collect();
        (!words.is_empty()).then(|| words.join("\n\n"))
    }

    fn wants_json(&self) -> bool {
        !self.response_format.is_empty()
    }

    /// The JSON Schema of the answer.
    fn answer_schema(&self) -> Option<String> {
        let format: Value = serde_json::from_str(&self.response_format).ok()?;
        Some(format.get("json_schema")?.get("schema")?.to_string())
    }

    /// Returns the JSON object in an answer that must be JSON, or an error that says what is wrong with it.
    fn read_json(&self, text: &str) -> Result<String, String> {
        let value = extract_json(text)?;
        let Value::Object(object) = &value else { return Err("a JSON object is expected".to_owned()) };
        if let Some(schema) = self.answer_schema() {
            let mistakes = schema::mistakes(&schema, object);
            if !mistakes.is_empty() {
                return Err(mistakes.join("; "));
            }
        }
        // To the letter where the whole answer is that.
        let is_whole = serde_json::from_str::<Value>(text).is_ok();
        Ok(if is_whole { text.to_owned() } else { value.to_string() })
    }
}

impl Deliberation<'_> {
    /// A request with what the client of this turn wants: its instructions behind the agent's own, its tools beside the agent's.
    pub(super) fn with_client_wishes(turn: &AgentTurn, may_call: bool, mut request: ModelRequest) -> ModelRequest {
        let Some(chat) = &turn.chat else { return request };
        if let (Some(words), Some(PromptMessage::System { text })) =
            (chat.wishes_in_words(), request.messages.first_mut())
        {
            *text =
                [text.as_str(), &words].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        }
        if let Some(schema) = chat.answer_schema().filter(|_| !request.analysis) {
            request = request.with_answer_schema(AnswerSchema {
                name: "answer".into(),
                schema: schema.into(),
                is_strict: false,
            });
        }
        if chat.is_aside || request.analysis {
            return request;
        }
        // They stay in requests that may not call: endpoints want tools beside the calls of the conversation.
        let offered = chat.offered_tools();
        if may_call && chat.must_call() && !offered.is_empty() {
            request.tool_choice = match chat.named_tool() {
                Some(named) => ToolChoice::Named(named.into()),
                None => ToolChoice::Required,
            };
        }
        // Of two tools that the model knows by one name, the client's is meant.
        let is_other = |tool: &Tool| offered.iter().all(|own| to_wire_name(&own.name) != to_wire_name(&tool.name));
        request.tools.retain(is_other);
        request.tools.extend(offered);
        if request.tools.is_empty() && chat.tool_choice == NONE {
            (request.tools, request.tool_choice) = (chat.all_tools(), ToolChoice::None);
        }
        request
    }

    /// Answers what is no turn of a conversation: by the client's instructions alone, without tools.
    pub(super) fn answer_aside(&mut self, turn_id: Uuid) -> bool {
        let Some(turn) = self.turn(turn_id).filter(|turn| turn.is_aside()) else { return false };
        let request = turn_request::thread_question(&self.mind, turn, prompts::ASIDE, &[]);
        let request = Self::with_client_wishes(turn, false, request);
        self.ask_model(turn_id, Purpose::Think { step: None }, request);
        true
    }

    /// The answer as the client wants it, or what is wrong with it. What cannot be had in as many tries as there are is left as it
    /// is: the client looks for itself.
    pub(super) fn fit_answer_to_client(
        &self,
        asked: &AwaitedAnswer,
        answer: ModelAnswer,
    ) -> Result<ModelAnswer, AnswerFailure> {
        let Some(chat) = self.turn(asked.turn).and_then(|turn| turn.chat.as_ref()) else { return Ok(answer) };
        let ModelAnswer::Say(text) = &answer else { return Ok(answer) };
        let is_last = asked.question.attempt >= self.limits.tries || asked.question.request.analysis;
        let offers = |tool: &Tool| asked.question.request.tools.iter().any(|other| other.name == tool.name);
        let tools = if chat.must_call() { chat.offered_tools() } else { Vec::new() };
        if let Some(tool) = tools.iter().find(|tool| offers(tool)).filter(|_| !is_last) {
            return Err(AnswerFailure::malformed_answer(format!("a tool has to be called now, such as {}", tool.name)));
        }
        if !chat.wants_json() || asked.question.request.analysis {
            return Ok(answer);
        }
        match chat.read_json(text) {
            Ok(json) => Ok(ModelAnswer::Say(json)),
            Err(_) if is_last => Ok(answer),
            Err(wrong) => {
                Err(AnswerFailure::malformed_answer(format!("it is not the JSON that was asked for: {wrong}")))
            }
        }
    }

    /// Hands calls of the client's tools to the client, which ends the turn. Where the agent's own tools are called as well, these
    /// are left: they run first, and the model sees what came of them before it calls the client's again.
    pub(super) fn hand_calls_to_client(
        &mut self,
        turn_id: Uuid,
        words: &str,
        calls: &mut Vec<ModelToolCall>,
        completion: &Completion,
    ) -> bool {
        let Some(turn) = self.turn(turn_id) else { return false };
        let Some(chat) = &turn.chat else { return false };
        let names: Vec<Tool> = chat.offered_tools();
        let is_clients = |tool: &str| names.iter().any(|own| *own.name == *tool);
        let single = chat.single_call;
        if calls.iter().any(|call| !is_clients(&call.tool)) {
            calls.retain(|call| !is_clients(&call.tool));
            return false;
        }
        let user = turn.user.clone();
        let message_id = turn.message_id.clone();
        let most = if single { 1 } else { calls.len() };
        let mut handed: Vec<CompletionToolCall> = Vec::new();
        for (at, call) in calls.iter().enumerate().take(most) {
            let asked = completion.tool_calls.get(at).cloned().unwrap_or_default();
            let call_id = self.client_call_id(turn_id, at, &asked.call_id, &handed);
            let tool = call.tool.clone();
            let arguments = call.arguments.clone();
            handed.push(CompletionToolCall { call_id, tool, arguments, ..asked });
        }
        let say = Say {
            text: words.to_owned(),
            user,
            message_id,
            r#final: true,
            client_calls: handed,
            passed_back: completion.passed_back.clone(),
            ..Say::default()
        };
        self.add_event(turn_id, Event::Action(AgentAction { action: Some(Action::Say(say)) }));
        true
    }

    /// The id of a call: the model's own where it may be one, else nine letters and digits, which every model server accepts.
    fn client_call_id(&self, turn_id: Uuid, at: usize, own: &str, before: &[CompletionToolCall]) -> String {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let thread = self.turn(turn_id).and_then(|turn| self.mind.threads.get(&turn.thread_id));
        let is_used = || {
            before.iter().any(|call| call.call_id == own) || thread.is_some_and(|thread| thread.has_client_call(own))
        };
        if (1..=CALL_ID_BYTES).contains(&own.len()) && own.bytes().all(is_fit) && !is_used() {
            return own.to_owned();
        }
        short_call_id(ids::derive(self.decision_id, &format!("client-call/{at}")))
    }
}

impl AgentTurn {
    /// Returns true if the turn belongs to no conversation.
    pub(crate) fn is_aside(&self) -> bool {
        self.chat.as_ref().is_some_and(|chat| chat.is_aside)
    }
}
