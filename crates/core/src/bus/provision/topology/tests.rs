//! Tests of `topology`.

use super::*;
use crate::subjects::STREAMS;

fn desired_topology() -> DesiredTopology {
    DesiredTopology::new(&NatsConfig::default(), &BusConfig::default())
}

#[test]
fn every_stream_that_is_listed_is_made() {
    let made: BTreeSet<String> = desired_topology().streams().into_iter().map(|stream| stream.name).collect();
    assert_eq!(made, STREAMS.map(str::to_owned).into());
}

#[test]
fn what_is_missing_or_added_is_told_by_its_name() {
    let log = desired_topology().events_stream();
    assert!(stream_differences(&log, &log).is_empty());
    let mut other = log.clone();
    other.subjects.pop();
    other.deny_delete = false;
    other.max_bytes = 7;
    let told = stream_differences(&log, &other).join("; ");
    assert_eq!(told, "it does not take kairo.system.>; max_bytes is 7, not null; deny_delete is null, not true");
}

#[test]
fn a_limit_that_trims_the_log_says_what_it_is_to_have_again() {
    let mut there = serde_json::to_value(desired_topology().events_stream()).unwrap();
    there["max_bytes"] = json!(7);
    let before = config_without_trim_limit(&config_with_trim_limit(&there, 40, 60)).unwrap();
    assert_eq!(before["metadata"][TRIMMED], "40", "that stays");
    assert_eq!(config_without_trim_limit(&before), None, "and nothing is to be put back any more");
    let limit = config_with_trim_limit(&before, 50, 9);
    let said = [&limit["max_msgs"], &limit["discard"], &limit["max_bytes"], &limit["metadata"][TRIMMED]];
    assert_eq!(said, [&json!(9), &json!("old"), &json!(7), &json!("50")]);
    // As if nothing had been said of it: what the log is made with.
    let mut damaged = limit;
    damaged["metadata"][TRIMMING] = json!("?");
    let mended = config_without_trim_limit(&damaged).unwrap();
    assert_eq!((&mended["max_msgs"], &mended["discard"]), (&json!(-1), &json!("new")));
}

#[test]
fn only_what_is_meant_is_mended_and_the_rest_of_the_configuration_stays() {
    let log = desired_topology().events_stream();
    let mut there = serde_json::to_value(&log).unwrap();
    there["num_replicas"] = serde_json::json!(3);
    there["max_bytes"] = serde_json::json!(7);
    there["of_a_newer_server"] = serde_json::json!(true);
    let replicas = fixed_config(&log, &there, &["num_replicas".to_owned()]).unwrap();
    assert_eq!((&replicas["num_replicas"], &replicas["max_bytes"]), (&serde_json::json!(1), &serde_json::json!(7)));
    let all = fixed_config(&log, &there, &[]).unwrap();
    assert!(stream_differences(&log, &serde_json::from_value(all.clone()).unwrap()).is_empty());
    assert_eq!(all["of_a_newer_server"], serde_json::json!(true));
    assert_eq!(fixed_config(&log, &all, &[]), None);
    assert_eq!(unknown_settings(&["max_age".to_owned(), "replicas".to_owned()]), ["replicas"]);
}

#[test]
fn a_consumer_without_filters_is_delivered_everything() {
    let needed = desired_topology().consumer_config(Consumer::ToolRunner);
    let mut there = consumer::Config::default();
    assert!(undelivered_subjects(&needed.filter_subjects, &there).is_empty());
    there.filter_subject = "kairo.user.*.message.*".to_owned();
    assert_eq!(undelivered_subjects(&needed.filter_subjects, &there), ["kairo.agent.*.decision.*"]);
}
