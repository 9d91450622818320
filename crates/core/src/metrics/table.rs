//! All metrics, with their names, descriptions and services. Both exporters and docs/metrics.md are built from this
//! table.
//!
//! Names, units and labels are those of OpenTelemetry, by its conventions where there are some (`gen_ai.*`,
//! `messaging.*`, `http.*`). In OpenMetrics dots become underscores, seconds and bytes are suffixes of the name, and
//! `_total` is the suffix of a counter, as OpenTelemetry maps the two.
//!
//! The number of series is bounded: the values of a label are words of this program, names from configuration or of the
//! tool catalogue. No label has an id, except for [`AGENT`], which is left out unless `telemetry.metrics_of_agents` is
//! set.

use crate::subjects::Service;

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// The name in OpenTelemetry.
    pub name: &'static str,
    pub kind: MetricKind,
    pub unit: MetricUnit,
    /// The labels in the order in which values are given; an empty value is none.
    pub labels: &'static [&'static str],
    /// The services that report the metric.
    pub services: &'static [Service],
    /// The description, in one line.
    pub says: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Only grows, from 0 at the start of a replica.
    Counter,
    /// A counter whose value is counted elsewhere.
    ObservedCounter,
    Gauge,
    /// Counts values up to each of these bounds.
    Histogram(&'static [f64]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    Seconds,
    Bytes,
    /// A count of something, in the braces that OpenTelemetry wants.
    Of(&'static str),
    /// 0 for no, 1 for yes.
    YesOrNo,
}

impl Metric {
    /// The name in OpenMetrics, without unit and without the suffixes of counters and histograms.
    pub fn base_name(&self) -> String {
        self.name.replace('.', "_")
    }

    /// The name of the family in OpenMetrics.
    pub fn family_name(&self) -> String {
        match self.unit.suffix() {
            Some(suffix) => format!("{}_{suffix}", self.base_name()),
            None => self.base_name(),
        }
    }

    /// The names by which queries find it.
    pub fn sample_names(&self) -> Vec<String> {
        let family = self.family_name();
        match self.kind {
            MetricKind::Counter | MetricKind::ObservedCounter => vec![format!("{family}_total")],
            MetricKind::Gauge => vec![family],
            MetricKind::Histogram(_) => ["bucket", "count", "sum"].map(|part| format!("{family}_{part}")).to_vec(),
        }
    }

    /// Its labels in OpenMetrics.
    pub fn exposed_labels(&self) -> Vec<String> {
        self.labels.iter().map(|label| openmetrics_name(label)).collect()
    }
}

/// A label's name in OpenMetrics.
pub fn openmetrics_name(label: &str) -> String {
    label.replace('.', "_")
}

impl MetricKind {
    /// Its type in OpenMetrics.
    pub fn openmetrics_type(self) -> &'static str {
        match self {
            Self::Counter | Self::ObservedCounter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

impl MetricUnit {
    /// Returns the unit as OpenTelemetry writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Bytes => "By",
            Self::Of(what) => what,
            Self::YesOrNo => "",
        }
    }

    /// Returns the suffix of a name in OpenMetrics.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Of(_) | Self::YesOrNo => None,
        }
    }
}

const GATEWAY: &[Service] = &[Service::Gateway];
const AGENT_RUNTIME: &[Service] = &[Service::AgentRuntime];
const TOOL_RUNNER: &[Service] = &[Service::ToolRunner];
const PROCESS_SUPERVISOR: &[Service] = &[Service::ProcessSupervisor];
const PROJECTOR: &[Service] = &[Service::Projector];
const OWNERS: &[Service] = &[Service::Router, Service::AgentRuntime];
const CONSUMERS: &[Service] =
    &[Service::Router, Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor];
const GATEWAY_AND_RUNTIME: &[Service] = &[Service::Gateway, Service::AgentRuntime];
const EVERY: &[Service] = &Service::ALL;

/// The agent that something was done for; none unless `telemetry.metrics_of_agents` is set.
pub const AGENT: &str = "gen_ai.agent.id";
const ERROR: &str = "error.type";
const TIER: &str = "kairo.tier";
const LANE: &str = "kairo.lane";
const INPUT: &str = "kairo.input";
const MODEL: &str = "gen_ai.request.model";
const TOOL_SERVER: &str = "kairo.tool.server";
const CONSUMER: &str = "messaging.consumer.group.name";

/// Bounds for durations from a millisecond to minutes, in seconds.
const SHORT: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
/// Bounds that the conventions of OpenTelemetry give for models.
const MODEL_SECONDS: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const MODEL_TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The metrics by name, and all of them.
macro_rules! metrics {
    ($($ident:ident, $name:literal, $kind:expr, $unit:expr, [$($label:expr),*], $services:expr, $says:literal;)*) => {
        $(
            #[doc = $says]
            pub static $ident: Metric = Metric {
                name: $name,
                kind: $kind,
                unit: $unit,
                labels: &[$($label),*],
                services: $services,
                says: $says,
            };
        )*

        /// All metrics, in the order in which they are exported.
        pub static TABLE: &[&Metric] = &[$(&$ident),*];
    };
}

metrics! {
    READY, "kairo.service.ready", MetricKind::Gauge, MetricUnit::YesOrNo, [], EVERY,
        "whether the replica takes work, as `/readyz` says";
    NATS_CONNECTED, "kairo.nats.connected", MetricKind::Gauge, MetricUnit::YesOrNo, [], EVERY,
        "whether there is a connection to NATS";
    NATS_VIOLATIONS, "kairo.nats.violations", MetricKind::ObservedCounter, MetricUnit::Of("{violation}"), [], EVERY,
        "what NATS did not permit this replica";
    WRITES_STALLED, "kairo.log.stalled", MetricKind::Gauge, MetricUnit::YesOrNo, [], EVERY,
        "whether the log does not take what this replica writes";
    DEAD_LETTERS_WRITTEN, "kairo.dead_letters.written", MetricKind::Counter, MetricUnit::Of("{message}"), [], EVERY,
        "messages that this replica gave up on";
    PROCESSING, "messaging.process.duration", MetricKind::Histogram(SHORT), MetricUnit::Seconds,
        ["messaging.system", "messaging.operation.name", CONSUMER, ERROR], CONSUMERS,
        "from the delivery of a message until it is settled";
    PARTITIONS, "kairo.partitions.count", MetricKind::Gauge, MetricUnit::Of("{partition}"), [], OWNERS,
        "partitions that the log has";
    PARTITIONS_OWNED, "kairo.partitions.owned", MetricKind::Gauge, MetricUnit::Of("{partition}"), [], OWNERS,
        "partitions of the log that this replica owns";
    PARTITIONS_TAKEN, "kairo.partitions.takeovers", MetricKind::ObservedCounter, MetricUnit::Of("{partition}"), [], OWNERS,
        "partitions taken of replicas that had gone";
    PARTITIONS_HANDED_OVER, "kairo.partitions.handovers", MetricKind::ObservedCounter, MetricUnit::Of("{partition}"), [], OWNERS,
        "partitions handed over to others";
    INPUTS_WAITING, "kairo.partitions.waiting", MetricKind::Gauge, MetricUnit::Of("{message}"), [], OWNERS,
        "messages of owned partitions that were read and are not dealt with yet";
    DECISION, "kairo.agent.decision.duration", MetricKind::Histogram(SHORT), MetricUnit::Seconds, [INPUT, LANE, AGENT], AGENT_RUNTIME,
        "from an agent's input, or the time a task was due, until its decision stands in the log";
    FIRST_WORDS, "kairo.agent.first_words.duration", MetricKind::Histogram(SHORT), MetricUnit::Seconds, [INPUT, AGENT], AGENT_RUNTIME,
        "from an agent's input until the first words of an answer that is streamed are shown";
    WAKE_UPS, "kairo.agent.wakeups", MetricKind::Counter, MetricUnit::Of("{wakeup}"), [INPUT], AGENT_RUNTIME,
        "decisions on what no user said: tasks that came due, hooks that fired, mail that came in";
    AGENTS_PARKED, "kairo.agents.parked", MetricKind::Gauge, MetricUnit::Of("{agent}"), [], AGENT_RUNTIME,
        "agents that wait for a replica of a newer version";
    AGENTS_MEMORY, "kairo.agents.memory", MetricKind::Gauge, MetricUnit::Bytes, [], AGENT_RUNTIME,
        "what agents take of this replica's memory, about";
    MODEL_CALLS, "gen_ai.client.operation.duration", MetricKind::Histogram(MODEL_SECONDS), MetricUnit::Seconds,
        ["gen_ai.operation.name", "gen_ai.provider.name", MODEL, TIER, ERROR], AGENT_RUNTIME,
        "calls of models that were answered or failed, with the wait for room";
    TOKENS, "gen_ai.client.token.usage", MetricKind::Histogram(MODEL_TOKENS), MetricUnit::Of("{token}"),
        ["gen_ai.operation.name", "gen_ai.provider.name", MODEL, TIER, "gen_ai.token.type"], AGENT_RUNTIME,
        "tokens of calls, as the model server counts them or, where it does not, as they are estimated";
    UNPRICED, "kairo.model.unpriced", MetricKind::Counter, MetricUnit::Of("{token}"), [MODEL, TIER], AGENT_RUNTIME,
        "tokens of models without a price, whose cost is not known";
    COST, "kairo.model.cost", MetricKind::Counter, MetricUnit::Of("{currency}"), [MODEL, TIER], AGENT_RUNTIME,
        "what calls of models with a price cost, in the currency of `gateway.currency`; of others it is not known";
    MODEL_RETRIES, "kairo.model.retries", MetricKind::Counter, MetricUnit::Of("{call}"), [TIER], AGENT_RUNTIME,
        "calls of models that were tries after a first one";
    MODEL_ABANDONED, "kairo.model.abandoned", MetricKind::Counter, MetricUnit::Of("{call}"), [TIER, "kairo.reason"], AGENT_RUNTIME,
        "calls of models that decisions say were given up";
    MODEL_IN_FLIGHT, "kairo.model.in_flight", MetricKind::Gauge, MetricUnit::Of("{call}"), [MODEL, TIER, LANE], AGENT_RUNTIME,
        "calls of models under way";
    MODEL_LIMIT, "kairo.model.limit", MetricKind::Gauge, MetricUnit::Of("{call}"), [MODEL, TIER, LANE], AGENT_RUNTIME,
        "calls of models that may be under way at once (`max_in_flight`)";
    TOOL_CALLS, "kairo.tool.call.duration", MetricKind::Histogram(SHORT), MetricUnit::Seconds,
        ["gen_ai.tool.name", ERROR, AGENT], TOOL_RUNNER,
        "how long calls of tools took that ended";
    IN_DOUBT, "kairo.tool.effects_in_doubt", MetricKind::Counter, MetricUnit::Of("{call}"), [], TOOL_RUNNER,
        "calls whose effect nobody knew when their result was written";
    TOOLS_IN_FLIGHT, "kairo.tool.in_flight", MetricKind::Gauge, MetricUnit::Of("{call}"), [], TOOL_RUNNER,
        "calls of tools under way";
    TOOLS_LIMIT, "kairo.tool.limit", MetricKind::Gauge, MetricUnit::Of("{call}"), [], TOOL_RUNNER,
        "calls of tools that may be under way at once (`tool_runner.parallel`)";
    TOOL_SERVER_UP, "kairo.tool.server.up", MetricKind::Gauge, MetricUnit::YesOrNo, [TOOL_SERVER, "kairo.tool.source"], TOOL_RUNNER,
        "whether an MCP server or a tool worker of the configuration can be called";
    PROCESSES_RUNNING, "kairo.processes.running", MetricKind::Gauge, MetricUnit::Of("{process}"), [], PROCESS_SUPERVISOR,
        "processes that run";
    PROCESSES_LIMIT, "kairo.processes.limit", MetricKind::Gauge, MetricUnit::Of("{process}"), [], PROCESS_SUPERVISOR,
        "processes that may run at once (`process_supervisor.limits.concurrent`)";
    PROCESSES_ENDED, "kairo.processes.ended", MetricKind::Counter, MetricUnit::Of("{process}"), ["kairo.outcome"], PROCESS_SUPERVISOR,
        "processes whose end this replica recorded";
    PROJECTED, "kairo.projector.messages", MetricKind::Counter, MetricUnit::Of("{message}"), ["kairo.generation.state"], PROJECTOR,
        "messages of the log taken into Postgres, of which the rate is the projector's";
    REQUESTS, "http.server.request.duration", MetricKind::Histogram(SHORT), MetricUnit::Seconds,
        ["http.request.method", "http.route", "http.response.status_code", "url.scheme"], GATEWAY,
        "requests, until the answer began";
    LOG_SIZE, "kairo.log.size", MetricKind::Gauge, MetricUnit::Bytes, [], GATEWAY,
        "what the log takes of the disk";
    LOG_LIMIT, "kairo.log.limit", MetricKind::Gauge, MetricUnit::Bytes, [], GATEWAY,
        "what the log may take: the stream's own limit, else `gateway.log_limit_bytes`; none where neither is set";
    LOG_MESSAGES, "kairo.log.messages", MetricKind::ObservedCounter, MetricUnit::Of("{message}"), [], GATEWAY,
        "the last sequence of the log";
    CONSUMER_LAG, "kairo.consumer.lag", MetricKind::Gauge, MetricUnit::Of("{message}"), [CONSUMER], GATEWAY,
        "messages that a consumer was not delivered yet";
    CONSUMER_UNACKNOWLEDGED, "kairo.consumer.unacknowledged", MetricKind::Gauge, MetricUnit::Of("{message}"), [CONSUMER], GATEWAY,
        "messages that a consumer was delivered and are not dealt with, those to be tried later included";
    DEAD_LETTERS, "kairo.dead_letters.kept", MetricKind::Gauge, MetricUnit::Of("{message}"), [], GATEWAY,
        "dead letters there are";
    PROJECTION_LAG, "kairo.projector.lag", MetricKind::Gauge, MetricUnit::Of("{message}"), [], GATEWAY,
        "messages of the log that the live read model has not taken in";
    CONSENT_WAITING, "kairo.consent.waiting", MetricKind::Gauge, MetricUnit::Of("{call}"), [], GATEWAY,
        "calls of tools that wait for a human's consent";
    OLDEST_WAIT, "kairo.waiting.oldest", MetricKind::Gauge, MetricUnit::Seconds, ["kairo.waits_for"], GATEWAY_AND_RUNTIME,
        "how long the oldest work has waited for consent, a choice, a runner, a tool (gateway) or a decision (agent-runtime)";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_have_a_name_in_common() {
        let names: BTreeSet<String> = TABLE.iter().flat_map(|metric| metric.sample_names()).collect();
        assert_eq!(names.len(), TABLE.iter().map(|metric| metric.sample_names().len()).sum::<usize>());
    }

    #[test]
    fn names_of_openmetrics_are_made_of_those_of_opentelemetry() {
        assert_eq!(LOG_SIZE.sample_names(), ["kairo_log_size_bytes"]);
        assert_eq!(COST.sample_names(), ["kairo_model_cost_total"]);
        assert_eq!(READY.sample_names(), ["kairo_service_ready"]);
        assert_eq!(
            MODEL_CALLS.sample_names(),
            ["bucket", "count", "sum"].map(|part| format!("gen_ai_client_operation_duration_seconds_{part}"))
        );
        assert_eq!(CONSUMER_LAG.exposed_labels(), ["messaging_consumer_group_name"]);
    }

    #[test]
    fn bounds_grow() {
        for metric in TABLE {
            if let MetricKind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted_by(|one, other| one < other), "{}", metric.name);
            }
        }
    }
}
