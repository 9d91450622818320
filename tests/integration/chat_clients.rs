//! Conversations of chat clients that keep the history themselves: whose words reach whom, what is asked again, tools of the client,
//! and how a turn that failed is told. Raw HTTP, as any client may speak it; the library of OpenAI is in `openai`.

use futures::future::join_all;
use kairo_local::Service;
use kairo_proto::v1;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::world::{Wanted, World, scenario::USUAL};

/// The answer to a client: the status, the headers, which name the thread, and the body.
struct Got {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Got {
    fn reply(&self) -> &str {
        self.body["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_else(|| panic!("{} {}", self.status, self.body))
    }

    fn thread(&self) -> &str {
        self.headers["kairo-thread"].to_str().unwrap()
    }

    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_else(|| panic!("{}", self.body))
    }
}

/// Users' words and answers in turn.
fn talk(agent: &str, texts: &[&str]) -> Value {
    let message = |(at, text): (usize, &&str)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({ "role": role, "content": text })
    };
    json!({ "model": agent, "messages": texts.iter().enumerate().map(message).collect::<Vec<_>>() })
}

async fn ask_with(world: &World, body: &Value, headers: &[(&str, &str)]) -> Got {
    let mut request = world.http.post(world.url("/v1/chat/completions")).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Got { status, headers, body: answer.json().await.unwrap() }
}

async fn ask(world: &World, body: &Value) -> Got {
    ask_with(world, body, &[]).await
}

async fn stream(world: &World, body: &Value) -> (u16, Vec<Value>) {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let answer = world.http.post(world.url("/v1/chat/completions")).json(&body).send().await.unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    let chunks = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok());
    (status, chunks.collect())
}

/// Returns the messages of the last request to the model, as text.
async fn asked_last(world: &World) -> String {
    world.model_requests().await.last().unwrap()["body"]["messages"].to_string()
}

async fn messages(world: &World) -> usize {
    world.log.now(&world.bus).await.iter().filter(|event| event.type_name == v1::UserMessage::TYPE).count()
}

#[tokio::test]
async fn callers_who_say_the_same_never_share_a_thread() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let hello = talk("coach", &["Good morning"]);
    let both = join_all([ask(&world, &hello), ask(&world, &hello)]).await;
    assert_ne!(both[0].thread(), both[1].thread());
    let said = both[0].reply().to_owned();
    let told = ask(&world, &talk("coach", &["Good morning", &said, "My PIN is 1234."])).await;
    assert_eq!(told.status, 200);
    let other = ask(&world, &talk("coach", &["Good morning", &said, "What is my number?"])).await;
    assert_ne!(other.thread(), told.thread());
    let asked = asked_last(&world).await;
    assert!(asked.contains("What is my number?") && asked.contains(&said) && !asked.contains("1234"), "{asked}");
    // The first goes on where it was; nobody else's words are there.
    let more = ask(&world, &talk("coach", &["Good morning", &said, "My PIN is 1234.", told.reply(), "Thanks."])).await;
    assert_eq!(more.thread(), told.thread());
    let asked = asked_last(&world).await;
    assert!(asked.contains("1234") && !asked.contains("What is my number?"), "{asked}");
    world.end().await;
}

#[tokio::test]
async fn regenerate_asks_again_and_an_edited_message_leaves_no_trace_of_the_other() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let first = ask(&world, &talk("coach", &["the time please"])).await;
    let of_first = ["the time please", first.reply()];
    let plan = ask(&world, &talk("coach", &[of_first[0], of_first[1], "the secret plan"])).await;
    assert_eq!(plan.thread(), first.thread());
    let edited = talk("coach", &[of_first[0], of_first[1], "the other plan"]);
    let other = ask(&world, &edited).await;
    assert!(other.thread() != first.thread() && other.reply() == "You said: the other plan");
    let asked = asked_last(&world).await;
    // What Kairo's own tool said in the thread before is still known.
    assert!(asked.contains("the time please") && !asked.contains("secret") && asked.contains("tools__now"), "{asked}");
    let regenerated = ask(&world, &edited).await;
    assert_ne!(regenerated.body["id"], other.body["id"]);
    assert_eq!(asked_last(&world).await.matches("the other plan").count(), 1);
    let again = ask(&world, &talk("coach", &["the time please"])).await;
    assert!(first.body["id"] != again.body["id"] && first.thread() != again.thread());
    // A system prompt is used, and may change.
    let mut piped = edited.clone();
    piped["messages"].as_array_mut().unwrap().insert(0, json!({ "role": "system", "content": "Speak like a pirate." }));
    ask(&world, &piped).await;
    assert!(asked_last(&world).await.contains("Speak like a pirate."));
    // A history that Kairo has never seen is what the agent is shown.
    ask(&world, &talk("coach", &["Who are you?", "I am Bob.", "And I?"])).await;
    let asked = asked_last(&world).await;
    assert!(asked.contains("Who are you?") && asked.contains("I am Bob."), "{asked}");
    world.end().await;
}

#[tokio::test]
async fn a_conversation_goes_on_in_its_thread_after_the_gateway_was_killed() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let first = ask(&world, &talk("coach", &["My PIN is 1234."])).await;
    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let second = ask(&world, &talk("coach", &["My PIN is 1234.", first.reply(), "Thanks."])).await;
    assert_eq!(second.thread(), first.thread());
    let third = talk("coach", &["My PIN is 1234.", first.reply(), "Thanks.", second.reply(), "Bye."]);
    assert_eq!(ask(&world, &third).await.thread(), first.thread());
    // What was said since is known, too: the thread no longer ends there.
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    let edited = ask(&world, &talk("coach", &["My PIN is 1234.", first.reply(), "Forget it."])).await;
    assert_ne!(edited.thread(), first.thread());
    assert!(!asked_last(&world).await.contains("Thanks."));
    world.end().await;
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_the_same_answer_and_a_key_is_for_one_request() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let (hello, other) = (talk("coach", &["hello"]), talk("coach", &["pay 9999"]));
    let first = ask_with(&world, &hello, &[("x-stainless-retry-count", "0")]).await;
    let again = ask_with(&world, &hello, &[("x-stainless-retry-count", "1")]).await;
    assert_eq!((&first.body["id"], first.thread()), (&again.body["id"], again.thread()));
    let key = [("idempotency-key", "order-1")];
    let keyed = ask_with(&world, &hello, &key).await;
    assert_ne!(keyed.body["id"], first.body["id"]);
    assert_eq!(ask_with(&world, &hello, &key).await.body["id"], keyed.body["id"]);
    let refused = ask_with(&world, &other, &key).await;
    assert_eq!((refused.status, refused.code()), (409, "conflict"), "{}", refused.body);
    assert_eq!(messages(&world).await, 2);

    let pay = |text: &str| json!({ "user": "ann", "agent": "coach", "text": text, "message_id": "order-1" });
    let (status, paid) = world.post("/v1/messages", &pay("pay 10")).await;
    assert_eq!((status, world.post("/v1/messages", &pay("pay 10")).await.1), (202, paid));
    let (status, refused) = world.post("/v1/messages", &pay("pay 9999")).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (409, &json!("message_id")), "{refused}");
    let order = |command: &str| {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        json!({ "user": "ann", "agent": "coach", "command": command, "task_id": id, "command_id": "c1" })
    };
    assert_eq!(world.post("/v1/commands", &order("pause")).await.0, 202);
    assert_eq!(world.post("/v1/commands", &order("pause")).await.0, 202);
    assert_eq!(world.post("/v1/commands", &order("resume")).await.0, 409);
    world.end().await;
}

/// The first three requests find nobody.
const OUTAGE: &str = r#"
rules:
  - name: outage
    when: { user_contains: "outage" }
    times: 3
    times_per: server
    reply: { error: { status: 503, message: "down" } }
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

#[tokio::test]
async fn a_failed_turn_is_an_error_and_the_same_request_asks_again() {
    let world = Wanted::new(OUTAGE).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", "3").start().await;
    world.define("coach").await;
    let key = [("idempotency-key", "k"), ("x-stainless-retry-count", "1")];
    let failed = ask_with(&world, &talk("coach", &["outage"]), &key).await;
    assert_eq!((failed.status, failed.code()), (503, "model_overloaded"), "{}", failed.body);
    assert!(failed.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let well = ask_with(&world, &talk("coach", &["outage"]), &key).await;
    assert_eq!((well.status, well.reply()), (200, "You said: outage"));
    assert!(!asked_last(&world).await.contains("could not"), "a failure is shown as an answer");
    let (status, chunks) = stream(&world, &talk("coach", &["hello"])).await;
    assert_eq!((status, &chunks.last().unwrap()["choices"][0]["finish_reason"]), (200, &json!("stop")));
    world.end().await;
}

/// Calls the client's tool, and tells what came of it.
const WEATHER: &str = r#"
rules:
  - name: told
    when: { result: { contains: "rain" } }
    reply: "Take an umbrella: {{ last_result_text }}."
  - name: weather
    when: { user_contains: "weather" }
    reply: { tool_calls: [{ tool: get_weather, arguments: { city: "Berlin" } }] }
  - name: form
    when: { user_contains: "number" }
    reply: '{"n": 7}'
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;

#[tokio::test]
async fn the_client_carries_out_its_own_tools() {
    let world = Wanted::new(WEATHER).start().await;
    world.define("coach").await;
    let mut body = talk("coach", &["The weather?"]);
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    body["tools"] = json!([{ "type": "function", "function": { "name": "get_weather", "parameters": parameters } }]);
    let called = ask(&world, &body).await;
    let choice = &called.body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{}", called.body);
    let call = choice["message"]["tool_calls"][0].clone();
    assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("get_weather")));
    assert!(call["function"]["arguments"].as_str().unwrap().contains("Berlin"));
    let result = json!({ "role": "tool", "tool_call_id": call["id"], "content": "rain" });
    body["messages"].as_array_mut().unwrap().extend([choice["message"].clone(), result]);
    let told = ask(&world, &body).await;
    assert_eq!((told.reply(), told.thread()), ("Take an umbrella: rain.", called.thread()));
    // A gateway that knows nothing of it goes on with what the client tells.
    body["messages"][1]["content"] = json!("Let me see.");
    let elsewhere = ask(&world, &body).await;
    assert_eq!(elsewhere.reply(), "Take an umbrella: rain.");
    assert_ne!(elsewhere.thread(), called.thread());

    let mut once_more = talk("coach", &["the weather again"]);
    once_more["tools"] = body["tools"].clone();
    let (_, chunks) = stream(&world, &once_more).await;
    let calls = chunks.iter().find(|chunk| chunk["choices"][0]["delta"]["tool_calls"].is_array()).unwrap();
    assert_eq!(calls["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
    let mut formed = talk("coach", &["a number"]);
    formed["response_format"] = json!({ "type": "json_object" });
    assert_eq!(ask(&world, &formed).await.reply(), r#"{"n": 7}"#);
    world.end().await;
}

#[tokio::test]
async fn side_prompts_are_no_turns_and_no_conversations() {
    let world = Wanted::new(USUAL).start().await;
    world.define("coach").await;
    let hello = ask(&world, &talk("coach", &["hello"])).await;
    let title = "### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: hello\n</chat_history>";
    let titled = ask(&world, &talk("coach", &[title])).await;
    assert!(titled.reply().contains("Generate a title"));
    let aside = [("kairo-aside", "true")];
    let follow_up =
        ask_with(&world, &talk("coach", &["hello", hello.reply(), "Which questions follow?"]), &aside).await;
    assert_eq!(follow_up.status, 200);
    let next = ask(&world, &talk("coach", &["hello", hello.reply(), "thanks"])).await;
    assert_eq!(next.thread(), hello.thread());
    let asked = asked_last(&world).await;
    assert!(!asked.contains("### Task") && !asked.contains("Which questions"), "{asked}");
    let end = world.raw_log().await.last().unwrap().sequence;
    let (status, threads) = world.get(&format!("/v1/threads?agent=coach&at_least={end}")).await;
    assert_eq!((status, threads["threads"].as_array().unwrap().len()), (200, 1), "{threads}");
    let (_, conversation) = world.get(&format!("/v1/conversations/coach?user=openai&at_least={end}")).await;
    assert!(!conversation.to_string().contains("### Task"), "{conversation}");
    world.end().await;
}

#[tokio::test]
async fn what_is_not_served_is_told_in_the_form_of_the_api() {
    let world = Wanted::new(USUAL).start().await;
    for path in ["/v1/responses", "/v1/embeddings", "/v1/completions", "/v1/images/generations"] {
        let (status, body) = world.post(path, &json!({ "model": "coach", "input": "x" })).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!("unknown_url")), "{body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("served here"));
    }
    world.end().await;
}
