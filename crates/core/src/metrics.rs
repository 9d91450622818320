//! The metrics of a service: exported over OTLP if that is configured, and served as OpenMetrics text at `/metrics` of
//! the listener for probes (`health.listen`).
//!
//! [`table`] lists them. Instruments are those of OpenTelemetry, so both exports read the same numbers. Events are
//! counted as they happen ([`Metrics::count`], [`Metrics::record_duration`]); state, such as work in progress, is read only on
//! request ([`Metrics::observe`]). Nothing here waits, and nothing asks another server.

mod exemplars;
mod exposition;
pub mod table;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{
        Instrument, InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Stream, Temporality,
        data::ResourceMetrics, reader::MetricReader,
    },
};

use self::{
    exemplars::Exemplars,
    table::{AGENT, Metric, MetricKind, TABLE},
};
use crate::{
    subjects::Service,
    telemetry::{TraceSampler, Traceparent},
};

/// The content type of the answers at `/metrics`.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Takes values of a metric, each with its labels.
pub type ValueSink<'a> = &'a mut dyn FnMut(f64, &[&str]);

/// The metrics of this process; cloning it is cheap. The default counts nothing, for what runs within another program.
#[derive(Clone, Default)]
pub struct Metrics(Option<Arc<Instruments>>);

struct Instruments {
    counters: BTreeMap<&'static str, Counter<f64>>,
    histograms: BTreeMap<&'static str, Histogram<f64>>,
    exemplars: Exemplars,
    /// The sampler of exported traces; without it none are exported.
    sampler: Option<TraceSampler>,
    meter: Meter,
    asked: OnDemandReader,
    /// True if metrics carry a label for the agent.
    of_agents: bool,
}

/// The settings of a provider of metrics.
pub(crate) struct MetricsSetup {
    pub service: Service,
    pub resource: Resource,
    /// Series of one metric at most.
    pub series: usize,
    pub of_agents: bool,
    /// The sampler of exported traces; without it none are exported.
    pub sampler: Option<TraceSampler>,
}

impl MetricsSetup {
    /// The metrics, and what reads them, to which `export` may add a reader of its own.
    pub(crate) fn build(
        self,
        export: impl FnOnce(
            opentelemetry_sdk::metrics::MeterProviderBuilder,
        ) -> opentelemetry_sdk::metrics::MeterProviderBuilder,
    ) -> (Metrics, SdkMeterProvider) {
        let Self { service, resource, series, of_agents, sampler } = self;
        let asked = OnDemandReader(Arc::new(ManualReader::builder().build()));
        let bound = move |_: &Instrument| Stream::builder().with_cardinality_limit(series).build().ok();
        let provider = SdkMeterProvider::builder().with_resource(resource).with_reader(asked.clone()).with_view(bound);
        let provider = export(provider).build();
        let meter = provider.meter("kairo");
        let mut counters = BTreeMap::new();
        let mut histograms = BTreeMap::new();
        for metric in TABLE.iter().filter(|metric| metric.services.contains(&service)) {
            match metric.kind {
                MetricKind::Counter => {
                    let counter = meter.f64_counter(metric.name);
                    let counter = counter.with_description(metric.says).with_unit(metric.unit.symbol()).build();
                    counters.insert(metric.name, counter);
                }
                MetricKind::Histogram(bounds) => {
                    let histogram = meter.f64_histogram(metric.name).with_boundaries(bounds.to_vec());
                    let histogram = histogram.with_description(metric.says).with_unit(metric.unit.symbol()).build();
                    histograms.insert(metric.name, histogram);
                }
                MetricKind::Gauge | MetricKind::ObservedCounter => {}
            }
        }
        let exemplars = Exemplars::new(series);
        let instruments = Instruments { counters, histograms, exemplars, sampler, meter, asked, of_agents };
        (Metrics(Some(Arc::new(instruments))), provider)
    }
}

impl Metrics {
    /// Adds to a counter. A service that does not have it counts nothing.
    pub fn count(&self, metric: &'static Metric, by: f64, labels: &[&str]) {
        if let Some(instruments) = &self.0
            && let Some(counter) = instruments.counters.get(metric.name)
        {
            counter.add(by, &instruments.attributes(metric, labels));
        }
    }

    /// Has a counter without labels begin at 0, so that the first time is an increase, too.
    pub fn init_counter(&self, metric: &'static Metric) {
        self.count(metric, 0.0, &[]);
    }

    /// Notes a value in a histogram.
    pub fn record_value(&self, metric: &'static Metric, value: f64, labels: &[&str]) {
        if let Some(instruments) = &self.0
            && let Some(histogram) = instruments.histograms.get(metric.name)
        {
            histogram.record(value, &instruments.attributes(metric, labels));
        }
    }

    /// Notes how long something took that is part of the trace of this `traceparent`. Where that trace is exported, the bucket
    /// names it. A metric is noted in this way always or never.
    pub fn record_duration_in_trace(
        &self,
        traceparent: Option<&str>,
        metric: &'static Metric,
        time: Duration,
        labels: &[&str],
    ) {
        self.record_duration(metric, time, labels);
        if let Some(instruments) = &self.0
            && let MetricKind::Histogram(bounds) = metric.kind
            && instruments.histograms.contains_key(metric.name)
        {
            let trace = traceparent.and_then(|text| instruments.exported_trace_id(text));
            let attributes = instruments.attributes(metric, labels);
            instruments.exemplars.record_value((metric.name, bounds), &attributes, time.as_secs_f64(), trace);
        }
    }

    /// Notes how long something took.
    pub fn record_duration(&self, metric: &'static Metric, time: Duration, labels: &[&str]) {
        self.record_value(metric, time.as_secs_f64(), labels);
    }

    /// Has `look` say the values of a gauge, or of a counter that is kept elsewhere, whenever somebody asks. It must not wait.
    /// A metric is observed once in a process.
    pub fn observe(&self, metric: &'static Metric, look: impl Fn(ValueSink<'_>) + Send + Sync + 'static) {
        let Some(instruments) = &self.0 else { return };
        let of_agents = instruments.of_agents;
        let callback = move |observer: &dyn opentelemetry::metrics::AsyncInstrument<f64>| {
            look(&mut |value, labels| observer.observe(value, &metric_attributes(metric, labels, of_agents)));
        };
        let meter = &instruments.meter;
        let unit = metric.unit.symbol();
        match metric.kind {
            MetricKind::Counter | MetricKind::ObservedCounter => {
                let counter = meter.f64_observable_counter(metric.name).with_description(metric.says).with_unit(unit);
                let _ = counter.with_callback(callback).build();
            }
            MetricKind::Gauge | MetricKind::Histogram(_) => {
                let gauge = meter.f64_observable_gauge(metric.name).with_description(metric.says).with_unit(unit);
                let _ = gauge.with_callback(callback).build();
            }
        }
    }

    /// All of them as they are now, as OpenMetrics text.
    pub fn to_openmetrics(&self) -> String {
        let mut read = ResourceMetrics::default();
        let Some(instruments) = &self.0 else { return exposition::encode_openmetrics(read, Exemplars::default()) };
        if let Err(error) = instruments.asked.collect(&mut read) {
            tracing::debug!(%error, "metrics are no longer read");
        }
        exposition::encode_openmetrics(read, instruments.exemplars.clone())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Metrics").field(&self.0.is_some()).finish()
    }
}

impl Instruments {
    fn attributes(&self, metric: &Metric, labels: &[&str]) -> Vec<KeyValue> {
        metric_attributes(metric, labels, self.of_agents)
    }

    /// The trace of a `traceparent`, where it is exported.
    fn exported_trace_id(&self, traceparent: &str) -> Option<u128> {
        let traceparent: Traceparent = traceparent.parse().ok()?;
        self.sampler.as_ref()?.is_exported(traceparent).then(|| traceparent.trace_id())
    }
}

fn metric_attributes(metric: &Metric, labels: &[&str], of_agents: bool) -> Vec<KeyValue> {
    debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
    let named = metric.labels.iter().zip(labels);
    let named = named.filter(|(name, value)| !value.is_empty() && (of_agents || **name != AGENT));
    named.map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect()
}

/// Reads when it is asked.
#[derive(Clone, Debug)]
struct OnDemandReader(Arc<ManualReader>);

impl MetricReader for OnDemandReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

#[cfg(test)]
mod tests;
