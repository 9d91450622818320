//! Watching an agent from outside with `kairo watch`, `kairo actions` and `kairo processes`, and canceling its actions.

use std::process::{Output, Stdio};

use kairo_core::event_json::EventJson;
use kairo_local::{Service, StackOptions, free_port};
use kairo_proto::v1;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::world::{DEADLINE, Sent, Wanted, World, scenario::USUAL};

const AGENT: &str = "default";

/// Says how far it is, then waits for a file.
const SCRIPT: &str = "echo begun; echo careful >&2; echo '::progress 1/2 half of it'; \
                      while [ ! -e finish ]; do sleep 0.05; done; echo over";

/// "build" runs the script and waits for it; what a human found out is noted.
fn scenario() -> String {
    let call = json!({ "tool": "process.run", "arguments": { "program": "sh", "args": ["-c", SCRIPT] } });
    json!({ "rules": [
        { "name": "settled", "when": { "system_contains": "found out about the action" }, "reply": "noted" },
        { "name": "build", "when": { "user_contains": "build" },
          "turn": [{ "reasoning": "A shell is needed.", "tool_calls": [call] }, "{{ last_result_text }}"] },
    ] })
    .to_string()
}

fn kairo(world: &World, arguments: &[&str]) -> Command {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let mut command = Command::new(program);
    command.arg("--url").arg(world.url("")).args(arguments).kill_on_drop(true);
    command
}

async fn run(world: &World, arguments: &[&str]) -> Output {
    timeout(DEADLINE, kairo(world, arguments).output()).await.expect("kairo does not return").unwrap()
}

/// Runs a command that shows something and returns its JSON.
async fn shown(world: &World, arguments: &[&str]) -> Value {
    let output = run(world, &[arguments, &["--json"]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The present picture. How much of the output of what still runs has been told is a matter of chance.
async fn picture(world: &World) -> Value {
    world.projected().await;
    let mut picture = shown(world, &["watch", "--agent", AGENT, "--once"]).await;
    for process in picture["processes"].as_array_mut().unwrap() {
        process["output"] = Value::Null;
    }
    picture
}

/// `kairo watch --plain`, while it runs.
struct Watching {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Watching {
    fn start(world: &World) -> Self {
        let mut child = kairo(world, &["watch", "--agent", AGENT, "--plain"]).stdout(Stdio::piped()).spawn().unwrap();
        Self { lines: BufReader::new(child.stdout.take().unwrap()).lines(), _child: child }
    }

    /// Waits for a line that ends so.
    async fn see(&mut self, end: &str) -> String {
        let mut seen = Vec::new();
        let wait = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.ends_with(end) {
                    return line;
                }
                seen.push(line);
            }
            panic!("kairo watch ended without {end:?}");
        };
        match timeout(DEADLINE, wait).await {
            Ok(line) => line,
            Err(_) => panic!("{end:?} was never shown, but\n{}", seen.join("\n")),
        }
    }
}

async fn start(wanted: Wanted) -> World {
    // The gateway comes back where it was, as it does outside of tests.
    let port = free_port(None).unwrap();
    let world = wanted.env(Service::Gateway, "KAIRO_GATEWAY__LISTEN", format!("127.0.0.1:{port}")).start().await;
    world.define(AGENT).await;
    world
}

/// Sends "build" and waits until the script has said how far it is.
async fn build(world: &World) -> Sent {
    let sent = world.send(AGENT, "build it").await;
    world.log.wait(|event| is(event, &sent, v1::ProcessProgress::TYPE)).await;
    world.projected().await;
    sent
}

fn is(event: &EventJson, sent: &Sent, type_name: &str) -> bool {
    event.correlation_id == sent.event_id && event.type_name == type_name
}

#[tokio::test]
async fn the_picture_of_a_running_process_is_the_same_after_the_gateway_was_killed() {
    let mut world = start(Wanted::new(&scenario())).await;
    let sent = build(&world).await;
    let mut watching = Watching::start(&world);
    watching.see("| begun").await;
    watching.see("! careful").await;

    let before = picture(&world).await;
    let running = &before["processes"][0];
    assert_eq!((&running["program"], &running["fraction"]), (&json!("/bin/sh"), &json!(0.5)), "{before}");
    assert_eq!(running["message"], "half of it");
    assert_eq!(before["actions"][0]["process_id"], running["process_id"]);
    assert_eq!(before["conversation"][0]["text"], "build it");
    let kinds: Vec<_> = before["decisions"].as_array().unwrap().iter().map(|decided| &decided["kind"]).collect();
    assert_eq!(kinds, ["thread", "thought", "called"]);

    world.stack.kill9(Service::Gateway, 0).await.unwrap();
    world.stack.restart(Service::Gateway, 0).await.unwrap();
    assert_eq!(picture(&world).await, before);

    let actions = shown(&world, &["actions", "--agent", AGENT]).await;
    assert_eq!(actions["actions"][0]["action_id"], before["actions"][0]["action_id"], "{actions}");
    assert_eq!((&actions["actions"][0]["fraction"], actions["actions"].as_array().unwrap().len()), (&json!(0.5), 1));
    let processes = shown(&world, &["processes"]).await;
    assert_eq!(processes["processes"][0]["process_id"], running["process_id"], "{processes}");
    let table = run(&world, &["actions"]).await;
    assert!(String::from_utf8_lossy(&table.stdout).contains("50% half of it"), "{table:?}");

    std::fs::write(world.workplace(AGENT).join("finish"), "").unwrap();
    world.reply(&sent).await;
    // Whoever watched all the time was told of it by the new gateway.
    watching.see("exited with code 0").await;
    let after = picture(&world).await;
    assert_eq!((&after["processes"], &after["actions"]), (&json!([]), &json!([])), "{after}");
    let ended = &after["ended"][0];
    assert_eq!((&ended["process_id"], &ended["ended"]["code"]), (&running["process_id"], &json!(0)));
    let output: Vec<_> = ended["output"].as_array().unwrap().iter().map(|line| &line["text"]).collect();
    assert_eq!(output, ["begun", "over", "careful"]);
    assert_eq!(shown(&world, &["processes"]).await["processes"], json!([]));
    assert_eq!(shown(&world, &["processes", "--all"]).await["processes"][0]["outcome"], "exited");
    world.end().await;
}

/// The beginning of the id of the one action that `kairo actions` lists.
async fn listed_action(world: &World) -> String {
    let actions = shown(world, &["actions"]).await;
    assert_eq!(actions["actions"].as_array().unwrap().len(), 1, "{actions}");
    actions["actions"][0]["action_id"].as_str().unwrap()[..8].to_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn actions_and_processes_are_canceled_by_the_beginning_of_their_id() {
    let world = start(Wanted::new(&scenario())).await;
    let sent = build(&world).await;
    let action = listed_action(&world).await;
    let unknown = run(&world, &["actions", "cancel", "ffffff"]).await;
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    assert!(errors(&unknown).contains("see kairo actions"), "{unknown:?}");
    let certain = run(&world, &["actions", "resolve", &action, "--happened"]).await;
    assert_eq!(certain.status.code(), Some(2), "{certain:?}");
    assert!(errors(&certain).contains("not_in_doubt"), "{certain:?}");

    let canceled = run(&world, &["actions", "cancel", &action]).await;
    assert_eq!(canceled.status.code(), Some(0), "{canceled:?}");
    let reply = world.reply(&sent).await;
    assert!(reply.contains("canceled"), "{reply}");

    let sent = build(&world).await;
    let processes = shown(&world, &["processes", "--agent", AGENT]).await;
    let process = &processes["processes"][0]["process_id"].as_str().unwrap()[..8];
    let canceled = run(&world, &["processes", "cancel", process]).await;
    assert_eq!(canceled.status.code(), Some(0), "{canceled:?}");
    let reply = world.reply(&sent).await;
    assert!(reply.contains("canceled"), "{reply}");
    let picture = picture(&world).await;
    assert_eq!(picture["ended"][1]["cancel_requested"], true, "{picture}");
    world.end().await;
}

#[tokio::test]
async fn an_action_in_doubt_is_resolved_and_the_agent_goes_on() {
    let mut world = start(Wanted::new(&scenario())).await;
    let sent = build(&world).await;
    world.stack.kill9(Service::ProcessSupervisor, 0).await.unwrap();
    world.stack.restart(Service::ProcessSupervisor, 0).await.unwrap();
    let reply = world.reply(&sent).await;
    assert!(reply.contains("in_doubt"), "{reply}");
    assert!(picture(&world).await["actions"][0]["in_doubt"].is_string());
    let table = run(&world, &["actions"]).await;
    let action = listed_action(&world).await;
    let advice = format!("kairo actions resolve {action} --happened|--did-not-happen");
    assert!(String::from_utf8_lossy(&table.stdout).contains(&advice), "{table:?}");

    let resolved = run(&world, &["actions", "resolve", &action, "--did-not-happen", "--note", "I looked"]).await;
    assert_eq!(resolved.status.code(), Some(0), "{resolved:?}");
    assert_eq!(String::from_utf8_lossy(&resolved.stdout), "noted\n");
    assert_eq!(picture(&world).await["actions"], json!([]));
    assert_eq!(shown(&world, &["actions"]).await["actions"], json!([]));
    let settled = shown(&world, &["actions", "--in-doubt"]).await;
    assert_eq!(settled["actions"][0]["verdict"], "did_not_happen", "{settled}");
    assert_eq!(
        (&settled["actions"][0]["resolved_by"], &settled["actions"][0]["resolution_note"]),
        (&json!("you"), &json!("I looked"))
    );
    assert_eq!(settled["actions"][0]["resolution_entered_by"], "unauthenticated:loopback");
    world.end().await;
}

#[tokio::test]
async fn who_waits_for_the_answer_to_a_message_that_joined_another_gets_the_answer_to_both() {
    let world = start(Wanted::new(USUAL)).await;
    let profile = json!({ "agent": "joins", "prompt": "Be brief.", "interjection": "join" });
    assert_eq!(world.post("/v1/agents", &profile).await.0, 201);
    world.stack.freeze(Service::AgentRuntime, 0).unwrap();
    let one = run(&world, &["send", "--agent", "joins", "--wait", "one"]);
    let other = run(&world, &["send", "--agent", "joins", "--wait", "other"]);
    let thaw = async {
        world.log.wait_for(2, |event| event.subject == "kairo.agent.joins.message").await;
        world.stack.thaw(Service::AgentRuntime, 0).unwrap();
    };
    let (one, other, ()) = tokio::join!(one, other, thaw);
    assert_eq!((one.status.code(), other.status.code()), (Some(0), Some(0)), "{one:?} {other:?}");
    assert!(String::from_utf8_lossy(&one.stdout).starts_with("You said: "), "{one:?}");
    assert_eq!(one.stdout, other.stdout);
    world.log.wait(|event| event.type_name == v1::AgentJoined::TYPE).await;
    world.end().await;
}
