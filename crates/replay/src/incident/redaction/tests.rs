//! Logs of agents, redacted.

use kairo_mind::replay::changes::ReplayChanges;
use kairo_proto::v1::CompletionToolCall;
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;
use crate::{
    replayer::{ReplayProgress, Replayer},
    report::{OutcomeClass, Range},
    testing::{TestAgent, name, text_completion, with_changed_decision},
};

fn named(words: &[&str], patterns: &[&str]) -> RedactionTerms {
    let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
    RedactionTerms { words: words.iter().map(|word| (*word).to_owned()).collect(), patterns }
}

fn redacted(
    messages: &[LogMessage],
    named: RedactionTerms,
) -> Result<(Vec<LogMessage>, BTreeMap<String, u64>), RedactionError> {
    let mut finding = ValueFinder::new(name("cook"), named);
    messages.iter().for_each(|message| finding.scan(message));
    let mut redacting = finding.into_redactor(None)?;
    let redacted: Result<Vec<_>, _> = messages.iter().map(|message| redacting.redact(message)).collect();
    Ok((redacted?, redacting.counts()))
}

fn calls_with(tool: &str, arguments: &Value) -> Completion {
    let call = CompletionToolCall { tool: tool.into(), arguments: arguments.to_string(), ..Default::default() };
    Completion { tool_calls: vec![call], ..Default::default() }
}

fn classes(messages: &[LogMessage]) -> Vec<(u64, OutcomeClass)> {
    let mut replaying = Replayer::new(BTreeSet::new(), Range::default(), ReplayChanges::default(), None);
    let decision = |message| match replaying.replay(message).unwrap() {
        ReplayProgress::Decision(decision) => Some((decision.sequence, decision.outcome)),
        ReplayProgress::NoDecision | ReplayProgress::End => None,
    };
    messages.iter().filter_map(decision).collect()
}

/// All that a file would have of a message: what it says, its bytes as text, and both without escapes.
fn message_text(message: &LogMessage) -> String {
    let record = log_message::decode_record(message).unwrap().unwrap();
    let line = serde_json::to_string(message).unwrap();
    let body = record.body.to_json().to_string();
    let bytes = String::from_utf8_lossy(&message.data).into_owned();
    [line, bytes.replace("\\\"", "\""), body.replace('\\', ""), body, bytes].join("\n").to_lowercase()
}

/// An agent that is told much and does something about it.
fn log() -> Vec<LogMessage> {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "I am Ann, ann@x.org or +49 30 1234567. The password is Tr0ub4dor\"3; my sister Zoé has case-77.");
    let arguments =
        json!({ "url": "https://ann:pw-98765@x.org", "card": 4_111_111_111_111_111_u64, "ann@x.org": "Zoé's" });
    let asks = agent.decide(&[calls_with("http.get", &arguments)]);
    let result = json!({ "from": "203.0.113.7", "iban": "DE89370400440532013000", "nested": arguments.to_string() });
    agent.learns(asks, &result.to_string());
    agent.decide(&[text_completion(
        "Dear ANN, I wrote to Ann@X.org from 203.0.113.7. Annual reports stay; zoé is in CASE-77.",
    )]);
    agent.hears("", "Thanks, Tr0ub4dor\"3 again");
    agent.decide(&[text_completion("You are welcome.")]);
    agent.messages()
}

const VALUES: [&str; 10] = [
    "ann@x.org",
    "ann%40x.org",
    "+49 30 1234567",
    "tr0ub4dor",
    "pw-98765",
    "4111111111111111",
    "203.0.113.7",
    "de89370400440532013000",
    "zoé",
    "case-77",
];

#[test]
fn no_value_is_left_and_every_decision_comes_out_as_it_did() {
    let open = log();
    let (messages, counts) = redacted(&open, named(&["Zoé"], &["(?i)case-[0-9]+"])).unwrap();
    assert_eq!(classes(&messages), classes(&open));
    assert_eq!(classes(&messages).len(), 3);
    assert!(classes(&messages).iter().all(|(_, class)| *class == OutcomeClass::Same));
    for message in &messages {
        let shown = message_text(message);
        for value in VALUES {
            assert!(!shown.contains(value), "{value}: {shown}");
        }
        let words: Vec<&str> = shown.split(|sign: char| !sign.is_alphanumeric()).collect();
        assert!(!words.contains(&"ann"), "{shown}");
    }
    let all: String = messages.iter().map(message_text).collect();
    for stays in ["annual reports stay", "you are welcome", "⟨email-1⟩", "user-1", "⟨word-1⟩", "secret-1"] {
        assert!(all.contains(stays), "{stays}");
    }
    assert!(!all.contains("⟨email-2⟩") && !all.contains("user-2"), "the same value has the same token");
    for kind in ["user", "email", "phone", "secret", "credentials", "card", "ip", "iban", "word", "pattern"] {
        assert!(counts.get(kind).is_some_and(|count| *count > 0), "{kind}: {counts:?}");
    }
    let sequences = |messages: &[LogMessage]| messages.iter().map(|it| it.sequence).collect::<Vec<_>>();
    assert_eq!(sequences(&messages), sequences(&open));
    assert_eq!(redacted(&open, named(&["Zoé"], &["(?i)case-[0-9]+"])).unwrap().0, messages, "it is the same each time");
}

#[test]
fn requests_have_the_digests_that_the_redacted_log_makes() {
    let open = log();
    let (messages, _) = redacted(&open, RedactionTerms::default()).unwrap();
    let digests = |messages: &[LogMessage]| -> Vec<String> {
        let decisions = messages.iter().filter_map(|message| {
            let record = log_message::decode_record(message).unwrap().unwrap();
            AgentDecision::of(&record.body).cloned()
        });
        decisions.flat_map(|decision| decision.completions).map(|completion| completion.request_digest).collect()
    };
    let one = digests(&open);
    let other = digests(&messages);
    assert_eq!((one.len(), other.len()), (3, 3));
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
}

#[test]
fn a_decision_that_depends_on_a_value_is_refused_with_its_place_and_without_the_value() {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "remember my card 4111 1111 1111 1111");
    let remembers = json!({ "kind": "preference", "subject": "card", "keywords": ["card"], "content": "the card 4111 1111 1111 1111" });
    let at = agent.decide(&[calls_with("memory.append", &remembers), text_completion("Done.")]);
    let Err(RedactionError::Shape { sequence, at: place }) = redacted(&agent.messages(), RedactionTerms::default())
    else {
        panic!("expected that it is refused")
    };
    assert_eq!(sequence, at);
    assert!(place.starts_with("events."), "{place}");
    let told = RedactionError::Shape { sequence, at: place }.to_string();
    assert!(!told.contains("4111"), "{told}");
}

#[test]
fn what_is_announced_as_a_secret_is_still_taken_out_of_what_is_remembered() {
    let mut agent = TestAgent::new("cook");
    agent.hears("", "remember that the password is Tr0ub4dor&3");
    let remembers = json!({ "kind": "preference", "subject": "door", "keywords": ["door"], "content": "the password is Tr0ub4dor&3" });
    agent.decide(&[calls_with("memory.append", &remembers), text_completion("Done.")]);
    let (messages, _) = redacted(&agent.messages(), RedactionTerms::default()).unwrap();
    assert!(classes(&messages).iter().all(|(_, class)| *class == OutcomeClass::Same));
    let all: String = messages.iter().map(message_text).collect();
    assert!(all.contains("[secret password") && all.contains("secret-1") && !all.contains("tr0ub4dor"));
}

#[test]
fn a_decision_that_is_not_made_as_recorded_comes_out_as_it_did_and_has_no_value() {
    let open = log();
    let changed = with_changed_decision(&open, classes(&open)[1].0, |decision| decision.profile_sequence = 1);
    let (messages, _) = redacted(&changed, RedactionTerms::default()).unwrap();
    assert_eq!(classes(&messages), classes(&changed));
    assert_eq!(classes(&messages)[1].1, OutcomeClass::Differs);
    assert!(messages.iter().map(message_text).all(|shown| !shown.contains("ann@x.org")));
}

#[test]
fn what_nobody_can_read_is_refused() {
    let mut messages = log();
    let last = messages.last_mut().unwrap();
    last.data = vec![0xff; 9];
    let sequence = last.sequence;
    assert_eq!(redacted(&messages, RedactionTerms::default()).unwrap_err(), RedactionError::Unreadable { sequence });
    let newer = with_changed_decision(&log(), sequence, |decision| decision.reader = u32::MAX);
    assert_eq!(redacted(&newer, RedactionTerms::default()).unwrap_err(), RedactionError::Newer { sequence });
}

#[test]
fn somebody_who_is_called_like_a_token_or_like_a_field_is_somebody_else() {
    let mut values = Values::default();
    ["user-1", "user", "tool"].into_iter().for_each(|user| values.add(ValueKind::User, user));
    let replacing = Replacer::new(values, HashMap::new()).unwrap();
    let tokens: BTreeSet<&str> = ["user-1", "user", "tool"].map(|user| replacing.values().token(user).unwrap()).into();
    assert_eq!(tokens.len(), 3);
    let text = r#"{"to":"user","with":["a tool"]}"#;
    let other: Value = serde_json::from_str(&body_texts::replace_in_text(text, 0, &replacing)).unwrap();
    assert_eq!(other["to"], replacing.values().token("user").unwrap());
    assert_eq!(other["with"][0], format!("a {}", replacing.values().token("tool").unwrap()));
    let call = json!({ "tool": "user.notify", "arguments": text });
    let walked = body_texts::walk(&call, false, &mut |text, field, _| {
        (field == Field::Said).then(|| body_texts::replace_in_text(text, 0, &replacing))
    });
    assert_eq!(walked["tool"], "user.notify", "a tool keeps its name");
}

proptest! {
    #[test]
    fn no_value_survives_in_any_text(
        parts in vec(prop_oneof![
            any::<String>(), "[a-z \"\\\\{}:,.@⟨⟩-]{0,12}", Just("jörg@müller.de".to_owned()), Just("Kim".to_owned()),
            Just("+1 555 123 4567".to_owned()), Just("hunter\\\"2ß".to_owned()), Just("203.0.113.9".to_owned()),
        ], 0..8),
        depth in 0..4,
    ) {
        let text = parts.concat();
        let text = (0..depth).fold(text, |text, _| json!({ "text": text, "list": [text] }).to_string());
        let mut values = Values::default();
        for (kind, value) in [
            (ValueKind::User, "kim"), (ValueKind::Email, "jörg@müller.de"), (ValueKind::Phone, "+1 555 123 4567"),
            (ValueKind::Secret, "hunter\\\"2ß"), (ValueKind::Ip, "203.0.113.9"),
        ] {
            values.add(kind, value);
        }
        body_texts::visit_texts(&text, 0, &mut |text| {
            value_search::find_values(text, &[]).into_iter().for_each(|(kind, value)| values.add(kind, value));
        });
        let replacing = Replacer::new(values, HashMap::new()).unwrap();
        let other = body_texts::replace_in_text(&text, 0, &replacing);
        prop_assert!(!replacing.has_value_left(&other, true), "{}", other);
        prop_assert!(!other.contains("hunter\\\"2ß") && !other.contains("hunter\\\\\\\"2ß"), "{}", other);
        body_texts::visit_texts(&other, 0, &mut |inner| assert!(!replacing.has_value_left(inner, false), "{inner}"));
        if depth > 0 {
            prop_assert!(serde_json::from_str::<Value>(&other).is_ok(), "{}", other);
        }
        prop_assert_eq!(body_texts::replace_in_text(&other, 0, &replacing), other, "a second time changes nothing");
    }
}
