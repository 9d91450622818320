//! Logs to stderr, and spans and metrics over OTLP when an endpoint is configured.
//!
//! One message is one trace over all services: an event is the child of the event that caused it,
//! also across services that export nothing, because the [`Traceparent`] in its headers is derived
//! from the cause's without any span. So where no endpoint is configured spans are disabled, and a
//! disabled span costs a load and a branch.
//!
//! Span names are few and fixed (`execute_tool {tool}`); ids of agents, threads and events belong
//! in fields. What is counted and measured is in [`crate::metrics`].

mod config;
mod export;
mod log_layer;
mod sampler;
mod span;
mod traceparent;

use std::{io, time::Duration};

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::{error::OTelSdkError, metrics::SdkMeterProvider, trace::SdkTracerProvider};
use tracing_subscriber::{
    Layer,
    filter::ParseError,
    layer::SubscriberExt,
    util::{SubscriberInitExt, TryInitError},
};

use self::{
    export::OtlpCollector,
    log_layer::{BoxedLayer, log_layer, parse_filter},
};
use crate::{
    metrics::{self, Metrics},
    subjects::Service,
};

pub use config::{LogFormat, TelemetryConfig};
pub(crate) use sampler::TraceSampler;
pub use span::{current_traceparent, link_span, outgoing_traceparent, set_parent};
pub use traceparent::{InvalidTraceparent, Traceparent};

/// The errors of starting and ending telemetry.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `log` or `spans` does not parse.
    #[error("a telemetry filter is not understood; correct telemetry.log or telemetry.spans")]
    Filter(#[source] ParseError),
    /// The exporter refused its endpoint.
    #[error("the OTLP exporter cannot be built; correct telemetry.otlp_endpoint")]
    Exporter(#[source] ExporterBuildError),
    /// `otlp_ca` cannot be read.
    #[error("the authorities for OTLP cannot be read from {file}: {source}; correct telemetry.otlp_ca")]
    Ca {
        file: String,
        #[source]
        source: io::Error,
    },
    /// A header that cannot be sent.
    #[error("a header cannot be sent; correct telemetry.otlp_headers")]
    Headers,
    /// The process logs already.
    #[error("a subscriber is already installed; initialise telemetry once, first in main")]
    Installed(#[source] TryInitError),
    /// The exporter did not finish in time.
    #[error("the last spans and metrics were not exported in time; see whether the OTLP endpoint is reachable")]
    Flush(#[source] OTelSdkError),
}

/// Starts logging and measuring, and exporting if configured. Call once, inside a tokio runtime of several
/// threads, and keep the guard until the end.
///
/// # Errors
/// If a filter or the endpoint is malformed, or if a subscriber is installed already. That the
/// endpoint cannot be reached is no error: it is logged, and tried again with each batch.
pub fn init(service: Service, config: &TelemetryConfig) -> Result<TelemetryGuard, TelemetryError> {
    let resource = export::replica_resource(service.name(), config);
    let collector = OtlpCollector::from_config(config)?;
    let traces = export::tracer_provider(collector.as_ref(), resource.clone(), config)?;
    let sampler = collector.as_ref().map(|_| TraceSampler::new(config.sample_ratio));
    let series = config.metric_series;
    let of_agents = config.metrics_of_agents;
    let wanted = metrics::MetricsSetup { service, resource, series, of_agents, sampler };
    let sent = collector.filter(|_| config.otlp_metrics).map(|collector| collector.metric_reader()).transpose()?;
    let (metrics, measured) = wanted.build(|provider| match sent {
        Some(reader) => provider.with_reader(reader),
        None => provider,
    });
    let mut layers = vec![log_layer(config, io::stderr)?];
    if let Some(traces) = &traces {
        layers.push(span_layer(service.name(), traces, config)?);
    }
    tracing_subscriber::registry().with(layers).try_init().map_err(TelemetryError::Installed)?;
    let timeout = Duration::from_millis(config.export_timeout_ms);
    Ok(TelemetryGuard { traces, measured, metrics, timeout })
}

/// Holds the exporters.
#[derive(Debug)]
#[must_use = "what waits for export is lost unless the guard is shut down"]
pub struct TelemetryGuard {
    traces: Option<SdkTracerProvider>,
    measured: SdkMeterProvider,
    metrics: Metrics,
    timeout: Duration,
}

impl TelemetryGuard {
    /// Returns the metrics of this process.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Exports what is waiting, for `export_timeout_ms` at most. Nothing is exported afterwards.
    ///
    /// # Errors
    /// If the exporter did not finish in time. A batch that was refused is no error here: the
    /// exporter logs it and gives it up.
    pub async fn shutdown(self) -> Result<(), TelemetryError> {
        let Self { traces, measured, timeout, .. } = self;
        // The SDK blocks until its threads are done, which need the runtime for their connections.
        let flush = move || {
            let flushed = traces.map_or(Ok(()), |traces| traces.shutdown_with_timeout(timeout));
            // Both are tried, whatever became of the first.
            let sent = measured.shutdown_with_timeout(timeout);
            flushed.and(sent)
        };
        match tokio::task::spawn_blocking(flush).await {
            Ok(result) => result.map_err(TelemetryError::Flush),
            Err(died) => {
                let failure = OTelSdkError::InternalFailure(died.to_string());
                Err(TelemetryError::Flush(failure))
            }
        }
    }
}

fn span_layer(
    service: &'static str,
    provider: &SdkTracerProvider,
    config: &TelemetryConfig,
) -> Result<BoxedLayer, TelemetryError> {
    let filter = parse_filter(&config.spans).map_err(TelemetryError::Filter)?;
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(service))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_filter(filter);
    Ok(layer.boxed())
}

#[cfg(test)]
mod tests;
