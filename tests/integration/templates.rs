//! Requests rendered with the chat templates of real models: what a template refuses, its servers answer with 400 or 500.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use kairo_mind::{
    chat_completions::{self, EndpointFeatures, RequestSettings},
    intrinsics,
    request::{ModelRequest, PromptMessage, ToolCall, ToolChoice, check_conversation, short_call_id},
};
use kairo_proto::v1::{Completion, CompletionToolCall};
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};
use uuid::Uuid;

/// Templates by their names in the package, and behind `=` what they cannot do: `merged` have no system message and `one-call` take no
/// parallel calls, and are asked as `Takes` says; `no-tools` know neither tools nor calls as servers hand them over.
const TEMPLATES: [&str; 38] = [
    "NousResearch-Meta-Llama-3-8B-Instruct=no-tools",
    "meta-llama-Llama-3.1-8B-Instruct=one-call",
    "meta-llama-Llama-3.2-3B-Instruct=one-call",
    "ApolloRaines-Llama-3.3-8B-Instruct-128K-Jbliterated=one-call",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen-Qwen3-4B-Instruct-2507",
    "Qwen-Qwen3-4B-Thinking-2507",
    "Qwen-Qwen3-Coder-30B-A3B-Instruct",
    "Qwen-Qwen3.5-0.8B",
    "Qwen3.5-4B",
    "Qwen-Qwen3.6-35B-A3B",
    "mistralai-Mistral-7B-Instruct-v0.3",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "mistralai-Mistral-Small-24B-Instruct-2501=no-tools",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "mistralai-Ministral-3-3B-Instruct-2512",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "Neelectric-Ministral-8B-Instruct-2410_SFT_mathv00.01",
    "google-gemma-2-2b-it=merged,no-tools",
    "unsloth-gemma-3-270m-it=no-tools",
    "google-gemma-4-31B-it",
    "google-gemma-4-E4B-it",
    "openai-gpt-oss-120b",
    "unsloth-gpt-oss-20b",
    "deepseek-ai-DeepSeek-V3.1",
    "deepseek-ai-DeepSeek-V3.2",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B=no-tools",
    "swiss-ai-Apertus-8B-Instruct-2509=no-tools",
    "moonshotai-Kimi-K2-Instruct",
    "zai-org-GLM-4.5-Air",
    "Apertus-8B-Instruct",
    "NousResearch-Hermes-3-Llama-3.1-8B",
    "deepseek-ai-DeepSeek-V4",
    "mistralai-Mistral-Large-3-675B-Instruct-2512",
    "mistralai-Devstral-Small-2-24B-Instruct-2512",
    "ibm-granite-granite-4.0",
    "HuggingFaceTB-SmolLM3-3B",
];
/// Conversations that are made.
const CONVERSATIONS: u64 = 120;

#[derive(Debug, Deserialize)]
struct Refused {
    template: String,
    request: usize,
    error: String,
}

/// Numbers that follow from the first one.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn call(id: Uuid, number: u64) -> ToolCall {
    let arguments = json!({ "subject": format!("number {number}"), "nested": { "list": [1, null, "x"] } });
    ToolCall {
        id: short_call_id(id),
        tool: "memory.append".into(),
        arguments: arguments.to_string(),
        ..ToolCall::default()
    }
}

/// One thing that happens in a conversation.
fn happen(request: &mut ModelRequest, chance: &mut Chance) {
    let number = chance.below(1_000);
    let words = format!("words {number} of <kairo:context> nobody");
    match chance.below(9) {
        0..=2 => request.conversation().push_user(&words, &[]),
        3 => request.conversation().push_context(&format!("job {number} has ended")),
        4 => request.conversation().push_answer(&words),
        5 | 6 => {
            let at = request.messages.len();
            let ids = (0..=chance.below(3))
                .map(|n| Uuid::from_u128(u128::from(number) << 64 | at as u128 | u128::from(n) << 32));
            let calls: Vec<ToolCall> = ids.map(|id| call(id, number)).collect();
            let results = calls.iter().map(|call| json!({ "done": call.id }).to_string()).collect();
            let said = if number.is_multiple_of(2) { "I will look." } else { "" };
            request.conversation().push_calls(said, calls, (String::new(), String::new()), results);
        }
        7 => request.push_correction(
            &Completion { text: if number.is_multiple_of(2) { words } else { String::new() }, ..Default::default() },
            "not JSON",
        ),
        _ => {
            let arguments = if number.is_multiple_of(2) { "{}" } else { "{\"a\": b" };
            let call = CompletionToolCall { tool: "no.such".into(), arguments: arguments.into(), ..Default::default() };
            request
                .push_correction(&Completion { tool_calls: vec![call], ..Default::default() }, "there is no such tool");
        }
    }
}

fn conversation(seed: u64) -> ModelRequest {
    let mut chance = Chance(seed);
    let system = vec![PromptMessage::System { text: "Be brief.".into() }];
    let mut request = ModelRequest::from_messages("heavy", system);
    for _ in 0..chance.below(14) {
        happen(&mut request, &mut chance);
    }
    request.conversation().end_with_input();
    request.tools = intrinsics::all().map(|intrinsic| intrinsic.tool.clone()).take(12).collect();
    if chance.below(4) == 0 {
        request.tool_choice = ToolChoice::None;
    }
    if chance.below(3) == 0 {
        request.drop_older_half();
    }
    request
}

fn body(request: &ModelRequest, takes: EndpointFeatures) -> Value {
    let tools = to_raw_value(&chat_completions::wire_tools(&request.tools)).unwrap();
    let settings = RequestSettings { model: "m", stream: true, max_output_tokens: 0, takes };
    serde_json::to_value(chat_completions::build_body(request, &tools, &[], settings)).unwrap()
}

/// Returns the refusals of these requests by the chat templates.
fn refused(python: &OsStr, requests: &[ModelRequest]) -> Vec<Refused> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("templates/render.py");
    let mut command = Command::new(python);
    command.arg(script).args(TEMPLATES).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let usual = EndpointFeatures::default();
    let merged = EndpointFeatures { system_message: false, ..usual };
    let single = EndpointFeatures { parallel_calls: false, ..usual };
    let line = |request| {
        let forms =
            json!({ "body": body(request, usual), "merged": body(request, merged), "one-call": body(request, single) });
        forms.to_string() + "\n"
    };
    let lines: String = requests.iter().map(line).collect();
    let mut input = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_request_is_rendered_by_the_templates_of_real_models() {
    let Some(python) = std::env::var_os("KAIRO_TEMPLATES_PYTHON") else {
        println!("skipped: ./scripts/setup --tests has installed no templates");
        return;
    };
    let requests: Vec<ModelRequest> = (0..CONVERSATIONS).map(conversation).collect();
    for request in &requests {
        assert_eq!(check_conversation(&request.messages), Ok(()), "{:#?}", request.messages);
    }
    let mut told: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for Refused { template, request, error } in refused(&python, &requests) {
        told.entry(format!("{template}: {error}")).or_default().push(request);
    }
    let first = told.values().flatten().next();
    let first = first.map(|at| body(&requests[*at], EndpointFeatures::default())["messages"].to_string());
    assert!(told.is_empty(), "{told:#?}\n{first:?}");
}
