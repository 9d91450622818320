//! Model calls that fail: who is asked again, what people are told, and what models are.

use super::{endings::ended, *};
use crate::{request::check_conversation, tokens};

fn error(kind: &str, transient: bool) -> CompletionError {
    CompletionError { kind: kind.into(), message: "<html>no</html>".into(), transient, ..Default::default() }
}

fn failed(error: CompletionError) -> Completion {
    Completion { error: Some(error), ..Default::default() }
}

/// Returns how often a model that fails like this is asked, and the words that the turn ends with.
fn request_and_reply(error: &CompletionError) -> (usize, kairo_proto::v1::Say) {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let decided = agent.decides_with(|_| failed(error.clone())).unwrap();
    agent.is_replayed();
    let said =
        decision(&decided).events.iter().filter_map(kairo_proto::v1::DecidedEvent::say).next_back().unwrap().clone();
    (agent.asked.len(), said)
}

#[test]
fn what_passes_is_tried_longer_and_what_lasts_once() {
    let table = [
        ("model_rate_limited", true, 8),
        ("model_overloaded", true, 8),
        ("model_unavailable", true, 8),
        ("model_timeout", true, 8),
        // The endpoint asks to wait longer than is waited.
        ("model_rate_limited", false, 1),
        ("malformed_answer", true, 3),
        ("model_unauthorized", true, 1),
        ("model_out_of_credit", true, 1),
        ("model_not_found", false, 1),
        ("model_filtered", false, 1),
        ("model_refused", false, 1),
        ("schema_refused", false, 1),
    ];
    for (kind, transient, tries) in table {
        let (times, said) = request_and_reply(&error(kind, transient));
        assert_eq!((times, said.failure.as_str(), said.r#final), (tries, kind, true));
        assert!(said.text.contains(kind) && !said.text.contains('<'), "{}", said.text);
    }
    let waits = CompletionError { retry_after_ms: 61_000, ..error("model_rate_limited", false) };
    assert!(request_and_reply(&waits).1.text.ends_with("Please try again in 61 seconds."));
}

#[test]
fn each_kind_has_tries_of_its_own() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let away = || failed(error("model_unavailable", true));
    let malformed = || ended("complete", asks_for("no.such", serde_json::json!({})));
    let answers = [away(), away(), away(), away(), malformed(), away(), malformed(), ended("complete", says("hi"))];
    let decided = agent.decides(&answers).unwrap();
    assert_eq!(acts(&decided).last().map(String::as_str), Some("hi"));
}

#[test]
fn tries_that_failed_are_no_steps_of_a_turn() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    let away = || failed(error("model_unavailable", true));
    let asks = || ended("complete", calls(&["tools.now"]));
    let asked = agent.decides(&[away(), away(), away(), asks()]).unwrap();
    assert_eq!(agent.mind.state.turns.values().next().unwrap().steps, 1);
    agent.learns(&asked, &actions(&asked)[0], "noon");
    let decided = agent.decides(&[away(), away(), asks()]).unwrap();
    assert_eq!(acts(&decided).last().map(String::as_str), Some("tools.now!"));
    agent.is_replayed();
}

#[test]
fn a_failure_is_shown_to_no_model_as_words_of_its_own() {
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    agent.decides(&[failed(error("model_unauthorized", false))]).unwrap();
    agent.hears("m2", "are you there?");
    agent.decides(&[ended("complete", says("yes"))]).unwrap();
    let shown = &agent.asked.last().unwrap().messages;
    assert!(!shown.iter().any(|message| matches!(message, PromptMessage::Assistant { .. })), "{shown:?}");
    let told = format!("{shown:?}");
    assert!(told.contains("hello") && told.contains("was not done (model_unauthorized)"), "{told}");
    agent.is_replayed();
}

#[test]
fn what_an_endpoint_said_of_its_context_holds_for_later_requests() {
    let mut agent = Agent::new();
    agent.limits.basis = "b".into();
    for number in 0..40 {
        agent.hears(&format!("m{number}"), &format!("question {number} {}", "word ".repeat(400)));
        let long = CompletionError { context_tokens: 12_000, ..error("context_too_long", false) };
        let decided = agent.decides_with(|request| match &request.messages[0] {
            PromptMessage::System { text } if text.starts_with("You are thread.compact") => {
                ended("complete", says("in short"))
            }
            _ if tokens::of_request(request) > 12_000 => failed(long.clone()),
            _ => ended("complete", says("ok")),
        });
        assert_eq!(acts(&decided.unwrap()).last().map(String::as_str), Some("ok"));
    }
    let refused = agent.asked.iter().filter(|request| tokens::of_request(request) > 12_000).count();
    assert_eq!(refused, 1, "once it is known");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Whatever was said in a thread and however its model counts, a model that takes prompt, tools and a message answers.
    #[test]
    fn no_thread_is_stuck_for_good(
        sizes in prop::collection::vec(0..6_000usize, 1..6), room in 400..4_000usize, factor in 10..25usize, tells: bool,
    ) {
        let mut agent = Agent::new();
        agent.hears("m0", "hello");
        agent.decides(&[ended("complete", says("hi"))]).unwrap();
        let system = ModelRequest { messages: agent.asked[0].messages[..1].to_vec(), ..(*agent.asked[0]).clone() };
        let most = (tokens::of_request(&system) + room) * factor / 10;
        for (number, size) in sizes.iter().enumerate() {
            agent.hears(&format!("m{}", number + 1), &"word ".repeat(*size));
            let decided = agent.decides_with(|request| {
                let context_tokens = if tells { most as u64 } else { 0 };
                match tokens::of_request(request) * factor / 10 > most {
                    true => failed(CompletionError { context_tokens, ..error("context_too_long", false) }),
                    false => ended("complete", says("ok")),
                }
            });
            for request in &agent.asked {
                prop_assert_eq!(check_conversation(&request.messages), Ok(()));
            }
            let acts = acts(&decided.unwrap());
            prop_assert_eq!(acts.last().map(String::as_str), Some("ok"));
        }
    }
}
