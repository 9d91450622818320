use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ConditionVerdict, judge};

fn mail() -> Value {
    json!({
        "sender": "Sarah Miller <sarah@example.com>",
        "to": ["ann@example.com", "bob@example.com"],
        "subject": "The BUDGET of Q2",
        "body": "Dear Ann,\nplease find it attached.",
        "date": "2026-03-05T09:00:00Z",
        "size": 2048,
        "unread": true,
        "attachments": [{"name": "budget.pdf", "pages": 3}, {"name": "plan.txt"}],
        "folder": null,
        "result": {"matches": [], "count": 0},
    })
}

fn verdicts(expected: ConditionVerdict, conditions: &[&str]) {
    for condition in conditions {
        assert_eq!(judge(condition, &mail()), expected, "{condition}");
    }
}

#[test]
fn the_example_of_seed_000() {
    let condition = "sender contains 'Sarah' AND (subject contains 'budget' OR body contains 'budget')";
    assert_eq!(judge(condition, &mail()), ConditionVerdict::Holds);
    assert_eq!(judge(condition, &json!({"sender": "Bob", "subject": "budget", "body": ""})), ConditionVerdict::DoesNot);
    assert_eq!(
        judge(condition, &json!({"sender": "sarah", "subject": "lunch", "body": "Budget?"})),
        ConditionVerdict::Holds
    );
    assert_eq!(judge(condition, &json!({})), ConditionVerdict::DoesNot);
}

#[test]
fn what_holds() {
    verdicts(
        ConditionVerdict::Holds,
        &[
            "",
            "  ",
            "Subject contains \"budget\"",
            "subject contains budget",
            "event.subject contains 'budget'",
            "subject starts with 'the' and subject ends with 'q2'",
            "to contains 'bob'",
            "to = 'ann@example.com'",
            "to is ann@example.com",
            "to[1] == 'BOB@example.com'",
            "attachments.name contains '.pdf'",
            "attachments[0].pages >= 3",
            "size > 1000 && size <= 2048",
            "size = 2048.0",
            "unread",
            "unread is true and not unread = false",
            "NOT (subject contains 'lunch')",
            "!subject contains 'lunch'",
            "subject does not contain 'lunch'",
            "subject not contains 'lunch'",
            "sender matches '(?i)SARAH@.*\\.com'",
            "size in [1, 2048]",
            "folder in ['a'] or size in (1, 2048)",
            "size not in [1, 2]",
            "attachments exists and nothing does not exist",
            "date < '2026-03-05T11:00:00+01:00'",
            "folder is null",
            "result.count = 0",
            "subject != 'lunch' || false_field = 1",
            "sender contains “sarah”",
            "sender contains 'Sarah' OR nonsense contains 'x'",
            "body contains 'Ann' and ((((subject contains 'q2'))))",
            // CEL.
            "sender.contains('Sarah') && size > 1000",
            "to.exists(t, t.endsWith('@example.com'))",
            "size(to) == 2",
            "event.attachments[0].pages == 3",
            "'ann@example.com' in to",
            "subject.matches('BUDGET.*')",
            "size + 1 > 2048 ? unread : false",
        ],
    );
}

#[test]
fn what_does_not() {
    verdicts(
        ConditionVerdict::DoesNot,
        &[
            "sender contains 'Bob'",
            "nothing contains 'x'",
            "nothing = 'x'",
            "nothing > 5",
            "nothing exists",
            "folder exists",
            "subject contains 'budget' and size > 5000",
            "not unread",
            "subject = 'budget'",
            "to starts with 'carl'",
            "attachments[7].name contains 'x'",
            "result.matches contains 'x'",
            "sender contains 'Bob' and the_rest = unknown_word",
            "size(to) > 5",
            "sender.contains('Bob')",
        ],
    );
}

#[test]
fn what_a_model_must_judge() {
    let long = format!("subject contains '{}'", "x".repeat(3_000));
    let parentheses = format!("{}unread{}", "(".repeat(500), ")".repeat(500));
    let negations = format!("{}subject.contains('x')", "!".repeat(1_500));
    let chain = format!("size({})", vec!["1"; 900].join("+"));
    let selections = format!("size(event{})", ".a".repeat(900));
    let loops = "to.all(a, to.all(b, to.all(c, a != b)))".to_owned();
    let grown = "to.map(a, body + body + body).size() > 3".to_owned();
    verdicts(
        ConditionVerdict::Unclear,
        &[
            "the mail is urgent",
            "urgent",
            "it is urgent",
            "sender contains",
            "contains 'x'",
            "sender contains 'x",
            "sender contains 'x' and",
            "(sender contains 'x'",
            "sender contains 'x')",
            "sender sounds like 'Sarah'",
            "sender matches '('",
            "sender matches '(a{1000}){1000}'",
            "unknown.contains('x')",
            "1 + 1",
            "size(to) / 0 == 1",
            "subject > 5",
            "wenn Sarah über das Budget schreibt",
            &long,
            &parentheses,
            &negations,
            &chain,
            &selections,
            &loops,
            &grown,
        ],
    );
}

#[test]
fn deep_and_large_data_is_bounded() {
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert_eq!(judge("deep contains 'x'", &json!({ "deep": deep })), ConditionVerdict::Unclear);
    let many = json!({ "many": vec!["y"; 10_000], "body": "x".repeat(2_000_000) });
    assert_eq!(judge("many contains 'x'", &many), ConditionVerdict::DoesNot);
    assert_eq!(judge("body matches 'y'", &many), ConditionVerdict::Unclear);
    assert_eq!(judge("body.contains('y') && true", &many), ConditionVerdict::Unclear);
    assert_eq!(judge("many.all(a, a == 'x')", &many), ConditionVerdict::Unclear);
    assert_eq!(judge("many contains 'x'", &json!([1, 2])), ConditionVerdict::DoesNot);
    assert_eq!(judge("a contains 'x'", &Value::Null), ConditionVerdict::DoesNot);
}

#[test]
fn the_deepest_that_is_evaluated_fits_the_stack() {
    for condition in [
        format!("1{} == 5", "-1".repeat(140)),
        format!("event{} == 5", ".a".repeat(140)),
        format!("{}true{}", "!(".repeat(16), ")".repeat(16)),
        format!("{}1{} == 5", "[".repeat(32), "]".repeat(32)),
        format!("{}size{} == 5", "size(".repeat(31), ")".repeat(31)),
        format!("unread{} || 1 + 1 == 5", " && unread == true".repeat(30)),
        format!("{}false", "unread ? false : ".repeat(16)),
        format!("to{}", "[0]".repeat(70)),
        format!("{}1{} == 5", "(".repeat(32), "-1)".repeat(32)),
        format!("{}1{}{} == 5", "(".repeat(32), ")".repeat(32), "-1".repeat(110)),
        "[".repeat(32),
        "!-".repeat(8),
        "{".repeat(32),
    ] {
        judge(&condition, &mail());
    }
}

proptest! {
    #[test]
    fn no_text_panics(condition in ".{0,200}") {
        judge(&condition, &mail());
    }

    #[test]
    fn no_row_of_words_panics(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "sender", "to", "size", "contains", "and", "or", "not", "(", ")", "[", "]", "in", "is", "matches", "'x'",
                "\"", "1", "-", "!", "&&", "==", "?", ":", ".", ",", "{", "}", "size(to)", "to.map(a, a)", "%", "/", "0",
                "true", "null", "b'x'", "9223372036854775807", "+", "*",
            ]),
            0..24,
        ),
        tight in any::<bool>(),
    ) {
        judge(&words.join(if tight { "" } else { " " }), &mail());
    }
}
