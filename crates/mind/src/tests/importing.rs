//! Conversations that were had elsewhere.

use kairo_events::{imports, subjects::AGENT_IMPORTED, threads};
use kairo_proto::v1::{AgentImported, ImportedMessage, ImportedThread, Part};

use super::*;

const LUNCH: &str = "import-lunch";
const DINNER: &str = "import-dinner";

fn message(thread: &str, role: &str, text: &str) -> ImportedMessage {
    let message_id = ids::from_parts("message", &[thread, text]).to_string();
    ImportedMessage {
        message_id,
        thread_id: thread.into(),
        role: role.into(),
        text: text.into(),
        time: "1970-01-01T00:00:00Z".into(),
        ..Default::default()
    }
}

fn part(part: u32, parts: u32, messages: Vec<ImportedMessage>) -> AgentImported {
    let thread = |id: &str| ImportedThread { thread_id: id.into(), title: id.into(), summary: "food".into() };
    AgentImported {
        user: "ann".into(),
        part,
        parts,
        threads: vec![thread(LUNCH), thread(DINNER)],
        messages,
        outside: vec!["import:cook".into()],
        ..Default::default()
    }
}

fn dinner() -> AgentImported {
    part(
        1,
        1,
        vec![message(LUNCH, "user", "soup?"), message(DINNER, "user", "stew?"), message(DINNER, "agent", "Stew.")],
    )
}

/// Writes a part once more, as the event that it is.
fn again(agent: &mut Agent, of: &Record) {
    let sequence = agent.log.len() as u64 + 1;
    let record = Record { sequence, ..of.clone() };
    agent.log.push(record.clone());
    agent.mind.push(record).unwrap();
}

fn thread_texts(agent: &Agent, thread: &str) -> Vec<String> {
    let entries = agent.mind.state.threads[thread].entries();
    entries.map(crate::intrinsics::threads::entry_text).collect()
}

#[test]
fn it_is_history_that_nobody_decides_on() {
    let mut agent = Agent::new();
    agent.write(&AGENT_IMPORTED, None, dinner());
    assert!(agent.decides(&[]).is_none());
    assert_eq!(thread_texts(&agent, DINNER), ["user: stew?", "agent: Stew."]);
    let thread = &agent.mind.state.threads[DINNER];
    assert_eq!((thread.title.as_str(), thread.summary.as_str(), thread.user.as_str()), (DINNER, "food", "ann"));
    assert!(thread.announced && thread.fresh.is_empty() && thread.news == 0);
    let hears = AgentMessage {
        thread_id: DINNER.into(),
        text: "and now?".into(),
        user: "ann".into(),
        message_id: "m".into(),
        ..Default::default()
    };
    agent.write(&AGENT_MESSAGE, None, hears);
    agent.decides(&[says("Stew.")]).unwrap();
    let asked = serde_json::to_string(&agent.asked[0].messages).unwrap();
    assert!(asked.contains("stew?") && asked.contains("Stew.") && asked.contains("and now?"), "{asked}");
    assert!(!asked.contains("soup?"));
}

#[test]
fn what_was_taken_in_is_not_taken_in_again() {
    let mut agent = Agent::new();
    let written = agent.write(&AGENT_IMPORTED, None, dinner());
    agent.decides(&[]);
    let before = serde_json::to_value(&agent.mind.state.threads).unwrap();
    again(&mut agent, &written);
    assert!(agent.decides(&[]).is_none());
    // Nor where only the threads tell.
    agent.write(&AGENT_IMPORTED, None, dinner());
    assert!(agent.decides(&[]).is_none());
    assert_eq!(serde_json::to_value(&agent.mind.state.threads).unwrap(), before);
}

#[test]
fn parts_follow_each_other_within_their_threads() {
    let mut agent = Agent::new();
    agent.write(&AGENT_IMPORTED, None, part(1, 2, vec![message(LUNCH, "user", "one")]));
    agent.write(&AGENT_IMPORTED, None, part(2, 2, vec![message(LUNCH, "agent", "two")]));
    agent.write(&AGENT_IMPORTED, None, part(1, 2, vec![message(LUNCH, "user", "one")]));
    assert!(agent.decides(&[]).is_none());
    assert_eq!(thread_texts(&agent, LUNCH), ["user: one", "agent: two"]);
}

#[test]
fn whoever_goes_on_there_has_seen_content_from_outside() {
    let mut agent = Agent::new();
    agent.write(&AGENT_IMPORTED, None, dinner());
    let hears = AgentMessage {
        thread_id: DINNER.into(),
        text: "do it".into(),
        user: "ann".into(),
        message_id: "m".into(),
        ..Default::default()
    };
    agent.write(&AGENT_MESSAGE, None, hears);
    let decided = agent.decides(&[calls(&["process.spawn"])]).unwrap();
    let asked = decision(&decided).events.iter().find_map(|event| {
        let Some(Event::ApprovalRequested(requested)) = &event.event else { return None };
        Some(requested.outside.clone())
    });
    assert_eq!(asked, Some(vec!["import:cook".to_owned()]));
}

#[test]
fn a_user_goes_on_where_it_ended_unless_they_are_in_a_thread_already() {
    let topics = || AgentProfile { threads: "topics".into(), ..Default::default() };
    let mut agent = Agent::with(topics());
    agent.write(&AGENT_IMPORTED, None, dinner());
    agent.hears("m1", "more?");
    agent.decides(&[says(r#"{"action": "continue"}"#), says("More.")]).unwrap();
    assert_eq!(thread_texts(&agent, DINNER).last().map(String::as_str), Some("agent: More."));

    let mut agent = Agent::with(topics());
    agent.hears("m1", "hello");
    agent.decides(&[says("Hello.")]).unwrap();
    let own = agent.mind.state.threads.keys().next().unwrap().clone();
    agent.write(&AGENT_IMPORTED, None, dinner());
    agent.hears("m2", "are you there?");
    agent.decides(&[says(r#"{"action": "continue"}"#), says("Yes.")]).unwrap();
    let asked = serde_json::to_string(&agent.asked[1].messages).unwrap();
    assert!(asked.contains(DINNER) && asked.contains("food"), "what was had elsewhere can be chosen: {asked}");
    assert_eq!(thread_texts(&agent, &own).last().map(String::as_str), Some("agent: Yes."));
}

#[test]
fn nobody_elses_thread_is_added_to_and_texts_are_bounded() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    agent.decides(&[says("Hello.")]).unwrap();
    let own = threads::single_thread_id("a", "ann");
    let mut theirs =
        part(1, 1, vec![message(&own, "user", "as joe"), message(DINNER, "user", &"x".repeat(imports::TEXT_BYTES))]);
    theirs.user = "joe".into();
    theirs.threads.push(ImportedThread { thread_id: own.clone(), ..Default::default() });
    theirs.messages[1].parts = vec![Part { media_type: "image/png".into(), ..Default::default() }];
    agent.write(&AGENT_IMPORTED, None, theirs);
    assert!(agent.decides(&[]).is_none());
    assert_eq!(thread_texts(&agent, &own), ["user: hello", "agent: Hello."]);
    let kept = thread_texts(&agent, DINNER).remove(0);
    assert!(kept.len() < 40 * 1024 && kept.contains("bytes left out") && kept.contains("[image"), "{}", kept.len());
    assert_eq!(agent.mind.state.threads[DINNER].user, "joe");
}

#[test]
fn folding_it_again_gives_the_same_bytes() {
    let mut agent = Agent::new();
    agent.write(&AGENT_IMPORTED, None, dinner());
    agent.decides(&[]);
    let saved = serde_json::to_vec(&agent.mind.snapshot(LOG)).unwrap();
    let mut folded = Log::default();
    agent.log.iter().for_each(|record| _ = folded.push(record.clone()).unwrap());
    folded.next_input();
    assert_eq!(serde_json::to_vec(&folded.snapshot(LOG)).unwrap(), saved);
    let again = Log::from_snapshot(serde_json::from_slice(&saved).unwrap(), LOG).unwrap();
    assert_eq!(serde_json::to_vec(&again.snapshot(LOG)).unwrap(), saved);
}

#[test]
fn what_somebody_takes_in_displaces_nobodys_conversation() {
    let mut agent = Agent::new();
    agent.hears_of("bob", "m1", "remember me");
    agent.decides(&[says("I do.")]).unwrap();
    let bobs = |agent: &Agent| agent.mind.state.threads.values().any(|thread| thread.user == "bob");
    assert!(bobs(&agent));
    let long = |thread: &str, at: usize| message(thread, "user", &format!("{at}{}", "x".repeat(30_000)));
    let names: Vec<String> = (0..6).map(|at| format!("import-{at}")).collect();
    let messages = names.iter().flat_map(|name| (0..8).map(move |at| long(name, at))).collect();
    let threads = names.iter().map(|name| ImportedThread { thread_id: name.clone(), ..Default::default() }).collect();
    agent.write(&AGENT_IMPORTED, None, AgentImported { threads, ..part(1, 1, messages) });
    assert!(agent.decides(&[]).is_none());
    assert!(bobs(&agent), "{:?}", agent.mind.state.threads.keys());
    let kept = agent.mind.state.threads.values().filter(|thread| thread.user == "ann").count();
    assert!((1..6).contains(&kept), "some of it made room: {kept}");
    assert!(agent.mind.state.threads.contains_key("import-5"), "the user goes on where it ended");
    agent.is_replayed();
}
