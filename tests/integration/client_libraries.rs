//! The client libraries that people point at Kairo, each in the ways in which programs use it: a whole answer, a stream, a
//! tool of the client's own, an answer of a schema, and a turn that fails, which must be an exception and no answer.

use std::{path::PathBuf, process::Stdio};

use futures::future::join_all;
use kairo_local::Service;
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::world::{DEADLINE, Wanted, World};

const AGENT: &str = "coach";

/// The model's replies to the messages of the libraries.
const SCENARIO: &str = r#"
defaults: { chunk_chars: 4 }
rules:
  - name: weather
    when: { user_contains: "weather", tools_offered: weather }
    turn:
      - { tool_calls: [{ tool: weather, arguments: { city: Rome } }] }
      - "It is {{ last_result_text }}."
  - { name: form, when: { user_contains: "in the form" }, reply: { json: { city: Rome, degrees: 21 } } }
  - { name: busy, when: { user_contains: "busy" }, reply: { error: { status: 429, message: slow down, retry_after: 3600 } } }
  - { name: away, when: { user_contains: "away" }, reply: { error: { status: 503, message: on fire } } }
  # Slowly, since what arrives at once is shown at once.
  - { name: echo, when: {}, reply: { text: "You said these words: {{ user }}", chunk_chars: 8, chunk_delay_ms: 50 } }
"#;

/// A client library: the variable that names what runs it, and its script.
struct Library {
    program: &'static str,
    script: &'static str,
    /// The library's name for the finish reason "tool calls".
    finish_of_calls: &'static str,
    /// The exceptions that it raises for 429 and for 503.
    exceptions: [&'static str; 2],
}

const LIBRARIES: [Library; 4] = [
    Library {
        program: "KAIRO_OPENAI_PYTHON",
        script: "openai_python.py",
        finish_of_calls: "tool_calls",
        exceptions: ["RateLimitError", "InternalServerError"],
    },
    Library {
        program: "KAIRO_LANGCHAIN_PYTHON",
        script: "langchain_chat.py",
        finish_of_calls: "tool_calls",
        exceptions: ["OpenAIRateLimitError", "OpenAIAPIError"],
    },
    Library {
        program: "KAIRO_CHAT_CLIENTS_NODE",
        script: "openai-node.cjs",
        finish_of_calls: "tool_calls",
        exceptions: ["RateLimitError", "InternalServerError"],
    },
    Library {
        program: "KAIRO_CHAT_CLIENTS_NODE",
        script: "ai-sdk.cjs",
        finish_of_calls: "tool-calls",
        exceptions: ["AI_APICallError", "AI_APICallError"],
    },
];

impl Library {
    /// Runs the library's script in one way and returns its last line as JSON; none on a machine without the library.
    async fn use_it(&self, world: &World, way: &str, model: &str, text: &str) -> Option<Value> {
        let Some(program) = std::env::var_os(self.program) else {
            eprintln!("skipped: {} is not installed; scripts/setup --tests says why", self.script);
            return None;
        };
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openai").join(self.script);
        let mut command = Command::new(program);
        command.arg(script).args([way, &world.url("/v1"), model, text]).env("PYTHONDONTWRITEBYTECODE", "1");
        let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let ended = timeout(DEADLINE, running).await.expect("the library never ended").unwrap();
        let (told, trouble) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        let answer = serde_json::from_str(told.lines().last().unwrap_or_default());
        Some(answer.unwrap_or_else(|error| panic!("{} {way}: {error}\n{told}\n{trouble}", self.script)))
    }
}

/// A Kairo with an agent whose model is asked once where its endpoint is away.
async fn world() -> World {
    let world =
        Wanted::new(SCENARIO).env(Service::AgentRuntime, "KAIRO_AGENT_RUNTIME__OUTAGE_TRIES", "1").start().await;
    world.define(AGENT).await;
    world
}

/// Runs the same in every library that is installed, each with a text of its own, and returns the results.
async fn in_every_library(world: &World, way: &str, model: &str, text: &str) -> Vec<(&'static Library, Value)> {
    let of = |library: &'static Library| {
        let text = format!("{text} ({})", library.script);
        async move { library.use_it(world, way, model, &text).await.map(|answer| (library, answer)) }
    };
    join_all(LIBRARIES.iter().map(of)).await.into_iter().flatten().collect()
}

#[tokio::test]
async fn an_answer_comes_whole() {
    let world = world().await;
    for (library, answer) in in_every_library(&world, "chat", AGENT, "hello").await {
        let text = format!("You said these words: hello ({})", library.script);
        assert_eq!(answer, json!({ "text": text, "finish": "stop" }), "{}", library.script);
    }
    world.end().await;
}

#[tokio::test]
async fn an_answer_comes_in_a_stream() {
    let world = world().await;
    for (library, answer) in in_every_library(&world, "stream", AGENT, "hello").await {
        let text = format!("You said these words: hello ({})", library.script);
        assert_eq!(
            (&answer["text"], &answer["finish"]),
            (&json!(text), &json!("stop")),
            "{}: {answer}",
            library.script
        );
        assert!(answer["pieces"].as_u64().unwrap() > 1, "{}: {answer}", library.script);
    }
    world.end().await;
}

#[tokio::test]
async fn a_tool_of_the_client_is_called_and_its_result_used() {
    let world = world().await;
    for (library, answer) in in_every_library(&world, "tools", AGENT, "the weather please").await {
        let wanted = json!({ "called": "weather", "finish": library.finish_of_calls, "text": "It is sunny in Rome." });
        assert_eq!(answer, wanted, "{}", library.script);
    }
    world.end().await;
}

#[tokio::test]
async fn an_answer_has_the_schema_that_is_wanted() {
    let world = world().await;
    for (library, answer) in in_every_library(&world, "structured", AGENT, "in the form please").await {
        assert_eq!(answer, json!({ "object": { "city": "Rome", "degrees": 21 } }), "{}", library.script);
    }
    world.end().await;
}

/// Turns that fail: the agent, the message, and the status of the answer when it is not streamed.
const FAILURES: [(&str, &str, u16); 3] = [(AGENT, "be busy", 429), (AGENT, "be away", 503), ("nobody", "hello", 404)];

#[tokio::test]
async fn a_failure_is_an_exception_that_says_which() {
    let world = world().await;
    for (model, text, status) in FAILURES {
        for (library, answer) in in_every_library(&world, "error", model, text).await {
            assert_eq!(answer["status"], status, "{} {text}: {answer}", library.script);
            let named = [429, 503].iter().zip(library.exceptions).find(|(of, _)| **of == status);
            if let Some((_, name)) = named {
                assert_eq!(answer["error"], name, "{} {text}: {answer}", library.script);
            }
            assert!(!answer["message"].as_str().unwrap().is_empty(), "{} {text}: {answer}", library.script);
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_failure_in_a_stream_is_an_exception_and_no_answer() {
    let world = world().await;
    for (library, answer) in in_every_library(&world, "stream-error", AGENT, "be away").await {
        assert!(answer["error"].is_string(), "{}: {answer}", library.script);
        assert!(!answer["message"].as_str().unwrap_or_default().is_empty(), "{}: {answer}", library.script);
    }
    world.end().await;
}
