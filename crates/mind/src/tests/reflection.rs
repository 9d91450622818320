//! Guessed goals of messages, and reviews of drafts.

use serde_json::json;

use super::{chains::kinds, *};

fn reviewing(max_reflections: u32) -> Agent {
    Agent::with(AgentProfile { max_reflections, ..Default::default() })
}

fn verdict(verdict: &str, reason: &str) -> Completion {
    says(&json!({ "verdict": verdict, "reason": reason }).to_string())
}

#[test]
fn a_goal_is_guessed_once_kept_for_the_turn_and_given_to_later_steps() {
    let mut agent = Agent::with(AgentProfile { guesses_goal: true, max_reflections: 1, ..Default::default() });
    agent.hears("m1", "is it late?");
    let asked = agent.decides(&[says("To know the time."), calls(&["tools.now"])]).unwrap();
    assert_eq!(kinds(&asked), ["created", "goal To know the time.", "call tools.now"]);
    assert_eq!((agent.asked[0].tier, agent.asked[0].tools.len()), ("fast", 0));
    agent.learns(&asked, &actions(&asked)[0], "23:00");
    let said = agent.decides(&[says("Yes."), verdict("finished", "")]).unwrap();
    assert_eq!(kinds(&said), ["reflected finished", "say Yes."]);
    for request in &agent.asked[1..] {
        let Some(PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. }) = request.messages.last() else {
            panic!("{request:?}")
        };
        assert!(block_contents(text).any(|told| told.ends_with("To know the time.")), "{text}");
    }
    agent.hears("m2", "and now?");
    agent.decides(&[says("To know it again."), says("Even later."), verdict("finished", "")]).unwrap();
    agent.is_replayed();
}

#[test]
fn without_a_goal_the_turn_goes_on() {
    let mut agent = Agent::with(AgentProfile { guesses_goal: true, ..Default::default() });
    agent.hears("m1", "hello");
    let said = agent.decides(&[fails(false), says("hi")]).unwrap();
    assert_eq!(acts(&said).last().unwrap(), "hi");
}

#[test]
fn what_is_to_be_revised_is_not_said_and_the_draft_and_its_review_are_shown_to_the_model() {
    let mut agent = reviewing(3);
    agent.hears("m1", "How many?");
    let answers = [says("Some."), verdict("revise", "name the number"), says("Seven."), verdict("finished", "")];
    let said = agent.decides(&answers).unwrap();
    assert_eq!(kinds(&said), ["created", "reflected revise", "reflected finished", "say Seven."]);
    let told = |request: &ModelRequest, words: &str| format!("{:?}", request.messages).contains(words);
    assert!(told(&agent.asked[1], "Some."), "the draft is reviewed");
    assert!(told(&agent.asked[2], "Some.") && told(&agent.asked[2], "name the number"));
    agent.is_replayed();
}

#[test]
fn a_review_may_ask_for_more_actions_and_reviews_come_to_an_end() {
    let mut agent = reviewing(2);
    agent.hears("m1", "How late?");
    let asked = agent.decides(&[says("Late."), verdict("act", "look at the clock"), calls(&["tools.now"])]).unwrap();
    assert_eq!(kinds(&asked), ["created", "reflected act", "call tools.now"]);
    agent.learns(&asked, &actions(&asked)[0], "23:00");
    let said = agent.decides(&[says("23:00"), verdict("revise", "say more"), says("It is 23:00.")]).unwrap();
    assert_eq!(kinds(&said), ["reflected revise", "say It is 23:00."], "the third draft is said without a review");
    agent.is_replayed();
}

#[test]
fn a_reflection_that_fails_lets_the_draft_stand() {
    let mut agent = reviewing(2);
    agent.hears("m1", "How many?");
    let said = agent.decides(&[says("Seven."), fails(false)]).unwrap();
    assert_eq!(acts(&said).last().unwrap(), "Seven.");
    agent.hears("m2", "Sure?");
    let said = agent.decides(&[says("Yes."), says("nonsense"), verdict("revise", ""), verdict("dance", "x")]).unwrap();
    assert_eq!(acts(&said).last().unwrap(), "Yes.");
    agent.is_replayed();
}

#[test]
fn drafts_are_not_told_as_replies_and_chains_are_reviewed_at_their_end() {
    let mut agent = Agent::with(AgentProfile { planning: "chain".into(), max_reflections: 1, ..Default::default() });
    agent.hears("m1", "How late?");
    let plan = says(&json!({ "event": "agent.chain", "params": { "plan": "look at the clock" } }).to_string());
    let chain = says(&json!(["tools.now", "agent.think"]).to_string());
    let asked = agent.decides(&[plan, chain]).unwrap();
    agent.learns(&asked, &actions(&asked)[0], "23:00");
    let answer = |request: &ModelRequest| match &request.messages[0] {
        PromptMessage::System { text } if text.starts_with("You are agent.reflect") => verdict("finished", ""),
        PromptMessage::System { text } if text.starts_with("You are thread.summarize") => {
            says(r#"{ "title": "time", "summary": "the time" }"#)
        }
        _ => says("23:00"),
    };
    let said = agent.decides_with(answer).unwrap();
    let kinds = kinds(&said);
    assert!(kinds.contains(&"reflected finished".to_owned()) && kinds.last().unwrap() == "say 23:00", "{kinds:?}");
    agent.is_replayed();
}
