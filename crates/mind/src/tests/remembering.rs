//! Memories are kept whatever models make of them, and their keywords are found later.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// One answer that calls `memory.append` with each of these parameters.
fn remembers(params: Vec<Value>) -> Completion {
    let call = |params: Value| CompletionToolCall {
        tool: "memory.append".into(),
        arguments: params.to_string(),
        ..Default::default()
    };
    Completion { tool_calls: params.into_iter().map(call).collect(), ..Default::default() }
}

/// The contents and keywords of all memories at hand, by id.
fn at_hand(agent: &Agent) -> Vec<(String, String)> {
    let memories = agent.mind.state.memories.recent.iter();
    memories.map(|memory| (memory.memory_id.clone(), memory.content.clone())).collect()
}

fn keywords_of(record: &Record) -> Vec<String> {
    let keywords = |event: &kairo_proto::v1::DecidedEvent| {
        let Some(Event::MemoryAppended(memory)) = &event.event else { return None };
        Some(memory.keywords.join(" "))
    };
    decision(record).events.iter().filter_map(keywords).collect()
}

fn is_for_keywords(request: &ModelRequest) -> bool {
    matches!(&request.messages[0], PromptMessage::System { text } if text.contains("Name the keywords"))
}

#[test]
fn memories_are_written_at_once_and_their_keywords_found_later_in_one_call() {
    let mut agent = Agent::new();
    agent.limits.parallel_tools = 8;
    agent.hears("m1", "remember this");
    let contents = ["The Aurora is red", "极光号停在七号码头", "Das Boot heißt Möwe"];
    let appended = remembers(contents.map(|content| json!({ "content": content })).to_vec());
    agent.decides(&[appended, says("noted")]).unwrap();
    assert_eq!(at_hand(&agent).iter().map(|(_, content)| content.as_str()).collect::<Vec<_>>(), contents);
    let named = json!({ "memories": [
        { "number": 1, "keywords": ["aurora"], "subject": "ship" },
        { "number": 2, "keywords": ["码头"], "subject": "" },
        { "number": 3, "keywords": ["möwe"], "subject": "" },
    ]});
    let decided = agent.works(&[says(&named.to_string())]).unwrap();
    assert_eq!(keywords_of(&decided), ["aurora", "码头", "möwe"]);
    assert!(agent.next_work().is_none() && agent.mind.state.work.is_nothing());
    assert_eq!(at_hand(&agent).len(), 3);
    agent.is_replayed();
}

#[test]
fn keywords_that_nobody_can_name_are_looked_for_ever_less_often_and_not_for_ever() {
    let mut agent = Agent::new();
    agent.hears("m0", "remember this");
    agent.decides(&[remembers(vec![json!({ "content": "The kettle is red" })]), says("noted")]).unwrap();
    let mut attempts = Vec::new();
    for at in 1..100 {
        if agent.next_work().is_some() {
            let failure = if at % 2 == 0 { fails(true) } else { says("I cannot.") };
            agent.works(&[failure]).unwrap();
            attempts.push(at);
        }
        agent.hears(&format!("m{at}"), "hello");
        agent.decides(&[says("hi")]).unwrap();
    }
    let gaps: Vec<i32> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(attempts.len(), 5, "{attempts:?}");
    assert!(gaps.is_sorted() && gaps[0] < gaps[3], "{gaps:?}");
    assert_eq!(at_hand(&agent)[0].1, "The kettle is red");
    assert!(agent.mind.state.work.is_nothing());
    agent.is_replayed();
}

#[test]
fn what_no_model_can_write_down_of_a_thread_is_kept_as_it_was_said() {
    for answer in [fails(false), says("{\"content\": 7}"), says("We spoke of the red kettle.")] {
        let mut agent = Agent::new();
        agent.hears("m1", "My kettle is red");
        let is_entry = |request: &ModelRequest| format!("{:?}", request.messages[0]).contains("journal entry");
        let mut calls = 0;
        let decided = agent.decides_with(|request| match is_entry(request) {
            true => answer.clone(),
            false => {
                calls += 1;
                if calls == 1 { remembers(vec![json!({})]) } else { says("noted") }
            }
        });
        assert_eq!(acts(&decided.unwrap()).last().unwrap(), "noted");
        let memories = at_hand(&agent);
        assert!(memories.len() == 1 && memories[0].1.contains("kettle"), "{memories:?}");
        agent.is_replayed();
    }
}

#[test]
fn memories_that_an_older_build_gave_one_id_are_all_there() {
    let mut agent = Agent::new();
    (agent.limits.memory_rules, agent.limits.parallel_tools) = (0, 8);
    agent.hears("m1", "remember this");
    let appended = remembers((0..4).map(|at| json!({ "content": format!("fact {at}") })).collect());
    let mut is_first = true;
    let decided = agent.decides_with(|request| match is_for_keywords(request) {
        true => says(r#"{"keywords": ["fact"]}"#),
        false if std::mem::take(&mut is_first) => appended.clone(),
        false => says("noted"),
    });
    let ids: BTreeSet<String> = decision(&decided.unwrap())
        .events
        .iter()
        .filter_map(|event| {
            let Some(Event::MemoryAppended(memory)) = &event.event else { return None };
            Some(memory.memory_id.clone())
        })
        .collect();
    assert_eq!(ids.len(), 1, "as those builds wrote them");
    let memories: BTreeSet<(String, String)> = at_hand(&agent).into_iter().collect();
    assert_eq!(memories.len(), 4);
    assert_eq!(memories.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len(), 4);
    agent.is_replayed();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    /// However many are written in one answer, with or without keywords, and whatever the model that names keywords does between:
    /// all are there, each with an id of its own.
    #[test]
    fn any_interleaving_of_appends_yields_as_many_memories(
        answers in prop::collection::vec((1..8usize, any::<[bool; 8]>(), any::<bool>(), 0..4u8), 1..6),
    ) {
        let mut agent = Agent::new();
        (agent.limits.parallel_tools, agent.limits.max_steps) = (8, 20);
        let mut written = Vec::new();
        for (at, (number, named, is_kept_apart, then)) in answers.into_iter().enumerate() {
            // The same words twice are two memories, too.
            let content = |place: usize| if is_kept_apart { format!("fact {at} {place}") } else { "the same".to_owned() };
            let contents: Vec<String> = (0..number).map(content).collect();
            let params = contents.iter().zip(named).map(|(content, is_named)| match is_named {
                true => json!({ "content": content, "keywords": ["fact"] }),
                false => json!({ "content": content }),
            });
            let appended = remembers(params.collect());
            written.extend(contents);
            agent.hears(&format!("m{at}"), "remember this");
            agent.decides(&[appended, says("noted")]).unwrap();
            for _ in 0..then {
                let answer = match then {
                    1 => says(r#"{"memories": [{"number": 1, "keywords": ["one"]}]}"#),
                    2 => fails(false),
                    _ => says("what?"),
                };
                let _ = agent.works_with(|_| answer.clone());
            }
        }
        let memories = at_hand(&agent);
        let ids: BTreeSet<&String> = memories.iter().map(|(id, _)| id).collect();
        prop_assert_eq!(ids.len(), written.len());
        let mut contents: Vec<String> = memories.iter().map(|(_, content)| content.clone()).collect();
        contents.sort();
        written.sort();
        prop_assert_eq!(contents, written);
        agent.is_replayed();
    }
}
