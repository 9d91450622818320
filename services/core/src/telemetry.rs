//! Logs to stderr, and spans over OTLP when an endpoint is configured.
//!
//! One message is one trace over all services: an event is the child of the event that caused it,
//! also across services that export nothing, because the [`Traceparent`] in its headers is derived
//! from the cause's without any span. So where no endpoint is configured spans are disabled, and a
//! disabled span costs a load and a branch.
//!
//! Span names are few and fixed (`execute_tool {tool}`); ids of agents, threads and events belong
//! in fields.

mod sampler;
mod span;
mod traceparent;

use std::{io, time::Duration};

use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkError,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use serde::{Deserialize, Serialize};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, ParseError, filter_fn},
    layer::SubscriberExt,
    util::{SubscriberInitExt, TryInitError},
};

use crate::config::{Mistake, Validate, check};
use sampler::TraceSampler;

pub use span::{current_traceparent, link, outgoing_traceparent, set_parent};
pub use traceparent::{InvalidTraceparent, Traceparent};

/// How the log is written.
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
    /// What is logged, as `tracing_subscriber::EnvFilter` directives. Default `info`.
    pub log: String,
    /// Default `text`.
    pub format: LogFormat,
    /// Whether log lines carry the spans around them; costs a span for each message. Default no.
    pub log_spans: bool,
    /// OTLP/gRPC endpoint, plain text: `http://host:4317`. Default none: no span is made.
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are exported, 0 to 1. Default 1. Decided by trace id, so services with
    /// the same share keep the same traces.
    pub sample_ratio: f64,
    /// Which spans are exported, as `log`. Default `info`, less the exporter's own connection.
    pub spans: String,
    /// `service.instance.id`. Default: a new UUID at each start.
    pub instance_id: Option<String>,
    /// Spans that wait for export at most; more are dropped, and a warning says so. Default 2048.
    pub queue_spans: usize,
    /// Spans in one export at most. Default 512.
    pub batch_spans: usize,
    /// Longest wait for a batch to fill, in milliseconds. Default 1000.
    pub export_interval_ms: u64,
    /// Longest duration of one export, and of the last one at shutdown, in milliseconds.
    /// Default 5000.
    pub export_timeout_ms: u64,
    /// Whether the memory of a service that crashes may be written to disk. Other programs of the same user can then
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

impl Validate for TelemetryConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let found = &mut mistakes;
        for (key, directives) in [("log", &self.log), ("spans", &self.spans)] {
            if filter(directives).is_err() {
                let problem = "expected filter directives such as info,kairo_core=debug";
                found.push(Mistake::new(key, problem, "correct it, or leave it out for info"));
            }
        }
        let endpoint = self.otlp_endpoint.as_deref();
        if endpoint.is_some_and(|url| !url.starts_with("http://")) {
            let problem = "expected an endpoint of the form http://host:4317";
            let advice = "for TLS, run a collector on this host and name that";
            found.push(Mistake::new("otlp_endpoint", problem, advice));
        }
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

/// Why telemetry could not start or end.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `log` or `spans` does not parse.
    #[error("a telemetry filter is not understood; correct telemetry.log or telemetry.spans")]
    Filter(#[source] ParseError),
    /// The exporter refused its endpoint.
    #[error("the OTLP exporter cannot be built; correct telemetry.otlp_endpoint")]
    Exporter(#[source] ExporterBuildError),
    /// The process logs already.
    #[error("a subscriber is already installed; initialise telemetry once, first in main")]
    Installed(#[source] TryInitError),
    /// The exporter did not finish in time.
    #[error("the last spans were not exported in time; see whether the OTLP endpoint is reachable")]
    Flush(#[source] OTelSdkError),
}

/// Starts logging, and exporting if configured. Call once, inside a tokio runtime of several
/// threads, and keep the guard until the end.
///
/// # Errors
/// If a filter or the endpoint is malformed, or if a subscriber is installed already. That the
/// endpoint cannot be reached is no error: it is logged, and tried again with each batch.
pub fn init(service: &'static str, config: &TelemetryConfig) -> Result<TelemetryGuard, TelemetryError> {
    let provider = match &config.otlp_endpoint {
        Some(endpoint) => Some(provider(service, endpoint, config)?),
        None => None,
    };
    let mut layers = vec![log_layer(config)?];
    if let Some(provider) = &provider {
        layers.push(span_layer(service, provider, config)?);
    }
    tracing_subscriber::registry().with(layers).try_init().map_err(TelemetryError::Installed)?;
    Ok(TelemetryGuard { provider, timeout: Duration::from_millis(config.export_timeout_ms) })
}

/// Holds the exporter.
#[derive(Debug)]
#[must_use = "spans that wait for export are lost unless the guard is shut down"]
pub struct TelemetryGuard {
    provider: Option<SdkTracerProvider>,
    timeout: Duration,
}

impl TelemetryGuard {
    /// Exports what is waiting, for `export_timeout_ms` at most. Nothing is exported afterwards.
    ///
    /// # Errors
    /// If the exporter did not finish in time. A batch that was refused is no error here: the
    /// exporter logs it and gives it up.
    pub async fn shutdown(self) -> Result<(), TelemetryError> {
        let Some(provider) = self.provider else {
            return Ok(());
        };
        // The SDK blocks until its thread is done, which needs the runtime for its connection.
        let flush = move || provider.shutdown_with_timeout(self.timeout);
        match tokio::task::spawn_blocking(flush).await {
            Ok(result) => result.map_err(TelemetryError::Flush),
            Err(died) => {
                let failure = OTelSdkError::InternalFailure(died.to_string());
                Err(TelemetryError::Flush(failure))
            }
        }
    }
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

fn filter(directives: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(directives)
}

fn log_layer(config: &TelemetryConfig) -> Result<BoxedLayer, TelemetryError> {
    let log_spans = config.log_spans;
    // Were spans enabled here, every message would pay for them whether exported or not.
    let filter = filter(&config.log)
        .map_err(TelemetryError::Filter)?
        .and(filter_fn(move |metadata| log_spans || metadata.is_event()));
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    Ok(match config.format {
        LogFormat::Text => {
            let to_terminal = io::IsTerminal::is_terminal(&io::stderr());
            layer.with_ansi(to_terminal).with_filter(filter).boxed()
        }
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    })
}

fn span_layer(
    service: &'static str,
    provider: &SdkTracerProvider,
    config: &TelemetryConfig,
) -> Result<BoxedLayer, TelemetryError> {
    let filter = filter(&config.spans).map_err(TelemetryError::Filter)?;
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(service))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_filter(filter);
    Ok(layer.boxed())
}

fn provider(
    service: &'static str,
    endpoint: &str,
    config: &TelemetryConfig,
) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(Duration::from_millis(config.export_timeout_ms))
        .build()
        .map_err(TelemetryError::Exporter)?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(config.queue_spans)
        .with_max_export_batch_size(config.batch_spans)
        .with_scheduled_delay(Duration::from_millis(config.export_interval_ms))
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    let instance = config.instance_id.clone();
    let instance = instance.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attributes([
            KeyValue::new("service.namespace", "kairo"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
        ])
        .build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(processor)
        .with_sampler(TraceSampler::new(config.sample_ratio))
        .with_resource(resource)
        .build())
}

#[cfg(test)]
mod tests;
