//! Reasoning that the model server wants back: sent with the calls that it came with, while their turn lasts.

use super::*;

const DETAILS: &str = r#"[{"type":"reasoning.encrypted","data":"ZW5j"}]"#;

impl Agent {
    /// Two calls of one answer, and the reply. Returns what is asked last.
    fn looks_twice(&mut self, answer: Completion) -> Arc<ModelRequest> {
        self.hears("m1", "the time");
        let asked = self.decides(&[answer]).unwrap();
        actions(&asked).iter().for_each(|action| _ = self.learns(&asked, action, "1"));
        self.decides(&[says("noon")]).unwrap();
        self.asked.last().unwrap().clone()
    }
}

/// Returns the reasoning details sent back with each answer that has calls.
fn sent_back(request: &ModelRequest) -> Vec<&str> {
    let details = request.messages.iter().filter_map(|message| match message {
        PromptMessage::Assistant { calls, reasoning_details, .. } if !calls.is_empty() => {
            Some(reasoning_details.as_str())
        }
        PromptMessage::Assistant { .. }
        | PromptMessage::System { .. }
        | PromptMessage::User { .. }
        | PromptMessage::Tool { .. } => None,
    });
    details.collect()
}

#[test]
fn encrypted_reasoning_is_passed_back_with_its_calls_and_no_later_turn_is_told_of_it() {
    let mut agent = Agent::new();
    let thinking = Completion { reasoning_details: DETAILS.into(), ..calls(&["tools.now", "http.get"]) };
    // Both calls came in one answer.
    assert_eq!(sent_back(&agent.looks_twice(thinking)), [DETAILS]);
    agent.hears("m2", "thanks");
    agent.decides(&[says("welcome")]).unwrap();
    assert_eq!(sent_back(agent.asked.last().unwrap()), [""]);
    // Whoever reads the log asks the same.
    let mut read = Log::default();
    agent.log.iter().for_each(|record| _ = read.push(record.clone()).unwrap());
    assert_eq!(read.state, agent.mind.state);
}

#[test]
fn where_there_is_none_requests_and_the_state_are_as_they_were() {
    let mut agent = Agent::new();
    let asked = serde_json::to_string(&*agent.looks_twice(calls(&["tools.now"]))).unwrap();
    let state = serde_json::to_string(&*agent.mind.state).unwrap();
    assert!(!asked.contains("reasoning_details") && !state.contains("reasoning_details"), "{asked}\n{state}");
}
