use kairo_proto::v1::AgentMessage;

use super::{
    table::{AGENTS_PARKED, DEAD_LETTERS_WRITTEN, DECISION, MODEL_RETRIES, PARTITIONS_TAKEN, PROJECTED, READY},
    *,
};

fn of(service: Service, series: usize, of_agents: bool) -> (Metrics, SdkMeterProvider) {
    let resource = Resource::builder_empty().with_service_name("it").build();
    MetricsSetup { service, resource, series, of_agents, sampler: None }.build(|provider| provider)
}

fn exporting(share: f64, series: usize) -> (Metrics, SdkMeterProvider) {
    let resource = Resource::builder_empty().with_service_name("it").build();
    let service = Service::AgentRuntime;
    let sampler = Some(TraceSampler::new(share));
    MetricsSetup { service, resource, series, of_agents: false, sampler }.build(|provider| provider)
}

fn lines(metrics: &Metrics) -> Vec<String> {
    metrics.to_openmetrics().lines().map(str::to_owned).collect()
}

fn values(metrics: &Metrics) -> Vec<String> {
    lines(metrics).into_iter().filter(|line| !line.starts_with(['#', 't'])).collect()
}

#[test]
fn what_was_counted_and_what_is_are_told_in_openmetrics() {
    let (metrics, _provider) = of(Service::AgentRuntime, 100, false);
    metrics.init_counter(&DEAD_LETTERS_WRITTEN);
    metrics.count(&MODEL_RETRIES, 2.0, &["heavy"]);
    metrics.count(&MODEL_RETRIES, 1.0, &["heavy"]);
    metrics.observe(&READY, |say| say(1.0, &[]));
    metrics.observe(&PARTITIONS_TAKEN, |say| say(7.0, &[]));
    let lines = lines(&metrics);
    for line in [
        r#"target_info{service_name="it"} 1"#,
        "# TYPE kairo_model_retries counter",
        r#"kairo_model_retries_total{kairo_tier="heavy"} 3.0"#,
        "kairo_dead_letters_written_total 0.0",
        "# TYPE kairo_service_ready gauge",
        "kairo_service_ready 1.0",
        "# TYPE kairo_partitions_takeovers counter",
        "kairo_partitions_takeovers_total 7.0",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line} is not in {lines:#?}");
    }
    assert_eq!(lines.last().map(String::as_str), Some("# EOF"));
}

#[test]
fn a_duration_falls_into_the_buckets_of_its_metric() {
    let (metrics, _provider) = of(Service::AgentRuntime, 100, false);
    metrics.record_duration(&DECISION, Duration::from_millis(300), &[AgentMessage::TYPE, "foreground", "a"]);
    let labels = format!("kairo_input=\"{}\",kairo_lane=\"foreground\"", AgentMessage::TYPE);
    let values = values(&metrics);
    for (bound, count) in [("0.25", 0), ("0.5", 1), ("+Inf", 1)] {
        let line = format!("kairo_agent_decision_duration_seconds_bucket{{le=\"{bound}\",{labels}}} {count}");
        assert!(values.contains(&line), "{line} is not in {values:#?}");
    }
    assert!(values.contains(&format!("kairo_agent_decision_duration_seconds_sum{{{labels}}} 0.3")), "{values:#?}");
}

#[test]
fn a_bucket_names_the_last_trace_that_is_exported() {
    let first = "00-0000000000000000000000000000000a-0000000000000001-01";
    let last = "00-0000000000000000000000000000000b-0000000000000001-01";
    let unsampled = "00-0000000000000000000000000000000c-0000000000000001-00";
    let (metrics, _provider) = exporting(1.0, 100);
    let labels = [AgentMessage::TYPE, "foreground", "a"];
    for traceparent in [Some(first), Some(last), Some(unsampled), Some("nonsense"), None] {
        metrics.record_duration_in_trace(traceparent, &DECISION, Duration::from_millis(500), &labels);
    }
    metrics.record_duration_in_trace(None, &DECISION, Duration::from_secs(301), &labels);
    let values = values(&metrics);
    let named: Vec<&String> = values.iter().filter(|line| line.contains(" # ")).collect();
    let [named] = *named else { panic!("{values:#?}") };
    // A bound belongs to its bucket; what was counted is the same with exemplars and without.
    assert!(
        named.contains("le=\"0.5\"") && named.contains("} 5 # {trace_id=\"0000000000000000000000000000000b\"} 0.5 "),
        "{named}"
    );
    assert!(values.iter().any(|line| line.contains("le=\"+Inf\"") && line.ends_with("} 6")), "{values:#?}");
    assert!(values.iter().any(|line| line.contains("_sum{") && line.ends_with("} 303.5")), "{values:#?}");
}

#[test]
fn no_bucket_names_a_trace_that_nobody_has() {
    let traceparent = Some("00-0000000000000000ffffffffffffffff-0000000000000001-01");
    for (metrics, _provider) in [of(Service::AgentRuntime, 100, false), exporting(0.5, 100)] {
        metrics.record_duration_in_trace(traceparent, &DECISION, Duration::ZERO, &[AgentMessage::TYPE, "beside", "a"]);
        let values = values(&metrics);
        assert!(values.iter().any(|line| line.contains("_count{") && line.ends_with(" 1")), "{values:#?}");
        assert!(!values.iter().any(|line| line.contains(" # ")), "{values:#?}");
    }
}

#[test]
fn exemplars_are_bounded_as_series_are() {
    let (metrics, _provider) = exporting(1.0, 3);
    let traceparent = Some("00-0000000000000000000000000000000a-0000000000000001-01");
    for lane in 0..50 {
        metrics.record_duration_in_trace(
            traceparent,
            &DECISION,
            Duration::ZERO,
            &[AgentMessage::TYPE, &lane.to_string(), "a"],
        );
    }
    let values = values(&metrics);
    assert_eq!(values.iter().filter(|line| line.contains(" # ")).count(), 3, "{values:#?}");
    assert!(values.iter().any(|line| line.contains("_count{otel_metric_overflow=\"true\"} 47")), "{values:#?}");
}

#[test]
fn agents_are_told_apart_only_where_that_is_asked_for() {
    for (of_agents, count) in [(false, 1), (true, 2)] {
        let (metrics, _provider) = of(Service::AgentRuntime, 100, of_agents);
        for agent in ["a", "b"] {
            metrics.record_duration(&DECISION, Duration::ZERO, &[AgentMessage::TYPE, "beside", agent]);
        }
        let values = values(&metrics);
        assert_eq!(values.iter().filter(|line| line.contains("_count{")).count(), count, "{values:#?}");
        assert_eq!(values.iter().any(|line| line.contains("gen_ai_agent_id")), of_agents);
    }
}

#[test]
fn series_are_bounded() {
    let (metrics, _provider) = of(Service::AgentRuntime, 3, false);
    for tier in 0..50 {
        metrics.count(&MODEL_RETRIES, 1.0, &[&tier.to_string()]);
    }
    let values = values(&metrics);
    assert_eq!(values.len(), 4, "{values:#?}");
    assert!(values.iter().any(|line| line.contains(r#"otel_metric_overflow="true"} 47.0"#)), "{values:#?}");
}

#[test]
fn a_service_has_the_metrics_that_are_its_own() {
    let (metrics, _provider) = of(Service::Router, 100, false);
    metrics.count(&PROJECTED, 1.0, &["live"]);
    assert_eq!(values(&metrics), [""; 0]);
    // Whatever runs within another program counts nothing.
    let nothing = Metrics::default();
    nothing.count(&MODEL_RETRIES, 1.0, &["heavy"]);
    nothing.observe(&AGENTS_PARKED, |say| say(1.0, &[]));
    assert_eq!(lines(&nothing).last().map(String::as_str), Some("# EOF"));
    assert_eq!(values(&nothing), [""; 0]);
}
