//! Facts that are corrected, and facts that are merely alike.

use kairo_proto::v1::MemoryAppended;
use serde_json::{Value, json};

use super::{background::queues, *};

/// One session of work, of which this is learned.
fn session(agent: &mut Agent, number: usize, learned: &Value) -> (String, MemoryAppended) {
    let task = format!("Look at it once more, {number}");
    agent.hears(&task, &task);
    agent.decides(&[queues("I will.", &[&task])]).unwrap();
    agent.works(&[says("done")]).unwrap();
    let told = agent.texts().join("\n");
    let decided = agent.works(&[says(&json!([learned]).to_string())]).unwrap();
    let memory = decision(&decided).events.iter().find_map(|event| {
        let Some(Event::MemoryAppended(memory)) = &event.event else { return None };
        Some(memory.clone())
    });
    (told, memory.unwrap())
}

/// Sentences in which two values can stand, in several languages.
const SENTENCES: [(&str, [&str; 3]); 6] = [
    ("The Aurora berths at quay {} on the north side of the harbour until Monday", ["7", "9", "17"]),
    ("这艘船的停泊费用是每天{}元，从星期一开始计算", ["八百", "九百", "八百五十"]),
    ("Die Miete der Wohnung in der Hafenstraße beträgt {} Euro im Monat", ["800", "900", "800,50"]),
    ("La reunión con {} es el lunes a las nueve en la oficina del puerto", ["Marta", "María", "Mario"]),
    ("The ferry to the island does{} run on holidays and on Sundays in winter", ["", " not", " rarely"]),
    ("The contract with the crane company ends on 2026-{} at noon sharp", ["03-01", "01-03", "03-02"]),
];

#[test]
fn what_differs_in_a_number_a_name_a_date_or_a_not_is_kept_apart_unless_a_model_says_otherwise() {
    for (sentence, values) in SENTENCES {
        let content = |at: usize| sentence.replace("{}", values[at]);
        let fact = |at: usize, replaces: u64| json!({ "kind": "fact", "content": content(at), "replaces": replaces });
        let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
        let (_, first) = session(&mut agent, 1, &fact(0, 0));
        let (_, second) = session(&mut agent, 2, &fact(1, 0));
        assert_ne!(first.memory_id, second.memory_id, "{sentence}");
        assert_eq!(second.content, content(1));
        assert!(first.source_event_ids.iter().all(|source| !second.source_event_ids.contains(source)));
        agent.is_replayed();
    }
}

#[test]
fn what_a_model_says_to_be_corrected_is_told_no_more_and_the_newer_one_cites_its_own_session() {
    for (sentence, values) in SENTENCES {
        let content = |at: usize| sentence.replace("{}", values[at]);
        let fact = |at: usize, replaces: u64| json!({ "kind": "fact", "content": content(at), "replaces": replaces });
        let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
        let (_, first) = session(&mut agent, 1, &fact(0, 0));
        let (told, second) = session(&mut agent, 2, &fact(1, 1));
        assert!(told.contains(&content(0)));
        assert_eq!((&second.memory_id, &second.content), (&first.memory_id, &content(1)));
        assert!(first.source_event_ids.iter().all(|source| !second.source_event_ids.contains(source)));
        let (told, third) = session(&mut agent, 3, &fact(2, 7));
        assert!(told.contains(&content(1)) && !told.contains(&format!("{}\n", content(0))), "{told}");
        assert_ne!(third.memory_id, first.memory_id, "there is no seventh");
        agent.is_replayed();
    }
}

#[test]
fn the_model_that_learns_is_shown_what_is_known_with_numbers_and_days() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
    session(&mut agent, 1, &json!({ "kind": "fact", "content": "The kettle is red" }));
    session(&mut agent, 2, &json!({ "kind": "insight", "content": "Ask twice", "replaces": 0 }));
    let shown = agent.texts().join("\n");
    assert!(shown.contains("1. fact (1970-01-01): The kettle is red") && shown.contains("\"replaces\": 2"), "{shown}");
}

#[test]
fn an_item_that_cannot_be_read_does_not_lose_the_others() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
    agent.hears("m1", "look");
    agent.decides(&[queues("I will.", &["look"])]).unwrap();
    agent.works(&[says("done")]).unwrap();
    let answer = json!([{ "kind": "rumour", "content": "x" }, { "kind": "fact", "content": "The kettle is red" }, 7]);
    agent.works(&[says(&answer.to_string())]).unwrap();
    let contents: Vec<&str> = agent.mind.state.memories.learned.iter().map(|it| it.content.as_str()).collect();
    assert_eq!(contents, ["The kettle is red"]);
}
