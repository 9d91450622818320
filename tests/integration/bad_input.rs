//! Unreadable messages, on every subject and at the gateway: they become dead letters with a reason and block nobody.

mod oversized;

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use futures::future::join_all;
use jiff::Timestamp;
use kairo_core::{
    bus::BusConfig,
    envelope::{Envelope, Origin},
    ids,
    subjects::{AGENT_MESSAGE, Route, Service, Store, TABLE},
};
use kairo_local::Service as Program;
use kairo_proto::{
    Body,
    v1::{self, UserMessage},
};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::world::{Wanted, World, agent, raw::headers, scenario::USUAL};

/// The end of the reason given for an unknown type.
const UNKNOWN: &str = " is unknown";

/// A message that cannot be read, and what its dead letter must say.
struct Flawed {
    subject: String,
    headers: HeaderMap,
    body: Vec<u8>,
    reason: String,
    /// True if it becomes a dead letter. A message that only the read model reads may be of a newer version: it is only
    /// counted.
    is_letter: bool,
}

fn envelope(type_name: &str) -> Envelope {
    let envelope = Envelope::from_outside(ids::generate(), Service::Gateway, Origin::User, Timestamp::now());
    Envelope { type_name: type_name.to_owned(), ..envelope }
}

/// An owner that the services really look at.
fn owner(route: &Route) -> &'static str {
    match (route.noun, route.verb) {
        ("user", _) => "ann",
        ("system", "catalogue") => "tool-runner",
        ("system", _) => "process-supervisor",
        _ => "default",
    }
}

/// Everything that can be wrong with a message on a subject.
fn flaws(route: &Route) -> Vec<Flawed> {
    let type_name = route.types[0];
    let subject = route.of_owner(&agent(owner(route)));
    let mut flaws = Vec::new();
    let mut add = |headers: HeaderMap, body: Vec<u8>, reason: &str| {
        let is_letter = !(reason.ends_with(UNKNOWN) && route.consumers.is_empty());
        flaws.push(Flawed { subject: subject.clone(), headers, body, reason: reason.to_owned(), is_letter });
    };
    let proper = || headers(&envelope(type_name));
    let with = |name: &str, value: &str| {
        let mut headers = proper();
        headers.insert(name, value);
        headers
    };
    add(proper(), vec![0xff; 100], &format!("body is not a {type_name}"));
    add(with("ce-datacontenttype", "application/json"), b"{\"".to_vec(), &format!("body is not a {type_name}"));
    add(with("ce-datacontenttype", "application/json"), b"[7]".to_vec(), &format!("body is not a {type_name}"));
    add(with("ce-type", "kairo.nothing.known.v1"), Vec::new(), &format!("type \"kairo.nothing.known.v1\"{UNKNOWN}"));
    let other = TABLE.iter().map(|route| route.types[0]).find(|other| *other != type_name).unwrap();
    add(with("ce-type", other), Vec::new(), &format!("does not belong on this subject, expected {type_name}"));
    let limit = BusConfig::default().max_body_bytes;
    add(proper(), vec![0; limit + 1], &format!("body of {} bytes is larger than the limit of {limit}", limit + 1));
    add(HeaderMap::new(), b"hello?".to_vec(), "header ce-specversion: expected 1.0, found nothing");
    for name in ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-time"] {
        let mut headers = HeaderMap::new();
        for (known, values) in proper().iter().filter(|(known, _)| AsRef::<str>::as_ref(*known) != name) {
            values.iter().for_each(|value| headers.append(known.clone(), value.clone()));
        }
        add(headers, Vec::new(), &format!("header {name}: expected "));
    }
    for (name, value) in [
        ("ce-specversion", "0.3"),
        ("ce-id", "7"),
        ("ce-source", "%ff"),
        ("ce-time", "noon"),
        ("ce-datacontenttype", "text/plain"),
        ("ce-correlationid", "none"),
        ("ce-causationid", "none"),
        ("ce-subject", "%ff"),
        ("ce-origin", "moon"),
        ("ce-modality", "smell"),
    ] {
        add(with(name, value), Vec::new(), &format!("header {name}: expected "));
    }
    flaws
}

/// A message outside of the table.
fn stray(subject: &str) -> Flawed {
    let body = Body::from(UserMessage::default());
    let headers = headers(&envelope(body.type_name()));
    let reason = "subject is not in the table of subjects".to_owned();
    Flawed { subject: subject.to_owned(), headers, body: body.encode(), reason, is_letter: true }
}

#[tokio::test]
async fn what_cannot_be_read_is_set_aside_with_its_reason_and_blocks_nobody() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    assert!(world.ask("default", "time please").await.starts_with("It is 2"));
    let stored = TABLE.iter().filter(|route| route.store == Store::Events);
    let mut flaws: Vec<Flawed> = stored.flat_map(flaws).collect();
    flaws.extend(["kairo.user.NOBODY.message", "kairo.agent.default.dreamt", "kairo.user.ann"].map(stray));

    let published =
        join_all(flaws.iter().map(|flaw| world.publish(&flaw.subject, flaw.headers.clone(), flaw.body.clone()))).await;
    // What stands on a timer's subject is taken over from a stream of its own, under another sequence.
    let (sourced, flaws_here): (Vec<_>, Vec<_>) =
        published.into_iter().zip(&flaws).partition(|(_, flaw)| flaw.subject.ends_with(".due"));
    let published: BTreeMap<u64, &Flawed> = flaws_here.into_iter().collect();

    // The next proper message is answered, whichever subjects it touches.
    assert!(world.ask("default", "time please").await.starts_with("It is 2"));

    let expected = flaws.iter().filter(|flaw| flaw.is_letter).count();
    let letters = world.dead_letters(expected).await;
    let mut told = BTreeMap::new();
    for letter in letters {
        let mut of_timers = sourced.iter().map(|(_, flaw)| *flaw);
        let flaw = match letter.subject.ends_with(".due") {
            true => {
                of_timers.find(|flaw| letter.reason.contains(&flaw.reason) && letter.size == flaw.body.len() as u64)
            }
            false => published.get(&letter.sequence).copied(),
        };
        let flaw = flaw.unwrap_or_else(|| panic!("{letter:?}"));
        assert!(flaw.is_letter, "{letter:?}");
        assert!(letter.reason.contains(&flaw.reason), "{}: {:?}, not {:?}", letter.subject, letter.reason, flaw.reason);
        assert_eq!((letter.stream.as_str(), &letter.subject), ("KAIRO_EVENTS", &flaw.subject));
        assert_eq!(letter.size, flaw.body.len() as u64);
        assert_eq!(letter.head, flaw.body[..flaw.body.len().min(4096)]);
        assert!(told.insert(letter.sequence, letter.consumer).is_none(), "set aside twice");
    }
    world.settled().await;
    world.projected().await;
    assert_eq!(world.dead_letters_so_far().await, expected as u64);
    let (_, shown) = world.get("/v1/dead-letters?limit=1000").await;
    assert_eq!(shown["dead_letters"].as_array().unwrap().len(), expected);
    let unknown = flaws.iter().filter(|flaw| flaw.reason.ends_with(UNKNOWN)).count();
    let mut database = PgConnection::connect(&world.database.url).await.unwrap();
    let counted = "SELECT messages FROM kairo.unknown_types WHERE type = 'kairo.nothing.known.v1'";
    let counted: i64 = sqlx::query_scalar(counted).fetch_one(&mut database).await.unwrap();
    assert_eq!(usize::try_from(counted).unwrap(), unknown);

    // Who starts now finds all of it in the log.
    for service in [Program::AgentRuntime, Program::ToolRunner, Program::ProcessSupervisor, Program::Router] {
        world.stack.restart(service, 0).await.unwrap();
        let reply = world.ask("default", "time please").await;
        assert!(reply.starts_with("It is 2"), "after a restart of {service:?}: {reply}");
    }
    world.end().await;
}

#[tokio::test]
async fn outsiders_may_write_json_and_say_more_than_is_known() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let answered = async |id, said: &str| {
        let reply = world.log.wait(|event| event.correlation_id == id && event.is_final_reply()).await;
        assert_eq!(reply.text(), format!("You said: {said}"));
    };
    // A CloudEvent of an outsider: only what the specification requires, and JSON by default.
    let id = ids::generate();
    let mut plain = HeaderMap::new();
    for (name, value) in [
        ("ce-specversion", "1.0"),
        ("ce-id", &id.to_string()),
        ("ce-source", "https://example.com/outsider"),
        ("ce-type", UserMessage::TYPE),
        ("ce-time", "2026-11-21T10:00:00Z"),
    ] {
        plain.insert(name, value);
    }
    let body =
        json!({ "message_id": "m-1", "user": "ann", "agent": "default", "text": "plain", "mood": { "good": 1 } });
    world.publish("kairo.user.ann.message", plain, body.to_string()).await;
    answered(id, "plain").await;

    // JSON said to be so, in lowerCamelCase, with a parameter.
    let said = envelope(UserMessage::TYPE);
    let mut named = headers(&said);
    named.insert("ce-datacontenttype", "application/json; charset=utf-8");
    let body = json!({ "messageId": "m-2", "user": "ann", "agent": "default", "text": "named" });
    world.publish("kairo.user.ann.message", named, body.to_string()).await;
    answered(said.id, "named").await;

    // A newer version of ours: fields that nobody here knows, in the body and in the headers.
    let said = envelope(UserMessage::TYPE);
    let mut newer = headers(&said);
    newer.insert("ce-colour", "red");
    let message = UserMessage {
        message_id: "m-3".into(),
        user: "ann".into(),
        agent: "default".into(),
        text: "newer".into(),
        ..Default::default()
    };
    let mut body = Body::from(message).encode();
    body.extend([0xfa, 0x3e, 3, b'n', b'e', b'w']); // field 1007, three bytes
    world.publish("kairo.user.ann.message", newer, body).await;
    answered(said.id, "newer").await;

    // Straight to the agent, without a router.
    let said = envelope(v1::AgentMessage::TYPE);
    let mut direct = headers(&said);
    direct.insert("ce-datacontenttype", "application/json");
    let body = json!({ "message_id": "m-4", "user": "ann", "text": "direct" });
    world.publish(&AGENT_MESSAGE.of_owner(&agent("default")), direct, body.to_string()).await;
    answered(said.id, "direct").await;

    assert_eq!(world.dead_letters_so_far().await, 0);
    world.end().await;
}

#[tokio::test]
async fn an_agent_whose_subjects_begin_with_garbage_works() {
    let world = Wanted::new(USUAL).replicas(Program::AgentRuntime, 2).start().await;
    let route = |noun: &str, verb: &str| TABLE.iter().find(|route| route.noun == noun && route.verb == verb).unwrap();
    let guarded =
        [("agent", "decision"), ("tool", "invoke"), ("tool", "result"), ("process", "spawned"), ("process", "exited")];
    let mut garbage = 0;
    for (noun, verb) in guarded.into_iter().chain([("agent", "defined"), ("agent", "message")]) {
        world.publish(&route(noun, verb).of_owner(&agent("fresh")), HeaderMap::new(), "garbage").await;
        garbage += 1;
    }
    let (status, answer) = world.post("/v1/agents", &json!({ "agent": "fresh", "prompt": "Be brief." })).await;
    assert!(status == 200 || status == 201, "{answer}");
    assert!(world.ask("fresh", "time please").await.starts_with("It is 2"));
    for (noun, verb) in guarded {
        world.publish(&route(noun, verb).of_owner(&agent("fresh")), HeaderMap::new(), "garbage").await;
        garbage += 1;
        assert!(world.ask("fresh", "time please").await.starts_with("It is 2"), "after garbage on {noun}.{verb}");
    }
    assert_eq!(world.dead_letters(garbage).await.len(), garbage);
    world.end().await;
}

/// A request, and what is wrong with it.
struct Bad {
    method: Method,
    path: &'static str,
    content_type: &'static str,
    body: String,
    status: u16,
    fields: &'static [&'static str],
}

fn json_to(path: &'static str, body: impl Into<String>, status: u16, fields: &'static [&'static str]) -> Bad {
    Bad { method: Method::POST, path, content_type: "application/json", body: body.into(), status, fields }
}

fn get(path: &'static str, fields: &'static [&'static str]) -> Bad {
    Bad { method: Method::GET, path, content_type: "", body: String::new(), status: 400, fields }
}

fn bad_requests() -> Vec<Bad> {
    let long = "x".repeat(70_000);
    let too_long = |field: &str, rest: Value| {
        let mut body = rest;
        body[field] = json!(long);
        body.to_string()
    };
    let message = |rest: &str| format!(r#"{{"user": "ann", "text": "hi"{rest}}}"#);
    let ordered = |rest: &str| format!(r#"{{"user": "ann", "agent": "a", {rest}}}"#);
    vec![
        json_to("/v1/messages", "", 400, &[]),
        json_to("/v1/messages", "{", 400, &[]),
        json_to("/v1/messages", "[]", 400, &[]),
        json_to("/v1/messages", "\u{feff}{}", 400, &[]),
        json_to("/v1/messages", "{}", 400, &["user", "text"]),
        json_to("/v1/messages", r#"{"user": "ann"}"#, 400, &["text"]),
        json_to("/v1/messages", r#"{"user": "Ann B", "text": ""}"#, 400, &["user", "text"]),
        json_to("/v1/messages", r#"{"user": "a.>", "text": 7}"#, 400, &["user", "text"]),
        json_to("/v1/messages", message(r#", "agent": "*""#), 400, &["agent"]),
        json_to("/v1/messages", message(r#", "message_id": "a b""#), 400, &["message_id"]),
        json_to("/v1/messages", message(r#", "thread_id": "..""#), 400, &["thread_id"]),
        json_to("/v1/messages", message(r#", "mood": "good""#), 400, &["mood"]),
        json_to("/v1/messages", too_long("text", json!({ "user": "ann" })), 400, &["text"]),
        json_to("/v1/messages", format!(r#"{{"user": "{}", "text": "hi"}}"#, "x".repeat(600_000)), 413, &[]),
        Bad { content_type: "text/plain", ..json_to("/v1/messages", message(""), 415, &[]) },
        Bad { method: Method::PUT, ..json_to("/v1/messages", message(""), 405, &[]) },
        json_to("/v1/nothing", "{}", 404, &[]),
        json_to("/v1/agents", "{}", 400, &["agent", "prompt"]),
        json_to("/v1/agents", r#"{"agent": "a", "prompt": "", "tools": "all"}"#, 400, &["prompt", "tools"]),
        json_to(
            "/v1/agents",
            r#"{"agent": "a", "prompt": "p", "tools": ["a b"], "max_steps": -1}"#,
            400,
            &["tools", "max_steps"],
        ),
        json_to(
            "/v1/agents",
            r#"{"agent": "a", "prompt": "p", "history_limit": 1e9, "model": "x"}"#,
            400,
            &["history_limit", "model"],
        ),
        json_to("/v1/agents", too_long("prompt", json!({ "agent": "a" })), 400, &["prompt"]),
        json_to(
            "/v1/agents",
            r#"{"agent": "a", "prompt": "p", "planning": "plan", "threads": "many", "time_zone": "Mars", "day_ends_at": "24:00"}"#,
            400,
            &["planning", "threads", "time_zone", "day_ends_at"],
        ),
        json_to(
            "/v1/agents",
            r#"{"agent": "a", "prompt": "p", "mission": "m", "next_run_after": 604801}"#,
            400,
            &["next_run_after", "conduct", "owner"],
        ),
        json_to("/v1/conversations/a/import", "{}", 400, &["document"]),
        json_to(
            "/v1/conversations/a/import",
            r#"{"user": "*", "document": {"format": "kairo.conversation.v1", "agent": "a", "threads": [], "messages": [{}]}}"#,
            400,
            &[
                "user",
                "document.user",
                "document.threads",
                "document.messages[0].thread_id",
                "document.messages[0].role",
                "document.messages[0].text",
            ],
        ),
        json_to("/v1/teams", "{}", 400, &["team", "owner", "mission", "lead", "workers"]),
        json_to(
            "/v1/teams",
            r#"{"team": "t", "owner": "o", "mission": "m", "lead": {"tools": 1}, "workers": [{"name": "A"}, []], "cost_per_day": 2}"#,
            400,
            &["lead.prompt", "lead.tools", "workers[0].name", "workers[0].prompt", "workers[1]", "cost_per_day"],
        ),
        json_to("/v1/choices", "{}", 400, &["user", "agent", "offer_id", "option"]),
        json_to("/v1/choices", ordered(r#""offer_id": "7", "option": "soup""#), 400, &["offer_id", "option"]),
        json_to("/v1/approvals", "{}", 400, &["user", "agent", "action_id", "verdict"]),
        json_to("/v1/approvals", ordered(r#""action_id": 7, "verdict": "yes""#), 400, &["action_id", "verdict"]),
        json_to("/v1/commands", "{}", 400, &["user", "agent", "command", "action_id"]),
        json_to("/v1/commands", ordered(r#""command": "dance", "task_id": "x""#), 400, &["command", "task_id"]),
        json_to("/v1/commands", ordered(r#""command": "pause", "thread_id": "dinner""#), 400, &["thread_id"]),
        json_to("/v1/commands", ordered(r#""command": "archive", "thread_id": "Dinner for two""#), 400, &["thread_id"]),
        json_to("/v1/commands", ordered(r#""command": "run""#), 400, &["task_id"]),
        json_to("/v1/commands", ordered(r#""command": "pause", "team": "another-one""#), 400, &["team"]),
        json_to("/v1/commands", "[".repeat(100_000), 400, &[]),
        get(
            "/v1/events?agent=A&after=x&since=noon&limit=0&colour=red",
            &["agent", "after", "since", "limit", "colour"],
        ),
        get("/v1/events/outline?agent=A&from=9&to=8&buckets=0", &["agent", "to", "buckets"]),
        get("/v1/events?before=x&limit=1&limit=2", &["limit", "before"]),
        get("/v1/events?correlation=7&latest=-1&thread=*", &["thread", "correlation", "latest"]),
        get("/v1/events/stream?after=x&live=perhaps", &["after", "live"]),
        get("/v1/events/stream?after=999999999", &["after"]),
        get("/v1/conversations/A%20B", &["agent"]),
        get("/v1/conversations/default?user=*&limit=many", &["user", "limit"]),
        get("/v1/threads?agent=A&user=*&status=lost&before=x", &["agent", "user", "status", "before"]),
        get("/v1/threads/A%20B", &["thread_id"]),
        get("/v1/threads/t?agent=A&before=x&limit=0", &["agent", "before", "limit"]),
        get("/v1/threads/t/messages?agent=A&after=1.0&latest=0&before=3", &["agent", "after", "latest", "before"]),
        get("/v1/chains/7", &["chain_id"]),
        get("/v1/interactions/7", &["turn_id"]),
        get("/v1/tasks?status=done&kind=timer&limit=many", &["status", "kind", "limit"]),
        get("/v1/tasks/x", &["task_id"]),
        get("/v1/teams/A%20B", &["team"]),
        get("/v1/teams?after=A&limit=0&user=ann", &["after", "limit", "user"]),
        get("/v1/agents/a/thoughts?before=x&limit=0", &["before", "limit"]),
        get("/v1/briefings?agent=A&before=x&limit=0", &["agent", "before", "limit"]),
        get("/v1/agents/A%20B/inner-state", &["agent"]),
        get("/v1/agents/a/inner-state?user=*&before=x&at=3", &["user", "before", "at"]),
        get("/v1/agents/a/inner-state/history?limit=0", &["key", "limit"]),
        get("/v1/inbox", &["user"]),
        get("/v1/actions?in_flight=false", &["in_flight"]),
        get("/v1/actions?in_flight=true&in_doubt=true", &["in_doubt"]),
        get("/v1/processes?agent=A&running=perhaps", &["agent", "running"]),
        get("/v1/dead-letters?limit=none", &["limit"]),
    ]
}

async fn assert_refused(world: &World, client: &reqwest::Client, bad: &Bad) {
    let mut request = client.request(bad.method.clone(), world.url(bad.path));
    if !bad.content_type.is_empty() {
        request = request.header("content-type", bad.content_type).body(bad.body.clone());
    }
    let answer = request.send().await.unwrap();
    let what = format!("{} {} {:.80}", bad.method, bad.path, bad.body);
    assert_eq!(answer.status().as_u16(), bad.status, "{what}");
    assert_eq!(answer.headers()["content-type"], "application/problem+json", "{what}");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["status"], bad.status, "{what}");
    for text in ["type", "title", "detail"] {
        assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()), "{what}: {problem}");
    }
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let fields: Vec<&str> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, bad.fields, "{what}: {problem}");
    assert!(errors.iter().all(|error| !error["expected"].as_str().unwrap().is_empty()), "{what}: {problem}");
}

#[tokio::test]
async fn a_bad_request_is_told_every_field_that_is_wrong_and_leaves_nothing_in_the_log() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let before = world.end_of_log().await;
    let client = reqwest::Client::new();
    for bad in bad_requests() {
        assert_refused(&world, &client, &bad).await;
    }
    // Web pages of other sites are kept out.
    let foreign = client.get(world.url("/v1/agents")).header("origin", "https://example.com").send().await.unwrap();
    assert_eq!(foreign.status().as_u16(), 403);
    let renamed = client.get(world.url("/v1/agents")).header("host", "example.com").send().await.unwrap();
    assert_eq!(renamed.status().as_u16(), 403);
    assert_eq!(world.end_of_log().await, before);
    assert_eq!(world.ask("default", "hello").await, "You said: hello");
    world.end().await;
}
