//! Messages with images and audio: what the mind keeps of them, and what models are asked.

use kairo_events::subjects::AGENT_MESSAGE;
use kairo_proto::v1::Part;

use super::*;
use crate::request::ToolCall;

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
        let user = "ann".into();
        let parts = names.iter().map(|name| part(name)).collect();
        let message =
            AgentMessage { message_id: message_id.into(), user, text: text.into(), parts, ..Default::default() };
        self.write(&AGENT_MESSAGE, None, message)
    }

    fn shown_names(&self) -> Vec<&str> {
        self.asked.last().unwrap().media_parts().map(|part| part.name.as_str()).collect()
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
    assert_eq!(agent.shown_names(), ["a.png", "b.png"]);
    agent.sees("m2", "", &["c.png"]);
    agent.decides(&[says("Nicer.")]).unwrap();
    assert_eq!(agent.shown_names(), ["a.png", "b.png", "c.png"]);
}

#[test]
fn the_same_log_asks_the_same_of_models_and_other_bytes_ask_something_else() {
    let asked = |name: &str| {
        let mut agent = Agent::new();
        agent.sees("m1", "Look.", &[name]);
        agent.decides(&[calls(&["tools.now"])]).unwrap();
        agent
    };
    let agent = asked("a.png");
    let other = asked("b.png");
    let digests = |agent: &Agent| agent.asked.iter().map(|request| request.digest()).collect::<Vec<_>>();
    assert_ne!(digests(&agent), digests(&other));

    // Another replica, which reads the log, and one that goes on from a snapshot.
    let mut read = Log::default();
    agent.log.iter().for_each(|record| _ = read.push(record.clone()).unwrap());
    assert_eq!(read.state, agent.mind.state);
    let snapshot = serde_json::to_vec(&agent.mind.snapshot(LOG)).unwrap();
    let resumed = Log::from_snapshot(serde_json::from_slice::<Snapshot>(&snapshot).unwrap(), LOG).unwrap();
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
            promise: says(PROMISES_NOTHING),
            limits: limits(),
            catalogue: catalogue(),
        };
        let call = actions(agent.log.last().unwrap()).remove(0);
        let decided = agent.log.last().unwrap().clone();
        agent.learns(&decided, &call, "noon");
        agent.decides(&[says("Noon.")]).unwrap();
        (digests(&agent), agent.shown_names().len())
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
    assert_eq!(agent.shown_names(), ["a.png", "b.png"]);
}

#[test]
fn a_model_that_refuses_images_is_told_of_them_in_words() {
    let mut agent = Agent::new();
    agent.sees("m1", "Look.", &["a.png"]);
    let decided = agent.decides(&[refuses(), says("I cannot see it.")]).unwrap();
    assert_eq!(acts(&decided), ["model_refused?", "I cannot see it."]);
    assert!(agent.shown_names().is_empty());
    let said = PromptMessage::user("Look.\n[image a.png, 120 kB] (you cannot be shown it)");
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
    assert_eq!(agent.shown_names().len(), 64);
}

impl Agent {
    /// A call of the last decision ends with images.
    fn learns_of(&mut self, decision: &Record, action: &str, names: &[&str]) -> Record {
        let parts = names.iter().map(|name| part(name)).collect();
        let result = "a picture".into();
        let result = ToolResult { action_id: action.into(), ok: true, result, parts, ..Default::default() };
        self.write(&TOOL_RESULT, Some(&decision.envelope.clone()), result)
    }

    /// Asserts that every endpoint accepts the last request as a conversation.
    fn assert_alternates(&self) {
        let request = self.asked.last().unwrap();
        assert_eq!(check_conversation(&request.messages), Ok(()), "{:?}", request.messages);
    }
}

#[test]
fn the_model_is_shown_what_came_with_results_behind_them() {
    let mut agent = Agent::new();
    agent.hears("m1", "Draw.");
    agent.decides(&[calls(&["tools.now", "tools.now"])]).unwrap();
    let decided = agent.log.last().unwrap().clone();
    let [first, second] = &actions(&decided)[..] else { panic!("two calls") };
    agent.learns_of(&decided, first, &["a.png"]);
    agent.learns(&decided, second, "noon");
    agent.decides(&[says("Drawn.")]).unwrap();
    agent.assert_alternates();
    assert_eq!(agent.shown_names(), ["a.png"]);
    let told = agent.spoken_texts();
    assert!(
        told.iter().any(|told| told.contains("came with results") && told.contains("[image a.png, 120 kB]")),
        "{told:?}"
    );

    agent.hears("m2", "And now?");
    agent.decides(&[says("Still.")]).unwrap();
    agent.assert_alternates();
    assert_eq!(agent.shown_names(), ["a.png"]);

    // Another replica, which reads the log.
    let mut read = Log::default();
    agent.log.iter().for_each(|record| _ = read.push(record.clone()).unwrap());
    assert_eq!(read.state, agent.mind.state);
}

#[test]
fn a_request_that_is_shortened_keeps_the_users_words_and_not_what_came_with_results() {
    let mut request = ModelRequest::from_messages("heavy", vec![PromptMessage::System { text: "be kind".into() }]);
    let mut conversation = request.conversation();
    conversation.push_user("Draw.", &[]);
    for at in 0..6 {
        let call =
            ToolCall { id: format!("c{at}"), tool: "tools.now".into(), arguments: "{}".into(), ..Default::default() };
        conversation.push_calls("", vec![call], Default::default(), vec!["a picture".into()]);
        conversation.push_result_parts("tools.now", &[part("a.png")]);
    }
    while request.messages.len() > 4 {
        let before = request.messages.len();
        request.drop_older_half();
        assert_eq!(check_conversation(&request.messages), Ok(()), "{:?}", request.messages);
        let is_kept =
            |message: &PromptMessage| matches!(message, PromptMessage::User { text, .. } if text.starts_with("Draw."));
        assert!(request.messages.iter().any(is_kept), "{:?}", request.messages);
        if request.messages.len() == before {
            break;
        }
    }
}
