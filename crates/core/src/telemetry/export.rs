//! Sending traces and metrics to a collector, over OTLP.

use std::{fs, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::{
        metadata::MetadataMap,
        transport::{Certificate, ClientTlsConfig},
    },
};
use opentelemetry_sdk::{
    Resource,
    metrics::PeriodicReader,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};

use super::{
    TelemetryError,
    config::{TLS, TelemetryConfig},
    sampler::TraceSampler,
};

/// Returns the resource that identifies this replica, the same for traces and metrics.
pub(super) fn replica_resource(service: &'static str, config: &TelemetryConfig) -> Resource {
    let instance = config.instance_id.clone();
    let instance = instance.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    Resource::builder_empty()
        .with_service_name(service)
        .with_attributes([
            KeyValue::new("service.namespace", "kairo"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
        ])
        .build()
}

/// The collector that receives exports.
pub(super) struct OtlpCollector<'c> {
    config: &'c TelemetryConfig,
    endpoint: &'c str,
    tls: Option<ClientTlsConfig>,
    headers: MetadataMap,
}

impl<'c> OtlpCollector<'c> {
    /// Reads the collector from the configuration; `None` if no endpoint is configured.
    pub(super) fn from_config(config: &'c TelemetryConfig) -> Result<Option<Self>, TelemetryError> {
        let Some(endpoint) = config.otlp_endpoint.as_deref() else { return Ok(None) };
        let tls = endpoint.starts_with(TLS).then(|| tls_config(&config.otlp_ca)).transpose()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &config.otlp_headers {
            let name = HeaderName::try_from(name);
            let value = HeaderValue::try_from(value.expose());
            let (Ok(name), Ok(mut value)) = (name, value) else { return Err(TelemetryError::Headers) };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Some(Self { config, endpoint, tls, headers: MetadataMap::from_headers(headers) }))
    }

    pub(super) fn span_processor(&self) -> Result<BatchSpanProcessor, TelemetryError> {
        let exporter = self.with_connection(SpanExporter::builder().with_tonic());
        let exporter = exporter.build().map_err(TelemetryError::Exporter)?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(self.config.queue_spans)
            .with_max_export_batch_size(self.config.batch_spans)
            .with_scheduled_delay(Duration::from_millis(self.config.export_interval_ms))
            .build();
        Ok(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
    }

    pub(super) fn metric_reader(&self) -> Result<PeriodicReader<MetricExporter>, TelemetryError> {
        let exporter = self.with_connection(MetricExporter::builder().with_tonic());
        let exporter = exporter.build().map_err(TelemetryError::Exporter)?;
        let interval = Duration::from_millis(self.config.metrics_interval_ms);
        Ok(PeriodicReader::builder(exporter).with_interval(interval).build())
    }

    fn with_connection<B: WithExportConfig + WithTonicConfig>(&self, exporter: B) -> B {
        let timeout = Duration::from_millis(self.config.export_timeout_ms);
        let exporter = exporter.with_endpoint(self.endpoint).with_timeout(timeout).with_metadata(self.headers.clone());
        match &self.tls {
            Some(tls) => exporter.with_tls_config(tls.clone()),
            None => exporter,
        }
    }
}

/// Returns the TLS settings with the authorities an encrypted endpoint is verified against.
fn tls_config(ca: &str) -> Result<ClientTlsConfig, TelemetryError> {
    crate::tls::use_ring();
    if ca.is_empty() {
        return Ok(ClientTlsConfig::new().with_native_roots());
    }
    let pem = fs::read(ca).map_err(|source| TelemetryError::Ca { file: ca.to_owned(), source })?;
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
}

/// Builds the provider of spans: they are sent to the collector or, without one, only provide ids for the log.
pub(super) fn tracer_provider(
    collector: Option<&OtlpCollector<'_>>,
    resource: Resource,
    config: &TelemetryConfig,
) -> Result<Option<SdkTracerProvider>, TelemetryError> {
    let provider = SdkTracerProvider::builder();
    let provider = match collector {
        Some(collector) => provider.with_span_processor(collector.span_processor()?),
        None if config.log_spans => provider,
        None => return Ok(None),
    };
    let sampler = TraceSampler::new(config.sample_ratio);
    Ok(Some(provider.with_sampler(sampler).with_resource(resource).build()))
}
