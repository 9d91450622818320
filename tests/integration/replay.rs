//! `kairo replay`: every decision of an agent made again from the log, and what it says of a log that was tampered with.

pub mod fork;
mod lanes;
mod live;
mod objects;
mod offline;
mod over_http;
mod pages;
mod redacted;
mod revision;
mod running;

use std::path::Path;

use kairo_core::vocabulary::{READER, READER_HEADER};
use kairo_local::Service;
use kairo_proto::{
    Body, ContentType,
    v1::{AgentDecision, DecidedEvent, LogMessage, agent_action::Action, decided_event::Event},
};
use kairo_replay::incident::Manifest;
use serde_json::{Value, json};

use crate::{
    command_line::{kairo, lines},
    world::{Wanted, World, scenario::USUAL},
};

const AGENT: &str = "default";

async fn replay(world: &World, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = kairo(world, &[&["replay"], arguments].concat()).await;
    (output.status.code(), lines(&output).into_iter().map(str::to_owned).collect())
}

/// Changes the decisions of a log that was kept in a file, writes it down beside it and says where.
fn tampered(path: &Path, name: &str, change: impl Fn(&mut AgentDecision)) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| {
        let mut message: LogMessage = serde_json::from_str(line).unwrap();
        if message.subject.ends_with(".decision") {
            let body = Body::decode(&message.headers["ce-type"], ContentType::Protobuf, &message.data).unwrap();
            let Body::AgentDecision(mut decision) = body else { panic!("{line}") };
            change(&mut decision);
            message.data = Body::from(decision).encode();
        }
        serde_json::to_string(&message).unwrap() + "\n"
    });
    let changed = path.with_file_name(name);
    std::fs::write(&changed, lines.collect::<String>()).unwrap();
    changed.to_str().unwrap().to_owned()
}

/// Returns the text that a decision says to the user.
fn words(decision: &mut AgentDecision) -> Option<&mut String> {
    decision.events.iter_mut().find_map(|event| {
        let Some(Event::Action(action)) = &mut event.event else { return None };
        match action.action.as_mut()? {
            Action::Say(say) => Some(&mut say.text),
            Action::ToolCall(_) | Action::Ask(_) => None,
        }
    })
}

/// The third decision is one of a newer build, in each of the ways there are.
async fn stops_at_what_is_newer(world: &World, file: &Path) {
    let newer = |name: &str, change: &dyn Fn(&mut LogMessage, &mut AgentDecision)| {
        let text = std::fs::read_to_string(file).unwrap();
        let mut messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let message = messages.iter_mut().filter(|message| message.subject.ends_with(".decision")).nth(2).unwrap();
        let sequence = message.sequence;
        let body = Body::decode(AgentDecision::TYPE, ContentType::Protobuf, &message.data).unwrap();
        let Body::AgentDecision(mut decision) = body else { panic!("{message:?}") };
        change(message, &mut decision);
        message.data = Body::from(decision).encode();
        let changed = file.with_file_name(name);
        let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
        std::fs::write(&changed, lines.collect::<String>()).unwrap();
        (changed.to_str().unwrap().to_owned(), sequence)
    };
    let (next, unknown) = (READER + 1, AgentDecision::TYPE.replace("v1", "v9"));
    type Change = fn(&mut LogMessage, &mut AgentDecision);
    let changes: [(&str, u32, &str, Change); 4] = [
        ("asking.log", next + 4, AgentDecision::TYPE, |_, decision| decision.reader = READER + 5),
        ("header.log", next + 1, AgentDecision::TYPE, |message, _| {
            message.headers.insert(READER_HEADER.to_owned(), (READER + 2).to_string());
        }),
        ("event.log", next, AgentDecision::TYPE, |_, decision| decision.events.push(DecidedEvent::default())),
        ("type.log", next, &unknown, |message, _| {
            message.headers.insert("ce-type".to_owned(), AgentDecision::TYPE.replace("v1", "v9"));
        }),
    ];
    for (name, reader, type_name, change) in changes {
        let (path, sequence) = newer(name, &change);
        let (code, said) = replay(world, &[&path]).await;
        assert_eq!((code, &said[..2]), (Some(2), &["2 decisions made again", "  2 the same"].map(str::to_owned)[..]));
        let [.., stop] = &said[..] else { panic!("{said:?}") };
        assert!(stop.starts_with(&format!("stopped at message {sequence} ({type_name}): ")), "{stop}");
        assert!(stop.contains(&format!("It takes a reader of version {reader}, ")), "{stop}");
        let output = kairo(world, &["replay", &path, "--json"]).await;
        assert_eq!(output.status.code(), Some(2), "{name}");
        let text = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let (stopped, counts) = (&last["stopped"], &last["counts"]);
        assert_eq!((&stopped["sequence"], &stopped["type"]), (&json!(sequence), &json!(type_name)), "{last}");
        assert_eq!((&stopped["reader"], &stopped["reads"]), (&json!(reader), &json!(READER)), "{last}");
        assert_eq!(counts["same"], 2, "{last}");
    }
}

/// `kairo state` of a file: the state at any place, differences, the first place of something, and what models were asked.
async fn states_are_shown(world: &World, file: &Path) {
    let path = file.to_str().unwrap();
    let state = async |arguments: &[&str]| {
        let output = kairo(world, &[&["state", AGENT, "--json"], arguments].concat()).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code(), said, String::from_utf8(output.stderr).unwrap())
    };
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |verb: &str| -> Vec<String> {
        messages.iter().filter(|it| it.subject.ends_with(verb)).map(|it| it.sequence.to_string()).collect()
    };
    let decisions = of(".decision");
    let (first, calls, answers) = (&decisions[0], &decisions[1], &decisions[2]);

    // Behind a decision the input is dealt with, and before it waits.
    let heard = of(".message").remove(1);
    let (code, said, _) = state(&["--file", path, "--at", &heard]).await;
    assert_eq!((code, &said[0]["ahead"]), (Some(0), &json!([heard.parse::<u64>().unwrap()])));
    let (_, said, _) = state(&["--file", path, "--at", calls]).await;
    assert_eq!((&said[0]["ahead"], &said[0]["decided"]), (&json!([]), &json!(calls.parse::<u64>().unwrap())));
    assert_eq!(said[0]["in_flight"].as_object().unwrap().len(), 1, "{}", said[0]);
    let from_gateway = state(&["--at", calls]).await;
    assert_eq!(from_gateway.1, said, "the gateway has the same log");

    let (_, differing, _) = state(&["--file", path, "--at", calls, "--diff", answers]).await;
    let differing = differing[0]["differences"].as_array().unwrap();
    let gone = differing.iter().find(|it| it["path"].as_str().unwrap().starts_with("in_flight.")).unwrap();
    assert!(gone["before"].is_object() && gone["after"].is_null(), "{gone}");

    let (code, found, _) = state(&["--file", path, "--first", "size(in_flight) > 0"]).await;
    assert_eq!((code, &found[0]["at"]), (Some(0), &json!(calls.parse::<u64>().unwrap())));
    let (code, found, _) = state(&["--file", path, "--first", "nothing_such == 1"]).await;
    assert!(code == Some(1) && found[0]["reason"].as_str().unwrap().contains("nothing_such"), "{found:?}");
    let (code, _, problem) = state(&["--file", path, "--first", "cursor =="]).await;
    assert!(code == Some(1) && problem.contains("--first: expected an expression in CEL"), "{problem}");

    let (code, asked, _) = state(&["--file", path, "--at", calls, "--request"]).await;
    assert_eq!((code, asked.len()), (Some(0), 1), "{asked:?}");
    assert!(asked[0]["request"]["messages"].to_string().contains("time please") && asked[0]["differs"].is_null());
    assert_eq!(asked[0]["answer"]["tool_calls"][0]["tool"], "tools.now");
    let sent: Vec<Value> = world.model_requests().await.into_iter().map(|request| request["body"].clone()).collect();
    let same = |sent: &&Value| ["messages", "tools"].iter().all(|part| sent[*part] == asked[0]["body"][*part]);
    assert_eq!(sent.iter().filter(same).count(), 1, "the model server was sent that: {} {sent:?}", asked[0]["body"]);
    let (_, commands, _) = state(&["--file", path, "--at", calls, "--request", "--curl"]).await;
    assert!(
        commands[0]["command"].as_str().unwrap().starts_with("curl \"$MODEL_URL/chat/completions\""),
        "{commands:?}"
    );
    let (code, none, _) = state(&["--file", path, "--at", &heard, "--request"]).await;
    assert!(code == Some(1) && none[0]["reason"].as_str().unwrap().contains("is no decision"), "{none:?}");

    // What a log lacks, or has in another order, is named with its place.
    let changed = |name: &str, messages: Vec<&LogMessage>| {
        let changed = file.with_file_name(name);
        let lines = messages.into_iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
        std::fs::write(&changed, lines.collect::<String>()).unwrap();
        changed.to_str().unwrap().to_owned()
    };
    let hole = changed("hole.log", messages.iter().filter(|it| it.sequence.to_string() != heard).collect());
    let (code, _, problem) = state(&["--file", &hole]).await;
    assert!(
        code == Some(1) && problem.contains(&format!("message {calls}: the decision does not follow")),
        "{problem}"
    );
    let (two, rest) = messages.split_at(2);
    let swapped = changed("swapped.log", two.iter().rev().chain(rest).collect());
    let (code, _, problem) = state(&["--file", &swapped]).await;
    assert!(code == Some(1) && problem.contains("in the order of the log"), "{problem}");
    let (code, _, _) = state(&["--file", path, "--at", "0", "--diff", first]).await;
    assert_eq!(code, Some(0), "before everything there is nothing, which differs from something");
}

/// `kairo replay` of a file, within a range and with changes, and the report of it.
async fn changes_are_tried(world: &World, file: &Path) {
    let path = file.to_str().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions = messages.iter().filter(|it| it.subject.ends_with(".decision")).map(|it| it.sequence.to_string());
    let decisions: Vec<String> = decisions.collect();
    let (second, third) = (&decisions[1], &decisions[2]);
    let (code, said) = replay(world, &[path, "--agent", AGENT, "--from", second, "--to", third]).await;
    assert_eq!((code, &said[..]), (Some(0), &["2 decisions made again", "  2 the same"].map(str::to_owned)[..]));
    assert_eq!(replay(world, &[path, "--from", third, "--to", second]).await.0, Some(64));
    assert_eq!(replay(world, &[path, "--agent", "nobody"]).await.0, Some(1), "of nobody nothing is the same");

    let beside = |name: &str| file.with_file_name(name).to_str().unwrap().to_owned();
    let (prompt, kept) = (beside("prompt.md"), beside("report.json"));
    std::fs::write(&prompt, "You answer in verse.\n").unwrap();
    let (code, said) = replay(world, &[path, "--prompt", &prompt, "--to", second, "--report", &kept]).await;
    assert_eq!(code, Some(1));
    assert!(
        said[0].ends_with("drifted; the recorded answers lead to the same (another request: 1 (system))"),
        "{said:?}"
    );
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!((&report["report"], &report["changed"]), (&json!("kairo.replay.v1"), &json!(["prompt"])));
    assert_eq!((&report["counts"]["drifted"], &report["counts"]["same"]), (&json!(2), &json!(0)));
    assert_eq!(report["decisions"][1]["drifted"], json!([{ "request": 1, "parts": ["system"] }]));
    assert_eq!(report["decisions"][1]["sequence"].to_string(), *second);

    let page = beside("report.html");
    assert_eq!(replay(world, &[path, "--prompt", &prompt, "--html", &page]).await.0, Some(1));
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("default-src 'none'") && page.contains(&format!("id=\"{AGENT}-{third}\"")), "{page}");

    // Reports side by side, and this build beside itself.
    let (whole, part) = (beside("whole.json"), beside("part.json"));
    replay(world, &[path, "--report", &whole]).await;
    replay(world, &[path, "--to", second, "--report", &part]).await;
    let diff = async |one: &str, other: &str| {
        let output = kairo(world, &["diff", one, other, "--json"]).await;
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    };
    assert_eq!(diff(&whole, &whole).await.0, Some(0));
    let (code, changes) = diff(&kept, &whole).await;
    let first = &changes["decisions"][0];
    assert_eq!((code, &changes["report"]), (Some(1), &json!("kairo.diff.v1")));
    assert_eq!((&first["change"], &first["before"]["outcome"]), (&json!("outcome"), &json!("drifted")));
    let (_, changes) = diff(&part, &whole).await;
    assert_eq!((&changes["unchanged"], &changes["decisions"][0]["change"]), (&json!(2), &json!("appeared")));
    assert_eq!(diff(&whole, path).await.0, Some(64), "a log is no report");
    let this = kairo_local::StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let this = this.to_str().unwrap();
    let (code, said) = replay(world, &[path, "--with", this, "--to", third]).await;
    assert_eq!((code, said.last().unwrap().as_str()), (Some(0), "0 decisions come out otherwise, 3 do not"));
    let (code, _) = replay(world, &[path, "--with", "/bin/true"]).await;
    assert_eq!(code, Some(64), "what writes no report is no build of kairo");

    std::fs::write(&prompt, "[{\"nmae\": \"tools.now\"}]").unwrap();
    assert_eq!(replay(world, &[path, "--catalogue", &prompt]).await.0, Some(64));
}

/// `kairo whatif` of a file: a message that is not there, one that says something else, and what is no change.
async fn changes_to_the_log_reach_what_rests_on_it(world: &World, file: &Path) {
    let path = file.to_str().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |verb: &str| messages.iter().filter(|it| it.subject.ends_with(verb)).collect::<Vec<_>>();
    let (heard, result) = (of(".message")[1].sequence, of(".result")[0].sequence);
    let whatif = async |arguments: &[&str]| {
        let output = kairo(world, &[&["whatif", path, "--json"], arguments].concat()).await;
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), said, String::from_utf8(output.stderr).unwrap())
    };
    let (code, cone, _) = whatif(&["--drop", &heard.to_string()]).await;
    assert_eq!(
        (code, &cone["report"], &cone["reached"][0]["fate"]),
        (Some(1), &json!("kairo.whatif.v1"), &json!("dropped"))
    );
    assert_eq!((&cone["counts"]["decisions"], &cone["counts"]["vanished"]), (&json!(6), &json!(2)), "{cone}");
    let fate = |at: u64| {
        let reached = cone["reached"].as_array().unwrap();
        reached.iter().find(|it| it["sequence"] == at).map(|it| it["fate"].clone())
    };
    assert_eq!(fate(result), Some(json!("vanished")), "what comes of a call that was not made: {cone}");

    let changed = file.with_file_name("body.json");
    let body =
        Body::decode(&of(".result")[0].headers["ce-type"], ContentType::Protobuf, &of(".result")[0].data).unwrap();
    let mut body = body.to_json();
    body["result"] = json!("another time");
    std::fs::write(&changed, body.to_string()).unwrap();
    let edit = format!("{result}={}", changed.display());
    let (code, cone, _) = whatif(&["--edit", &edit]).await;
    let reached = &cone["reached"][1];
    assert_eq!((code, &reached["fate"], &reached["because"]), (Some(1), &json!("unknown"), &json!(result)), "{cone}");
    assert_eq!(reached["drifted"][0]["parts"], json!(["history"]));
    std::fs::write(&changed, "{\"reslut\": \"x\"}").unwrap();
    let (code, _, problem) = whatif(&["--edit", &edit]).await;
    assert!(code == Some(64) && problem.contains("reslut"), "{problem}");
    let decision = of(".decision")[0].sequence.to_string();
    let (code, _, problem) = whatif(&["--drop", &decision]).await;
    assert!(code == Some(64) && problem.contains("is a decision"), "{problem}");
    let output = kairo(world, &["whatif", path, "--drop", &heard.to_string()]).await;
    assert!(lines(&output)[1].starts_with("  decision "), "{output:?}");
}

/// The status is 2 where the state alone is another, 3 where something cannot be made again, and 64 where a file cannot be used.
async fn incidents_end_with_what_came_of_them(
    incident: &Path,
    accepted: &Path,
    messages: &[LogMessage],
    run: impl AsyncFn(&[&str]) -> (Option<i32>, String),
) {
    let (path, accept) = (incident.to_str().unwrap(), accepted.to_str().unwrap());
    let (code, said) = run(&["incident", "test", path]).await;
    assert!(code == Some(0) && said.contains("7 the same"), "{said}");

    // As if a build whose states are others had exported it.
    let text = std::fs::read_to_string(incident).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let manifest = Manifest::parse(first.as_bytes()).unwrap();
    let other = Manifest { state: "of another build".to_owned(), ..manifest };
    let differs = incident.with_file_name("state.kairo");
    let differs = (differs.to_str().unwrap(), std::fs::write(&differs, other.to_line() + rest).unwrap()).0;
    for command in ["run", "test"] {
        let (code, said) = run(&["incident", command, path, differs]).await;
        assert!(code == Some(2) && said.contains("the state at the end is another"), "{said}");
    }
    std::fs::write(accepted, "state: a field was added").unwrap();
    let (code, said) = run(&["incident", "test", differs, "--accept", accept]).await;
    assert_eq!(code, Some(0), "{said}");

    // Without the catalogue that decisions name, they cannot be made again.
    let (log, blind) = (incident.with_file_name("blind.log"), incident.with_file_name("blind.kairo"));
    let blind_messages = messages.iter().filter(|message| !message.subject.ends_with(".catalogue"));
    let lines = blind_messages.map(|message| serde_json::to_string(message).unwrap() + "\n");
    std::fs::write(&log, lines.collect::<String>()).unwrap();
    let (log, blind) = (log.to_str().unwrap(), blind.to_str().unwrap());
    let export = ["incident", "export", "--agent", AGENT, "--file", log, "-o", blind];
    let (code, said) = run(&export).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["incident", "test", differs, blind]).await;
    assert!(code == Some(3) && said.contains("not replayable"), "the worst counts: {said}");

    for wrong in [
        &["/nowhere.kairo"][..],
        &[path, "--junit", "/nowhere/junit.xml"],
        &[path, "--accept", "/nowhere.yaml"],
        &[path, "--prompt", "/nowhere.md"],
        &[path, "--colour", "red"],
    ] {
        let (code, said) = run(&[&["incident", "test"], wrong].concat()).await;
        assert_eq!(code, Some(64), "{wrong:?}: {said}");
    }
}

/// `kairo incident`: one file that every command opens, that builds are held to, and that is refused when it is not as exported.
async fn incidents_are_kept_and_tested(world: &World, file: &Path) {
    let (path, log) = (file.with_file_name("slot.kairo"), file.to_str().unwrap());
    let incident = path.to_str().unwrap();
    let run = async |arguments: &[&str]| {
        let output = kairo(world, arguments).await;
        let told = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8(told).unwrap())
    };
    let (code, said) = run(&["incident", "export", "--agent", AGENT, "-o", incident]).await;
    assert!(code == Some(0) && said.contains("in the clear"), "{said}");
    let whole = std::fs::read(&path).unwrap();
    let (code, said) = run(&["incident", "run", incident]).await;
    assert!(code == Some(0) && said.contains("7 decisions made again\n  7 the same"), "{said}");
    assert_eq!(run(&["replay", incident]).await, run(&["replay", log]).await);
    assert_eq!(run(&["state", AGENT, "--file", incident]).await, run(&["state", AGENT, "--file", log]).await);
    assert_eq!(run(&["whatif", incident, "--drop", "99999"]).await.0, Some(64));

    // As a test, of a changed prompt.
    let beside = |name: &str| file.with_file_name(name).to_str().unwrap().to_owned();
    let (prompt, accepted, junit) = (beside("verse.md"), beside("accepted.yaml"), beside("junit.xml"));
    std::fs::write(&prompt, "You answer in verse.").unwrap();
    let test = ["incident", "test", incident, "--prompt", &prompt];
    let (code, said) = run(&[&test[..], &["--junit", &junit]].concat()).await;
    assert!(code == Some(1) && said.contains("7 asked something else"), "{said}");
    assert!(std::fs::read_to_string(&junit).unwrap().contains("tests=\"8\" failures=\"7\""));
    let text = std::fs::read_to_string(file).unwrap();
    let messages: Vec<LogMessage> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions: Vec<u64> =
        messages.iter().filter(|it| it.subject.ends_with(".decision")).map(|it| it.sequence).collect();
    let accept = |at: &u64| format!("  - {{ sequence: {at}, outcome: drifted, why: a new prompt }}\n");
    std::fs::write(&accepted, format!("decisions:\n{}", decisions.iter().map(accept).collect::<String>())).unwrap();
    let test = [&test[..], &["--accept", &accepted]].concat();
    let (code, said) = run(&test).await;
    assert!(code == Some(0) && said.contains("is accepted: a new prompt"), "{said}");
    std::fs::write(&accepted, "decisions: [{ sequence: 3 }]").unwrap();
    let (code, said) = run(&test).await;
    assert!(code == Some(64) && said.contains("why"), "{said}");

    // Around one message, it is about what answers that, and ends there.
    let part = beside("part.kairo");
    let around = decisions[1].to_string();
    let export = ["incident", "export", "--agent", AGENT, "--file", log, "-o", &part];
    assert_eq!(run(&[&export[..], &["--around", &around]].concat()).await.0, Some(0));
    let (code, said) = run(&["incident", "run", &part]).await;
    assert!(code == Some(0) && said.contains("2 decisions made again\n  2 the same"), "{said}");
    assert_eq!(run(&[&export[..], &["--around", "99999"]].concat()).await.0, Some(64));

    // What is not as it was exported is never the same.
    let text = String::from_utf8(whole).unwrap();
    let line = |at: usize| text.lines().nth(at).unwrap();
    let damages = [
        ("line 3", text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>()),
        ("line 2", text.replace(line(4), &line(4).replace("\"sequence\":", "\"sequence\": "))),
        ("line 1", text.replacen("\"agent\":\"default\"", "\"agent\":\"other\"", 1)),
        ("version 3", text.replacen("\"format\":1", "\"format\":3", 1)),
        ("line ", format!("{text}{}\n", line(4))),
    ];
    for (named, damaged) in damages {
        std::fs::write(&path, damaged).unwrap();
        let (code, said) = run(&["incident", "test", incident]).await;
        assert!(code == Some(3) && said.contains(named) && said.contains("not replayable"), "{named}: {said}");
        let (code, said) = run(&["replay", incident]).await;
        assert!(code == Some(64) && said.contains(named), "{named}: {said}");
    }
    assert_eq!(run(&["incident", "test", log]).await.0, Some(64), "a log is no incident file");
    std::fs::write(&path, text).unwrap();
    incidents_end_with_what_came_of_them(&path, &file.with_file_name("accepted.yaml"), &messages, run).await;
    let nowhere = ["--url", "http://127.0.0.1:1", "incident", "export", "--agent", AGENT, "-o", incident];
    let program = kairo_local::StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let output = tokio::process::Command::new(program).args(nowhere).output().await.unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
}

#[tokio::test]
async fn the_decisions_of_a_log_are_made_again() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define(AGENT).await;
    for text in ["hello", "time please", "time and time"] {
        world.ask(AGENT, text).await;
    }
    // Another build of agent-runtime, as far as its limits are concerned.
    world.stack.service(Service::AgentRuntime).env("KAIRO_AGENT_RUNTIME__MAX_STEPS", "5");
    world.stack.stop_one(Service::AgentRuntime, 0).await.unwrap();
    world.stack.start(Service::AgentRuntime).await.unwrap();
    world.ask(AGENT, "time please").await;
    world.settled().await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.log");
    let path = file.to_str().unwrap();
    let (code, said) = replay(&world, &["--agent", AGENT, "--save", path]).await;
    assert_eq!(
        (code, said.as_slice()),
        (Some(0), ["7 decisions made again", "  7 the same"].map(str::to_owned).as_slice())
    );
    assert_eq!(replay(&world, &[path]).await, (code, said), "from the file");
    let states = async || {
        let output = kairo(&world, &["replay", path, "--json"]).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        last["states"].clone()
    };
    let state = states().await;
    assert!(state[AGENT].is_string(), "{state}");
    assert_eq!(states().await, state, "another process comes to another state");

    states_are_shown(&world, &file).await;
    changes_are_tried(&world, &file).await;
    changes_to_the_log_reach_what_rests_on_it(&world, &file).await;
    incidents_are_kept_and_tested(&world, &file).await;
    fork::forks_go_on_apart_from_their_log(&world, &file).await;
    over_http::others_are_told_the_same(&world, &file).await;
    offline::no_network_is_needed(&file).await;
    revision::a_revision_is_built_once_and_compared(&file).await;

    let reworded = tampered(&file, "reworded.log", |decision| {
        words(decision).into_iter().for_each(|words| words.push('!'));
    });
    let (code, said) = replay(&world, &[&reworded]).await;
    assert!(code == Some(1) && said[0].contains("reworded at events.") && said[0].ends_with(".text"), "{said:?}");
    let other = tampered(&file, "other.log", |decision| decision.events.truncate(1));
    let (code, said) = replay(&world, &[&other]).await;
    assert!(code == Some(1) && said[0].contains("differs at events."), "{said:?}");
    let drifted = tampered(&file, "drifted.log", |decision| {
        for completion in &mut decision.completions {
            completion.request_digest.clear();
            completion.digests.as_mut().unwrap().tools += 1;
        }
    });
    let (code, said) = replay(&world, &[&drifted]).await;
    assert!(
        code == Some(1)
            && said[0].ends_with("drifted; the recorded answers lead to the same (another request: 1 (tools))"),
        "{said:?}"
    );
    let unpaid = tampered(&file, "unpaid.log", |decision| decision.completions.clear());
    let (code, said) = replay(&world, &[&unpaid]).await;
    assert!(code == Some(1) && said[0].contains("not replayable: "), "{said:?}");
    stops_at_what_is_newer(&world, &file).await;
    std::fs::write(&file, "no log\n").unwrap();
    assert_eq!(replay(&world, &[path]).await.0, Some(1));
    world.end().await;
}
