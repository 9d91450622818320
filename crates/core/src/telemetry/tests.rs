use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tracing::{info_span, subscriber::with_default};
use uuid::Uuid;

use super::{sampler::TraceSampler, *};
use crate::config::{Secret, Validate};

const CAUSE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn keys(config: &TelemetryConfig) -> Vec<String> {
    let mistakes = config.mistakes().into_iter();
    mistakes.map(|mistake| mistake.key).collect()
}

#[derive(Debug, Clone, Default)]
struct Collected(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Collected {
    async fn export(&self, spans: Vec<SpanData>) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.lock().unwrap().extend(spans);
        Ok(())
    }
}

/// Runs `body` where spans are exported, and returns those that were.
fn exporting(config: &TelemetryConfig, body: impl FnOnce()) -> Vec<SpanData> {
    let collected = Collected::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(collected.clone())
        .with_sampler(TraceSampler::new(config.sample_ratio))
        .build();
    let layers = vec![log_layer(config, io::stderr).unwrap(), span_layer("test", &provider, config).unwrap()];
    with_default(tracing_subscriber::registry().with(layers), body);
    let spans = collected.0.lock().unwrap();
    spans.clone()
}

#[test]
fn the_defaults_are_valid() {
    assert_eq!(keys(&TelemetryConfig::default()), [""; 0]);
}

#[test]
fn every_bad_value_is_named() {
    let config = TelemetryConfig {
        log: "kairo=loud".to_owned(),
        spans: "[".to_owned(),
        otlp_endpoint: Some("collector:4317".to_owned()),
        otlp_ca: "ca.pem".to_owned(),
        otlp_headers: BTreeMap::from([("authorization".to_owned(), Secret::new("two\nlines".to_owned()))]),
        metrics_interval_ms: 0,
        metric_series: 0,
        sample_ratio: f64::NAN,
        queue_spans: 10,
        batch_spans: 11,
        export_interval_ms: 0,
        export_timeout_ms: 0,
        ..TelemetryConfig::default()
    };
    let named = [
        "log",
        "spans",
        "otlp_endpoint",
        "otlp_ca",
        "otlp_headers",
        "metrics_interval_ms",
        "metric_series",
        "sample_ratio",
        "batch_spans",
        "export_interval_ms",
        "export_timeout_ms",
    ];
    assert_eq!(keys(&config), named);
}

#[test]
fn without_an_exporter_spans_are_disabled_and_the_trace_goes_on() {
    let config = TelemetryConfig { log: "trace".to_owned(), ..TelemetryConfig::default() };
    let layers = vec![log_layer(&config, io::stderr).unwrap()];
    with_default(tracing_subscriber::registry().with(layers), || {
        let span = info_span!("receive");
        assert!(span.is_disabled());
        set_parent(&span, CAUSE);
        let _entered = span.enter();
        assert_eq!(current_traceparent(), None);

        let event_id = Uuid::now_v7();
        let cause: Traceparent = CAUSE.parse().unwrap();
        let outgoing = outgoing_traceparent(Some(CAUSE), event_id);
        assert_eq!(outgoing, cause.child(event_id).to_string());
        let root = Traceparent::root(event_id).to_string();
        assert_eq!(outgoing_traceparent(None, event_id), root);
        assert_eq!(outgoing_traceparent(Some("garbage"), event_id), root);
    });
}

#[test]
fn spans_in_the_log_need_no_exporter() {
    let config = TelemetryConfig { log_spans: true, ..TelemetryConfig::default() };
    let layers = vec![log_layer(&config, io::stderr).unwrap()];
    with_default(tracing_subscriber::registry().with(layers), || {
        let span = info_span!("receive");
        assert!(!span.is_disabled());
        set_parent(&span, CAUSE);
        let _entered = span.enter();
        assert_eq!(current_traceparent(), None, "no exporter, so no span to point to");
    });
}

#[test]
fn an_exported_span_is_the_child_of_its_message_and_the_parent_of_what_it_sends() {
    let mut sent = None;
    let spans = exporting(&TelemetryConfig::default(), || {
        let span = info_span!("receive", agent = "a1");
        set_parent(&span, CAUSE);
        let _entered = span.enter();
        sent = Some(outgoing_traceparent(Some(CAUSE), Uuid::now_v7()));
        assert_eq!(current_traceparent(), sent);
    });
    let cause: Traceparent = CAUSE.parse().unwrap();
    let sent: Traceparent = sent.unwrap().parse().unwrap();
    assert_eq!(sent.trace_id(), cause.trace_id());

    let [span] = spans.as_slice() else {
        panic!("one span was expected: {spans:?}");
    };
    assert_eq!(span.name, "receive");
    let ids = &span.span_context;
    assert_eq!(ids.trace_id().to_string(), format!("{:032x}", cause.trace_id()));
    assert_eq!(ids.span_id().to_string(), format!("{:016x}", sent.span_id()));
    assert_eq!(span.parent_span_id.to_string(), format!("{:016x}", cause.span_id()));
    let attributes: Vec<&str> = span.attributes.iter().map(|a| a.key.as_str()).collect();
    assert_eq!(attributes, ["agent"], "nothing but what the span says of itself");
}

#[test]
fn further_messages_of_a_batch_are_links() {
    let spans = exporting(&TelemetryConfig::default(), || {
        let span = info_span!("project");
        link_span(&span, CAUSE);
        link_span(&span, "garbage");
        let _entered = span.enter();
    });
    let links: Vec<String> =
        spans.iter().flat_map(|span| span.links.iter()).map(|link| link.span_context.span_id().to_string()).collect();
    assert_eq!(links, ["00f067aa0ba902b7"]);
}

#[test]
fn a_trace_that_is_not_sampled_is_passed_on_as_such() {
    let none = TelemetryConfig { sample_ratio: 0.0, ..TelemetryConfig::default() };
    for (config, cause) in [(TelemetryConfig::default(), UNSAMPLED), (none, CAUSE)] {
        let mut sent = None;
        let spans = exporting(&config, || {
            let span = info_span!("receive");
            set_parent(&span, cause);
            let _entered = span.enter();
            sent = current_traceparent();
        });
        assert_eq!(spans.len(), 0);
        let sent: Traceparent = sent.unwrap().parse().unwrap();
        let cause: Traceparent = cause.parse().unwrap();
        assert!(!sent.is_sampled());
        assert_eq!(sent.trace_id(), cause.trace_id());
    }
}

/// The logged lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_within_a_span_have_its_ids_also_where_spans_are_not_logged() {
    let config = TelemetryConfig { format: LogFormat::Json, ..TelemetryConfig::default() };
    let lines = Lines::default();
    let written = lines.clone();
    let provider = SdkTracerProvider::builder().build();
    let layers =
        vec![log_layer(&config, move || written.clone()).unwrap(), span_layer("test", &provider, &config).unwrap()];
    let mut sent = None;
    with_default(tracing_subscriber::registry().with(layers), || {
        let span = info_span!("receive");
        set_parent(&span, CAUSE);
        span.in_scope(|| {
            sent = current_traceparent();
            tracing::info!(answer = 42, "inside");
        });
        tracing::info!("outside");
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [inside, outside] = &lines[..] else { panic!("two lines were expected: {text}") };
    let sent: Traceparent = sent.unwrap().parse().unwrap();
    assert_eq!(inside["trace_id"], format!("{:032x}", sent.trace_id()));
    assert_eq!(inside["span_id"], format!("{:016x}", sent.span_id()));
    assert_eq!(inside["fields"]["answer"], 42);
    assert!(inside.get("span").is_none() && outside.get("trace_id").is_none(), "{text}");
}
