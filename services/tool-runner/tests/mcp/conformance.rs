//! The client scenarios of the protocol's conformance suite, against the client that calls go through.
//!
//! The suite starts a server for each scenario and runs a command with its address: this very program, as [`client`].

use std::process::Command;

use kairo_core::config::Secret;
use kairo_tool_runner::config::{McpServerConfig, OAuthConfig, OAuthGrant};
use kairo_tool_runner::mcp::{PeopleAccess, oauth::SignIn};
use kairo_tool_runner::questions::{Questions, UserAnswer};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolError, ToolSpec};
use kairo_tool_runner::toolbox::Toolbox;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::support::{config, context, within_deadline};

const REDIRECT_URI: &str = "http://127.0.0.1:3000/callback";
/// The URL that the suite accepts as a client's metadata document.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";
/// The most sign-ins for one call.
const MAX_LOGINS: usize = 3;
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
const ECHO: &str = "s.json_schema_echo";
/// The longest wait of the client for its server after signing in.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);
/// The interval at which the client checks that its server is there.
const POLL: std::time::Duration = std::time::Duration::from_millis(20);
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";

/// The context that the suite passes besides the scenario.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    client_id: Option<String>,
    client_secret: Option<String>,
    #[serde(rename = "toolCalls")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Revisions whose scenarios are run: those that each requires, and those that are not scored.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Optional scenarios that are expected to fail: ways to sign in that Kairo does not offer.
const UNMET: [&str; 5] = [
    "auth/client-credentials-jwt",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
];

#[test]
fn the_scenarios_of_each_revision_pass() {
    let Ok(suite) = std::env::var("KAIRO_MCP_CONFORMANCE") else {
        eprintln!("skipped: KAIRO_MCP_CONFORMANCE is not set, as there is no Node here");
        return;
    };
    let own = std::env::current_exe().unwrap();
    let command = format!("{} conformance::client --exact --ignored --nocapture", own.display());
    for revision in REVISIONS {
        let results = tempfile::tempdir().unwrap();
        let mut run = Command::new(&suite);
        run.args(["client", "--command", &command, "--requirements", revision, "-o"]).arg(results.path());
        let output = run.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let of = |mark: &str| -> Vec<&str> {
            let lines = said.lines().filter_map(|line| line.strip_prefix(mark)?.split_once(": ")?.0.strip_prefix(' '));
            lines.collect()
        };
        let passed = of("✓");
        let failed = of("✗");
        assert!(passed.len() >= 18, "{said}");
        let unexpected: Vec<_> = failed.iter().filter(|scenario| !UNMET.contains(scenario)).collect();
        assert!(unexpected.is_empty(), "{revision}: {unexpected:?}\n{said}");
    }
}

/// Follows a scenario: reaches the server, signs in where it has to, and calls the tools there are.
#[tokio::test]
#[ignore = "it is the client that the suite runs"]
async fn client() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let url = std::env::args().next_back().unwrap();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Context = serde_json::from_str(&context).unwrap_or_default();
    let server = McpServerConfig {
        name: "s".to_owned(),
        url: Some(url),
        oauth: scenario.starts_with("auth/").then(|| oauth(&scenario, &context)),
        ..McpServerConfig::default()
    };
    let questions = Questions::new(DEADLINE, || (uuid::Uuid::now_v7(), jiff::Timestamp::now()));
    let people = PeopleAccess { questions: Some(questions.clone()), ..PeopleAccess::default() };
    let toolbox = within_deadline(Toolbox::start_with(&config(vec![server]), Vec::new(), people)).await.unwrap();
    let sign_in = toolbox.sign_ins().find_map(|(_, sign_ins)| sign_ins?.for_user(None).ok());
    let is_offered = || toolbox.catalogue().specs().any(|spec| spec.name.starts_with("s."));
    // The server may want somebody again at once, as when it has another authorization server by then.
    for _ in 0..MAX_LOGINS {
        let Some(sign_in) = sign_in.as_ref().filter(|sign_in| sign_in.is_needed()) else { break };
        match log_in(sign_in).await {
            Ok(scopes) => eprintln!("signed in with {scopes:?}"),
            Err(why) => {
                eprintln!("not signed in: {why}");
                return;
            }
        }
        sign_in.is_done().await;
        let is_settled = async {
            while !is_offered() && !sign_in.is_needed() {
                tokio::time::sleep(POLL).await;
            }
        };
        // One that forbids all is never there, and the suite waits for this client.
        if tokio::time::timeout(PATIENCE, is_settled).await.is_err() {
            return;
        }
    }
    for (tool, args) in calls(&toolbox, &context) {
        let outcome = call_signing_in(&toolbox, &questions, sign_in.as_deref(), &tool, args).await;
        eprintln!("{tool}: {outcome:?}");
    }
    within_deadline(toolbox.stop()).await;
}

fn oauth(scenario: &str, context: &Context) -> OAuthConfig {
    let grant = match scenario.contains("client-credentials") {
        true => OAuthGrant::ClientCredentials,
        false => OAuthGrant::AuthorizationCode,
    };
    OAuthConfig {
        grant,
        client_id: context.client_id.clone(),
        client_secret: context.client_secret.clone().map(Secret::new).unwrap_or_default(),
        client_metadata_url: Some(CLIENT_METADATA_URL.to_owned()),
        ..OAuthConfig::default()
    }
}

/// The calls that the suite wants, else one of each tool.
fn calls(toolbox: &Toolbox, context: &Context) -> Vec<(String, Value)> {
    // What is null is what a model leaves out.
    let given = |call: &ToolCall| call.arguments.clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
    let wanted = |call: &ToolCall| (format!("s.{}", call.name), Value::Object(given(call)));
    if !context.tool_calls.is_empty() {
        return context.tool_calls.iter().map(wanted).collect();
    }
    let catalogue = toolbox.catalogue();
    let own: Vec<_> = catalogue.specs().filter(|spec| spec.name.starts_with("s.")).collect();
    let other = |name: &str| own.iter().find(|spec| spec.name != name).map(|spec| spec.schema.clone());
    let arguments = |spec: &ToolSpec| match spec.name.as_str() {
        // It wants to see what became of the schema of the other tool.
        ECHO => json!({ "schema": other(ECHO) }),
        _ => arguments(&spec.schema),
    };
    own.iter().map(|spec| (spec.name.clone(), arguments(spec))).collect()
}

/// Arguments that a schema takes.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let argument = |name: &str| {
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            _ => json!("test"),
        };
        (name.to_owned(), value)
    };
    Value::Object(required.map(argument).collect())
}

async fn call_signing_in(
    toolbox: &Toolbox,
    questions: &Questions,
    sign_in: Option<&SignIn>,
    tool: &str,
    args: Value,
) -> Result<Value, ToolError> {
    let mut outcome = call_answering(toolbox, questions, tool, args.clone()).await;
    for _ in 0..MAX_LOGINS {
        let wants = |error: &ToolError| error.message.contains("kairo mcp login");
        let Some(sign_in) = sign_in.filter(|_| outcome.as_ref().is_err_and(wants)) else { break };
        if let Err(why) = log_in(sign_in).await {
            eprintln!("not signed in: {why}");
            break;
        }
        outcome = call_answering(toolbox, questions, tool, args.clone()).await;
    }
    outcome
}

/// Calls as a user who accepts every question, with its defaults.
async fn call_answering(toolbox: &Toolbox, questions: &Questions, tool: &str, args: Value) -> Result<Value, ToolError> {
    let (reporter, mut progress) = ProgressReporter::channel();
    let context = CallContext { user: Some("ann".to_owned()), progress: reporter, ..context() };
    let answering = async {
        while progress.changed().await.is_ok() {
            for question in questions.open_for_user("ann") {
                questions.accept_answer(question.id, "ann", UserAnswer::Accept(json!({}))).unwrap();
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        outcome = within_deadline(toolbox.call(tool, args, context)) => outcome,
        never = answering => never,
    }
}

/// Signs in as a person with a browser does.
async fn log_in(sign_in: &SignIn) -> Result<Vec<String>, String> {
    let address = sign_in.begin(REDIRECT_URI).await?;
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = browser.get(address).send().await.map_err(|error| error.to_string())?;
    let back = answer.headers().get("location").and_then(|value| value.to_str().ok());
    sign_in.finish(back.ok_or("the authorization server did not send the browser back")?).await
}
