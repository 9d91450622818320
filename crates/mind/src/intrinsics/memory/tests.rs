use jiff::Timestamp;
use kairo_events::sealing;
use kairo_proto::v1::{AgentProfile, MemoryAppended, decided_event::Event};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    intrinsics::{Intrinsic, IntrinsicContext, IntrinsicOutcome, IntrinsicStart, by_name},
    request::{Catalogue, ModelRequest, PromptMessage},
    state::{AgentState, AgentTurn, Profile, TurnCause},
    thread::{AnswerFields, EntryRetention, ThreadCall, ThreadEntry},
};

const KEY: sealing::SealingKey = [7; 32];

/// Midnight has passed in Berlin, not in London.
fn now() -> Timestamp {
    "2026-11-21T23:30:00Z".parse().unwrap()
}

/// An agent of Ann's in Berlin, with a thread of hers and one of Bob's.
fn state() -> AgentState {
    let profile = AgentProfile { time_zone: "Europe/Berlin".into(), ..Default::default() };
    let mut state = AgentState { profile: Some(Profile::new(1, &profile)), ..Default::default() };
    for (id, user) in [("t", "ann"), ("bobs", "bob")] {
        let thread = state.threads.entry(id.to_owned()).or_default();
        thread.user = user.to_owned();
    }
    state
}

fn say(state: &mut AgentState, thread: &str, event: &str, text: &str) {
    let entry = ThreadEntry::User { turn: Uuid::nil(), words: text.into() };
    state.add_entry(1, thread, entry);
    state.threads.get_mut(thread).unwrap().fresh.push_back(event.into());
}

fn turn(user: &str) -> AgentTurn {
    AgentTurn { message_id: "m-1".to_owned(), ..AgentTurn::new(TurnCause::Message, Uuid::from_u128(9), "t", user) }
}

fn with<T>(
    state: &AgentState,
    turn: &AgentTurn,
    key: Option<&sealing::SealingKey>,
    go: impl FnOnce(&IntrinsicContext<'_>) -> T,
) -> T {
    with_rules(state, turn, key, 1, go)
}

fn with_rules<T>(
    state: &AgentState,
    turn: &AgentTurn,
    key: Option<&sealing::SealingKey>,
    memory_rules: u32,
    go: impl FnOnce(&IntrinsicContext<'_>) -> T,
) -> T {
    go(&IntrinsicContext {
        agent: "default",
        state,
        turn_id: turn.correlation,
        turn,
        now: now(),
        id: Uuid::from_u128(5),
        secret_key: key,
        most_steps: 8,
        known: &|_| true,
        catalogue: &Catalogue::default(),
        memory_rules,
    })
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("no object") };
    object
}

fn tool(name: &str) -> &'static Intrinsic {
    by_name(name).unwrap()
}

fn begin(state: &AgentState, name: &str, params: Value) -> Result<IntrinsicStart, String> {
    with(state, &turn("ann"), Some(&KEY), |context| (tool(name).begin)(context, &object(params)))
}

fn expect_request(begun: Result<IntrinsicStart, String>) -> ModelRequest {
    match begun {
        Ok(IntrinsicStart::Ask(request)) => request,
        Ok(IntrinsicStart::Done(done)) => panic!("{}", done.result),
        Ok(IntrinsicStart::Read { result, .. }) => panic!("{result}"),
        Ok(IntrinsicStart::Request(ask)) => panic!("{ask:?}"),
        Ok(IntrinsicStart::Question(inquiry)) => panic!("{inquiry:?}"),
        Err(flaw) => panic!("{flaw}"),
    }
}

fn finish(state: &AgentState, name: &str, params: Value, answer: &str) -> Result<IntrinsicOutcome, String> {
    with(state, &turn("ann"), Some(&KEY), |context| (tool(name).finish)(context, &object(params), answer))
}

fn memories(done: &IntrinsicOutcome) -> Vec<&MemoryAppended> {
    let memories = done.events.iter().map(|event| {
        let Event::MemoryAppended(memory) = event else { panic!("not a memory: {event:?}") };
        memory
    });
    memories.collect()
}

fn prompt_texts(request: &ModelRequest) -> (&str, &str) {
    match request.messages.as_slice() {
        [PromptMessage::System { text: system }, PromptMessage::User { text: user, .. }] => (system, user),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_given_is_written_at_once_and_without_its_secrets() {
    let params = json!({ "content": "Bank PIN 4711, and the WiFi password is hunter22." });
    let Ok(IntrinsicStart::Done(done)) = begin(&state(), "memory.append", params) else { panic!("asks") };
    let memory = memories(&done)[0];
    assert_eq!(memory.content, "Bank PIN [secret pin], and the WiFi password is [secret password].");
    assert!(memory.lacks_keywords && memory.keywords.is_empty() && memory.secrets.len() == 2);
    let named = json!({ "content": "The kettle is red.", "keywords": ["Kettle"] });
    let Ok(IntrinsicStart::Done(done)) = begin(&state(), "memory.append", named) else { panic!("asks") };
    assert!(!memories(&done)[0].lacks_keywords && memories(&done)[0].keywords == ["kettle"]);
}

#[test]
fn older_builds_asked_for_the_keywords_of_what_is_given_first() {
    let state = state();
    let anns = turn("ann");
    let old = |go: &dyn Fn(&IntrinsicContext<'_>) -> Result<IntrinsicStart, String>| {
        with_rules(&state, &anns, Some(&KEY), 0, go)
    };
    let params = json!({ "content": "Bank PIN 4711, and the WiFi password is hunter22." });
    let request = expect_request(old(&|context| (tool("memory.append").begin)(context, &object(params.clone()))));
    let (system, user) = prompt_texts(&request);
    assert!(request.tier == "light" && system.starts_with("You are memory.append"));
    assert_eq!(user, "Bank PIN [secret pin], and the WiFi password is [secret password].");

    let answer = "Sure:\n```json\n{\"keywords\": [\"WiFi\", \"wifi\", \"Bank\", \"[secret pin]\"]}\n```";
    let finished =
        |context: &IntrinsicContext<'_>| (tool("memory.append").finish)(context, &object(params.clone()), answer);
    let done = with_rules(&state, &anns, Some(&KEY), 0, finished).unwrap();
    let memory = memories(&done)[0];
    assert_eq!((memory.kind.as_str(), memory.day.as_str(), memory.user.as_str()), ("journal", "2026-11-22", "ann"));
    assert_eq!(memory.content, user);
    assert_eq!(memory.keywords, ["wifi", "bank"]);
    assert_eq!(memory.source_event_ids, [Uuid::from_u128(9).to_string()]);
    let id: Uuid = memory.memory_id.parse().unwrap();
    let open =
        |at: usize| sealing::open_secret(&KEY, id, &memory.secrets[at].name, &memory.secrets[at].sealed).unwrap();
    assert_eq!((memory.secrets.len(), open(0), open(1)), (2, "4711".to_owned(), "hunter22".to_owned()));
    assert!(!done.result.to_string().contains("hunter22"));
}

#[test]
fn what_corrects_a_memory_replaces_it_and_nobody_elses() {
    let mut state = state();
    let known = |id: u128, user: &str, content: &str| MemoryAppended {
        memory_id: Uuid::from_u128(id).to_string(),
        user: user.into(),
        kind: "fact".into(),
        subject: "Aurora".into(),
        ..entry("e-1", content, "2026-11-22")
    };
    for memory in [
        known(1, "ann", "The Aurora berths at quay 7."),
        known(2, "bob", "The Aurora berths at quay 8."),
        known(3, "ann", "The gate opens with [secret pin]."),
        known(4, "", "The harbour is closed on Sundays."),
    ] {
        state.apply_memory_appended(&memory);
    }
    let append = |content: &str, id: u128| {
        let params = json!({ "content": content, "replaces": Uuid::from_u128(id), "keywords": ["quay"] });
        begin(&state, "memory.append", params)
    };
    let Ok(IntrinsicStart::Done(done)) = append("The Aurora berths at quay 9.", 1) else { panic!("not written") };
    let memory = memories(&done)[0];
    assert_eq!(memory.memory_id, Uuid::from_u128(1).to_string());
    assert_eq!((memory.kind.as_str(), memory.subject.as_str()), ("fact", "Aurora"));
    assert_eq!(done.result["before"], "The Aurora berths at quay 7.");
    // What the corrected memory came from is not what the correction came from.
    assert_eq!(memory.source_event_ids, [Uuid::from_u128(9).to_string()]);
    for other in [2, 3, 4, 5] {
        let flaw = append("x", other).map(|_| ()).unwrap_err();
        assert!(flaw.starts_with("replaces: "), "{other}: {flaw}");
    }
    let mut corrected = memory.clone();
    state.apply_memory_appended(&corrected);
    assert_eq!(state.memories.learned.iter().filter(|known| known.memory_id == corrected.memory_id).count(), 1);
    // A fact that becomes something else is no fact any more.
    corrected.kind = "journal".into();
    state.apply_memory_appended(&corrected);
    assert!(state.memories.learned.iter().all(|known| known.memory_id != corrected.memory_id));
}

#[test]
fn without_a_key_secrets_are_lost_and_said_to_be() {
    let params = object(json!({ "content": "password: hunter22", "keywords": ["wifi", "hunter22 password: x9x9"] }));
    let begun = with(&state(), &turn("ann"), None, |context| (tool("memory.append").begin)(context, &params));
    let Ok(IntrinsicStart::Done(done)) = begun else { panic!("asks") };
    let memory = memories(&done)[0];
    assert_eq!(memory.content, "password: [secret password not kept: no key is configured]");
    assert_eq!((memory.secrets.len(), memory.keywords.as_slice()), (0, ["wifi".to_owned()].as_slice()));
}

#[test]
fn a_thread_is_written_down_once() {
    let mut state = state();
    say(&mut state, "t", "e-1", "My password is hunter22. Sarah will lead the launch.");
    let call = ThreadCall {
        action: Uuid::nil(),
        tool: "calendar.check".into(),
        arguments: "{}".into(),
        since: now(),
        after: 0,
        result: Some("free".into()),
        call_id: String::new(),
        passed_back: String::new(),
        parts: Vec::new(),
    };
    let with = AnswerFields::default();
    let keeping = EntryRetention { limit: 100, now: None, in_steps: false };
    state.threads.get_mut("t").unwrap().push_call(2, Uuid::nil(), call, with, keeping);
    let request = expect_request(begin(&state, "memory.append", json!({})));
    let (system, user) = prompt_texts(&request);
    assert!(request.tier == "fast" && system.starts_with("You are memory.append"));
    assert_eq!(user, "ann: My password is [secret password]. Sarah will lead the launch.\ncalendar.check {}: free");

    let answer = json!({
        "content": "Ann planned the launch.", "keywords": ["Launch"], "people": ["Sarah"], "projects": [],
        "decisions": ["Sarah leads"], "tasks": null,
    });
    let done = finish(&state, "memory.append", json!({}), &answer.to_string()).unwrap();
    let memory = memories(&done)[0].clone();
    assert_eq!(
        memory.content,
        "Ann planned the launch.\nPeople: Sarah\nDecisions: Sarah leads\nAlso told: [secret password]"
    );
    assert_eq!(
        (memory.keywords.as_slice(), memory.secrets.len()),
        (["launch", "sarah"].map(String::from).as_slice(), 1)
    );
    assert_eq!(memory.source_event_ids, ["e-1"]);

    state.apply_memory_appended(&memory);
    let Ok(IntrinsicStart::Done(done)) = begin(&state, "memory.append", json!({ "thread_id": "t" })) else {
        panic!("asks")
    };
    assert!(done.events.is_empty() && done.result["memory_id"].is_null());
    say(&mut state, "t", "e-2", "And the budget?");
    let request = expect_request(begin(&state, "memory.append", json!({})));
    assert_eq!(prompt_texts(&request).1, "ann: And the budget?");
}

#[test]
fn other_users_threads_and_bad_parameters_are_refused() {
    let mut state = state();
    say(&mut state, "bobs", "e-1", "Bob's");
    for (params, field) in [
        (json!({ "thread_id": "bobs" }), "thread_id: "),
        (json!({ "thread_id": "nowhere" }), "thread_id: "),
        (json!({ "content": " " }), "content: "),
        (json!({ "content": 7 }), "content: "),
        (json!({ "content": "x".repeat(20_000) }), "content: "),
        (json!({ "content": "x", "kind": "rumour" }), "kind: "),
        (json!({ "content": "x", "day": "2026-02-30" }), "day: "),
        (json!({ "content": "x", "day": "2027-01-01" }), "day: "),
        (json!({ "content": "x", "keywords": [7] }), "keywords: "),
    ] {
        let flaw = begin(&state, "memory.append", params.clone()).map(|_| ()).unwrap_err();
        assert!(flaw.starts_with(field), "{params}: {flaw}");
    }
    // The agent itself, at the end of its day, writes down all of them.
    let params = object(json!({ "thread_id": "bobs" }));
    let begun = with(&state, &turn(""), None, |context| (tool("memory.append").begin)(context, &params));
    assert_eq!(prompt_texts(&expect_request(begun)).1, "bob: Bob's");
}

#[test]
fn answers_that_are_not_what_was_asked_for_are_refused() {
    let mut state = state();
    say(&mut state, "t", "e-1", "hello");
    let bomb = "[".repeat(100_000);
    for answer in ["", "{}", r#"{"content": 7}"#, r#"{"content": "x", "people": {}}"#] {
        assert!(finish(&state, "memory.append", json!({}), answer).is_err(), "{answer:.40}");
    }
    // Words are what happened, and better than nothing.
    let done = finish(&state, "memory.append", json!({}), "They greeted each other.").unwrap();
    assert_eq!(memories(&done)[0].content, "They greeted each other.");
    assert!(memories(&done)[0].lacks_keywords);
    state.apply_memory_appended(&entry("e-1", "Something happened.", "2026-11-22"));
    let many = json!(vec![json!({ "kind": "fact", "content": "x" }); 101]).to_string();
    let odd = r#"[{"kind": "person", "content": "no subject"}]"#;
    for answer in
        ["", "{}", "7", "[7]", r#"[{"kind": "journal", "content": "x"}]"#, r#"[{"kind": "fact"}]"#, odd, &many, &bomb]
    {
        assert!(finish(&state, "memory.digest", json!({ "period": "daily" }), answer).is_err(), "{answer:.40}");
    }
    assert!(begin(&state, "memory.digest", json!({ "period": "hourly" })).is_err());
}

fn entry(event: &str, content: &str, day: &str) -> MemoryAppended {
    MemoryAppended {
        memory_id: Uuid::new_v5(&Uuid::NAMESPACE_OID, event.as_bytes()).to_string(),
        kind: "journal".into(),
        content: content.into(),
        day: day.into(),
        source_event_ids: vec![event.into()],
        user: "ann".into(),
        ..Default::default()
    }
}

#[test]
fn a_journal_is_digested_into_memories_that_name_their_sources() {
    let mut state = state();
    let daily = json!({ "period": "daily" });
    let Ok(IntrinsicStart::Done(none)) = begin(&state, "memory.digest", daily.clone()) else { panic!("asks") };
    assert_eq!((none.events.len(), &none.result["digested"]), (0, &json!(0)));

    state.apply_memory_appended(&entry("e-1", "The wifi password is [secret password].", "2026-11-22"));
    state.apply_memory_appended(&entry("e-2", "Sarah leads the launch.", "2026-11-22"));
    state.apply_memory_appended(&entry("e-3", "Last week's.", "2026-11-16"));
    state.apply_memory_appended(&MemoryAppended { user: "bob".into(), ..entry("e-4", "Bob's own.", "2026-11-22") });
    state.apply_memory_appended(&MemoryAppended {
        kind: "person".into(),
        subject: "Sarah".into(),
        ..entry("e-5", "Likes tea.", "2026-11-20")
    });
    let request = expect_request(begin(&state, "memory.digest", daily.clone()));
    let (system, user) = prompt_texts(&request);
    assert!(request.tier == "fast" && system.starts_with("You are memory.digest"));
    let short = &entry("e-1", "", "").memory_id[..8];
    assert_eq!(
        user,
        format!(
            "The journal:\n1. 2026-11-22 ann: The wifi password is [secret password of {short}].\n\
             2. 2026-11-22 ann: Sarah leads the launch.\n\nKnown already:\nperson Sarah: Likes tea."
        )
    );
    let request = expect_request(begin(&state, "memory.digest", json!({ "period": "weekly" })));
    assert!(prompt_texts(&request).1.contains("Last week's.") && !prompt_texts(&request).1.contains("Bob's"));

    let answer = json!([
        { "kind": "person", "subject": "Sarah", "content": "Likes tea, leads the launch.", "entries": [2] },
        { "kind": "secret", "subject": "wifi", "content": format!("[secret password of {short}]"), "entries": [1, 99] },
        { "kind": "fact", "subject": "", "content": "All in all a day." },
    ]);
    let digest = |answer: &Value| finish(&state, "memory.digest", daily.clone(), &answer.to_string()).unwrap();
    let done = digest(&answer);
    let made = memories(&done);
    assert_eq!(done.result["digested"], json!(3));
    let sources: Vec<_> = made.iter().map(|memory| memory.source_event_ids.join(" ")).collect();
    assert_eq!(sources, ["e-2", "e-1", "e-1 e-2"]);
    assert_eq!(made[1].content, format!("[secret password of {short}]"));
    assert!(made.iter().all(|memory| memory.user == "ann" && memory.day == "2026-11-22" && memory.secrets.is_empty()));
    // The same person again is the same memory, whatever else is in the list.
    let again = json!({ "memories": [{ "kind": "fact", "content": "x" }, { "kind": "Person", "subject": "SARAH", "content": "x" }] });
    let done_again = digest(&again);
    let again = memories(&done_again);
    assert_eq!(again[1].memory_id, made[0].memory_id);
    assert_ne!(again[0].memory_id, made[2].memory_id);
}
