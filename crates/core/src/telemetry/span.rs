//! Between the spans of this process and the `traceparent` of its messages.

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use uuid::Uuid;

use super::Traceparent;

/// The current span as a `traceparent`; none where spans are not exported.
#[must_use]
pub fn current_traceparent() -> Option<String> {
    current_span_traceparent().map(|traceparent| traceparent.to_string())
}

/// The `traceparent` for the headers of the event `event_id`, caused by an event that carried
/// `cause`: the current span, or where there is none a child of the cause, or a new trace.
#[must_use]
pub fn outgoing_traceparent(cause: Option<&str>, event_id: Uuid) -> String {
    let cause = || cause.and_then(|text| text.parse::<Traceparent>().ok());
    current_span_traceparent()
        .or_else(|| cause().map(|cause| cause.child(event_id)))
        .unwrap_or_else(|| Traceparent::root(event_id))
        .to_string()
}

/// Makes `span` a child of the message's. To be called before the span is entered, since its
/// parent is fixed then. A malformed `traceparent` is ignored, as the standard asks.
pub fn set_parent(span: &Span, traceparent: &str) {
    if let Some(parent) = remote_context(span, traceparent) {
        let parent = Context::new().with_remote_span_context(parent);
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "a span was left in a trace of its own");
        }
    }
}

/// Notes on `span` that it also deals with the message of this `traceparent`, for the second and
/// further messages of a batch.
pub fn link_span(span: &Span, traceparent: &str) {
    if let Some(other) = remote_context(span, traceparent) {
        span.add_link(other);
    }
}

fn current_span_traceparent() -> Option<Traceparent> {
    let span = Span::current();
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span = context.span();
    let ids = span.span_context();
    Traceparent::new(
        u128::from_be_bytes(ids.trace_id().to_bytes()),
        u64::from_be_bytes(ids.span_id().to_bytes()),
        ids.is_sampled(),
    )
}

fn remote_context(span: &Span, traceparent: &str) -> Option<SpanContext> {
    if span.is_disabled() {
        return None;
    }
    let traceparent: Traceparent = traceparent.parse().ok()?;
    let flags = TraceFlags::default().with_sampled(traceparent.is_sampled());
    Some(SpanContext::new(
        TraceId::from(traceparent.trace_id()),
        SpanId::from(traceparent.span_id()),
        flags,
        true,
        TraceState::default(),
    ))
}
