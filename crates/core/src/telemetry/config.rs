//! The section `telemetry`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::log_layer::parse_filter;
use crate::config::{Mistake, Secret, Validate, check};

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line, for log collectors.
    Json,
}

/// The section `telemetry`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TelemetryConfig {
    /// Filter for log lines, as `tracing_subscriber::EnvFilter` directives. Default `info`.
    pub log: String,
    /// Format of log lines. Default `text`. As JSON, a line within a span has the ids of its trace and span
    /// (`trace_id`, `span_id`).
    pub format: LogFormat,
    /// True if log lines carry the spans around them, and as JSON their ids where no endpoint is configured; costs a
    /// span for each message. Default no.
    pub log_spans: bool,
    /// OTLP/gRPC endpoint that traces and metrics are sent to: `http://host:4317` or, encrypted, `https://host:4317`.
    /// Default none: no span is made, and metrics are sent nowhere.
    pub otlp_endpoint: Option<String>,
    /// PEM file of the authorities that vouch for an `https://` endpoint; empty for those the system knows.
    /// Default empty.
    pub otlp_ca: String,
    /// Headers sent with every export, such as `authorization`. Default none.
    pub otlp_headers: BTreeMap<String, Secret>,
    /// True if metrics are sent there, too. Default yes.
    pub otlp_metrics: bool,
    /// Interval at which metrics are sent, in milliseconds. Default 15000.
    pub metrics_interval_ms: u64,
    /// Maximum number of series of one metric; later ones are added up in one that is labelled `otel.metric.overflow`.
    /// Default 1000.
    pub metric_series: usize,
    /// True if metrics tell agents apart (`gen_ai.agent.id`). With many agents there are many series. Default no.
    pub metrics_of_agents: bool,
    /// Share of traces that are exported, 0 to 1. Default 1. Decided by trace id, so services with
    /// the same share keep the same traces.
    pub sample_ratio: f64,
    /// Filter for exported spans, written as `log`. Default `info`, less the exporter's own connection.
    pub spans: String,
    /// `service.instance.id`. Default: a new UUID at each start.
    pub instance_id: Option<String>,
    /// Maximum number of spans waiting for export; more are dropped, and a warning says so. Default 2048.
    pub queue_spans: usize,
    /// Maximum number of spans in one export. Default 512.
    pub batch_spans: usize,
    /// Longest wait for a batch of spans to fill, in milliseconds. Default 1000.
    pub export_interval_ms: u64,
    /// Longest duration of one export, and of the last one at shutdown, in milliseconds.
    /// Default 5000.
    pub export_timeout_ms: u64,
    /// True if the memory of a service that crashes may be written to disk. Other programs of the same user can then
    /// read its memory and its environment, secrets among them, and debuggers can attach. Default no.
    pub core_dumps: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "info".to_owned(),
            format: LogFormat::Text,
            log_spans: false,
            otlp_endpoint: None,
            otlp_ca: String::new(),
            otlp_headers: BTreeMap::new(),
            otlp_metrics: true,
            metrics_interval_ms: 15_000,
            metric_series: 1_000,
            metrics_of_agents: false,
            sample_ratio: 1.0,
            spans: "info,h2=off,hyper=off,hyper_util=off,tonic=off,tower=off".to_owned(),
            instance_id: None,
            queue_spans: 2048,
            batch_spans: 512,
            export_interval_ms: 1000,
            export_timeout_ms: 5000,
            core_dumps: false,
        }
    }
}

/// The beginning of the address of an endpoint that uses TLS.
pub(super) const TLS: &str = "https://";

impl Validate for TelemetryConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let found = &mut mistakes;
        for (key, directives) in [("log", &self.log), ("spans", &self.spans)] {
            if parse_filter(directives).is_err() {
                let problem = "expected filter directives such as info,kairo_core=debug";
                found.push(Mistake::new(key, problem, "correct it, or leave it out for info"));
            }
        }
        self.check_endpoint(found);
        check(found, "metrics_interval_ms", self.metrics_interval_ms, 10..=600_000, "milliseconds");
        check(found, "metric_series", self.metric_series, 1..=100_000, "series");
        check(found, "sample_ratio", self.sample_ratio, 0.0..=1.0, "(a share)");
        check(found, "queue_spans", self.queue_spans, 1..=1_000_000, "spans");
        check(found, "batch_spans", self.batch_spans, 1..=self.queue_spans, "spans");
        let interval = self.export_interval_ms;
        check(found, "export_interval_ms", interval, 10..=60_000, "milliseconds");
        let timeout = self.export_timeout_ms;
        check(found, "export_timeout_ms", timeout, 10..=60_000, "milliseconds");
        mistakes
    }
}

impl TelemetryConfig {
    fn check_endpoint(&self, found: &mut Vec<Mistake>) {
        let endpoint = self.otlp_endpoint.as_deref();
        if endpoint.is_some_and(|url| !url.starts_with("http://") && !url.starts_with(TLS)) {
            let problem = "expected an endpoint of the form http://host:4317 or https://host:4317";
            found.push(Mistake::new("otlp_endpoint", problem, "name the collector's port for OTLP over gRPC"));
        }
        if !self.otlp_ca.is_empty() && !endpoint.is_some_and(|url| url.starts_with(TLS)) {
            let problem = "expected https:// in telemetry.otlp_endpoint with it";
            found.push(Mistake::new("otlp_ca", problem, "otherwise the connection is not encrypted"));
        }
        for (name, value) in &self.otlp_headers {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            let is_sent = value.expose().bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if !is_name || name.ends_with("-bin") || !is_sent {
                let problem = "expected the name of a header with printable ASCII as its value";
                found.push(Mistake::new("otlp_headers", problem, "correct it, or leave it out"));
            }
        }
    }
}
