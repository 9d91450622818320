//! Reading a delivered message and having it handled.

use std::{future::Future, sync::Arc, time::Duration};

use tracing::Instrument;

use super::{Delivery, DeliveryOutcome, Handler, HandlerFailure, RawDelivery, RawHandler, as_signed, processing_span};
use crate::{
    bus::Bus,
    record::{RawMessage, UnreadableRecord},
    subjects::Consumer,
    telemetry,
    vocabulary::{NewerReaderNeeded, NotUnderstood},
};

/// Conflicts in a row before a delivery is treated as a failure that may pass.
const CONFLICTS: u32 = 8;

/// The outcome of a delivery.
pub(in crate::bus) enum ProcessingOutcome {
    Unreadable(String),
    Handled(Result<DeliveryOutcome, HandlerFailure>),
}

impl ProcessingOutcome {
    /// Returns the error type for metrics, or an empty string on success.
    pub(super) fn error_type(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Handled(Ok(_)) => "",
            Self::Handled(Err(HandlerFailure::Transient(_))) => "transient",
            Self::Handled(Err(HandlerFailure::Conflict(_))) => "conflict",
            Self::Handled(Err(HandlerFailure::Permanent(_))) => "permanent",
        }
    }
}

/// Reads a message and has it handled.
pub(in crate::bus) trait DeliveryProcessor: Send + Sync + 'static {
    fn process_delivery(
        &self,
        bus: &Bus,
        consumer: Consumer,
        delivery: &RawDelivery,
    ) -> impl Future<Output = ProcessingOutcome> + Send;
}

pub(in crate::bus) struct RecordProcessor<H>(pub(in crate::bus) Arc<H>);

impl<H: Handler> DeliveryProcessor for RecordProcessor<H> {
    async fn process_delivery(&self, bus: &Bus, consumer: Consumer, delivery: &RawDelivery) -> ProcessingOutcome {
        let record = match delivery.raw.read_or_reject_newer(bus.limits.max_body_bytes) {
            Ok(record) => record,
            Err(NotUnderstood::Unreadable(UnreadableRecord::Carried { .. })) => {
                return ProcessingOutcome::Handled(Ok(DeliveryOutcome::Done));
            }
            Err(NotUnderstood::Unreadable(unreadable)) => return ProcessingOutcome::Unreadable(unreadable.to_string()),
            Err(NotUnderstood::Newer(newer)) => return leave_to_newer_replica(bus, consumer, &delivery.raw, &newer),
        };
        let delivery = Delivery { record, attempt: delivery.attempt };
        let handled =
            retry_conflicts(bus, || self.0.handle(&delivery)).instrument(processing_span(consumer, &delivery.record));
        ProcessingOutcome::Handled(handled.await)
    }
}

/// A replica that understands it is given it in its turn, whenever there is one.
fn leave_to_newer_replica(
    bus: &Bus,
    consumer: Consumer,
    raw: &RawMessage,
    newer: &NewerReaderNeeded,
) -> ProcessingOutcome {
    tracing::warn!(consumer = consumer.name(), sequence = raw.sequence, %newer, "left to newer replicas");
    ProcessingOutcome::Handled(Ok(DeliveryOutcome::Later(Duration::from_millis(bus.limits.ack_wait_ms))))
}

pub(in crate::bus) struct RawProcessor<H>(pub(in crate::bus) Arc<H>);

impl<H: RawHandler> DeliveryProcessor for RawProcessor<H> {
    async fn process_delivery(&self, bus: &Bus, consumer: Consumer, delivery: &RawDelivery) -> ProcessingOutcome {
        let handled =
            retry_conflicts(bus, || self.0.handle(delivery)).instrument(raw_processing_span(consumer, &delivery.raw));
        ProcessingOutcome::Handled(handled.await)
    }
}

/// The span of dealing with a message that is no event of Kairo's, or with what became of one.
pub(super) fn raw_processing_span(consumer: Consumer, raw: &RawMessage) -> tracing::Span {
    let span = tracing::info_span!(
        "process",
        otel.name = consumer.name(),
        otel.kind = "consumer",
        messaging.system = "nats",
        messaging.destination.name = raw.subject,
        kairo.sequence = as_signed(raw.sequence),
    );
    if let Some(traceparent) = raw.header("traceparent") {
        telemetry::set_parent(&span, traceparent);
    }
    span
}

/// Calls the handler, again at once after a conflict.
async fn retry_conflicts<F>(bus: &Bus, handler: impl Fn() -> F + Send) -> Result<DeliveryOutcome, HandlerFailure>
where
    F: Future<Output = Result<DeliveryOutcome, HandlerFailure>> + Send,
{
    let mut conflicts = 0;
    loop {
        match handler().await {
            Err(HandlerFailure::Conflict(reason)) if conflicts < CONFLICTS => {
                conflicts += 1;
                tracing::debug!(service = bus.service.name(), reason, conflicts, "conflict");
            }
            other => return other,
        }
    }
}
