//! Endings of answers, and what follows from them: nothing is taken for more than it is.

use kairo_proto::v1::{DecidedEvent, Say, ToolError};
use serde_json::json;

use super::{background::queues, chains::kinds, *};
use crate::request::check_conversation;

/// An answer that ended like this.
pub(super) fn ended(ending: &str, completion: Completion) -> Completion {
    Completion { ending: ending.into(), ..completion }
}

fn complete(text: &str) -> Completion {
    ended("complete", says(text))
}

/// Calls with these ids, of one tool each.
fn calls_with(ids: &[&str]) -> Completion {
    let call = |id: &&str| CompletionToolCall {
        call_id: (*id).into(),
        tool: "tools.now".into(),
        arguments: "{}".into(),
        passed_back: json!({ "extra_content": { "signature": id } }).to_string(),
    };
    let passed_back = r#"{"reasoning_content":"hm"}"#.into();
    ended("complete", Completion { tool_calls: ids.iter().map(call).collect(), passed_back, ..Default::default() })
}

fn final_word(record: &Record) -> Say {
    let mut said = decision(record).events.iter().filter_map(DecidedEvent::say);
    said.rfind(|say| say.r#final).cloned().unwrap_or_else(|| panic!("no final word: {:?}", kinds(record)))
}

/// The ids of the calls and results that a request shows.
fn shown_ids(request: &ModelRequest) -> Vec<String> {
    let ids = |message: &PromptMessage| match message {
        PromptMessage::Assistant { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        PromptMessage::Tool { call_id, .. } => vec![format!("={call_id}")],
        PromptMessage::System { .. } | PromptMessage::User { .. } => Vec::new(),
    };
    request.messages.iter().flat_map(ids).collect()
}

#[test]
fn words_that_were_cut_are_gone_on_with_and_said_to_be_cut_where_there_is_no_end() {
    let mut agent = Agent::new();
    agent.hears("m1", "how?");
    let decided =
        agent.decides(&[ended("cut", says("1. Turn off the mains. 2. Never ")), complete("touch it.")]).unwrap();
    assert_eq!(acts(&decided), ["1. Turn off the mains. 2. Never touch it."]);
    assert_eq!(final_word(&decided).ending, "");
    agent.hears("m2", "and then?");
    let pieces = ["One, ", "two, ", "three"].map(|piece| ended("cut", says(piece)));
    let decided = agent.decides(&pieces).unwrap();
    let said = final_word(&decided);
    assert_eq!((said.text.as_str(), said.ending.as_str(), said.failure.as_str()), ("One, two, three", "cut", ""));
    let shown = format!("{:?}", agent.asked.last().unwrap().messages);
    assert!(shown.contains("\"One,\"") && shown.contains("Go on exactly where it ended"), "{shown}");
    agent.hears("m3", "what if it is away?");
    let away = fails(false);
    let said = final_word(&agent.decides(&[ended("cut", says("Half")), away]).unwrap());
    assert_eq!((said.text.as_str(), said.ending.as_str()), ("Half", "cut"), "what there is of it is said");
    agent.is_replayed();
}

#[test]
fn calls_of_an_answer_that_was_cut_are_never_made() {
    let mut agent = Agent::new();
    agent.hears("m1", "what time is it?");
    let cut = || ended("cut", calls_with(&["c1"]));
    let decided = agent.decides(&[cut(), calls_with(&["c2"])]).unwrap();
    assert_eq!(acts(&decided), ["malformed_tool_call?", "tools.now!"]);
    assert!(format!("{:?}", agent.asked.last().unwrap().messages).contains("none of its calls was made"));
    agent.learns(&decided, &actions(&decided)[0], "noon");
    agent.decides(&[complete("noon")]).unwrap();
    agent.hears("m2", "and now?");
    let decided = agent.decides(&[cut(), cut(), cut()]).unwrap();
    assert!(actions(&decided).is_empty());
    assert_eq!(final_word(&decided).failure, "malformed_tool_call");
    agent.hears("m3", "in words?");
    let empty = || ended("cut", says(""));
    let said = final_word(&agent.decides(&[empty(), empty(), empty()]).unwrap());
    assert_eq!((said.ending.as_str(), said.text.contains("before its first word")), ("cut", true));
    agent.is_replayed();
}

#[test]
fn a_refusal_is_the_reply_at_once_and_so_is_what_a_filter_left() {
    for (ending, text, expected) in [
        ("refused", "I cannot help with that.", "I cannot help with that."),
        ("refused", " ", "The model declines to answer this."),
        ("filtered", "The first half", "The first half"),
        ("filtered", "", "A content filter of the model's endpoint withheld the answer."),
    ] {
        let mut agent = Agent::with(AgentProfile { max_reflections: 1, ..Default::default() });
        agent.hears("m1", "do it");
        let said = final_word(&agent.decides(&[ended(ending, says(text))]).unwrap());
        assert_eq!((said.text.as_str(), said.ending.as_str(), said.failure.as_str()), (expected, ending, ""));
        assert!(agent.mind.state.turns.is_empty());
        agent.is_replayed();
    }
}

#[test]
fn an_empty_answer_is_asked_again_once_and_ends_a_turn_that_has_done_something() {
    let empty = || ended("empty", says(""));
    let mut agent = Agent::new();
    agent.hears("m1", "hello");
    assert_eq!(acts(&agent.decides(&[empty(), complete("hi")]).unwrap()), ["malformed_answer?", "hi"]);
    agent.hears("m2", "hello?");
    let said = final_word(&agent.decides(&[empty(), empty()]).unwrap());
    assert_eq!((said.failure.as_str(), said.ending.as_str()), ("malformed_answer", ""));
    agent.hears("m3", "pay the rent");
    let decided = agent.decides(&[calls_with(&["c1", "c2"])]).unwrap();
    let [first, second] = actions(&decided).try_into().unwrap();
    agent.learns(&decided, &first, r#"{"receipt": 7}"#);
    let error = ToolError { kind: "failed".into(), message: "no money".into() };
    let result = ToolResult { action_id: second, error: Some(error), ..Default::default() };
    agent.write(&TOOL_RESULT, Some(&decided.envelope.clone()), result);
    let decided = agent.decides(&[empty()]).unwrap();
    let said = final_word(&decided);
    assert_eq!((said.failure.as_str(), said.ending.as_str()), ("", "empty"));
    assert!(
        said.text.contains(r#"tools.now: {"receipt": 7}"#) && said.text.contains("failed: failed no money"),
        "{}",
        said.text
    );
    assert_eq!(kinds(&decided).len(), 1, "nothing failed");
    agent.is_replayed();
}

#[test]
fn work_that_was_refused_has_failed_and_its_reason_is_no_result() {
    let mut agent = Agent::with(AgentProfile { conduct: "background".into(), ..Default::default() });
    agent.hears("m1", "Research");
    agent.decides(&[queues("I will.", &["Research"])]).unwrap();
    let decided = agent.works(&[ended("refused", says("I cannot."))]).unwrap();
    let ended = decision(&decided).events.iter().find_map(|event| {
        let Some(Event::TaskEnded(ended)) = &event.event else { return None };
        Some((ended.status.clone(), ended.result.clone(), ended.reason.clone()))
    });
    assert_eq!(ended, Some(("failed".into(), String::new(), "I cannot.".into())));
    agent.is_replayed();
}

#[test]
fn a_models_own_ids_are_kept_once_in_a_thread_and_what_belongs_to_calls_goes_back_while_the_turn_lasts() {
    let mut agent = Agent::new();
    agent.hears("m1", "what time is it?");
    for ids in [["same", "same"], ["same", &"c".repeat(65)]] {
        let asked = agent.decides(&[calls_with(&ids)]).unwrap();
        for action in actions(&asked) {
            agent.learns(&asked, &action, "noon");
        }
    }
    agent.decides(&[complete("noon")]).unwrap();
    let ids = shown_ids(agent.asked.last().unwrap());
    let made: Vec<&String> = ids.iter().filter(|id| !id.contains("same") && !id.starts_with('=')).collect();
    assert_eq!((ids[0].as_str(), ids[2].as_str(), made.len()), ("same", "=same", 3));
    assert!(made.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{made:?}");
    assert_eq!(made.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    let back = |request: &ModelRequest| {
        let of = |message: &PromptMessage| match message {
            PromptMessage::Assistant { calls, passed_back, .. } => {
                let own = calls.iter().filter(|call| call.passed_back.contains("signature")).count();
                Some((passed_back.clone(), own)).filter(|_| !calls.is_empty())
            }
            PromptMessage::System { .. } | PromptMessage::User { .. } | PromptMessage::Tool { .. } => None,
        };
        request.messages.iter().filter_map(of).collect::<Vec<_>>()
    };
    let with = (r#"{"reasoning_content":"hm"}"#.to_owned(), 2);
    assert_eq!(back(agent.asked.last().unwrap()), [with.clone(), with]);
    agent.hears("m2", "thank you");
    agent.decides(&[complete("you are welcome")]).unwrap();
    assert_eq!(back(agent.asked.last().unwrap()), [(String::new(), 0), (String::new(), 0)]);
    agent.is_replayed();
}

#[test]
fn what_belongs_to_calls_goes_back_through_a_chain_too() {
    let mut agent = Agent::new();
    agent.hears("m1", "remind me");
    let mut made = calls_with(&["c1", "c2"]);
    made.reasoning_details = r#"[{"type":"reasoning.encrypted","data":"x"}]"#.into();
    made.tool_calls[1].tool = "thread.summarize".into();
    let answers = [made, ended("complete", says(r#"{"title": "T", "summary": "S"}"#))];
    let decided = agent.decides(&answers).unwrap();
    agent.learns(&decided, &actions(&decided)[0], "noon");
    agent.decides(&[complete("done")]).unwrap();
    let shown = agent.asked.last().unwrap();
    assert_eq!(shown_ids(shown), ["c1", "c2", "=c1", "=c2"]);
    let Some(PromptMessage::Assistant { passed_back, calls, .. }) =
        shown.messages.iter().find(|message| matches!(message, PromptMessage::Assistant { .. }))
    else {
        panic!("no calls")
    };
    assert!(passed_back.contains("reasoning_content") && passed_back.contains("reasoning.encrypted"), "{passed_back}");
    assert!(calls.iter().all(|call| call.passed_back.contains(&call.id)));
    agent.is_replayed();
}

#[test]
fn more_calls_than_may_run_at_once_run_one_group_behind_another_and_each_once() {
    let mut agent = Agent::new();
    agent.hears("m1", "look");
    let mut made = calls_with(&["c1", "c2", "c3", "c4", "c5"]);
    made.tool_calls[1].tool = "no.such".into();
    let mut decided = agent.decides(&[made]).unwrap();
    let mut ran = 0;
    loop {
        for action in actions(&decided) {
            ran += 1;
            agent.learns(&decided, &action, "noon");
        }
        let next = loop {
            match agent.decides_with(|_| complete("done")) {
                Some(next) if actions(&next).is_empty() && !acts(&next).contains(&"done".to_owned()) => {}
                next => break next,
            }
        };
        match next {
            Some(next) if actions(&next).is_empty() => break,
            Some(next) => decided = next,
            None => panic!("the turn does not go on"),
        }
    }
    assert_eq!(ran, 4, "each that there is once");
    let shown = agent.asked.last().unwrap();
    let results =
        shown_ids(shown).into_iter().filter(|id| id.starts_with('=')).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(results.into_iter().collect::<Vec<_>>(), ["=c1", "=c2", "=c3", "=c4", "=c5"]);
    assert!(format!("{:?}", shown.messages).contains("there is no tool named"));
    assert!(agent.mind.state.turns.is_empty());
    agent.is_replayed();
}

/// An answer of any kind.
fn answer() -> impl Strategy<Value = Completion> {
    let ending = prop::sample::select(vec!["complete", "cut", "filtered", "refused", "failed", "empty", ""]);
    let text = prop::sample::select(vec!["", "words", "{\"event\": \"agent.reply\"", "{\"action\": \"continue\"}"]);
    let tools =
        prop::sample::select(vec![vec![], vec!["tools.now"], vec!["tools.now", "no.such"], vec!["http.get"; 3]]);
    let kinds =
        vec!["model_unavailable", "model_unauthorized", "context_too_long", "malformed_answer", "model_refused"];
    let failure = (prop::sample::select(kinds), any::<bool>(), 0..4_000u64).prop_map(|(kind, transient, most)| {
        let kind = kind.to_owned();
        let context_tokens = most;
        let error = CompletionError { kind, message: "no".into(), transient, context_tokens, ..Default::default() };
        Completion { error: Some(error), ..Default::default() }
    });
    let said = (ending, text, tools, any::<bool>()).prop_map(|(ending, text, tools, has_json)| {
        let mut completion = ended(ending, calls(&tools));
        completion.text = text.into();
        if !has_json {
            completion.tool_calls.iter_mut().for_each(|call| call.arguments = "{\"a".into());
        }
        completion
    });
    prop_oneof![3 => said, 1 => failure]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// Whatever models answer: every turn ends or waits, no call is of an answer that was cut, and what tells of a failure says so.
    #[test]
    fn whatever_answers_are_like_nothing_is_taken_for_more_than_it_is(
        answers in prop::collection::vec(answer(), 1..24), manner in 0..4usize,
    ) {
        let profile = match manner {
            0 => AgentProfile::default(),
            1 => AgentProfile { conduct: "background".into(), ..Default::default() },
            2 => AgentProfile { planning: "chain".into(), threads: "topics".into(), ..Default::default() },
            _ => AgentProfile { guesses_goal: true, max_reflections: 2, ..Default::default() },
        };
        let mut agent = Agent::with(profile);
        agent.hears("m1", "first");
        agent.hears("m2", "second");
        let mut next = answers.iter().cycle();
        for _ in 0..40 {
            let asked = std::cell::RefCell::new(Vec::new());
            let mut answered = |_: &ModelRequest| {
                let completion = next.next().unwrap().clone();
                asked.borrow_mut().push(completion.clone());
                completion
            };
            let decided = match agent.decides_with(&mut answered) {
                None => agent.works_with(&mut answered),
                decided => decided,
            };
            let Some(decided) = decided else { break };
            let asked = asked.into_inner();
            let may_call = asked.iter().any(|it| it.ending != "cut" && !it.tool_calls.is_empty() || it.text.starts_with('{'));
            for event in &decision(&decided).events {
                if let Some(call) = event.tool_call().filter(|call| call.chain_id.is_empty()) {
                    prop_assert!(may_call, "{} was called", call.tool);
                }
                if let Some(say) = event.say().filter(|say| say.text.starts_with("I could not finish")) {
                    prop_assert!(!say.failure.is_empty(), "{say:?}");
                }
            }
            for action in actions(&decided) {
                agent.learns(&decided, &action, "1");
            }
        }
        let is_open = |turn: &crate::state::AgentTurn| turn.due.is_some() && turn.waiting.is_empty();
        prop_assert!(!agent.mind.state.turns.values().any(is_open));
        for request in &agent.asked {
            prop_assert_eq!(check_conversation(&request.messages), Ok(()), "{:#?}", request.messages);
        }
        agent.is_replayed();
    }
}
