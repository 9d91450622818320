//! Tests of `subjects`.

use std::collections::HashSet;

use kairo_proto::Body;

use super::*;

#[test]
fn every_subject_is_listed_once_so_it_has_a_single_emitter() {
    let subjects: HashSet<String> = TABLE.iter().map(Route::filter).collect();
    assert_eq!(subjects.len(), TABLE.len());
}

#[test]
fn every_type_of_the_table_is_in_the_contract() {
    for type_name in TABLE.iter().flat_map(|route| route.types) {
        assert!(Body::TYPES.contains(type_name), "{type_name}");
    }
}

#[test]
fn a_subject_names_its_row_and_owner() {
    let (row, owner) = find_route("kairo.tool.default.result").unwrap();
    assert_eq!((row.verb, row.emitter, owner.as_str()), ("result", Only(Service::ToolRunner), "default"));
    assert_eq!(TOOL_RESULT.of_owner(&owner), "kairo.tool.default.result");
    assert!(TOOL_RESULT.matches("kairo.tool.default.result") && !TOOL_RESULT.matches("kairo.tool.default.invoke"));
    assert!(!TOOL_RESULT.matches("kairo.agent.default.result") && !TOOL_RESULT.matches("kairo.tool.result"));
    for stranger in ["kairo.tool.result", "kairo.tool.A.result", "kairo.tool.a.b.result", "other.tool.a.result"] {
        assert!(find_route(stranger).is_none(), "{stranger}");
    }
}

#[test]
fn what_other_systems_say_is_told_from_what_is_kairos_own() {
    assert_eq!(trigger_of("kairo.system.github.push"), Some("github.push".to_owned()));
    let own = ["kairo.system.tool-runner.catalogue", "kairo.system.process-supervisor.capabilities"];
    let malformed = ["kairo.system.github", "kairo.system.a.b.c", "kairo.system.GitHub.push", "kairo.user.ann.push"];
    for subject in own.into_iter().chain(malformed) {
        assert_eq!(trigger_of(subject), None, "{subject}");
        assert_eq!(is_announcement(subject), own.contains(&subject), "{subject}");
    }
}

#[test]
fn pieces_of_answers_and_of_output_are_in_no_stream() {
    assert_eq!([LIVE_TOKEN.store, LIVE_OUTPUT.store], [Store::Live; 2]);
    for filter in EVENTS_SUBJECTS.into_iter().chain(TIMERS_SUBJECTS) {
        assert!(!matches!(filter.split('.').nth(1), None | Some("live" | "*" | ">")), "{filter} takes what is live");
    }
}

#[test]
fn what_is_due_enters_the_log_by_way_of_the_timers() {
    assert!(TIMERS_SUBJECTS.contains(&TASK_DUE.stored_filter().as_str()));
    assert!(EVENTS_SUBJECTS.contains(&TASK_TRIGGERED.stored_filter().as_str()));
}
