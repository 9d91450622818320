//! The questions that models are asked in the cone of a change, and the effect of their answers.

use kairo_proto::v1::{Completion, CompletionError, CompletionToolCall};

use super::*;
use crate::{
    decision_effects::DecisionCall,
    testing::{TestAgent, call_completion, text_completion},
};

/// A time that is looked up, told and thanked for.
struct Lived {
    messages: Vec<LogMessage>,
    asked: u64,
    looks: u64,
    result: u64,
    tells: u64,
    welcomes: u64,
}

fn lived() -> Lived {
    let mut agent = TestAgent::new("cook");
    let asked = agent.hears("one", "time please");
    let looks = agent.decide(&[call_completion("tools.now")]);
    let result = agent.learns(looks, "2");
    let tells = agent.decide(&[text_completion("It is 2.")]);
    agent.hears("one", "thanks");
    let welcomes = agent.decide(&[text_completion("You are welcome.")]);
    Lived { messages: agent.messages(), asked, looks, result, tells, welcomes }
}

/// The request for the time says something else.
fn otherwise(lived: &Lived) -> MessageChange {
    let message = lived.messages.iter().find(|it| it.sequence == lived.asked).unwrap();
    let body = Body::decode(AgentMessage::TYPE, ContentType::Protobuf, &message.data).unwrap();
    let Body::AgentMessage(said) = body else { panic!("{message:?}") };
    let other = Body::from(AgentMessage { text: "the hour please".into(), ..said });
    MessageChange::Edit(other.to_json().to_string().into_bytes())
}

/// The cone where models answer in this order, and nobody asks when all of it is said; how often models were asked.
fn answered(lived: &Lived, answers: &[Completion]) -> (Cone, usize) {
    let mut whatif = WhatIf::new(lived.asked, otherwise(lived), None).with_models();
    let mut answers = answers.iter();
    let mut count = 0;
    for message in &lived.messages {
        let mut took = whatif.apply(message).unwrap();
        while let WhatIfStep::Ask(questions) = took {
            let given: Vec<Completion> = answers.by_ref().take(questions.len()).cloned().collect();
            if given.len() < questions.len() {
                whatif.abandon("nobody asks");
                break;
            }
            count += given.len();
            took = whatif.answer(given);
        }
    }
    (whatif.into_cone().unwrap(), count)
}

fn of(cone: &Cone, at: u64) -> &ReachedMessage {
    cone.reached.iter().find(|it| it.sequence == at).unwrap_or_else(|| panic!("{at}: {:#?}", cone.reached))
}

fn thinking(answer: Completion) -> Completion {
    Completion { reasoning: "hm".into(), ..answer }
}

#[test]
fn the_same_call_keeps_its_result_whatever_was_thought_and_the_cone_goes_on_from_there() {
    let lived = lived();
    let answers = [
        thinking(call_completion("tools.now")),
        text_completion("It is 2 hours."),
        text_completion("You are welcome."),
    ];
    let (cone, count) = answered(&lived, &answers);
    assert_eq!(count, 3);
    assert_eq!((of(&cone, lived.looks).fate, of(&cone, lived.looks).asked), (Fate::Kept, 1));
    assert!(cone.reached.iter().all(|it| it.sequence != lived.result), "the result stands: {:#?}", cone.reached);
    let tells = of(&cone, lived.tells);
    assert_eq!((tells.fate, tells.differences[0].made.as_str()), (Fate::Changed, r#""It is 2 hours.""#));
    assert_eq!(of(&cone, lived.welcomes).fate, Fate::Kept);
    let expected = ConeCounts { decisions: 3, kept: 2, changed: 1, asked: 3, ..ConeCounts::default() };
    assert_eq!(cone.counts, expected);
}

#[test]
fn another_call_is_not_executed_and_what_came_of_the_recorded_one_vanishes() {
    let lived = lived();
    let other =
        CompletionToolCall { tool: "http.get".into(), arguments: r#"{"url":"x"}"#.into(), ..Default::default() };
    let (cone, _) = answered(&lived, &[Completion { tool_calls: vec![other], ..Completion::default() }]);
    let looks = of(&cone, lived.looks);
    let lost = DecisionCall { tool: "http.get".into(), arguments: r#"{"url":"x"}"#.into(), divergent: true };
    assert_eq!((looks.fate, &looks.lost), (Fate::Changed, &vec![lost]));
    assert_eq!([lived.result, lived.tells].map(|at| of(&cone, at).fate), [Fate::Vanished; 2]);
    assert_eq!(of(&cone, lived.tells).because, Some(lived.result));
    let welcomes = of(&cone, lived.welcomes);
    assert_eq!((welcomes.fate, welcomes.reason.as_deref()), (Fate::Unknown, Some("nobody asks")));
}

#[test]
fn what_nobody_asks_for_or_answers_is_not_known() {
    let lived = lived();
    let (cone, count) = answered(&lived, &[]);
    let (marked, _) = {
        let mut whatif = WhatIf::new(lived.asked, otherwise(&lived), None).with_expected_calls();
        lived.messages.iter().for_each(|message| drop(whatif.apply(message).unwrap()));
        assert_eq!(whatif.expected_calls().len(), 3, "each of the decisions took one call");
        (whatif.into_cone().unwrap(), ())
    };
    let fates = |cone: &Cone| cone.reached.iter().map(|it| (it.sequence, it.fate, it.because)).collect::<Vec<_>>();
    assert_eq!((fates(&cone), count), (fates(&marked), 0), "it is as without asking");

    let error =
        CompletionError { kind: "model_refused".into(), message: "no".into(), transient: false, ..Default::default() };
    let (cone, _) = answered(&lived, &[Completion { error: Some(error), ..Completion::default() }]);
    let looks = of(&cone, lived.looks);
    assert_eq!((looks.fate, looks.asked), (Fate::Unknown, 1));
    assert_eq!(looks.reason.as_deref(), Some("the model did not answer: no"));
}
