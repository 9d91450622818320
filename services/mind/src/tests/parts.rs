//! Messages with images and audio: what the mind keeps of them, and what models are asked.

use kairo_events::subjects::AGENT_MESSAGE;
use kairo_proto::v1::Part;

use super::*;

fn part(name: &str) -> Part {
    Part {
        media_type: "image/png".into(),
        digest: kairo_events::media::digest(name.as_bytes()),
        size: 119_600,
        name: name.into(),
    }
}

impl Agent {
    fn sees(&mut self, message_id: &str, text: &str, names: &[&str]) -> Record {
        let (user, parts) = ("ann".into(), names.iter().map(|name| part(name)).collect());
        let message =
            AgentMessage { message_id: message_id.into(), user, text: text.into(), parts, ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message)
    }

    fn shown(&self) -> Vec<&str> {
        self.asked.last().unwrap().parts().map(|part| part.name.as_str()).collect()
    }
}

fn refuses() -> Completion {
    let error = CompletionError {
        kind: "model_refused".into(),
        message: "no images".into(),
        transient: false,
        ..Default::default()
    };
    Completion { error: Some(error), ..Default::default() }
}

#[test]
fn the_model_is_shown_what_a_user_sent_with_their_words_and_later_on() {
    let mut agent = Agent::new();
    agent.sees("m1", "Look.", &["a.png", "b.png"]);
    agent.decides(&[says("Nice.")]).unwrap();
    assert_eq!(agent.shown(), ["a.png", "b.png"]);
    agent.sees("m2", "", &["c.png"]);
    agent.decides(&[says("Nicer.")]).unwrap();
    assert_eq!(agent.shown(), ["a.png", "b.png", "c.png"]);
}

#[test]
fn the_same_log_asks_the_same_of_models_and_other_bytes_ask_something_else() {
    let asked = |name: &str| {
        let mut agent = Agent::new();
        agent.sees("m1", "Look.", &[name]);
        agent.decides(&[calls(&["tools.now"])]).unwrap();
        agent
    };
    let (agent, other) = (asked("a.png"), asked("b.png"));
    let digests = |agent: &Agent| agent.asked.iter().map(|request| request.digest()).collect::<Vec<_>>();
    assert_ne!(digests(&agent), digests(&other));

    // Another replica, which reads the log, and one that goes on from a snapshot.
    let mut read = Log::default();
    agent.log.iter().for_each(|record| _ = read.push(record.clone()).unwrap());
    assert_eq!(read.state, agent.mind.state);
    let snapshot = serde_json::to_vec(&agent.mind.snapshot(LOG)).unwrap();
    let resumed = Log::resume(serde_json::from_slice::<Snapshot>(&snapshot).unwrap(), LOG).unwrap();
    assert_eq!(resumed.state, agent.mind.state);
    let again = asked("a.png");
    assert_eq!(digests(&again), digests(&agent));
    let next = |mind: Log| {
        let mut agent = Agent {
            name: agent.name.clone(),
            log: agent.log.clone(),
            mind,
            asked: Vec::new(),
            later: 0,
            limits: limits(),
            catalogue: catalogue(),
        };
        let call = actions(agent.log.last().unwrap()).remove(0);
        let decided = agent.log.last().unwrap().clone();
        agent.learns(&decided, &call, "noon");
        agent.decides(&[says("Noon.")]).unwrap();
        (digests(&agent), agent.shown().len())
    };
    let expected = next(read);
    assert_eq!(expected.1, 1);
    assert_eq!(next(resumed), expected);
}

#[test]
fn where_only_words_will_do_a_part_is_named() {
    let profile = AgentProfile { threads: "topics".into(), ..Default::default() };
    let mut agent = Agent::with(profile);
    agent.sees("m1", "", &["a.png"]);
    agent.decides(&[says("Nice.")]).unwrap();
    agent.sees("m2", "And this?", &["b.png"]);
    let continues = says(r#"{"action": "continue"}"#);
    agent.decides(&[continues, says("Nicer.")]).unwrap();
    let matching = format!("{:?}", agent.asked[agent.asked.len() - 2]);
    for named in ["And this?\\\\n[image b.png, 120 kB]", "[image a.png, 120 kB]"] {
        assert!(matching.contains(named), "{matching}");
    }
    assert_eq!(agent.shown(), ["a.png", "b.png"]);
}

#[test]
fn a_model_that_refuses_images_is_told_of_them_in_words() {
    let mut agent = Agent::new();
    agent.sees("m1", "Look.", &["a.png"]);
    let decided = agent.decides(&[refuses(), says("I cannot see it.")]).unwrap();
    assert_eq!(acts(&decided), ["model_refused?", "I cannot see it."]);
    assert!(agent.shown().is_empty());
    let said = Message::said("Look.\n[image a.png, 120 kB] (you cannot be shown it)");
    assert!(agent.asked.last().unwrap().messages.contains(&said), "{:?}", agent.asked.last());
    // What is refused all the same is refused.
    agent.sees("m2", "And this?", &["b.png"]);
    let decided = agent.decides(&[refuses(), refuses()]).unwrap();
    assert_eq!(acts(&decided).len(), 3, "{:?}", acts(&decided));
}

#[test]
fn what_is_kept_of_a_message_is_bounded() {
    let mut agent = Agent::new();
    agent.sees("m1", "Look.", &["a.png"; 1_000]);
    agent.decides(&[says("So many.")]).unwrap();
    assert_eq!(agent.shown().len(), 64);
}
