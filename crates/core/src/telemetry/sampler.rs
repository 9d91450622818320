//! The sampling of exported traces.

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt, TraceId},
};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

use super::Traceparent;

/// A trace is exported if nobody before decided otherwise and its id falls into the share.
///
/// Not `Sampler::ParentBased`, which exports all that comes with the sampled flag: a service
/// without an exporter starts its traces with the flag set, leaving the choice to those that have
/// one. The id decides alike everywhere, so a trace is still kept or dropped whole.
#[derive(Debug, Clone)]
pub(crate) struct TraceSampler {
    share: Sampler,
}

impl TraceSampler {
    /// Exports this share of all traces, 0 to 1.
    pub(crate) fn new(share: f64) -> Self {
        Self { share: Sampler::TraceIdRatioBased(share) }
    }

    /// Returns true if the trace of a message is exported.
    pub(crate) fn is_exported(&self, traceparent: Traceparent) -> bool {
        let id = TraceId::from(traceparent.trace_id());
        let result = self.share.should_sample(None, id, "", &SpanKind::Internal, &[], &[]);
        traceparent.is_sampled() && result.decision == SamplingDecision::RecordAndSample
    }
}

impl ShouldSample for TraceSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let dropped = parent.is_some_and(|parent| {
            let span = parent.span();
            span.span_context().is_valid() && !span.span_context().is_sampled()
        });
        let sampler = if dropped { &Sampler::AlwaysOff } else { &self.share };
        sampler.should_sample(parent, trace_id, name, kind, attributes, links)
    }
}
