use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Results of some steps.
fn outcomes() -> Vec<(&'static str, Option<Value>)> {
    vec![
        ("tools.now", Some(json!({"now": "2026-03-25T10:00:00+01:00", "date": "2026-03-25", "result": 7}))),
        ("team.members", Some(json!({"members": [{"name": "Ann", "email": null}], "total": 1}))),
        ("team.members", Some(json!({"members": [], "total": 0}))),
        ("team.members", None),
        ("web.search", Some(json!("{tools.now.date} {{x}}"))),
        ("web", Some(json!([1, [2, "three"]]))),
        ("agent.think", None),
    ]
}

fn fill_with(params: Value, event: &Value, analysis: &str) -> Result<Value, String> {
    let Value::Object(params) = params else { panic!("{params}") };
    let outcomes = outcomes();
    let outcomes: Vec<StepOutcome<'_>> =
        outcomes.iter().map(|(event, result)| StepOutcome { event, result: result.as_ref() }).collect();
    let scope = ReferenceScope { outcomes: &outcomes, thread_id: "t_1", analysis, summary: "about prices", event };
    fill(&params, &scope).map(Value::Object)
}

fn filled(text: &str) -> Result<Value, String> {
    let mut filled = fill_with(json!({"x": text}), &json!({"sender": "sarah", "n": 1}), "")?;
    Ok(filled["x"].take())
}

#[test]
fn a_whole_string_keeps_the_type() {
    for (text, value) in [
        ("{tools.now.result}", outcomes()[0].1.clone().unwrap()),
        ("{tools.now}", outcomes()[0].1.clone().unwrap()),
        ("{tools.now.result.date}", json!("2026-03-25")),
        ("{tools.now.date}", json!("2026-03-25")),
        ("{tools.now.result.result}", json!(7)),
        ("{team.members[0].result.members[0].name}", json!("Ann")),
        ("{team.members[0].members[0].email}", Value::Null),
        // The third has no result.
        ("{team.members.total}", json!(0)),
        ("{team.members[1].result}", json!({"members": [], "total": 0})),
        ("{web.search.result}", json!("{tools.now.date} {{x}}")),
        ("{web.result[1]}", json!([2, "three"])),
        ("{thread.summary}", json!("about prices")),
        ("{event}", json!({"sender": "sarah", "n": 1})),
        ("{event.n}", json!(1)),
    ] {
        assert_eq!(filled(text).unwrap(), value, "{text}");
    }
}

#[test]
fn within_a_text_all_is_text() {
    for (text, value) in [
        ("{tools.now.date} 17:00", "2026-03-25 17:00"),
        ("{event.sender}: {event.n}, {team.members[0].members[0]}", "sarah: 1, {\"email\":null,\"name\":\"Ann\"}"),
        ("{thread.t_1.summary}!", "about prices!"),
        ("{{tools.now.date}} {{{tools.now.date}}}", "{tools.now.date} {2026-03-25}"),
        ("{{tools.now.date}}", "{tools.now.date}"),
        // What is filled in refers to nothing.
        ("say {web.search.result}", "say {tools.now.date} {{x}}"),
        ("{\"a\": {\"b\": \"{tools.now.date}\"}} { x } {}", "{\"a\": {\"b\": \"2026-03-25\"}} { x } {}"),
    ] {
        assert_eq!(filled(text).unwrap(), value, "{text}");
    }
    let params = json!({"a": [{"b": "{event.n}", "{event.n}": "c"}, 1, null], "d": true});
    let expected = json!({"a": [{"b": 1, "{event.n}": "c"}, 1, null], "d": true});
    assert_eq!(fill_with(params, &json!({"n": 1}), "").unwrap(), expected);
}

#[test]
fn errors_name_the_reference_and_what_there_is() {
    for (text, error) in [
        (
            "{tools.then.date}",
            "{tools.then.date}: refers to no step of the chain; there are tools.now, team.members, team.members, team.members, web.search, web, agent.think",
        ),
        ("at {tools.now.day}", "{tools.now.day}: there is no \"day\", but date, now, result"),
        ("{tools.now.date.year}", "{tools.now.date.year}: there is a text where \"year\" was looked for"),
        (
            "{team.members[0].members.name}",
            "{team.members[0].members.name}: there is a list of 1 where \"name\" was looked for",
        ),
        ("{team.members[1].members[0]}", "{team.members[1].members[0]}: there is no [0] in a list of 0"),
        ("{team.members[2].total}", "{team.members[2].total}: team.members[2] has no result"),
        ("{team.members[3]}", "{team.members[3]}: there is no team.members[3], but 3 of them"),
        ("{tools.now.date[0]}", "{tools.now.date[0]}: there is a text where [0] was looked for"),
        ("{agent.think.result}", "{agent.think.result}: agent.think has no result"),
        ("{thread.analysis}", "{thread.analysis}: nothing was analyzed in the thread yet"),
        (
            "{thread.t_2.summary}",
            "{thread.t_2.summary}: reaches outside the thread; write {thread.analysis} or {thread.summary}",
        ),
        (
            "{thread.t_1.events[0]}",
            "{thread.t_1.events[0]}: refers to nothing of the thread; write {thread.analysis} or {thread.summary}",
        ),
    ] {
        assert_eq!(filled(text).unwrap_err(), error);
    }
    let nothing = fill_with(json!({"x": "{event.sender}"}), &Value::Null, "");
    assert_eq!(nothing.unwrap_err(), "{event.sender}: nothing triggered the chain");
    assert_eq!(fill_with(json!({"x": "{thread.analysis}"}), &Value::Null, "Sell.").unwrap(), json!({"x": "Sell."}));
}

#[test]
fn steps_of_a_task_are_filled_when_they_run() {
    let action = |message: &str| {
        json!([
            {"event": "email.search", "params": {"from": "{event.sender}"}},
            [{"event": "user.notify", "params": {"message": message}}, "calendar.check"],
        ])
    };
    let fill = |field: &str, message: &str, event: &Value| {
        let mut filled = fill_with(json!({field: "x", "action": action(message)}), event, "")?;
        Ok::<_, String>(filled["action"][1][0]["params"]["message"].take())
    };
    let of_hook = json!({"sender": "sarah"});
    for (message, kept) in [
        ("{email.search.result}", "{email.search.result}"),
        ("found {calendar.check.total} on {tools.now.date}", "found {calendar.check.total} on 2026-03-25"),
        ("{{tools.now.date}} {event.due_at}", "{{tools.now.date}} {event.due_at}"),
        // Braces of what is filled in refer to nothing, later either.
        ("{web.search.result}", "{{tools.now.date}} {{{{x}}}}"),
        ("say {web.search.result}", "say {{tools.now.date}} {{{{x}}}}"),
    ] {
        assert_eq!(fill("at", message, &Value::Null).unwrap(), kept);
        assert_eq!(fill("trigger", message, &of_hook).unwrap(), kept);
    }
    // A hook's step that schedules a task tells it what triggered the hook; one that registers a hook cannot.
    assert_eq!(fill("at", "{event.sender}", &of_hook).unwrap(), "sarah");
    assert_eq!(fill("trigger", "{event.sender}", &of_hook).unwrap(), "{event.sender}");
    assert!(fill("at", "{team.nobody.result}", &Value::Null).is_err());
    // A step alone is a chain, too.
    let step = json!({"event": "user.notify", "params": {"message": "{event.due_at} {tools.now.date}"}});
    for action in [step.clone(), json!({"chain": [step]})] {
        let filled = fill_with(json!({"action": action}), &Value::Null, "").unwrap().to_string();
        assert!(filled.contains(r#""{event.due_at} 2026-03-25""#), "{filled}");
    }
    // An action that holds no steps is a parameter like others.
    let plain = fill_with(json!({"action": ["{tools.now.date}", "{{x}}"]}), &Value::Null, "").unwrap();
    assert_eq!(plain, json!({"action": ["2026-03-25", "{x}"]}));
}

#[test]
fn tasks_within_tasks_are_filled_when_they_run() {
    let inner = json!([{"event": "user.notify", "params": {"message": "{a.x} {b.y} {tools.now.date} {web.search}"}}]);
    let outer = json!([
        {"event": "a"},
        {"event": "task.schedule", "params": {"at": "{a.when}", "action": inner}},
        "b",
    ]);
    let mut filled = fill_with(json!({"action": outer}), &Value::Null, "").unwrap();
    let step = &mut filled["action"][1]["params"];
    assert_eq!(step["at"], "{a.when}");
    let message = step["action"][0]["params"]["message"].as_str().unwrap();
    assert_eq!(message, "{a.x} {b.y} 2026-03-25 {{tools.now.date}} {{{{x}}}}");
}

#[test]
fn filling_is_bounded() {
    let references = |count: usize| "{event.n}".repeat(count);
    assert_eq!(filled(&references(REFERENCES)).unwrap(), "1".repeat(REFERENCES));
    assert_eq!(filled(&references(REFERENCES + 1)).unwrap_err(), "the parameters have more than 256 references");
    let Value::Object(many) = json!({"x": references(REFERENCES + 1)}) else { unreachable!() };
    assert_eq!(find_all(&many, &|_| true), Err("the parameters have more than 256 references".to_owned()));

    let large = json!("y".repeat(100 * 1024));
    let text = |count: usize| json!({"a": "{event}", "b": "{event}".repeat(count)});
    assert!(fill_with(text(1), &large, "").is_ok());
    let error = fill_with(text(2), &large, "").unwrap_err();
    assert_eq!(error, "the filled parameters take more than 262144 bytes");

    let deep = |levels: usize| serde_json::from_str(&format!("{}{}", "[".repeat(levels), "]".repeat(levels))).unwrap();
    let fill_deep = |levels: usize| fill_with(json!({"x": [["{event}"]]}), &deep(levels), "");
    assert!(fill_deep(FILLED_DEPTH - 3).is_ok());
    assert_eq!(fill_deep(FILLED_DEPTH - 2).unwrap_err(), too_nested());
    assert_eq!(fill_with(json!({"x": deep(FILLED_DEPTH)}), &Value::Null, "").unwrap_err(), too_nested());
    let depth = |levels: usize| fill_with(json!({"x": deep(levels)}), &Value::Null, "").is_ok();
    assert!(depth(FILLED_DEPTH - 1));
}

#[test]
fn ten_thousand_steps_can_be_referred_to() {
    let result = json!({"x": 1});
    let names: Vec<String> = (0..10_000).map(|number| format!("step.{number}")).collect();
    let outcomes: Vec<StepOutcome<'_>> =
        names.iter().map(|event| StepOutcome { event, result: Some(&result) }).collect();
    let scope = ReferenceScope { outcomes: &outcomes, thread_id: "", analysis: "", summary: "", event: &Value::Null };
    let Value::Object(params) = json!({"x": "{step.9999.x}".repeat(REFERENCES)}) else { unreachable!() };
    assert_eq!(fill(&params, &scope).unwrap()["x"], "1".repeat(REFERENCES));
    let Value::Object(params) = json!({"x": "{step.none.x}"}) else { unreachable!() };
    let error = fill(&params, &scope).unwrap_err();
    assert!(error.ends_with("step.9 and 9990 more"), "{error}");
}

fn text() -> impl Strategy<Value = String> {
    "([{}]|\\{tools\\.now\\.date\\}|event|team\\.members|thread|\\.|\\[[0-9]\\]|analysis|web\\.search|\\PC){0,20}"
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), text().prop_map(Value::from)];
    let key = prop_oneof![Just("action".to_owned()), Just("event".to_owned()), Just("trigger".to_owned()), ".{0,3}"];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_brings_it_down(value in json_value(), event in json_value()) {
        let _ = fill_with(json!({"action": value, "b": value}), &event, "analysis");
        if let Value::Object(params) = value {
            let _ = find_all(&params, &|name| name.starts_with('t'));
        }
    }

    #[test]
    fn a_value_is_filled_in_as_it_is(event in json_value()) {
        let filled = fill_with(json!({"x": "{event}"}), &event, "");
        prop_assert_eq!(filled.ok().map(|mut filled| filled["x"].take()), Some(event).filter(|event| !event.is_null()));
    }

    #[test]
    fn what_a_task_is_told_is_read_by_it_as_it_was(said in text()) {
        let action = json!([{"event": "user.notify", "params": {"message": "{event.said}", "and": "it: {event.said}"}}]);
        let mut scheduled = fill_with(json!({"action": action}), &json!({"said": said}), "").unwrap();
        let run = fill_with(scheduled["action"][0]["params"].take(), &Value::Null, "").unwrap();
        prop_assert_eq!(&run["message"], &said);
        prop_assert_eq!(&run["and"], &format!("it: {said}"));
    }
}
