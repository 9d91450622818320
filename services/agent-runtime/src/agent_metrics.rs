//! Metrics of decisions and of model calls.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kairo_core::{
    bus::Bus,
    ids::Name,
    metrics::{
        Metrics, ValueSink,
        table::{COST, DECISION, MODEL_ABANDONED, MODEL_CALLS, MODEL_RETRIES, TOKENS, UNPRICED, WAKE_UPS},
    },
    prices::TokenCounts,
    record::Record,
    telemetry::current_traceparent,
};
use kairo_proto::v1::{Completion, EmailReceived, GivenUpCall, TaskDue, TaskTriggered};

use crate::{
    config::ModelConfig,
    turn::{AgentLane, TurnHandle},
};

const CHAT: &str = "chat";
/// Units of a cost in one of the currency.
const COST_UNITS: f64 = 1e12;

impl AgentLane {
    /// As metrics have it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Background => "beside",
        }
    }
}

/// An input that is decided on, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct WaitingInput {
    kind: String,
    /// From when on somebody waits.
    since: Timestamp,
    /// True for an input that no user sent, such as a timer or an email.
    is_wake_up: bool,
    traceparent: Option<String>,
}

impl WaitingInput {
    pub fn from_input(input: &Record) -> Self {
        let body = &input.body;
        let due = TaskDue::of(body);
        // The event of a timer was written when the timer was set.
        let due_at = due.and_then(|due| due.due_at.parse().ok());
        Self {
            kind: body.type_name().to_owned(),
            since: due_at.unwrap_or(input.envelope.time),
            is_wake_up: due.is_some() || TaskTriggered::of(body).is_some() || EmailReceived::of(body).is_some(),
            traceparent: input.envelope.traceparent.clone(),
        }
    }

    /// Returns the time from which somebody waits.
    pub fn since(&self) -> Timestamp {
        self.since
    }
}

/// A decision that was under way stands in the log, and says that these calls were given up.
pub fn record_decision(bus: &Bus, agent: &Name, turn: &TurnHandle, given_up: &[GivenUpCall]) {
    let WaitingInput { kind, since, is_wake_up, traceparent } = &turn.waiting;
    let waited = Duration::try_from(bus.now().duration_since(*since)).unwrap_or_default();
    let labels = [kind, turn.lane().label(), agent.as_str()];
    bus.metrics.record_duration_in_trace(traceparent.as_deref(), &DECISION, waited, &labels);
    if *is_wake_up {
        bus.metrics.count(&WAKE_UPS, 1.0, &[kind]);
    }
    for call in given_up {
        bus.metrics.count(&MODEL_ABANDONED, 1.0, &[&call.tier, &call.reason]);
    }
}

/// A model is asked once more.
pub fn count_retry(metrics: &Metrics, tier: &str) {
    metrics.count(&MODEL_RETRIES, 1.0, &[tier]);
}

/// A call of a model has come to something, in the span of it.
pub fn record_call(
    metrics: &Metrics,
    config: &ModelConfig,
    provider: &str,
    tier: &str,
    completion: &Completion,
    took: Duration,
) {
    let model = config.model.as_str();
    let error = completion.error.as_ref().map_or("", |error| error.kind.as_str());
    metrics.record_duration_in_trace(
        current_traceparent().as_deref(),
        &MODEL_CALLS,
        took,
        &[CHAT, provider, model, tier, error],
    );
    // Of a call that failed there are some only where a part of an answer was paid for.
    if completion.input_tokens == 0 && completion.output_tokens == 0 {
        return;
    }
    for (tokens, of) in [(completion.input_tokens, "input"), (completion.output_tokens, "output")] {
        metrics.record_value(&TOKENS, tokens as f64, &[CHAT, provider, model, tier, of]);
    }
    let Completion { input_tokens, cached_tokens, output_tokens, .. } = *completion;
    let tokens = input_tokens.saturating_add(output_tokens);
    // Told of models with a price, too: nothing that is counted is missing.
    metrics.count(&UNPRICED, if config.price.is_none() { tokens as f64 } else { 0.0 }, &[model, tier]);
    if let Some(price) = config.price {
        let cost =
            price.cost_of(TokenCounts { input_tokens, cached_tokens, output_tokens }).units() as f64 / COST_UNITS;
        metrics.count(&COST, cost, &[model, tier]);
    }
}

/// Model calls counted by model, tier and lane. Models of the same name are added up.
#[derive(Default)]
pub struct CallGauge<'m>(BTreeMap<(&'m str, &'static str, &'static str), usize>);

impl<'m> CallGauge<'m> {
    pub fn add(&mut self, model: &'m str, tier: &'static str, lane: AgentLane, calls: usize) {
        *self.0.entry((model, tier, lane.label())).or_default() += calls;
    }

    pub fn report(self, say: ValueSink<'_>) {
        for ((model, tier, lane), calls) in self.0 {
            say(calls as f64, &[model, tier, lane]);
        }
    }
}
