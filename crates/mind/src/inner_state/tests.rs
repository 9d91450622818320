use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("no object") };
    object
}

/// A user's change, as the log takes it in.
fn change(state: &mut AgentState, user: &str, at: usize, item: Value) -> Result<(), String> {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(i64::try_from(at).unwrap());
    let id = Uuid::from_u128(at as u128);
    let mut writer = InnerStateWriter::new(&state.inner, user, now, id, None, Provenance::default());
    let (changes, mut refused) = writer.apply(&json!([item]), 1).unwrap();
    for change in &changes {
        let change = match change {
            AcceptedStateChange::Write(written) => about::State::Written(written),
            AcceptedStateChange::Delete(deleted) => about::State::Deleted(deleted),
        };
        state.apply_inner_state_change(&id.to_string(), change);
    }
    refused.pop().map_or(Ok(()), Err)
}

fn keep(state: &mut AgentState, user: &str, at: usize, key: &str, content: &str) -> Result<(), String> {
    change(state, user, at, json!({ "key": key, "content": content }))
}

fn keys(state: &AgentState, user: &str) -> Vec<String> {
    state.inner.visible_to(user).into_keys().map(str::to_owned).collect()
}

#[test]
fn what_no_user_wrote_all_see_and_only_such_turns_change() {
    let mut state = AgentState::default();
    keep(&mut state, "", 1, "house", "closes at ten").unwrap();
    keep(&mut state, "ann", 2, "mine", "tea").unwrap();
    assert_eq!(
        (keys(&state, "ann"), keys(&state, "bob"), keys(&state, "")),
        (vec!["house".to_owned(), "mine".to_owned()], vec!["house".to_owned()], vec!["house".to_owned()],)
    );
    let refused = change(&mut state, "ann", 3, json!({ "key": "house", "content": null })).unwrap_err();
    assert!(refused.contains("only a turn that no user began"), "{refused}");
    keep(&mut state, "ann", 4, "house", "for me at nine").unwrap();
    let of = |user: &str| state.inner.get(user, "house").unwrap().content.clone();
    assert_eq!((of("ann"), of("bob")), ("for me at nine".to_owned(), "closes at ten".to_owned()));
}

#[test]
fn what_is_wrong_is_refused_by_its_name() {
    let mut state = AgentState::default();
    let many: Vec<String> = (0..=RELATED_KEYS).map(|at| format!("k{at}")).collect();
    for (item, field) in [
        (json!({ "content": "x" }), "key:"),
        (json!({ "key": "", "content": "x" }), "key:"),
        (json!({ "key": " x", "content": "x" }), "key:"),
        (json!({ "key": "a\nb", "content": "x" }), "key:"),
        (json!({ "key": "x".repeat(KEY_BYTES + 1), "content": "x" }), "key:"),
        (json!({ "key": "k" }), "content:"),
        (json!({ "key": "k", "content": 7 }), "content:"),
        (json!({ "key": "k", "content": "x".repeat(CONTENT_BYTES + 1) }), "content:"),
        (json!({ "key": "k", "content": "x", "related_keys": many }), "related_keys:"),
        (json!({ "key": "k", "content": "x", "related_keys": ["a\tb"] }), "related_keys:"),
        (json!({ "key": "k", "content": null }), "key:"),
    ] {
        let refused = change(&mut state, "ann", 1, item.clone()).unwrap_err();
        assert!(refused.starts_with(field), "{item}: {refused}");
    }
    assert!(state.inner.is_nothing());
    let mut writer =
        InnerStateWriter::new(&state.inner, "ann", Timestamp::UNIX_EPOCH, Uuid::nil(), None, Provenance::default());
    assert!(writer.apply(&json!([{}, {}]), 1).is_err() && writer.apply(&json!("x"), 1).is_err());
}

#[test]
fn no_user_fills_it_for_others_and_nothing_is_dropped_for_anybody() {
    let mut state = AgentState::default();
    let long = "x".repeat(CONTENT_BYTES);
    let fill = |state: &mut AgentState, user: &str| {
        let kept = (0..100).take_while(|at| keep(state, user, *at, &format!("k{at}"), &long).is_ok()).count();
        assert!(keep(state, user, 1, "more", &long).unwrap_err().contains("no room"));
        kept
    };
    let ann = fill(&mut state, "ann");
    let bob = fill(&mut state, "bob");
    assert!(ann >= 2 && bob >= 1, "{ann} {bob}");
    for user in 0..20 {
        keep(&mut state, &format!("u{user}"), 1, "k", "a few words").unwrap();
    }
    assert_eq!((keys(&state, "ann").len(), keys(&state, "bob").len()), (ann, bob));
    // What makes nothing larger is taken, however little there is left.
    keep(&mut state, "ann", 200, "k0", "less").unwrap();
    change(&mut state, "bob", 201, json!({ "key": "k0", "content": null })).unwrap();
    assert_eq!(fill(&mut state, ""), 3, "what is for all has room of its own");
    let before = state.inner.clone();
    let small: usize = (0..1_000).take_while(|at| keep(&mut state, "eve", *at, &format!("s{at}"), "").is_ok()).count();
    assert!(small > 20 && small <= KEYS_OF_USER, "{small}");
    assert_eq!(state.inner.entries_of("ann"), before.entries_of("ann"));
}

#[test]
fn what_has_most_of_the_words_is_found_first_in_chinese_too() {
    let mut state = AgentState::default();
    for (at, (key, content)) in [
        ("budget", "Q2 is tight"),
        ("launch", "the budget review moved to June"),
        ("会议", "预算会议改到六月，王小明主持"),
        ("lunch", "noodles"),
    ]
    .into_iter()
    .enumerate()
    {
        keep(&mut state, "ann", at, key, content).unwrap();
    }
    let found =
        |words: &str| state.inner.find("ann", words).into_iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>();
    assert_eq!(found("BUDGET review"), ["launch", "budget"]);
    assert_eq!(found("budg"), ["budget", "launch"], "the beginning of a word");
    assert_eq!(found("udget"), Vec::<String>::new());
    assert_eq!(found("预算"), ["会议"]);
    assert_eq!(found("小明 noodles"), ["lunch", "会议"]);
    assert_eq!(found("算"), ["会议"]);
    assert_eq!((found("..."), found("预会")), (Vec::new(), Vec::new()));
}

#[test]
fn a_prompt_is_shown_what_was_written_last_and_how_much_is_left_out() {
    let mut state = AgentState::default();
    change(&mut state, "ann", 1, json!({ "key": "a", "content": "one\ntwo", "related_keys": ["b"] })).unwrap();
    keep(&mut state, "ann", 2, "b", "three").unwrap();
    assert_eq!(prompt_lines(&state, "ann", 1_000).0, "- b: three\n- a: one two (see b)\n");
    assert_eq!(prompt_lines(&state, "ann", 15).0, "- b: three\n- and 1 more\n");
    assert_eq!(prompt_lines(&state, "bob", 1_000), (String::new(), Provenance::default()));
}

fn any_change() -> impl Strategy<Value = (String, Value)> {
    let user = prop::sample::select(vec!["", "ann", "bob", "eve"]);
    let key = prop::sample::select(vec!["a", "b", "c", "d"]);
    let content = prop_oneof![
        3 => (0..CONTENT_BYTES).prop_map(|bytes| Some("word ".repeat(bytes / 5))),
        1 => Just(None),
    ];
    let related = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3);
    (user, key, content, related).prop_map(|(user, key, content, related)| {
        (user.to_owned(), json!({ "key": key, "content": content, "related_keys": related }))
    })
}

proptest! {
    // Looking for secrets in long texts takes its time.
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_is_bounded_whatever_is_written(changes in prop::collection::vec(any_change(), 0..60)) {
        let mut state = AgentState::default();
        for (at, (user, item)) in changes.into_iter().enumerate() {
            _ = change(&mut state, &user, at, item);
        }
        let taken = |user: &str| state.inner.entries_of(user).into_iter().flatten().map(entry_bytes).sum::<usize>();
        prop_assert!(taken("") <= BYTES_OF_ALL);
        prop_assert!(["ann", "bob", "eve"].map(taken).iter().sum::<usize>() <= BYTES_OF_USERS);
        let stored = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(serde_json::from_str::<AgentState>(&stored).unwrap(), state);
    }

    #[test]
    fn what_others_write_changes_nothing_of_what_a_user_sees(changes in prop::collection::vec(any_change(), 0..40)) {
        let mut all = AgentState::default();
let mut without = AgentState::default();
        for (at, (user, item)) in changes.into_iter().enumerate() {
            // Small enough that everybody has room for it.
            let mut item = object(item);
            if let Some(Value::String(content)) = item.get_mut("content") {
                content.truncate(500);
            }
            let item = Value::Object(item);
            let came_to = change(&mut all, &user, at, item.clone());
            if user == "ann" || user.is_empty() {
                prop_assert_eq!(came_to, change(&mut without, &user, at, item));
            }
        }
        let see = |state: &AgentState| format!(
            "{:?} {:?} {:?} {:?}",
            state.inner.visible_to("ann"),
            state.inner.find("ann", "word a b"),
            state.inner.related_entries("ann", "a"),
            prompt_lines(state, "ann", 1_000),
        );
        prop_assert_eq!(see(&all), see(&without));
    }
}
