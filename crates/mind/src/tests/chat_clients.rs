//! Content of chat clients: instructions, histories, forks, tools of their own and asides.

use kairo_proto::v1::{ChatMessage, ChatRequest, ChatToolCall, ChatToolResult};
use serde_json::json;

use super::*;
use crate::request::ToolChoice;

fn of(role: &str, text: &str) -> ChatMessage {
    ChatMessage { role: role.into(), text: text.into(), ..ChatMessage::default() }
}

fn tools(names: &[&str]) -> String {
    let tool =
        |name: &&str| json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } });
    json!(names.iter().map(tool).collect::<Vec<_>>()).to_string()
}

/// A call with an id of the model's own.
fn calls_with_ids(asked: &[(&str, &str)]) -> Completion {
    let call = |(id, tool): &(&str, &str)| CompletionToolCall {
        call_id: (*id).into(),
        tool: (*tool).into(),
        arguments: "{}".into(),
        ..CompletionToolCall::default()
    };
    Completion { tool_calls: asked.iter().map(call).collect(), ..Completion::default() }
}

impl Agent {
    fn hears_from_client(&mut self, id: &str, thread: &str, text: &str, chat: ChatRequest) -> Uuid {
        let message = AgentMessage {
            message_id: id.into(),
            user: "ann".into(),
            text: text.into(),
            thread_id: thread.into(),
            chat: Some(chat),
            ..AgentMessage::default()
        };
        self.write(&AGENT_MESSAGE, None, message).envelope.correlation_id
    }

    /// The last request in short: whose words, and which; calls as `call!`.
    fn shown_in_short(&self) -> Vec<String> {
        let show = |message: &PromptMessage| match message {
            PromptMessage::System { text } => format!("system: {text}"),
            PromptMessage::User { text, .. } => format!("user: {text}"),
            PromptMessage::Assistant { text, calls, .. } if calls.is_empty() => format!("agent: {text}"),
            PromptMessage::Assistant { calls, .. } => {
                calls.iter().map(|call| format!("{}!", call.tool)).collect::<Vec<_>>().join(" ")
            }
            PromptMessage::Tool { call_id, text } => format!("{call_id}: {text}"),
        };
        self.asked.last().unwrap().messages.iter().map(show).collect()
    }

    fn offered(&self) -> Vec<String> {
        self.asked.last().unwrap().tools.iter().map(|tool| tool.name.to_string()).collect()
    }
}

#[test]
fn a_new_thread_begins_with_the_history_and_the_instructions_stand_behind_the_prompt() {
    let mut agent = Agent::new();
    let history = vec![of("user", "My name is Ann."), of("assistant", "Hello Ann.")];
    let chat = ChatRequest { instructions: "Speak like a pirate.".into(), history, ..ChatRequest::default() };
    agent.hears_from_client("m1", "t1", "What is my name?", chat);
    assert_eq!(acts(&agent.decides(&[says("Ann")]).unwrap()), ["Ann"]);
    let shown = agent.shown_in_short();
    assert!(shown[0].starts_with("system: Be brief.") && shown[0].ends_with("Speak like a pirate."), "{shown:?}");
    assert_eq!(shown[1..], ["user: My name is Ann.", "agent: Hello Ann.", "user: What is my name?"]);
}

#[test]
fn a_thread_that_has_moved_on_takes_no_message_and_a_fork_knows_nothing_of_what_came_later() {
    let mut agent = Agent::new();
    let first = agent.hears_from_client("m1", "t1", "one", ChatRequest::default());
    agent.decides(&[says("1")]).unwrap();
    let behind = |after: Uuid| ChatRequest { after: after.to_string(), ..ChatRequest::default() };
    agent.hears_from_client("m2", "t1", "my PIN is 1234", behind(first));
    agent.decides(&[says("noted")]).unwrap();
    let asked = agent.asked.len();
    agent.hears_from_client("m3", "t1", "two", behind(first));
    let refused = agent.decides(&[]).unwrap();
    assert_eq!((acts(&refused)[0].as_str(), agent.asked.len()), ("thread_moved_on?", asked));
    agent.hears_from_client("m4", "t2", "two", ChatRequest { fork_of: "t1".into(), ..behind(first) });
    agent.decides(&[says("2")]).unwrap();
    assert_eq!(agent.shown_in_short()[1..], ["user: one", "agent: 1", "user: two"]);
    // Of a thread that is not known, the client's word counts.
    let history = vec![of("user", "eins"), of("assistant", "1")];
    let unknown = ChatRequest { fork_of: "t9".into(), history, ..behind(first) };
    agent.hears_from_client("m5", "t3", "zwei", unknown);
    agent.decides(&[says("2")]).unwrap();
    assert_eq!(agent.shown_in_short()[1..], ["user: eins", "agent: 1", "user: zwei"]);
}

#[test]
fn nobody_forks_the_thread_of_another_user() {
    let mut agent = Agent::new();
    let message = AgentMessage {
        message_id: "m".into(),
        user: "bob".into(),
        text: "my PIN is 1234".into(),
        thread_id: "t1".into(),
        ..AgentMessage::default()
    };
    let theirs = agent.write(&AGENT_MESSAGE, None, message).envelope.correlation_id;
    agent.decides(&[says("noted")]).unwrap();
    let fork = ChatRequest { fork_of: "t1".into(), after: theirs.to_string(), ..ChatRequest::default() };
    agent.hears_from_client("m1", "t2", "hello", fork);
    agent.decides(&[says("hi")]).unwrap();
    assert_eq!(agent.shown_in_short()[1..], ["user: hello"]);
}

#[test]
fn the_clients_tools_are_handed_over_and_the_turn_goes_on_with_what_came_of_them() {
    let mut agent = Agent::new();
    let chat = ChatRequest { tools: tools(&["weather", "tools__now"]), ..ChatRequest::default() };
    let first = agent.hears_from_client("m1", "t1", "weather?", chat.clone());
    let asked = calls_with_ids(&[("call_1", "weather"), ("call_1", "weather")]);
    let handed = agent.decides(&[asked]).unwrap();
    let say = decision(&handed).events.iter().find_map(|event| event.say()).unwrap().clone();
    assert!(say.r#final && say.client_calls.len() == 2 && actions(&handed).is_empty());
    let ids: Vec<&str> = say.client_calls.iter().map(|call| call.call_id.as_str()).collect();
    assert!(ids[0] == "call_1" && ids[1].len() == 9 && ids[1].bytes().all(|byte| byte.is_ascii_alphanumeric()));
    // The client's tool takes the place of the agent's that has the same name on the wire.
    let offered = agent.offered();
    assert!(offered.contains(&"tools__now".to_owned()) && !offered.contains(&"tools.now".to_owned()), "{offered:?}");

    let results = vec![ChatToolResult { call_id: "call_1".into(), text: "rain".into() }];
    agent.hears_from_client("m2", "t1", "", ChatRequest { results, after: first.to_string(), ..chat });
    assert_eq!(acts(&agent.decides(&[says("It rains.")]).unwrap()), ["It rains."]);
    let shown = agent.shown_in_short();
    assert_eq!(shown[1..4], ["user: weather?", "weather! weather!", "call_1: rain"]);
    assert!(shown[4].contains("no_result") && shown.len() == 5, "{shown:?}");
    assert!(!agent.mind.state.threads["t1"].outside.is_empty(), "results of clients come from outside");
}

#[test]
fn own_tools_run_before_calls_are_handed_over() {
    let mut agent = Agent::new();
    let chat = ChatRequest { tools: tools(&["weather"]), single_call: true, ..ChatRequest::default() };
    agent.hears_from_client("m1", "t1", "weather now?", chat);
    let both = agent.decides(&[calls(&["tools.now", "weather"])]).unwrap();
    assert_eq!(acts(&both), ["tools.now!"]);
    agent.learns(&both, &actions(&both)[0], "7");
    let handed = agent.decides(&[calls(&["weather", "weather"])]).unwrap();
    let say = decision(&handed).events.iter().find_map(|event| event.say()).unwrap();
    assert_eq!(say.client_calls.len(), 1, "one at a time");
}

#[test]
fn what_the_client_wants_called_is_called() {
    let mut agent = Agent::new();
    let chat = ChatRequest { tools: tools(&["weather", "traffic"]), ..ChatRequest::default() };
    agent.hears_from_client("m1", "t1", "hi", ChatRequest { tool_choice: "none".into(), ..chat.clone() });
    agent.decides(&[says("hi")]).unwrap();
    assert!(!agent.offered().contains(&"weather".to_owned()));
    agent.hears_from_client("m2", "t2", "hi", ChatRequest { tool_choice: "weather".into(), ..chat.clone() });
    let decided = agent.decides(&[says("hi"), calls(&["weather"])]).unwrap();
    assert_eq!(acts(&decided)[0], "malformed_answer?");
    let offered = agent.offered();
    assert!(offered.contains(&"weather".to_owned()) && !offered.contains(&"traffic".to_owned()), "{offered:?}");
    assert_eq!(agent.asked.last().unwrap().tool_choice, ToolChoice::Named("weather".into()));
    agent.hears_from_client("m3", "t3", "hi", ChatRequest { tool_choice: "required".into(), ..chat });
    let decided = agent.decides(&[says("a"), says("b"), says("c")]).unwrap();
    assert_eq!(acts(&decided).last().unwrap(), "c", "what cannot be had is left as it is");
}

#[test]
fn an_answer_in_a_form_is_asked_for_again_until_it_has_it() {
    let mut agent = Agent::new();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } }).to_string();
    let chat = ChatRequest { response_format: format, ..ChatRequest::default() };
    agent.hears_from_client("m1", "t1", "how many?", chat.clone());
    let decided = agent.decides(&[says("seven"), says("```json\n{\"n\": 7}\n```")]).unwrap();
    assert_eq!(acts(&decided), ["malformed_answer?", r#"{"n":7}"#]);
    assert!(agent.shown_in_short()[0].contains(r#""required":["n"]"#));
    agent.hears_from_client("m2", "t2", "how many?", chat);
    let decided = agent.decides(&[says(r#"{"n": "x"}"#), says(r#"{ "n": 8 }"#)]).unwrap();
    assert_eq!(acts(&decided).last().unwrap(), r#"{ "n": 8 }"#);
}

#[test]
fn an_aside_leaves_nothing_behind() {
    let mut agent = Agent::new();
    let history = vec![of("user", "hello"), of("assistant", "hi")];
    let chat = ChatRequest { is_aside: true, history, instructions: "In English.".into(), ..ChatRequest::default() };
    agent.hears_from_client("m1", "t1", "A title, please.", chat);
    let decided = agent.decides(&[says("Greetings")]).unwrap();
    assert_eq!(acts(&decided), ["Greetings"]);
    let events = &decision(&decided).events;
    assert!(events.iter().all(|event| event.say().is_some_and(|say| say.user.is_empty())), "{events:?}");
    assert!(agent.offered().is_empty() && agent.mind.state.threads.is_empty() && agent.mind.state.turns.is_empty());
    let shown = agent.shown_in_short();
    assert!(shown[0].ends_with("In English.") && shown.len() == 4 && shown[3] == "user: A title, please.", "{shown:?}");
}

#[test]
fn calls_of_a_history_are_shown_with_their_results() {
    let mut agent = Agent::new();
    let call = ChatToolCall { call_id: "c1".into(), tool: "weather".into(), arguments: "not JSON".into() };
    let called = ChatMessage { calls: vec![call], ..of("assistant", "") };
    let result = ChatMessage { call_id: "c1".into(), ..of("tool", "rain") };
    let history = vec![of("user", "weather?"), called.clone(), result, of("assistant", "Rain.")];
    agent.hears_from_client("m1", "t1", "thanks", ChatRequest { history, ..ChatRequest::default() });
    agent.decides(&[says("welcome")]).unwrap();
    assert_eq!(agent.shown_in_short()[1..], ["user: weather?", "weather!", "c1: rain", "agent: Rain.", "user: thanks"]);
    // The results may come with the message, behind a history that ends with the calls.
    let results = vec![ChatToolResult { call_id: "c1".into(), text: "sun".into() }];
    let history = vec![of("user", "weather?"), called];
    agent.hears_from_client("m2", "t2", "", ChatRequest { history, results, ..ChatRequest::default() });
    agent.decides(&[says("Sun.")]).unwrap();
    assert_eq!(agent.shown_in_short()[1..], ["user: weather?", "weather!", "c1: sun"]);
}
