//! Exemplars: the last trace counted in each bucket of a histogram, so that a slow measurement leads to its cause.
//!
//! OpenTelemetry's SDK keeps no exemplars, and `prometheus-client` writes only those of its own histograms. So both
//! count a histogram that may have exemplars: the SDK's numbers are sent over OTLP, those of `prometheus-client`, which
//! are the same, to scrapers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use opentelemetry::KeyValue;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;

use super::table::openmetrics_name;

/// Labels as they are written, in one order.
pub(super) type SeriesLabels = Vec<(String, String)>;
pub(super) type ExemplarHistogram = HistogramWithExemplars<[(&'static str, String); 1]>;

/// The histograms by the metric's name, as it is written, and by the labels of the series; cloning is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct Exemplars {
    kept: Arc<Mutex<HashMap<String, HashMap<SeriesLabels, ExemplarHistogram>>>>,
    /// Maximum number of series of one metric. The SDK adds up those beyond, without exemplars.
    series: usize,
}

impl Exemplars {
    pub(super) fn new(series: usize) -> Self {
        Self { series, ..Self::default() }
    }

    /// Counts a value of a metric with these bounds, and says in which trace it was, where there is one to be found.
    pub(super) fn record_value(
        &self,
        (metric, bounds): (&str, &'static [f64]),
        attributes: &[KeyValue],
        value: f64,
        trace: Option<u128>,
    ) {
        let labels = sorted_labels(attributes.iter().map(|one| (one.key.as_str(), one.value.as_str())));
        let named = trace.map(|id| [("trace_id", format!("{id:032x}"))]);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_metric = kept.entry(openmetrics_name(metric)).or_default();
        if of_metric.len() < self.series || of_metric.contains_key(&labels) {
            let histogram = of_metric.entry(labels).or_insert_with(|| ExemplarHistogram::new(bounds.iter().copied()));
            histogram.observe(value, named, Some(SystemTime::now()));
        }
    }

    /// A series, where it may have some.
    pub(super) fn histogram_of(&self, metric: &str, labels: &SeriesLabels) -> Option<ExemplarHistogram> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(metric)?.get(labels).cloned()
    }
}

/// In one order, so that a text can be compared.
pub(super) fn sorted_labels<K: AsRef<str>, V: AsRef<str>>(attributes: impl Iterator<Item = (K, V)>) -> SeriesLabels {
    let mut labels: SeriesLabels =
        attributes.map(|(key, value)| (openmetrics_name(key.as_ref()), value.as_ref().to_owned())).collect();
    labels.sort();
    labels
}
