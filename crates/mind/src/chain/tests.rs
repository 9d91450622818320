//! Tests of a chain's progress, and the chains of seed 000.

mod seed_000;

use serde_json::json;

use super::*;

/// A chain whose groups are separated by `|`; `?` thinks, other letters are tools. Beside each step how it is:
/// `.` pending, `r` running, `a` asked about, `y` approved, `d` done, `f` failed, `s` skipped, `x` stopped.
fn chain(steps: &str) -> Chain {
    let mut group = 0;
    let mut runs = Vec::new();
    let mut marks = steps.chars().filter(|c| !c.is_whitespace());
    while let Some(mark) = marks.next() {
        if mark == '|' {
            group += 1;
            continue;
        }
        let event = if mark == '?' { THINK.to_owned() } else { format!("tools.{mark}") };
        let reason = || "because".to_owned();
        let state = match marks.next().unwrap() {
            '.' => StepState::Pending,
            'r' => StepState::Running { action: Uuid::nil() },
            'a' => StepState::Asked { request: Uuid::nil(), at: 0, arguments: String::new() },
            'y' => StepState::Approved { request: Uuid::nil(), at: 0, arguments: String::new(), is_changed: false },
            'd' => StepState::Done { result: json!({"of": mark.to_string()}) },
            'f' => StepState::Failed { reason: reason() },
            's' => StepState::Skipped { reason: reason() },
            'x' => StepState::Stopped { reason: reason() },
            other => panic!("{other}"),
        };
        runs.push(StepRun {
            step: StepSpec { group, event, params: Map::new(), decide: None },
            state,
            call_id: String::new(),
            passed_back: String::new(),
        });
    }
    Chain {
        id: Uuid::nil(),
        origin: Origin::Plan,
        task: None,
        data: Value::Null,
        steps: runs,
        passed_back: String::new(),
    }
}

fn next(steps: &str) -> ChainMove {
    chain(steps).next_move()
}

fn start(steps: &[usize]) -> ChainMove {
    ChainMove::Start(steps.to_vec())
}

#[test]
fn groups_run_one_after_another_and_their_steps_at_once() {
    assert_eq!(next("A. | B. C. | ?."), start(&[0]));
    assert_eq!(next("Ar | B. C. | ?."), ChainMove::Wait);
    assert_eq!(next("Ad | B. C. | ?."), start(&[1, 2]));
    assert_eq!(next("Ad | Br Cd | ?."), ChainMove::Wait);
    assert_eq!(next("As | Bd Cs | ?."), start(&[3]));
    assert_eq!(next("Ad | Bd Cd | ?d"), ChainMove::End);
    assert_eq!(next(""), ChainMove::End);
    // The other was begun in an earlier decision, or could not be.
    assert_eq!(next("Ad | Bd C. | ?."), start(&[2]));
}

#[test]
fn a_step_waits_for_consent() {
    assert_eq!(next("Aa | B."), ChainMove::Wait);
    assert_eq!(next("Ay | B."), start(&[0]));
    assert_eq!(next("Ar By Ca | D."), start(&[1]));
    assert_eq!(next("Ax | B. | ?."), start(&[2]));
}

#[test]
fn what_went_wrong_is_thought_about_next() {
    assert_eq!(next("Af | B. | C. | ?. | D. | ?."), start(&[3]));
    assert_eq!(next("Af Br | C. | ?."), ChainMove::Wait);
    assert_eq!(next("Af | B."), ChainMove::End);
    assert_eq!(next("Ad | ?f | B. | ?."), start(&[3]));
    // Only the thought of a group that would be acted in.
    assert_eq!(next("Af | B. ?. | ?."), start(&[2]));
    assert_eq!(next("A. | ?d | B."), start(&[2]));
}

#[test]
fn what_was_thought_about_is_behind_it() {
    // What stands between is passed over for good.
    assert_eq!(next("Af | B. | ?d | C. | ?."), start(&[3]));
    assert_eq!(next("Af | B. | ?d | Cd | ?."), start(&[4]));
    assert_eq!(next("Af | B. | ?d"), ChainMove::End);
    assert_eq!(next("Af | ?d B. | C."), start(&[3]));
    assert_eq!(next("Af | ?d | Bx | C. | ?."), start(&[4]));
    assert!(!chain("Af | ?d | B.").has_unseen_failure());
    let bad = chain("Af | ?d | Bd Cx | Df");
    let (run, reason) = bad.unseen_failure().unwrap();
    assert_eq!((run.step.event.as_str(), reason), ("tools.C", "because"));
    // A thought of the same group has not seen it, wherever it stands.
    for steps in ["Af ?d | B. | ?.", "?d Af | B. | ?."] {
        assert!(chain(steps).has_unseen_failure());
        assert_eq!(next(steps), start(&[3]));
    }
    assert_eq!(next("?d ?f | B. | ?."), start(&[3]));
}

#[test]
fn ten_thousand_steps_go_on() {
    let steps = "Ad |".repeat(9_998) + "B. | ?.";
    assert_eq!(next(&steps), start(&[9_998]));
}

#[test]
fn a_step_sees_results_of_earlier_groups() {
    let chain = chain("Ad | Bf Ad | C.");
    let results = |group: u32| -> Vec<_> {
        chain.outcomes_before(group).iter().map(|one| (one.event.to_owned(), one.result.is_some())).collect()
    };
    let expected = [("tools.A", true), ("tools.B", false), ("tools.A", true)].map(|(event, is)| (event.to_owned(), is));
    assert_eq!(results(2), expected);
    assert_eq!(results(1), expected[..1]);
    assert_eq!(chain.result_bytes(), 20);
}

#[test]
fn an_origin_is_read_as_it_is_written() {
    for origin in [Origin::Plan, Origin::Calls, Origin::Task, Origin::Hook] {
        assert_eq!(Origin::from_word(&origin.to_word()), origin);
    }
}
