//! Users who are forgotten: nothing of them is left, whoever folds the log, and the others notice nothing.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::{
    personal::{self, ContentOwners, DataKey},
    subjects::AGENT_FORGOTTEN,
};
use kairo_proto::{ContentType, v1::AgentForgotten};
use serde_json::json;

use super::{background::queues, *};

/// Stands in whatever ann says, is told or has done.
const MARK: &str = "zanzibar";

impl Agent {
    fn is_told_by(&mut self, user: &str, text: &str) -> Record {
        let message_id = format!("m{}", self.log.len());
        let message = AgentMessage { message_id, user: user.into(), text: text.into(), ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message)
    }

    fn forgets(&mut self, user: &str) -> Record {
        let order_id = Uuid::from_u128(1).to_string();
        self.write(&AGENT_FORGOTTEN, None, AgentForgotten { order_id, user: user.into() })
    }

    fn state_json(&self) -> String {
        serde_json::to_string(&self.mind.state).unwrap()
    }

    /// The log as it is read when the data key of this user is gone.
    fn log_without(&self, user: &str) -> Vec<Record> {
        let keys = BTreeMap::from([(user.to_owned(), DataKey { generation: 1, key: [7; 32] })]);
        let mut mind = Log::default();
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        let mut without = Vec::new();
        for record in &self.log {
            let decided = || {
                let decision = AgentDecision::of(&record.body)?;
                let (state, input) = mind.state_before(decision)?;
                Some(state.data_subjects_of("a", &input.record, decision))
            };
            let came = || {
                let result = ToolResult::of(&record.body)?;
                owners.get(&result.action_id).map(|owner| ContentOwners::of_user(owner))
            };
            let whose = decided().or_else(came).unwrap_or_else(|| ContentOwners::from_body(&record.body));
            if let Body::AgentDecision(decision) = &record.body {
                let calls = decision.events.iter().filter_map(|event| Some((event, event.tool_call()?)));
                let owner = |(event, call): (&kairo_proto::v1::DecidedEvent, &kairo_proto::v1::ToolCall)| {
                    (event.event_id.clone(), call.user.clone().unwrap_or_default())
                };
                owners.extend(calls.map(owner));
            }
            let sealed = personal::seal_body(&record.body, record.envelope.id, &whose, &keys).unwrap();
            let body = match sealed {
                Some(sealed) => Body::decode(record.body.type_name(), ContentType::Sealed, &sealed).unwrap(),
                None => record.body.clone(),
            };
            without.push(Record { body, ..record.clone() });
            mind.push(record.clone()).unwrap();
        }
        without
    }
}

fn folded(log: &[Record]) -> Log {
    let mut mind = Log::default();
    for record in log {
        mind.push(record.clone()).unwrap();
    }
    mind
}

/// Both have said something, had something done, and something is remembered for both.
fn acquainted() -> Agent {
    let mut agent = Agent::with(AgentProfile { inner_state: true, ..Default::default() });
    for (user, word) in [("ann", MARK), ("bob", "tea")] {
        agent.is_told_by(user, &format!("I like {word}"));
        let remember = json!({ "content": format!("{user} likes {word}"), "keywords": [word], "kind": "preference" });
        let write = json!({ "key": format!("likes.{word}"), "content": word });
        agent.decides(&[asks_for("memory.append", remember), asks_for("state.write", write), says(word)]).unwrap();
        agent.is_told_by(user, &format!("whenever there is {word}, look at it"));
        let look = json!([{ "event": "http.get", "params": { "url": word } }]);
        let hook = json!({ "title": word, "trigger": "post:shop.arrived", "action": look });
        agent.decides(&[asks_for("task.register", hook), asks_for("http.get", json!({ "url": word }))]).unwrap();
    }
    agent
}

#[test]
fn nothing_of_them_is_left_and_it_is_said_that_it_is_so() {
    let mut agent = acquainted();
    assert!(agent.state_json().contains(MARK), "{}", agent.state_json());
    agent.forgets("ann");
    let decided = agent.decides(&[]).unwrap();
    assert_eq!(decision(&decided).events, []);
    let state = agent.state_json();
    assert!(!state.contains(MARK) && !state.contains("\"ann\""), "{state}");
    assert!(state.contains("tea"), "{state}");
    assert!(agent.decides(&[]).is_none());
    // Whoever comes by that name is somebody new.
    agent.is_told_by("ann", "hello");
    agent.decides(&[says("hi")]).unwrap();
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(!shown.contains(MARK), "{shown}");
}

#[test]
fn without_their_key_the_log_is_folded_all_the_same_and_nobody_else_is_another() {
    let mut agent = acquainted();
    agent.forgets("ann");
    agent.decides(&[]).unwrap();
    let without = agent.log_without("ann");
    let told = serde_json::to_string(&without.iter().map(|record| record.body.to_json()).collect::<Vec<_>>()).unwrap();
    assert!(!told.contains(MARK) && told.contains("tea"), "{told}");
    let folded = folded(&without);
    assert_eq!(folded.state.threads, agent.mind.state.threads);
    assert_eq!(folded.state.memories, agent.mind.state.memories);
    assert_eq!(folded.state.tasks, agent.mind.state.tasks);
    assert_eq!((folded.state.cursor, folded.state.decided), (agent.mind.state.cursor, agent.mind.state.decided));
}

#[test]
fn what_was_read_before_somebody_was_forgotten_does_not_fit() {
    let mut agent = acquainted();
    let mut live = Log::without_forgotten(BTreeSet::new());
    for record in &agent.log {
        live.push(record.clone()).unwrap();
    }
    let forgotten = agent.forgets("ann");
    assert_eq!(live.clone().push(forgotten.clone()), Err(Divergence));
    let mut again = Log::without_forgotten([forgotten.envelope.id].into());
    for record in &agent.log {
        again.push(record.clone()).unwrap();
    }
    // A snapshot knows of whom there is nothing in it.
    let resumed = Log::from_snapshot(again.snapshot(LOG), LOG).unwrap();
    assert!(!resumed.requires_forgetting(&forgotten));
    let other =
        Record { sequence: 99, envelope: Envelope { id: Uuid::from_u128(9), ..forgotten.envelope }, ..forgotten };
    assert!(resumed.requires_forgetting(&other));
}

#[test]
fn work_goes_on_that_waited_for_what_was_theirs() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
    for (user, task) in [("ann", MARK), ("bob", "bake")] {
        agent.is_told_by(user, task);
        agent.decides(&[queues("I will.", &[task])]).unwrap();
    }
    // ann's task is begun, and waits for a tool.
    agent.works(&[calls(&["http.get"])]).unwrap();
    assert!(agent.works(&[]).is_none());
    agent.forgets("ann");
    agent.decides(&[]).unwrap();
    assert!(!agent.state_json().contains(MARK));
    let done = agent.works(&[says("baked")]).unwrap();
    assert_eq!(acts(&done), ["baked"]);
    folded(&agent.log_without("ann"));
}

/// An event that may happen next.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Says(usize),
    Answers(u8),
    Learns,
    Works(u8),
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        (0..3_usize).prop_map(Doing::Says),
        (0..6_u8).prop_map(Doing::Answers),
        Just(Doing::Learns),
        (0..6_u8).prop_map(Doing::Works),
    ]
}

fn answer(kind: u8, word: &str) -> Completion {
    match kind {
        0 => asks_for("http.get", json!({ "url": word })),
        1 => asks_for("memory.append", json!({ "content": word, "keywords": [word] })),
        2 => queues(word, &[word]),
        3 => fails(false),
        _ => says(word),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happened_the_log_is_folded_without_them(
        doings in prop::collection::vec(doing(), 1..40),
        background in any::<bool>(),
    ) {
        let conduct = if background { "background" } else { "" };
        let mut agent = Agent::with(AgentProfile { conduct: conduct.into(), ..Default::default() });
        let users = ["ann", "bob", "eve"];
        let mut open: Vec<(Record, String)> = Vec::new();
        for doing in doings {
            let word = |request: &ModelRequest| {
                let shown = format!("{:?}", request.messages);
                if shown.contains(MARK) { MARK } else { "tea" }
            };
            let decided = match doing {
                Doing::Says(of) => {
                    let text = if users[of] == "ann" { MARK } else { "tea" };
                    agent.is_told_by(users[of], text);
                    None
                }
                // Asked again and again, it only says something in the end.
                Doing::Answers(kind) => {
                    let mut asked = 0;
                    agent.decides_with(|request| { asked += 1; answer(if asked > 1 { 9 } else { kind }, word(request)) })
                }
                Doing::Works(kind) => {
                    let mut asked = 0;
                    agent.works_with(|request| { asked += 1; answer(if asked > 1 { 9 } else { kind }, word(request)) })
                }
                Doing::Learns => {
                    if let Some((decision, action)) = open.pop() {
                        agent.learns(&decision, &action, "1");
                    }
                    None
                }
            };
            if let Some(decided) = decided {
                open.extend(actions(&decided).into_iter().map(|action| (decided.clone(), action)));
            }
        }
        agent.forgets("ann");
        let mut most = 100;
        while most > 0 && agent.decides_with(|_| says("done")).is_some() {
            most -= 1;
        }
        let state = agent.state_json();
        prop_assert!(!state.contains(MARK) && !state.contains("\"ann\""), "{state}");
        let without = agent.log_without("ann");
        let without = folded(&without);
        prop_assert_eq!(without.state.cursor, agent.mind.state.cursor);
        prop_assert_eq!(&without.state.tasks, &agent.mind.state.tasks);
        prop_assert_eq!(&without.state.turns, &agent.mind.state.turns);
        prop_assert_eq!(&without.state.threads, &agent.mind.state.threads);
    }
}
