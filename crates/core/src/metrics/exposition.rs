//! Metrics as OpenMetrics text. What is there is OpenTelemetry's; the format is that of the `prometheus-client` crate.

use std::fmt;

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric as Measured, MetricData, ResourceMetrics};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, exemplar::Exemplar},
    registry::{Registry, Unit},
};

use super::{
    exemplars::{Exemplars, sorted_labels},
    table::openmetrics_name,
};

/// Returns the unit that a name ends in, by OpenTelemetry's symbol.
fn openmetrics_unit(symbol: &str) -> Option<Unit> {
    match symbol {
        "s" => Some(Unit::Seconds),
        "By" => Some(Unit::Bytes),
        _ => None,
    }
}

/// Encodes the measurements, with their exemplars, as OpenMetrics text.
pub(super) fn encode_openmetrics(measured: ResourceMetrics, exemplars: Exemplars) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(MeasurementCollector { measured, exemplars }));
    let mut written = String::new();
    // Writing to a text does not fail.
    let _ = text::encode(&mut written, &registry);
    written
}

#[derive(Debug)]
struct MeasurementCollector {
    measured: ResourceMetrics,
    exemplars: Exemplars,
}

impl Collector for MeasurementCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let target = sorted_labels(self.measured.resource().iter().map(|(key, value)| (key.as_str(), value.as_str())));
        encoder.encode_descriptor("target", "the replica", None, MetricType::Info)?.encode_info(&target)?;
        for metric in self.measured.scope_metrics().flat_map(|scope| scope.metrics()) {
            encode_metric(&mut encoder, metric, &self.exemplars)?;
        }
        Ok(())
    }
}

fn encode_metric(encoder: &mut DescriptorEncoder, metric: &Measured, exemplars: &Exemplars) -> fmt::Result {
    // All instruments are made with this type.
    let AggregatedMetrics::F64(data) = metric.data() else { return Ok(()) };
    let kind = match data {
        MetricData::Sum(_) => MetricType::Counter,
        MetricData::Gauge(_) => MetricType::Gauge,
        MetricData::Histogram(_) => MetricType::Histogram,
        // None is made.
        MetricData::ExponentialHistogram(_) => return Ok(()),
    };
    let name = openmetrics_name(metric.name());
    let unit = openmetrics_unit(metric.unit());
    let mut family = encoder.encode_descriptor(&name, metric.description(), unit.as_ref(), kind)?;
    match data {
        MetricData::Sum(sum) => sum.data_points().try_for_each(|point| {
            encode_series(&mut family, point.attributes(), |one| {
                one.encode_counter(&point.value(), None::<&Exemplar<NoLabelSet, f64>>)
            })
        }),
        MetricData::Gauge(gauge) => gauge.data_points().try_for_each(|point| {
            encode_series(&mut family, point.attributes(), |one| one.encode_gauge(&point.value()))
        }),
        MetricData::Histogram(histogram) => histogram.data_points().try_for_each(|point| {
            let labels = sorted_labels(point.attributes().map(|one| (one.key.as_str(), one.value.as_str())));
            if let Some(with_exemplars) = exemplars.histogram_of(&name, &labels) {
                return with_exemplars.encode(family.encode_family(&labels)?);
            }
            let bounds = point.bounds().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(point.bucket_counts()).collect();
            encode_series(&mut family, point.attributes(), |one| {
                one.encode_histogram::<NoLabelSet>(point.sum(), point.count(), &buckets, None)
            })
        }),
        MetricData::ExponentialHistogram(_) => Ok(()),
    }
}

/// Writes one series of a metric.
fn encode_series<'a>(
    family: &mut MetricEncoder<'_>,
    attributes: impl Iterator<Item = &'a KeyValue>,
    write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    let labels = sorted_labels(attributes.map(|attribute| (attribute.key.as_str(), attribute.value.as_str())));
    match labels.is_empty() {
        true => write(family),
        false => write(&mut family.encode_family(&labels)?),
    }
}
